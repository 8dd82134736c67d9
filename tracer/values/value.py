"""The common base of arrays and traced values."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lavax.ir import TensorType
from lavax.tracer.values.abstract import Abstract

PythonScalar = float | int | bool | complex
AS_NUMPY = "numpy.asarray()"  # asks for the numbers wherever NumPy gets a value


class Value:
    """Base of Array and Tracer: a typed value, the operand and result of operations.

    `lavax.numpy` adds operators and NumPy-like methods by `install`. The methods here ask for the numbers themselves:
    each goes through `to_host`, which a Tracer may have to refuse.
    """

    __slots__ = ("abstract",)
    abstract: Abstract
    __array_priority__ = 100  # numpy_array + value is ours to compute
    __hash__ = None  # type: ignore[assignment]  # == compares elements

    def to_host(self, wanted: str) -> np.ndarray:
        """The numbers, in the NumPy form of the dtype; `wanted` is the user's expression, for the error."""
        raise NotImplementedError

    @property
    def type(self) -> TensorType:
        return self.abstract.type

    @property
    def weak(self) -> bool:
        """Whether it was made from Python scalars alone, and so yields to other dtypes."""
        return self.abstract.weak

    @property
    def shape(self) -> tuple[int, ...]:
        return self.abstract.type.shape

    @property
    def dtype(self) -> np.dtype:
        return self.abstract.type.dtype.user

    @property
    def ndim(self) -> int:
        return len(self.abstract.type.shape)

    @property
    def size(self) -> int:
        return self.abstract.type.size

    def block_until_ready(self) -> Self:
        """Waits until the numbers are computed; returns the array itself. A traced value has none to wait for."""
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("the numbers are in device memory: numpy cannot have them without a copy")
        numbers = self.to_host(AS_NUMPY)
        return self.type.dtype.to_user(numbers) if dtype is None else numbers.astype(dtype, copy=False)

    def tolist(self) -> Any:
        """The numbers as nested Python lists, or as one Python scalar."""
        return self.to_host("tolist()").tolist()

    def item(self, *index: int) -> Any:
        """One number as a Python scalar: the one at `index`, or the only one."""
        return self.to_host("item()").item(*index)

    def _only_number(self, wanted: str) -> Any:
        if self.size != 1:
            raise TypeError(f"{wanted} needs one element, got {self.type}")
        return self.to_host(wanted).item()

    def __float__(self) -> float:
        return float(self._only_number("float()"))

    def __complex__(self) -> complex:
        number = self._only_number("complex()")
        if isinstance(number, complex):
            return number
        number = float(number)
        return complex(number, number if number != number else 0)  # both parts are NaN, says the array API standard

    def __int__(self) -> int:
        return int(self._only_number("int()"))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"the truth of {self.type} is not one truth: use .any() or .all()")
        return bool(self._only_number("bool()"))

    def __index__(self) -> int:
        if self.ndim or not self.type.dtype.is_integer:
            raise TypeError(f"an index must be an integer scalar, got {self.type}")
        return int(self._only_number("an index"))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a scalar has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Value]:
        """The parts along the first axis; they stay traced, so gradients flow through them."""
        if not self.ndim:
            raise TypeError("a scalar cannot be iterated over: it has no axis to go along")
        return (self[position] for position in range(len(self)))

    def __format__(self, spec: str) -> str:
        return format(self._only_number("format()"), spec) if spec else str(self)

    if TYPE_CHECKING:  # lavax.numpy adds these

        def __getitem__(self, index: Any) -> Value: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __neg__(self) -> Value: ...
        def __pos__(self) -> Value: ...
        def __abs__(self) -> Value: ...
        def __invert__(self) -> Value: ...
        def __add__(self, other: Any) -> Value: ...
        def __radd__(self, other: Any) -> Value: ...
        def __sub__(self, other: Any) -> Value: ...
        def __rsub__(self, other: Any) -> Value: ...
        def __mul__(self, other: Any) -> Value: ...
        def __rmul__(self, other: Any) -> Value: ...
        def __truediv__(self, other: Any) -> Value: ...
        def __rtruediv__(self, other: Any) -> Value: ...
        def __floordiv__(self, other: Any) -> Value: ...
        def __rfloordiv__(self, other: Any) -> Value: ...
        def __mod__(self, other: Any) -> Value: ...
        def __rmod__(self, other: Any) -> Value: ...
        def __pow__(self, other: Any) -> Value: ...
        def __rpow__(self, other: Any) -> Value: ...
        def __matmul__(self, other: Any) -> Value: ...
        def __rmatmul__(self, other: Any) -> Value: ...
        def __and__(self, other: Any) -> Value: ...
        def __or__(self, other: Any) -> Value: ...
        def __xor__(self, other: Any) -> Value: ...
        def __lt__(self, other: Any) -> Value: ...
        def __le__(self, other: Any) -> Value: ...
        def __gt__(self, other: Any) -> Value: ...
        def __ge__(self, other: Any) -> Value: ...
        def __eq__(self, other: Any) -> Value: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Value: ...  # type: ignore[override]


def install(table: Mapping[str, Callable[..., Any] | property], owner: type[Value]) -> None:
    """Adds methods, operators and properties to a class of values, by name."""
    for name, method in table.items():
        setattr(owner, name, method)
