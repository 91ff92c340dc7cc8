"""databuild turns chat data into fixed-length DeepSeek-V4 training rows with provable loss masks.

The way of the bytes, one direction, each arrow a typed value:
`Source -> permutation -> Conversation -> Segments -> EncodedBatch -> Rows -> shards + manifest -> verify | inspect`.
`databuild.build` is the only module that wires these together. Nothing here imports torch.
"""

__version__ = "0.1.0"
