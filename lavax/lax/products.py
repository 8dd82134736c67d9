"""Products of matrices, and of any axes."""
from __future__ import annotations

import enum
import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class Precision(enum.Enum):
    """How precise products are: JAX's names. HIGHEST is float32, HIGH and DEFAULT what the setting says."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


PrecisionLike = Precision | str | tuple[Any, Any] | None


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """The sums of products over contracted axes: ((of lhs, of rhs), (batch axes of lhs, of rhs)).

    The result's axes are the batch's, the others of lhs, the others of rhs. `preferred_element_type` is the dtype of
    the sums and of the result. Raises ShapeError if extents differ.
    """
    left, right = as_value(lhs), as_value(rhs)
    (of_left, of_right), (batch_left, batch_right) = dimension_numbers
    letters = iter(string.ascii_letters)
    names_left, names_right = [next(letters) for _ in left.shape], [next(letters) for _ in right.shape]
    for here, there in (*zip(of_left, of_right, strict=True), *zip(batch_left, batch_right, strict=True)):
        if left.shape[here] != right.shape[there]:
            raise shape_error(
                f"lax.dot_general: axis {here} of {left.type} and axis {there} of {right.type} have different extents"
            )
        names_right[there] = names_left[here]
    batch = [names_left[axis] for axis in batch_left]
    rest = [names_left[axis] for axis in range(left.ndim) if axis not in (*of_left, *batch_left)]
    rest += [names_right[axis] for axis in range(right.ndim) if axis not in (*of_right, *batch_right)]
    text = f"{''.join(names_left)},{''.join(names_right)}->{''.join((*batch, *rest))}"
    return lnp.einsum(
        text, left, right, precision=precision, preferred_element_type=preferred_element_type
    )


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
