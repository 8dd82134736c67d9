"""Arrays and the devices they lie on."""
from __future__ import annotations

from typing import Any

from lavax.tracer.pytrees.pytree import map
from lavax.tracer.tracing.convert import lift
from lavax.tracer.values.array import Array
from lavax.tracer.values.backend import active


def devices() -> list[Any]:
    """The devices there are, best first. Raises DeviceError where there is none."""
    return active().devices()


def default_device() -> Any:
    """The one of `devices()` that everything runs on: the best, or the one that LAVAX_DEVICE chooses.

    Raises DeviceError where there is none.
    """
    return active().default_device()


def device_put(tree: Any) -> Any:
    """The same tree with its numbers and NumPy arrays on the device. Does not wait."""
    return map(_on_device, tree)


def _on_device(leaf: Any) -> Any:
    value = lift(leaf)
    if isinstance(value, Array):
        _ = value.buffer
    return value
