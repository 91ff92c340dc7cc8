"""A build as a dataset folder for the hub: its card, its description, and the way there."""
