"""Small functions that torch.compile turns into one kernel each, when a run asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

_compiling = False


def compile_fused(on: bool) -> None:
    """Whether fused functions are compiled from now on; off they run operation by operation."""
    global _compiling
    _compiling = on
    if on:
        # Each size of a function that is not dynamic is compiled anew, with and without gradients; after 8 torch would stop.
        torch._dynamo.config.recompile_limit = 64


def fused(dynamic: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of tensors that may be compiled; dynamic: for any size, because it is called with many."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled = None

        @wraps(function)
        def call(*args: Any) -> Any:
            nonlocal compiled
            if not _compiling:
                return function(*args)
            if compiled is None:
                compiled = torch.compile(function, dynamic=dynamic)
            return compiled(*args)

        return call

    return wrap
