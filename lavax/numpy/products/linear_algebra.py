"""Products of vectors, matrices and stacks of them, and traces."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.base import config
from lavax.ir.types import bool_, float32, int32
from lavax.numpy._core.application import as_truth
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy.arrays.complex_parts import conj
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.arrays.matrices import diagonal
from lavax.numpy.elementwise.arithmetic import multiply
from lavax.numpy.products.element_types import with_element_type
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer import bind
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["dot", "inner", "matmul", "outer", "tensordot", "trace", "vdot"]

AxisPair = tuple[Sequence[int], Sequence[int]]


def precision_attributes(function: str, left: Value, precision: str | None = None) -> dict[str, Any]:
    """The precision that a dot or conv of operands like `left` records: the given one, or `lx.matmul_precision`'s.

    Raises ValueError, naming `function`, for a precision that does not exist.
    """
    chosen, backward = config.chosen_matmul_precision()
    own = config.precision_of_product(function, precision)
    if own is not None:
        chosen = own
    if left.type.dtype != float32 or not (chosen or backward):
        return {}
    return {"precision": chosen, "backward": backward}


def contracted(
    left: Value, right: Value, contract: AxisPair, batch: AxisPair = ((), ()), precision: str | None = None
) -> Value:
    """The sum of products over the axes `contract`, per position of the axes `batch`; both of one dtype.

    The result's axes: batch, then the others of `left`, then the others of `right`. The sum of truth values is
    whether any product is true. `precision` None: that of `lx.matmul_precision`.
    """
    if left.type.dtype == bool_:
        return as_truth(contracted(cast(left, int32), cast(right, int32), contract, batch))
    pairs = (tuple(contract[0]), tuple(contract[1])), (tuple(batch[0]), tuple(batch[1]))
    rounding = precision_attributes("dot", left, precision)
    return bind("dot", left, right, contract=pairs[0], batch=pairs[1], **rounding)


def _product_error(name: str, left: Value, right: Value, reason: str) -> Exception:
    return shape_error(
        f"{name}: shapes {left.shape} and {right.shape} do not fit: {reason}; "
        f"the operands are {left.type} and {right.type}"
    )


def _require_inner(name: str, left: Value, right: Value, left_axis: int, right_axis: int) -> None:
    first, second = left.shape[left_axis], right.shape[right_axis]
    if first != second:
        reason = f"axis {left_axis} of the left has {first}, axis {right_axis} of the right {second}"
        raise _product_error(name, left, right, reason)


@with_element_type
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    precision: str | None = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """The matrix product over the last two axes; the axes before these broadcast.

    A vector is a row on the left and a column on the right, and its axis is not in the result.
    `precision`: the dtype to which float32 operands are rounded, "float32", "bfloat16" or "float16". None: that of
    `lx.matmul_precision`, which also chooses the precision of gradients. JAX's names are taken, too: "highest" is
    "float32". `preferred_element_type`: the dtype of the result, in which products are summed if it is wider than that
    of the operands.
    Raises ShapeError if the inner extents differ, and for scalars; ValueError for another precision.
    """
    left, right = common_dtype([a, b])
    if not left.ndim or not right.ndim:
        raise _product_error("matmul", left, right, "each needs at least one axis")
    inner = max(right.ndim - 2, 0)
    _require_inner("matmul", left, right, -1, -1 if right.ndim == 1 else -2)
    left_stack, right_stack = left.shape[:-2], right.shape[:-2]
    if not left_stack or not right_stack:
        return _matmul_of_one(left, right, inner, precision)
    return _matmul_of_stacks(left, right, precision)


def _matmul_of_one(left: Value, right: Value, inner: int, precision: str | None) -> Value:
    """If one side has no stack: its axes are free, and nothing is repeated."""
    product = contracted(left, right, ((left.ndim - 1,), (inner,)), precision=precision)
    if right.ndim < 3 or left.ndim == 1:
        return product
    stack = range(1, right.ndim - 1)
    return transposed(product, [*stack, 0, right.ndim - 1])


def _matmul_of_stacks(left: Value, right: Value, precision: str | None) -> Value:
    """Equal extents are batch axes; an extent of 1 against another is dropped, so that nothing is repeated."""
    rank = max(left.ndim, right.ndim) - 2
    of_left = _stack_axes(left, rank)
    of_right = _stack_axes(right, rank)
    for place, (a, b) in enumerate(zip(of_left, of_right, strict=True)):
        if a is None or b is None or left.shape[a] == right.shape[b]:
            continue
        if left.shape[a] == 1:
            of_left[place] = None
        elif right.shape[b] == 1:
            of_right[place] = None
        else:
            reason = f"axis {place - rank - 2} has {left.shape[a]} and {right.shape[b]}"
            raise _product_error("matmul", left, right, reason)
    left, of_left = _without_dropped(left, of_left)
    right, of_right = _without_dropped(right, of_right)
    both = [place for place in range(rank) if of_left[place] is not None and of_right[place] is not None]
    batch = [axis for place in both if (axis := of_left[place]) is not None], [
        axis for place in both if (axis := of_right[place]) is not None
    ]
    product = contracted(left, right, ((left.ndim - 1,), (right.ndim - 2,)), batch, precision)
    left_only = [place for place in range(rank) if place not in both and of_left[place] is not None]
    right_only = [place for place in range(rank) if place not in both and of_right[place] is not None]
    made = [*both, *left_only, rank, *right_only, rank + 1]
    return transposed(product, [made.index(place) for place in range(rank + 2)])


def _stack_axes(value: Value, rank: int) -> list[int | None]:
    """For each stack axis of the result, the operand's axis, or None if it has none."""
    missing = rank - (value.ndim - 2)
    return [None] * missing + list(range(value.ndim - 2))


def _without_dropped(value: Value, axes: list[int | None]) -> tuple[Value, list[int | None]]:
    """`value` without the stack axes that `axes` no longer names, and the new positions of the others."""
    kept = [axis for axis in axes if axis is not None]
    shape = tuple(value.shape[axis] for axis in kept) + value.shape[-2:]
    count = iter(range(len(kept)))
    return reshaped(value, shape), [None if axis is None else next(count) for axis in axes]


@with_element_type
def dot(
    a: ArrayLike,
    b: ArrayLike,
    precision: str | None = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """NumPy's dot: a product with scalars, else the sum over the last axis of `a` and the second to last of `b`.

    The result has the other axes of `a`, then those of `b`. `precision` and `preferred_element_type` are as in
    `matmul`. Raises ShapeError if the two extents differ, ValueError for another precision.
    """
    left, right = common_dtype([a, b])
    if not left.ndim or not right.ndim:
        return multiply(a, b)
    inner = max(right.ndim - 2, 0)
    _require_inner("dot", left, right, -1, -1 if right.ndim == 1 else -2)
    return contracted(left, right, ((left.ndim - 1,), (inner,)), precision=precision)


@with_element_type
def inner(
    a: ArrayLike, b: ArrayLike, *, precision: str | None = None, preferred_element_type: Any = None
) -> Value:
    """The sum of products over the last axis of both; a product with scalars.

    `precision` and `preferred_element_type` are as in `matmul`.
    """
    left, right = common_dtype([a, b])
    if not left.ndim or not right.ndim:
        return multiply(a, b)
    _require_inner("inner", left, right, -1, -1)
    return contracted(left, right, ((left.ndim - 1,), (right.ndim - 1,)), precision=precision)


@with_element_type
@one_program("precision", "preferred_element_type", scalars=True)
def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: str | None = None, preferred_element_type: Any = None
) -> Value:
    """The sum of products of all elements, in row-major order.

    `precision` and `preferred_element_type` are as in `matmul`.
    """
    left, right = (ravel(value) for value in common_dtype([a, b]))
    _require_inner("vdot", left, right, 0, 0)
    return contracted(conj(left), right, ((0,), (0,)), precision=precision)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Value:
    """All products of an element of `a` and one of `b`, both flattened, as a matrix."""
    refuse_out("outer", out)
    left, right = (ravel(value) for value in common_dtype([a, b]))
    return multiply(reshaped(left, (left.size, 1)), right)


@with_element_type
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: str | None = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Value:
    """The sum of products over `axes`: the last n of `a` and the first n of `b`, or a pair (of `a`, of `b`).

    The result has the other axes of `a`, then those of `b`. `precision` and `preferred_element_type` are
    as in `matmul`.
    Raises ShapeError if extents differ.
    """
    left, right = common_dtype([a, b])
    of_left, of_right = _tensordot_axes(left, right, axes)
    if len(of_left) != len(of_right):
        raise _product_error("tensordot", left, right, f"axes name {len(of_left)} and {len(of_right)} axes")
    for first, second in zip(of_left, of_right, strict=True):
        _require_inner("tensordot", left, right, first, second)
    return contracted(left, right, (of_left, of_right), precision=precision)


def _tensordot_axes(
    left: Value, right: Value, axes: int | Sequence[int] | Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, int):
        if not 0 <= axes <= min(left.ndim, right.ndim):
            raise _product_error("tensordot", left, right, f"there are no {axes} axes to sum over")
        return tuple(range(left.ndim - axes, left.ndim)), tuple(range(axes))
    if len(axes) != 2:
        raise _product_error("tensordot", left, right, f"axes must be a number or a pair, got {axes}")
    return normal_axes("tensordot", axes[0], left.type), normal_axes("tensordot", axes[1], right.type)


def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Value:
    """The sums of the `offset`-th diagonals of the matrices in the axes `axis1` and `axis2`."""
    refuse_out("trace", out)
    return sum_over(diagonal(a, offset, axis1, axis2), -1, dtype)
