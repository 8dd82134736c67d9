"""Chains of products, and systems of equations between tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from lavax.linalg.solving import inv, solve
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.arrays.manipulation import moveaxis
from lavax.numpy.products.linear_algebra import matmul
from lavax.tracer.values.value import Value


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Value:
    """The product of two or more matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors. `precision` is taken as JAX takes it, and changes nothing. Raises ShapeError
    for fewer than two arrays, for arrays of other ranks and for extents that do not fit.
    """
    values = [as_value(array) for array in arrays]
    ranks = [value.ndim for value in values]
    inner = all(rank == 2 for rank in ranks[1:-1])
    if len(values) < 2 or not inner or not {1, 2}.issuperset((ranks[0], ranks[-1])):
        given = ", ".join(str(value.type) for value in values)
        raise shape_error(
            f"multi_dot takes two or more matrices, of which the first and the last may be vectors, got {given}"
        )
    for left, right in pairwise(values):
        if left.shape[-1] != right.shape[0]:
            raise shape_error(f"multi_dot: {left.type} and {right.type} do not fit")
    heads = [1 if ranks[0] == 1 else values[0].shape[0], *(value.shape[0] for value in values[1:])]
    extents = [*heads, 1 if ranks[-1] == 1 else values[-1].shape[1]]
    return _product(values, _best_splits(extents), 0, len(values) - 1)


def _best_splits(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """For each run of matrices, the last one of its left part (Cormen et al., Introduction to Algorithms, 15.2)."""
    count = len(extents) - 1
    costs = {(start, start): 0 for start in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for start in range(count - length):
            end = start + length

            def cost(split: int, start: int = start, end: int = end) -> int:
                outer = extents[start] * extents[split + 1] * extents[end + 1]
                return costs[start, split] + costs[split + 1, end] + outer

            splits[start, end] = min(range(start, end), key=cost)
            costs[start, end] = cost(splits[start, end])
    return splits


def _product(values: Sequence[Value], splits: dict[tuple[int, int], int], start: int, end: int) -> Value:
    if start == end:
        return values[start]
    split = splits[start, end]
    return matmul(_product(values, splits, start, split), _product(values, splits, split + 1, end))


def tensorinv(a: ArrayLike, ind: int = 2) -> Value:
    """The inverse of `a` as a map from its last axes to its first `ind` ones: `tensordot(tensorinv(a), a, ind)` is one.

    Raises ShapeError unless both groups of axes have as many elements, ValueError unless `ind` is positive.
    """
    value = as_value(a)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be positive, got {ind}")
    first, last = value.shape[:ind], value.shape[ind:]
    if prod(first) != prod(last):
        raise shape_error(f"tensorinv: the first {ind} axes of {value.type} need as many elements as the others")
    return reshaped(inv(reshaped(value, (prod(first), prod(last)))), (*last, *first))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Value:
    """x with `tensordot(a, x, x.ndim)` = b; `axes` of `a` are moved behind the others first.

    Raises ShapeError if `b` has not the leading axes of `a`, or `a` is not square as a map between tensors.
    """
    value, right = as_value(a), as_value(b)
    if axes is not None:
        value = moveaxis(value, tuple(axes), tuple(range(value.ndim - len(axes), value.ndim)))
    wanted = value.shape[right.ndim :]
    if value.shape[: right.ndim] != right.shape or prod(wanted) != right.size:
        raise shape_error(f"tensorsolve: {value.type} does not map tensors of some shape onto all of {right.type}")
    found = solve(reshaped(value, (right.size, prod(wanted))), reshaped(right, (right.size,)))
    return reshaped(found, wanted)
