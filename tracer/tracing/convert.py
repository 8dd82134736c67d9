"""Conversion of Python and NumPy data to values."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.base import config
from lavax.base.errors import DtypeError, NumberRangeError, ShapeError
from lavax.ir import (
    DType,
    TensorType,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
    uint32,
    uint64,
)
from lavax.ir.brain_floats import is_brain_float, is_narrow
from lavax.ir.graph import make_node
from lavax.ir.location import user_error
from lavax.ir.types import dtype_of_data
from lavax.tracer.tracing.known_float import KnownFloat
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracer import Tracer
from lavax.tracer.values.abstract import Abstract, abstract
from lavax.tracer.values.array import Array, from_storage, splat_array
from lavax.tracer.values.value import PythonScalar, Value

# The 64-bit dtypes, which are NumPy's defaults, become 32-bit ones unless 64 bits are enabled.
_IN_32_BITS: dict[DType, DType] = {complex128: complex64, float64: float32, int64: int32, uint64: uint32}


def _kinds_of_python(*dtypes: DType) -> dict[type, Abstract]:
    kinds = zip((int, float, complex), dtypes, strict=True)
    weak: dict[type, Abstract] = {each: abstract(TensorType((), dtype), weak=True) for each, dtype in kinds}
    return {bool: abstract(TensorType((), bool_)), **weak}


_OF_PYTHON = _kinds_of_python(int32, float32, complex64)
_OF_PYTHON_IN_64_BITS = _kinds_of_python(int64, float64, complex128)


def python_kinds() -> dict[type, Abstract]:
    """The kinds of Python's numbers: a bool is strong, the others yield; a bool is an int too, so it comes first."""
    return _OF_PYTHON_IN_64_BITS if config.keeps_64_bits() else _OF_PYTHON


def dtype_of(dtype: Any) -> DType:
    """The element type for data of a NumPy dtype, or of anything that `numpy.dtype` takes.

    64-bit numbers become 32-bit ones, except within `enable_x64` or with LAVAX_X64=1.

    Raises DtypeError for strings, dates and objects, and for anything that is not a dtype.
    """
    if isinstance(dtype, DType):
        return dtype
    held = dtype_of_data(dtype)
    if held is None:
        advice = "; lavax.numpy.asarray(x, dtype) converts such data" if is_narrow(dtype) else ""
        raise user_error(
            DtypeError, f"dtype {dtype} has no counterpart here: use bool, integers, floats or complex numbers{advice}"
        )
    narrow = _IN_32_BITS.get(held)
    return held if narrow is None or config.keeps_64_bits() else narrow


def constant(value: PythonScalar, type: TensorType, weak: bool = False) -> Value:
    """A value whose every element is `value`."""
    return fitting_constant(_fitting(value, type.dtype), type, weak)


def fitting_constant(number: PythonScalar, type: TensorType, weak: bool = False) -> Value:
    """`constant` for a number that already has the Python type of the dtype and is within its range."""
    trace = active_trace()
    if trace is None:
        return splat_array(number, abstract(type, weak))
    return Tracer(trace, make_node("constant", (), {"value": number}, type), weak)


def lift(x: Any, dtype: DType | None = None) -> Value:
    """`x` as a value.

    Values are returned unchanged. A Python float or int becomes a weak scalar (a bool, and a NumPy scalar, a strong
    one); NumPy arrays, buffers and nested lists of numbers become Arrays. With `dtype` the data get that dtype and are
    strong; it does not apply to values. Raises TypeError (DtypeError) for anything else.
    """
    if isinstance(x, Value):
        return x
    if dtype is None and isinstance(x, KnownFloat) and (value := x.value) is not None:
        return value
    kind = _scalar_kind(x)
    if kind is None:
        return array_of(x, dtype)
    if dtype is not None:
        kind = abstract(TensorType((), dtype))
    return constant(x, kind.type, kind.weak)


def value_like(x: Any, type: TensorType, what: str) -> Value:
    """`x` as a value of that type. Raises ShapeError or DtypeError, which begin with `what`, if it is not one."""
    if not is_numeric(x):
        raise user_error(DtypeError, f"{what} must be like it, got a {x.__class__.__name__}")
    is_array = isinstance(x, (Value, np.ndarray, np.generic))
    value = lift(x, None if is_array else type.dtype)
    if value.type != type:
        mistake = ShapeError if value.shape != type.shape else DtypeError
        raise user_error(mistake, f"{what} must be like it, got {value.type}")
    return value


def array_of(x: Any, dtype: DType | None = None, borrow: bool = False) -> Array:
    """A NumPy array, a buffer or nested lists of numbers as a strong Array.

    With `borrow` the Array may share memory with `x` until it goes to the device: for use before control returns
    to the user. Raises DtypeError for data that are not numbers, and for integers out of range.
    """
    numbers = x if isinstance(x, np.ndarray) else _host_array(x, dtype)
    if isinstance(numbers, np.ma.MaskedArray) and np.ma.is_masked(numbers):
        raise user_error(DtypeError, "a masked array has elements without a number: give them one, by x.filled(value)")
    held = dtype or dtype_of(numbers.dtype)
    _check_range(numbers, held)
    storage = held.to_storage(numbers)
    if not borrow and np.may_share_memory(storage, numbers):
        storage = storage.copy()
    return from_storage(storage, held)


def argument(x: Any) -> Array:
    """A leaf of a compiled function's arguments as an Array, for use before the call returns."""
    if isinstance(x, Array):
        return x
    kind = _scalar_kind(x)
    return array_of(x, borrow=True) if kind is None else splat_array(_fitting(x, kind.type.dtype), kind)


def abstract_of(x: Any) -> Abstract:
    """The type and weakness of `x`: of a value, a number, an array, or anything with `shape` and `dtype`."""
    if isinstance(x, Value):
        return x.abstract
    kind = _scalar_kind(x)
    if kind is not None:
        return kind
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if shape is None or dtype is None:
        return array_of(x, borrow=True).abstract
    weak = bool(getattr(x, "weak_type", False))
    return abstract(TensorType(tuple(int(extent) for extent in shape), dtype_of(dtype)), weak)


def is_numeric(x: Any) -> bool:
    """Whether `x` can be traced: a value, a number or a NumPy array of numbers."""
    if isinstance(x, (Value, float, int, complex)):
        return True
    return isinstance(x, (np.ndarray, np.generic)) and (x.dtype.kind in "fiubc" or is_brain_float(x.dtype))


def _scalar_kind(x: Any) -> Abstract | None:
    """The kind of a Python or NumPy scalar; None for anything else. Python numbers are weak, bools are not."""
    if isinstance(x, np.generic):
        return abstract(TensorType((), dtype_of(x.dtype)))
    for cls, kind in python_kinds().items():
        if isinstance(x, cls):
            return kind
    return None


def _host_array(x: Any, dtype: DType | None) -> np.ndarray:
    if isinstance(x, (list, tuple)):
        _refuse_values_inside(x)
    elif not (hasattr(x, "__array__") or isinstance(x, (memoryview, bytearray, bytes)) or hasattr(x, "__buffer__")):
        raise user_error(
            DtypeError, f"{x!r:.80} of type {type(x).__name__} is not an array, a number or nested lists of numbers"
        )
    elif isinstance(x, (bytearray, bytes)):
        x = memoryview(x)
    try:
        rounds = not isinstance(x, (list, tuple)) or (dtype is not None and dtype.is_inexact)
        return np.asarray(x) if rounds else _without_rounding(x)
    except DtypeError:  # a ValueError, which says more
        raise
    except ValueError as error:
        if isinstance(x, (list, tuple)):
            raise user_error(DtypeError, f"nested lists of different lengths are not an array: {x!r:.80}") from None
        raise user_error(DtypeError, f"not an array: {error}") from None


def _without_rounding(x: list[Any] | tuple[Any, ...]) -> np.ndarray:
    """Nested lists as NumPy's array, in which integers stay exact: those of 64 bits NumPy rounds beside others."""
    made = np.asarray(x)
    if made.dtype == object or (made.dtype == np.float64 and (np.abs(made) >= 2.0**63).any()):
        given = np.array(x, object)
        if given.size and all(isinstance(number, int) for number in given.flat):
            if min(given.flat) < 0 or max(given.flat) >= 2**64:
                raise user_error(NumberRangeError, f"integers from {min(given.flat)} to {max(given.flat)} fit no dtype")
            return given.astype(np.uint64)
    return made


def _refuse_values_inside(x: list[Any] | tuple[Any, ...]) -> None:
    """Raises DtypeError: NumPy would turn values in a list into plain numbers, and lose gradients silently."""
    for part in x:
        if isinstance(part, Value):
            raise user_error(
                DtypeError, f"a list that holds {part.type} values is not an array: put them together with lnp.stack"
            )
        if isinstance(part, (list, tuple)):
            _refuse_values_inside(part)


def _fitting(value: Any, dtype: DType) -> PythonScalar:
    """`value` as the Python type that constants of `dtype` hold."""
    number: PythonScalar = dtype.number(value)
    if dtype.is_integer and not dtype.holds(number):
        raise user_error(DtypeError, f"{value} is out of the range of {dtype} ({dtype.lowest} to {dtype.highest})")
    return number


def _check_range(numbers: np.ndarray, dtype: DType) -> None:
    """Raises DtypeError if a 64-bit integer would wrap around."""
    if not (numbers.dtype.kind in "iu" and dtype.is_integer and numbers.dtype.itemsize == 8 and numbers.size):
        return
    bounds = np.iinfo(dtype.numpy)
    if int(numbers.min()) < bounds.min or int(numbers.max()) > bounds.max:
        raise user_error(DtypeError, f"{numbers.dtype} data out of the range of {dtype} ({bounds.min} to {bounds.max})")
