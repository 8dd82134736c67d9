"""Further methods of arrays and traced values, by name."""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from lavax.ir.types import uint8
from lavax.numpy._core.application import as_truth
from lavax.numpy._core.devices import require_device
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import cast
from lavax.numpy.analysis import quantiles
from lavax.numpy.arrays import complex_parts, creation, matrices, tiling
from lavax.numpy.arrays.exchange import dlpack_device, to_dlpack
from lavax.numpy.elementwise.bit_patterns import reinterpreted
from lavax.numpy.indexing import nonzero, selecting, taking
from lavax.numpy.indexing.indexed_update import At
from lavax.numpy.methods.writing import refuse_write
from lavax.numpy.products import linear_algebra
from lavax.numpy.reductions import cumulative
from lavax.numpy.sorting import searching, sorting
from lavax.tracer.tracing.abstract_evaluation import typeof
from lavax.tracer.tracing.placement import default_device, device_put
from lavax.tracer.tracing.sharding import is_committed, shard_data, sharding_of, shards_of
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value


def _namespace(self: Value, /, *, api_version: str | None = None) -> ModuleType:
    """lavax.numpy; `api_version` is one of the array API standard's, up to 2024.12."""
    from lavax import numpy  # late: it imports this module
    from lavax.numpy.types.namespace_info import array_api_version

    if api_version is not None and api_version not in ("2021.12", "2022.12", "2023.12", array_api_version):
        raise ValueError(f"lavax.numpy follows the array API standard up to {array_api_version}, not {api_version!r}")
    return numpy


def _device(self: Value) -> Any:
    return default_device()


# Of numbers and of random keys: where an array is, and its shape and dtype.
PLACES: dict[str, Callable[..., Any] | property] = {
    "addressable_data": shard_data,
    "addressable_shards": property(shards_of, doc="The parts of the array, one per device: all of it."),
    "aval": property(typeof, doc="The shape, dtype and weakness, also of a traced value."),
    "committed": property(is_committed, doc="False: there is no other device that the array could be kept from."),
    "device": property(_device, doc="The device that holds the array."),
    "devices": lambda self: {default_device()},
    "global_shards": property(shards_of, doc="As `addressable_shards`."),
    "is_fully_addressable": property(lambda self: sharding_of(self).is_fully_addressable, doc="True."),
    "is_fully_replicated": property(lambda self: sharding_of(self).is_fully_replicated, doc="True."),
    "on_device_size_in_bytes": lambda self: self.size * self.dtype.itemsize,
    "sharding": property(sharding_of, doc="Where the array's parts are: on the one device."),
}


def _to_device(self: Value, device: Any, /, *, stream: Any = None) -> Value:
    """The array on `device`, which must be the one device. Raises ValueError for another."""
    require_device("to_device", device)
    return device_put(self) if isinstance(self, Array) else self


def _is_deleted(self: Value) -> bool:
    """Whether the memory of the array was donated to a call."""
    return isinstance(self, Array) and self.is_donated


def _copy_to_host_async(self: Value) -> None:
    """Nothing: the numbers are copied when they are read."""


def _view(self: Value, dtype: Any) -> Value:
    """The bits of the elements as those of another dtype: of another width, the last axis grows or shrinks.

    Truth values are bytes, 0 or 1, and bytes that are not 0 are true. Raises ShapeError for a last axis that cannot be
    divided.
    """
    held = canonical_dtype(dtype)
    if held.kind == "bool" and self.type.dtype.kind != "bool":
        return as_truth(_view(self, "uint8"))
    if self.type.dtype.kind == "bool" and held.kind != "bool":
        self = cast(self, uint8)
    count = held.bits // self.type.dtype.bits
    if count > 1:
        if not self.ndim or self.shape[-1] % count:
            raise shape_error(f"view: the last axis of {self.type} is not made of {held.user_name}, {count} by {count}")
        self = reshaped(self, (*self.shape[:-1], self.shape[-1] // count, count))
    elif self.type.dtype.bits > held.bits and not self.ndim:
        raise shape_error(f"view: {self.type} has no axis that could grow")
    found = reinterpreted("view", self, held)
    return reshaped(found, (*found.shape[:-2], prod(found.shape[-2:]))) if found.ndim > self.ndim else found


METHODS: dict[str, Callable[..., Any] | property] = {
    **PLACES,
    "__array_namespace__": _namespace,
    "__dlpack__": to_dlpack,
    "__dlpack_device__": dlpack_device,
    "__setitem__": refuse_write,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "at": property(At, doc="Places to update: `x.at[key].set(y)`."),
    "choose": selecting.choose,
    "clone": creation.copy,
    "compress": lambda self, condition, axis=None: selecting.compress(condition, self, axis),
    "conj": complex_parts.conj,
    "conjugate": complex_parts.conj,
    "copy": creation.copy,
    "copy_to_host_async": _copy_to_host_async,
    "cumprod": cumulative.cumprod,
    "cumsum": cumulative.cumsum,
    "diagonal": matrices.diagonal,
    "imag": property(complex_parts.imag, doc="The imaginary parts; zeros for real numbers."),
    "is_deleted": _is_deleted,
    "itemsize": property(lambda self: self.dtype.itemsize, doc="The bytes of an element."),
    "nbytes": property(lambda self: self.size * self.dtype.itemsize, doc="The bytes of all elements."),
    "nonzero": nonzero.nonzero,
    "ptp": quantiles.ptp,
    "real": property(complex_parts.real, doc="The real parts; real numbers as they are."),
    "repeat": tiling.repeat,
    "searchsorted": searching.searchsorted,
    "sort": sorting.sort,
    "take": taking.take,
    "to_device": _to_device,
    "tobytes": lambda self, order="C": np.asarray(self).tobytes(order),
    "trace": linear_algebra.trace,
    "view": _view,
    "weak_type": property(lambda self: self.weak, doc="Whether it yields to other dtypes, as Python's numbers do."),
}
