"""Sorting of one array or of several together, and the greatest elements."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.sorting.sorting import greatest
from lavax.tracer.values.value import Value


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements in ascending order along an axis; of a sequence of arrays, in the order of the first `num_keys`.

    Returns an array, or a tuple of arrays. Raises ShapeError for arrays of several shapes.
    """
    if not isinstance(operand, (tuple, list)):
        return lnp.sort(operand, axis=dimension, stable=is_stable)
    values = [as_value(each) for each in operand]
    if not 1 <= num_keys <= len(values) or len({value.shape for value in values}) > 1:
        raise shape_error(
            f"lax.sort: arrays of one shape, of which num_keys={num_keys} are keys, got "
            f"{', '.join(str(value.type) for value in values)}"
        )
    along = normal_axis("lax.sort", dimension, values[0].type)
    order: Any = None
    for key in reversed(values[:num_keys]):
        held = key if order is None else lnp.take_along_axis(key, order, axis=along)
        found = lnp.argsort(held, axis=along, stable=True)
        order = found if order is None else lnp.take_along_axis(order, found, axis=along)
    return tuple(lnp.take_along_axis(value, order, axis=along) for value in values)


def sort_key_val(keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """Keys in ascending order along an axis, and their values."""
    found: tuple[Any, Any] = sort((keys, values), dimension, is_stable)
    return found


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Value, Value]:
    """The k greatest elements along an axis, in descending order, and their positions.

    NaN counts as greatest, and zero as greater than minus zero. Raises ShapeError if there are fewer than `k`.
    """
    values, places = greatest(operand, k, axis, signed_zeros=True)
    return values, places


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Value, Value]:
    """As `top_k`, but zeros are equal: nothing is approximated here."""
    values, places = lnp.top_k(operand, k, axis=reduction_dimension)
    return values, places


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Value, Value]:
    """The k least elements in ascending order, and their positions: nothing is approximated here."""
    value = as_value(operand)
    along = normal_axis("lax.approx_min_k", reduction_dimension, value.type)
    order = lnp.argsort(value, axis=along)
    first: Sequence[Any] = (slice(None),) * along + (slice(0, k),)
    places = order[tuple(first)]
    return lnp.take_along_axis(value, places, axis=along), lnp.astype(places, lnp.int32)
