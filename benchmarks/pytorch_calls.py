"""The time of PyTorch's calls on a CUDA device, for comparison in benchmarks other than `comparison`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

# A call repeats for this many seconds, and this many times before each wait.
_SECONDS, _TOGETHER = 0.2, 10


def pytorch() -> Any | None:
    """PyTorch, set to strict float32; None if it is not installed or has no CUDA device."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


def seconds_a_call(call: Callable[[], Any], torch: Any) -> float:
    """Seconds by the clock over calls in flight, after a warm-up call."""
    call()
    torch.cuda.synchronize()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < _SECONDS:
        for _ in range(_TOGETHER):
            call()
        torch.cuda.synchronize()
        calls += _TOGETHER
    return (time.perf_counter() - start) / calls
