"""What `python -m train.planner.fit` found; run it again after a change of points.yaml or of the model."""

from train.planner.memory import Coefficients

FITTED = Coefficients(saved=1.59, logit=8.15, working=12.05)
#: No held-out peak but one is further off than this (README.md): predictions within it of a limit are "tight".
MARGIN = 0.10
#: Share of a GPU that is not there for tensors: 129 GiB reserved for 124 allocated in the published 8K run.
RESERVE = 1 - 124 / 129
