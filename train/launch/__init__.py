"""From a recipe to a command: checks before the start, the command of each engine, job scripts."""
