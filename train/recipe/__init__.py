"""Recipes: a run as one YAML file whose figures are computed, not copied.

load (YAML to model), facts (model shapes, GPU peaks), derive (the formulas), check (checks_layout, checks_workload,
checks_result, checks_run, checks_evidence: each figure beside what the file says), evidence (what a run shows), mutate and
underived (what nothing proves), diff (layout, numerics or neither), report (text and JSON). make_card goes from a finished run
(run_files, from_run, card, write) to its recipe and its verification card.

Needs neither torch nor megatron-core. train/recipes/README.md has the schema.
"""
