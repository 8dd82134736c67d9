"""Entries chosen by truth values, and writing along an axis."""
from __future__ import annotations

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.application import as_truth
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, Scalar, as_value, cast, scalar_as
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.data_dependent import USE_SIZE, true_places
from lavax.numpy.arrays.manipulation import ravel, reshaped
from lavax.numpy.elementwise.comparison import where
from lavax.numpy.indexing.advanced_indexing import as_index
from lavax.numpy.indexing.taking import take
from lavax.tracer import bind, constant
from lavax.tracer.values.value import Value

__all__ = ["compress", "extract", "put_along_axis"]


def extract(condition: ArrayLike, x: ArrayLike, *, size: int | None = None, fill_value: Scalar = 0) -> Value:
    """The elements of the flattened `x` where the flattened `condition` is true; `size` as in `compress`."""
    return compress(ravel(condition), ravel(x), 0, size=size, fill_value=fill_value)


def compress(
    condition: ArrayLike, x: ArrayLike, axis: int | None = None, *, size: int | None = None, fill_value: Scalar = 0
) -> Value:
    """The entries of `x` along `axis` (None: of the flattened array) where `condition`, of one axis, is true.

    `size` is how many are given: the first so many, then entries of `fill_value`, cast to the dtype of `x`. Needed
    inside `compile`, where ConcretizationError is raised without it.
    """
    value = as_value(x)
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("compress", axis, value.type)
    mask = as_truth(condition)
    if mask.ndim != 1 or mask.size > value.shape[along]:
        raise shape_error(f"compress: {mask.type} does not choose along axis {along} of {value.type}")
    places, is_one = true_places("compress", mask, size, USE_SIZE)
    if is_one is None:
        return take(value, places, along)
    filling = constant(scalar_as(fill_value, value.type.dtype), value.type.with_shape(()))
    if not value.shape[along]:
        return broadcast_to(filling, tuple(places.size if d == along else n for d, n in enumerate(value.shape)))
    shape = tuple(is_one.size if d == along else 1 for d in range(value.ndim))
    return where(reshaped(is_one, shape), take(value, places, along), filling)


def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None) -> Value:
    """A new array: `x` with `values` at the positions along `axis` (None: flattened) that `indices` say.

    `indices` has the rank of `x` and broadcasts at the other axes; `values` is broadcast to it. Where a place is
    named twice, the last value stands. Raises an IndexError for a known position outside; computed ones are dropped.
    """
    value = as_value(x)
    if axis is None:
        return reshaped(put_along_axis(ravel(value), ravel(indices), values, 0), value.shape)
    along = normal_axis("put_along_axis", axis, value.type)
    positions = as_index(indices, along, value.shape[along], value.type).positions
    if positions.ndim != value.ndim:
        raise shape_error(f"put_along_axis: {positions.type} gives no positions along axis {along} of {value.type}")
    shape = tuple(positions.shape[d] if d == along else extent for d, extent in enumerate(value.shape))
    kind = TensorType(shape, int32)
    places = [broadcast_to(positions, shape) if d == along else iota(kind, d) for d in range(value.ndim)]
    updates = broadcast_to(cast(as_value(values), value.type.dtype), shape)
    return bind("scatter_set", value, updates, *places, axes=tuple(range(value.ndim)))
