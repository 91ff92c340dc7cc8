"""Megatron-core on a machine without a GPU: its CUDA calls go to the CPU, its collectives to gloo. For tests and trials."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")


def _is_cuda(device: Any) -> bool:
    return (isinstance(device, str) and device.startswith("cuda")) or (
        isinstance(device, torch.device) and device.type == "cuda"
    )


class _CudaToCpu(TorchFunctionMode):
    """Answers what Megatron asks of CUDA tensors with CPU tensors."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to and len(args) > 1 and _is_cuda(args[1]):
            return args[0] if len(args) == 2 and not kwargs else args[0].to(*args[2:], **kwargs)
        if _is_cuda(kwargs.get("device")):
            kwargs = {**kwargs, "device": CPU}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if func is torch.Tensor.type and len(args) == 1 and not kwargs:
            # Megatron sorts gradients into buckets by the name of the tensor type and knows only the names of CUDA types.
            return func(*args).replace("torch.", "torch.cuda.", 1)
        return func(*args, **kwargs)


class _Stub:
    """A stream or an event of a machine that has none."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: _Stub()


_mode: _CudaToCpu | None = None


def install() -> bool:
    """Install the shim where there is no GPU; True when it is in place. Must run before a model is built."""
    global _mode
    if torch.cuda.is_available():
        return False
    if _mode is not None:
        return True
    cuda: Any = torch.cuda
    cuda.current_device = lambda: CPU
    cuda.synchronize = cuda.empty_cache = lambda *_, **__: None
    cuda.get_rng_state = cuda.random.get_rng_state = lambda *_, **__: torch.get_rng_state()
    cuda.set_rng_state = cuda.random.set_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    cuda.manual_seed = torch.manual_seed
    cuda.nvtx.range_push = cuda.nvtx.range_pop = lambda *_, **__: None
    cuda.Stream = cuda.Event = _Stub
    cuda.stream = lambda _: contextlib.nullcontext()
    cuda.current_stream = cuda.default_stream = lambda *_: _Stub()

    import megatron.core.tensor_parallel.random as rng
    import megatron.core.transformer.moe.token_dispatcher as dispatcher

    rng._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    rng._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    logging.getLogger(rng.__name__).addFilter(lambda record: "CPU RNG state changed" not in record.getMessage())
    dispatcher.maybe_move_tensor_to_cpu = lambda tensor, as_numpy=False, record_stream=False: (
        tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor
    )
    _mode = _CudaToCpu()
    _mode.__enter__()
    return True
