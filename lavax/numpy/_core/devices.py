"""The `device` and `copy` arguments of the array API standard: there is one device, and no array is a view."""
from __future__ import annotations

from typing import Any

from lavax.numpy._core.operands import ArrayLike
from lavax.tracer import bind
from lavax.tracer.tracing.placement import default_device
from lavax.tracer.tracing.sharding import device_in
from lavax.tracer.values.value import Value


def require_device(name: str, device: Any) -> None:
    """Raises ValueError if `device` is neither None nor the one device, or its sharding."""
    if device is not None and device_in(device) != default_device():
        raise ValueError(f"{name}: arrays are made on {default_device()!r} only, got device={device!r}")


def copied(name: str, x: ArrayLike, result: Value, copy: bool | None) -> Value:
    """`result`, which was made from `x`, with its own memory if `copy`.

    Raises ValueError if `copy` is False and `result` is not `x` itself.
    """
    if copy is False and result is not x:
        raise ValueError(f"{name}: this takes a copy, so copy must not be False")
    return bind("reshape", result, type=result.type) if copy and result is x else result
