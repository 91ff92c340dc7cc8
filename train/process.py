"""The process: its rank, its device, its part in torch.distributed, and what makes its arithmetic repeatable."""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist


def quiet() -> None:
    """Leave out what Megatron warns of at each start; to be called before it is imported."""
    for text in (".*(Transformer Engine|Apex).*", ".*attribute of a Tensor that is not a leaf.*", ".*deprecat.*"):
        warnings.filterwarnings("ignore", text)
    logging.getLogger("megatron").setLevel(logging.ERROR)


def start(deterministic: bool) -> tuple[int, int]:
    """(rank, world size), with torch.distributed up: NCCL and one GPU a process, or gloo on a CPU.

    Without torchrun's environment the process is alone.
    """
    if "RANK" not in os.environ:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if deterministic:
        repeatable()
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo", timeout=timedelta(minutes=10))
        if dist.get_rank() == 0:
            print("no GPU here: training on the CPU through gloo, for tests and trials only", file=sys.stderr)
    return dist.get_rank(), dist.get_world_size()


def repeatable() -> None:
    """Make every step bitwise repeatable in the same layout; slower. Must run before the first CUDA call."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    os.environ["NCCL_ALGO"] = "Ring"
    # warn_only is not enough: it leaves the nondeterministic kernels in.
    torch.use_deterministic_algorithms(True)


def any_rank(flag: bool) -> bool:
    """Whether any rank says so: all ranks must leave the loop at the same step."""
    seen = torch.tensor(int(flag), device=torch.cuda.current_device())
    dist.all_reduce(seen, op=dist.ReduceOp.MAX)
    return bool(seen.item())


def stop() -> None:
    """Leave torch.distributed."""
    if dist.is_initialized():
        dist.destroy_process_group()
