"""Whether two runs learn the same: reading loss curves, Megatron-Bridge's rule for them, speed side by side, a plot."""
