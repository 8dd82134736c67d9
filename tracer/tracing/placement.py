"""Devices, and arrays placed on them."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.tracer.pytrees.pytree import map
from lavax.tracer.tracing.convert import array_of, lift
from lavax.tracer.values.array import Array
from lavax.tracer.values.backend import active


def devices() -> list[Any]:
    """The available devices, best first. Raises DeviceError if there is none."""
    return active().devices()


def default_device() -> Any:
    """The device of `devices()` that everything runs on: the best, or the one chosen by LAVAX_DEVICE.

    Raises DeviceError if there is none.
    """
    return active().default_device()


def device_put(tree: Any) -> Any:
    """The same tree with its numbers and NumPy arrays on the device. Does not wait; those may change afterwards."""
    return map(_on_device, tree)


def _on_device(leaf: Any) -> Any:
    value = array_of(leaf, borrow=True) if isinstance(leaf, np.ndarray) else lift(leaf)
    if isinstance(value, Array):
        _ = value.buffer
    return value
