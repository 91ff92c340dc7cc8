"""Which layouts a model can be trained in on given GPUs: what is legal, what fits, what is best. See README.md."""
