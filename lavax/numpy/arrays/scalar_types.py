"""Dtypes by name, which users pass and call: `lnp.float32`."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lavax.base.errors import DtypeError
from lavax.ir import types
from lavax.ir.default_dtypes import default_complex, default_float, default_integer, default_unsigned
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.creation import array
from lavax.tracer.values.value import Value

__all__ = [
    "bfloat16", "bool_", "complex128", "complex64", "complex_", "float16", "float32", "float64", "float_", "int16",
    "int32", "int64", "int8", "int_", "uint", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip


class ScalarType:
    """A dtype by name: it equals and converts to NumPy's, and called with data makes an array of it.

    NumPy gets arrays of bfloat16 as float32.
    """

    def __init__(self, dtype: types.DType) -> None:
        self._held = dtype
        self.name = self.__name__ = dtype.user_name

    @property
    def dtype(self) -> np.dtype:
        return self._held.user

    def __call__(self, x: ArrayLike = 0) -> Value:
        """`x` as an array of this dtype."""
        return array(x, self._held)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScalarType):
            return self._held is other._held
        if other is None:
            return False
        try:
            return canonical_dtype(other) == self._held
        except DtypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"lavax.numpy.{self.__name__}"


class DefaultType(ScalarType):
    """The dtype of a kind of Python's numbers, which has 64 bits within `lavax.enable_x64`."""

    def __init__(self, default: Callable[[], types.DType]) -> None:
        self._default = default

    @property
    def _held(self) -> types.DType:  # type: ignore[override]
        return self._default()

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._held.user_name

    @property
    def __name__(self) -> str:  # type: ignore[override]
        return self._held.user_name


bool_ = ScalarType(types.bool_)
int8, int16, int32, int64 = (ScalarType(types.DTYPES[name]) for name in ("i8", "i16", "i32", "i64"))
uint8, uint16, uint32, uint64 = (ScalarType(types.DTYPES[name]) for name in ("u8", "u16", "u32", "u64"))
complex64, complex128 = (ScalarType(types.DTYPES[name]) for name in ("c64", "c128"))
float16, bfloat16, float32, float64 = (ScalarType(types.DTYPES[name]) for name in ("f16", "bf16", "f32", "f64"))
float_, complex_ = DefaultType(default_float), DefaultType(default_complex)
int_, uint = DefaultType(default_integer), DefaultType(default_unsigned)
