"""Training on the rows as they are. So far: which rows make a step, and the one shift from rows to labels."""
