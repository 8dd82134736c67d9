"""Devices, and arrays placed on them."""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, overload

import numpy as np

from lavax.base.errors import DeviceError
from lavax.tracer.pytrees.pytree import leaves, map
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import array_of, lift
from lavax.tracer.tracing.sharding import device_in
from lavax.tracer.values.array import Array
from lavax.tracer.values.backend import active

# By the names that JAX gives to kinds of devices, "cpu" or "gpu".
_BACKENDS = {"cpu": "cpu", **dict.fromkeys(("gpu", "cuda", "rocm"), "gpu")}


def devices(backend: str | None = None) -> list[Any]:
    """The available devices, best first; with a `backend`, "cpu" or "gpu", those of that kind.

    Raises DeviceError if there is none, ValueError for another backend.
    """
    found: list[Any] = active().devices()
    if backend is None:
        return found
    if backend not in _BACKENDS:
        raise ValueError(f"devices: backend must be one of {', '.join(_BACKENDS)}, got {backend!r}")
    chosen = [device for device in found if _backend_of(device) == _BACKENDS[backend]]
    if not chosen:
        raise DeviceError(f"devices: there is no device of the kind {backend!r}; there are {found}")
    return chosen


@overload
def default_device() -> Any: ...
@overload
def default_device(new_val: Any) -> AbstractContextManager[None]: ...
def default_device(new_val: Any = None) -> Any:
    """The device of `devices()` that everything runs on: the best, or the one chosen by LAVAX_DEVICE.

    With a `new_val`, as in JAX, a context in which that is so: it has to be the device that everything runs on, or
    None.
    Raises DeviceError if there is no device, ValueError for another one.
    """
    found = active().default_device()
    if new_val is None:
        return found
    require_default("default_device", new_val)
    return nullcontext()


def local_devices(*, backend: str | None = None) -> list[Any]:
    """The devices of this machine: `devices(backend)`."""
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """The number of `devices(backend)`. Everything runs on one of them, `default_device()`."""
    return len(devices(backend))


def process_index(backend: str | None = None) -> int:
    """0: a program is one process on one machine."""
    return 0


def process_count(backend: str | None = None) -> int:
    """1: a program is one process on one machine."""
    return 1


def effects_barrier() -> None:
    """Returns at once: prints and callbacks of a call are done when the call returns."""


def default_backend() -> str:
    """ "gpu" or "cpu": the kind of device that everything runs on, as JAX names it. Raises DeviceError without one."""
    return _backend_of(active().default_device())


def _backend_of(device: Any) -> str:
    return str(getattr(device, "platform", "cpu"))  # the reference interpreter has none


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: bool | None = None
) -> Any:
    """The same tree with its numbers and NumPy arrays on the device. Does not wait; those may change afterwards.

    Everything is on one device: `device`, and `src`, where the arrays are, are taken if they are that one, or its
    sharding. With `donate` the result takes the memory of the arrays, which cannot be used afterwards; if `may_alias`
    is False it is a copy. Raises ValueError for another device, and for `donate` without `may_alias`.
    """
    for each in (device, src):
        if each is not None:
            require_default("device_put", each)
    if donate and may_alias is False:
        raise ValueError("device_put: donate=True hands memory on, which may_alias=False forbids; give one of them")
    if donate:
        return map(_handed_on, x)
    return map(_copied if may_alias is False else _on_device, x)


def device_get(x: Any) -> Any:
    """The same tree with its arrays as NumPy arrays; waits for them. Others stay, and so do traced values."""
    return map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Waits until the numbers of all arrays in the tree are computed; returns the tree."""
    for leaf in leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


def require_default(function: str, device: Any) -> None:
    """Raises ValueError unless `device`, or the one of this sharding, is the one that everything runs on."""
    chosen = active().default_device()
    if device_in(device) != chosen:
        raise ValueError(
            f"{function}: everything runs on one device, {chosen}, which LAVAX_DEVICE chooses; got {device}"
        )


def _on_device(leaf: Any) -> Any:
    value = array_of(leaf, borrow=True) if isinstance(leaf, np.ndarray) else lift(leaf)
    if isinstance(value, Array):
        _ = value.buffer
    return value


def _handed_on(leaf: Any) -> Any:
    value = _on_device(leaf)
    if not isinstance(value, Array) or value is not leaf:
        return value
    buffer, kind = value.buffer, value.abstract
    value.donate()
    return Array(kind, buffer)


def _copied(leaf: Any) -> Any:
    value = _on_device(leaf)
    return bind("reshape", value, type=value.type) if value is leaf else value
