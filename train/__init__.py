"""Supervised fine-tuning on the rows as they are, with Megatron-core and without Transformer Engine.

train.sft is the command. It reads a configuration (config), starts the process (process, cpu_shim) and a run (run): the layout
(layout), the model (model: attention, norm, experts, megatron_fixes), its weights (init, hf), the optimizer (optim). A step
(step, loss) takes a global batch of rows (data, batches), is written down (logs, summary, flops, stack, expert_load, trace,
profile), and now and then saved (checkpoint).
"""
