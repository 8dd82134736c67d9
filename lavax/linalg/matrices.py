"""Arguments as stacks of matrices, and the parts of decompositions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from lavax.ir.ops.linear_algebra import parts_of
from lavax.ir.types import TensorType
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.complex_parts import conj
from lavax.numpy.arrays.creation import eye
from lavax.numpy.arrays.manipulation import matrix_transpose
from lavax.numpy.elementwise.arithmetic import add, multiply
from lavax.tracer import bind, with_weak
from lavax.tracer.values.value import Value


def epsilon(value: Value) -> float:
    """The distance from 1 to the next number of the dtype."""
    return float(np.finfo(value.type.dtype.numpy).eps)


def matrices(name: str, x: ArrayLike) -> Value:
    """`x` as matrices of floats. Raises ShapeError for fewer than two axes."""
    value = with_weak(as_floating(x), False)
    if value.ndim < 2:
        raise shape_error(f"{name} takes matrices: the argument must have at least two axes, got {value.type}")
    return value


def square_matrices(name: str, x: ArrayLike) -> Value:
    """`x` as square matrices of floats. Raises ShapeError if they are not square."""
    value = matrices(name, x)
    if value.shape[-1] != value.shape[-2]:
        raise shape_error(f"{name} takes square matrices: the last two axes must agree, got {value.type}")
    return value


def is_empty(value: Value) -> bool:
    """Whether the matrices have no elements."""
    return 0 in value.shape[-2:]


def symmetric_part(value: Value) -> Value:
    """(x + xᴴ) / 2, so that gradients are symmetric too."""
    return multiply(add(value, matrix_transpose(conj(value))), 0.5)


def unit_matrices(value: Value, size: int) -> Value:
    """Unit matrices of that size, one per matrix in `value`."""
    return broadcast_to(eye(size, dtype=value.dtype), (*value.shape[:-2], size, size))


class Parts:
    """The parts that a decomposition returns, one by one."""

    def __init__(self, op: str, value: Value, **attrs: bool) -> None:
        settings: dict[str, Any] = dict(attrs)
        self._packed = bind(op, value, **settings)
        self._offsets = parts_of(op, TensorType(value.shape, value.type.dtype), attrs)

    def __getitem__(self, name: str) -> Value:
        start, shape = self._offsets[name]
        *stack, _ = self._packed.shape
        return reshaped(cut(self._packed, len(stack), start, start + prod(shape)), (*stack, *shape))

    @property
    def packed(self) -> Value:
        return self._packed


def chosen_part(name: str, subset_by_index: Any) -> slice:
    """The part [start, end) of values. Raises TypeError for anything but two whole numbers."""
    if not isinstance(subset_by_index, (tuple, list)) or list(map(type, subset_by_index)) != [int, int]:
        raise TypeError(f"{name}: subset_by_index must be (start, end), two whole numbers, got {subset_by_index!r}")
    return slice(*subset_by_index)
