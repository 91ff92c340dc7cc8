"""The commands of `python -m train`, a module each: parse, call, print. Nothing slow is imported before its use.

They register in the order of the help.
"""

# isort: off
from train.commands import recipe
from train.commands import layout
from train.commands import launch
from train.commands import compare
from train.commands import parity
from train.commands import card

__all__ = ["card", "compare", "launch", "layout", "parity", "recipe"]
