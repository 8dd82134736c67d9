"""Element types and tensor types."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from lavax.base.kept import kept
from lavax.base.often_made import often_made
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.brain_floats import (
    BRAIN_FLOAT,
    as_brain_floats,
    brain_floats_from_bits,
    brain_floats_to_bits,
    is_brain_float,
)

_KINDS_IN_NUMPY = {"float": "f", "complex": "c", "int": "i", "uint": "u"}


_PYTHON_NUMBERS: dict[str, Callable[[Any], Any]] = {"float": float, "complex": complex, "bool": bool}


@dataclass(frozen=True, eq=False)
class DType:
    """An element type: its name in the text form, its family, and how NumPy and a device buffer hold it.

    There is one object per dtype, so comparison and hash are by identity, because every operation looks dtypes up.
    bfloat16 is held as float32 in NumPy, and as bits in 16-bit words in a buffer.
    """

    name: str
    kind: str  # "float", "complex", "int", "uint" or "bool"
    numpy: np.dtype
    storage: np.dtype  # an element in a device buffer

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], DType], tuple[str]]:
        return _named, (self.name,)

    @property
    def user(self) -> np.dtype:
        """The NumPy dtype that users see."""
        return BRAIN_FLOAT if self.name == "bf16" else self.numpy

    @property
    def user_name(self) -> str:
        """The name of `user`, such as "float32"."""
        return "bfloat16" if self.name == "bf16" else self.numpy.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_inexact(self) -> bool:
        """Whether values of this dtype vary continuously, so that they have derivatives."""
        return self.kind in ("float", "complex")

    @property
    def part(self) -> DType:
        """The dtype of the real and the imaginary part of a complex number; of another, the dtype itself."""
        return DTYPES[f"f{self.bits // 2}"] if self.is_complex else self

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def bits(self) -> int:
        """The width of a number; 1 for a truth value."""
        return 1 if self.kind == "bool" else 8 * self.storage.itemsize

    @kept
    def bytes_stored(self) -> int:
        """The bytes of an element in a device buffer."""
        return int(self.storage.itemsize)

    @property
    def lowest(self) -> Any:
        """The least value as a Python number, -inf for floats: the identity of maximum."""
        return self._limits[0]

    @property
    def highest(self) -> Any:
        """The greatest value as a Python number, inf for floats: the identity of minimum."""
        return self._limits[1]

    @cached_property
    def _limits(self) -> tuple[Any, Any]:
        if self.is_float:
            return float("-inf"), float("inf")
        if self.kind == "bool":
            return False, True
        return (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if self.kind == "int" else (0, (1 << self.bits) - 1)

    def number(self, value: Any) -> Any:
        """`value` as a Python number of this dtype's kind, as attributes must be."""
        return _PYTHON_NUMBERS.get(self.kind, int)(value)

    def holds(self, value: object) -> bool:
        """Whether `value` is a Python number of this dtype's kind and within its range, as attributes must be."""
        if self.is_integer:
            return type(value) is int and self.lowest <= value <= self.highest
        return type(value) is _PYTHON_NUMBERS[self.kind]

    def to_storage(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers as a contiguous array in the form of a device buffer, rounded to the nearest even."""
        if self.name == "bf16":
            return np.ascontiguousarray(brain_floats_to_bits(numbers)).reshape(numbers.shape)
        if numbers.dtype == self.storage:
            return np.ascontiguousarray(numbers).reshape(numbers.shape)
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(numbers, self.storage).reshape(numbers.shape)

    def from_storage(self, words: np.ndarray) -> np.ndarray:
        """The contents of a device buffer as numbers, in the dtype's NumPy form."""
        if self.name == "bf16":
            return brain_floats_from_bits(words)
        return words.astype(self.numpy, copy=False)

    def to_user(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers of this dtype, in its NumPy form, in the NumPy dtype that users see."""
        return as_brain_floats(numbers) if self.name == "bf16" else numbers

    def rounded(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers rounded to this dtype, in its NumPy form."""
        return self.from_storage(self.to_storage(numbers))


def _number(name: str, kind: str) -> DType:
    numpy = np.dtype(f"{_KINDS_IN_NUMPY[kind]}{int(name[1:]) // 8}")
    return DType(name, kind, numpy, numpy)


float16 = _number("f16", "float")
float32 = _number("f32", "float")
float64 = _number("f64", "float")
complex64 = _number("c64", "complex")
complex128 = _number("c128", "complex")
bfloat16 = DType("bf16", "float", np.dtype(np.float32), np.dtype(np.uint16))
int8 = _number("i8", "int")
int16 = _number("i16", "int")
int32 = _number("i32", "int")
int64 = _number("i64", "int")
uint8 = _number("u8", "uint")
uint16 = _number("u16", "uint")
uint32 = _number("u32", "uint")
uint64 = _number("u64", "uint")
# One device word per truth value, because neighbouring invocations must not write to the same word.
bool_ = DType("bool", "bool", np.dtype(np.bool_), np.dtype(np.uint32))

# The kinds of dtypes that have arithmetic.
NUMBERS = ("float", "int", "uint")
FIELDS = (*NUMBERS, "complex")  # of dtypes with sums and products, which need no order

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        *(float32, int32, uint32, bool_),
        *(int8, int16, int64, uint8, uint16, uint64, float16, bfloat16, float64, complex64, complex128),
    )
}


_OF_NUMPY: dict[np.dtype, DType] = {dtype.numpy: dtype for dtype in DTYPES.values() if dtype is not bfloat16}


def dtype_of_data(dtype: Any) -> DType | None:
    """The dtype for data of a NumPy dtype, or of anything that `numpy.dtype` takes; None if there is none."""
    held = _OF_NUMPY.get(dtype) if isinstance(dtype, np.dtype) else None
    if held is not None:
        return held
    if is_brain_float(dtype):
        return bfloat16
    if dtype is None:  # NumPy would take it for float64
        return None
    try:
        found = np.dtype(dtype).newbyteorder("=")
        return bfloat16 if is_brain_float(found) else _OF_NUMPY.get(found)
    except (TypeError, ValueError):
        return None


@often_made(eq=True)
class TensorType:
    """The shape and element type of a value, `f32[2,3]` in text."""

    shape: tuple[int, ...]
    dtype: DType
    size: int = field(init=False, repr=False, compare=False)  # the number of elements

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", prod(self.shape))

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes of a device buffer of this type."""
        return self.size * self.dtype.bytes_stored

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        return TensorType(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype)


def _named(name: str) -> DType:
    """The dtype of that name, for copying and pickling."""
    return _tuple if name == _tuple.name else DTYPES[name]



def complex_of(part: DType) -> DType:
    """The dtype of complex numbers whose parts have this one: complex128 for float64, else complex64."""
    return complex128 if part == float64 else complex64


_tuple = DType("tuple", "tuple", np.dtype(object), np.dtype(np.void))


@often_made(eq=True)
class TupleType(TensorType):
    """The type of a node with several results, `(f32[2], i32[])` in text; only `item` reads such a node.

    It has no shape or dtype of its own; the inherited ones fit no other operation.
    """

    parts: tuple[TensorType, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))})"


def tuple_of(parts: Iterable[TensorType]) -> TupleType:
    """The type of several results."""
    return TupleType((), _tuple, tuple(parts))
