"""Element types and tensor types."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

_RANGES = {"int": (-(2**31), 2**31 - 1), "uint": (0, 2**32 - 1)}


@dataclass(frozen=True)
class DType:
    """An element type: its name in the text form, its family, and how NumPy and a device buffer hold it."""

    name: str
    kind: str  # "float", "int", "uint" or "bool"
    numpy: np.dtype
    storage: np.dtype  # what an element is in a device buffer

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def holds(self, value: object) -> bool:
        """Whether `value` is a Python number of this dtype's kind, within its range: what an attribute must be."""
        if self.kind in _RANGES:
            low, high = _RANGES[self.kind]
            return type(value) is int and low <= value <= high
        return type(value) is (float if self.kind == "float" else bool)


def _dtype(name: str, kind: str, numpy: type, storage: type) -> DType:
    return DType(name, kind, np.dtype(numpy), np.dtype(storage))


float32 = _dtype("f32", "float", np.float32, np.float32)
int32 = _dtype("i32", "int", np.int32, np.int32)
uint32 = _dtype("u32", "uint", np.uint32, np.uint32)
# A device word of its own for each truth value: neighbouring invocations must not write to one word.
bool_ = _dtype("bool", "bool", np.bool_, np.uint32)

DTYPES: dict[str, DType] = {dtype.name: dtype for dtype in (float32, int32, uint32, bool_)}


@dataclass(frozen=True)
class TensorType:
    """The shape and element type of a value, `f32[2,3]` in text."""

    shape: tuple[int, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes a device buffer of this type holds."""
        return self.size * self.dtype.storage.itemsize

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        return TensorType(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype)


_tuple = DType("tuple", "tuple", np.dtype(object), np.dtype(np.void))


@dataclass(frozen=True)
class TupleType(TensorType):
    """The type of a node with several results, `(f32[2], i32[])` in text; only `item` reads such a node.

    It has no shape or dtype of its own: those it inherits fit no other operation.
    """

    parts: tuple[TensorType, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))})"


def tuple_of(parts: Iterable[TensorType]) -> TupleType:
    """The type of several results."""
    return TupleType((), _tuple, tuple(parts))
