"""Products of matrices, and of any axes."""
from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.products.dot_general import DotDimensionNumbers, dot_general
from lavax.tracer.values.value import Value

__all__ = [
    "DotDimensionNumbers", "Precision", "PrecisionLike", "RaggedDotDimensionNumbers", "batch_matmul", "dot",
    "dot_general", "ragged_dot",
]  # fmt: skip


class Precision(enum.Enum):
    """How precise products are: JAX's names. HIGHEST is float32, HIGH and DEFAULT what the setting says."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


PrecisionLike = Precision | str | tuple[Any, Any] | None


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Value:
    """The product of vectors or matrices; of any axes with `dimension_numbers`, as `dot_general`."""
    left, right = as_value(lhs), as_value(rhs)
    if dimension_numbers is None:
        if not 1 <= left.ndim <= 2 or not 1 <= right.ndim <= 2:
            raise shape_error(f"lax.dot: operands are vectors or matrices, got {left.type} and {right.type}")
        dimension_numbers = (((left.ndim - 1,), (0,)), ((), ()))
    return dot_general(left, right, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: Any = None) -> Value:
    """Products of matrices in the last two axes; the axes before them are equal. Raises ShapeError."""
    left, right = as_value(lhs), as_value(rhs)
    if left.ndim < 2 or left.ndim != right.ndim or left.shape[:-2] != right.shape[:-2]:
        raise shape_error(f"lax.batch_matmul: batches of matrices of one shape, got {left.type} and {right.type}")
    return lnp.matmul(left, right, precision=precision)


class RaggedDotDimensionNumbers(NamedTuple):
    """The axes of `ragged_dot_general`: as in `dot_general`; those of rows in groups; those of groups of rhs."""

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Rows [m, k], of which each of g groups in order is multiplied by its own matrix of rhs [g, k, n]: [m, n].

    Rows beyond all groups give 0. `out_sharding` is taken, and changes nothing.
    """
    left, right, sizes = as_value(lhs), as_value(rhs), as_value(group_sizes)
    if left.ndim != 2 or right.ndim != 3 or sizes.shape != right.shape[:1] or left.shape[1] != right.shape[1]:
        raise shape_error(f"lax.ragged_dot: [m, k], [g, k, n] and [g], got {left.type}, {right.type}, {sizes.type}")
    ends = lnp.cumsum(lnp.astype(sizes, lnp.int32))
    rows = lnp.arange(left.shape[0], dtype=lnp.int32)
    group = lnp.sum(rows[:, None] >= ends[None, :], axis=1)
    member = lnp.astype(group[:, None] == lnp.arange(right.shape[0]), left.dtype)
    return lnp.einsum(
        "mg,mk,gkn->mn", member, left, right,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip
