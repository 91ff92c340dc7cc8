"""DeepSeek-V4 as plain PyTorch modules under megatron-core's parallelism; README.md beside this file says what is where."""
