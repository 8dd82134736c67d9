"""Casting, promotion and kinds of dtypes."""
from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import Operand, Splat, as_operand, splat
from lavax.numpy._core.promotion import promote
from lavax.tracer.tracing.convert import python_kinds
from lavax.tracer.values.key_array import KEY
from lavax.tracer.values.value import Value

__all__ = ["can_cast", "isdtype", "promote_types", "result_type"]

Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
_CASTINGS: tuple[Casting, ...] = get_args(Casting)

# The kinds of the array API standard, by the letters of NumPy's kinds.
_KINDS: dict[str, str] = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def can_cast(from_: Any, to: Any, casting: Casting = "safe") -> bool:
    """Whether one dtype (or the dtype of an array) may become the other, by the rules that NumPy calls `casting`.

    "safe" keeps every number, "same_kind" may round but not leave the kind, "unsafe" allows all, "no" and "equiv" no
    change. Raises ValueError for another rule.
    """
    if casting not in _CASTINGS:
        raise ValueError(f"can_cast: casting is one of {', '.join(_CASTINGS)}, got {casting!r}")
    source = from_.type.dtype if isinstance(from_, Value) else canonical_dtype(from_)
    target = canonical_dtype(to)
    return source == target or bool(np.can_cast(source.user, target.user, casting))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is `kind`: another dtype, the name of a kind of the array API standard, or one of a tuple.

    Raises ValueError for another kind.
    """
    numpy = canonical_dtype(dtype).numpy
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: kind is one of {', '.join(_KINDS)}, got {kind!r}")
        return numpy.kind in _KINDS[kind]
    return bool(numpy == canonical_dtype(kind).numpy)


def _operand(x: Any) -> Operand:
    if isinstance(x, (Value, np.ndarray, np.generic, bool, int, float, complex, list)):
        return as_operand(x)
    if isinstance(x, type) and x in (int, float, complex):
        return Splat(x(0), python_kinds()[x])
    return splat(0, canonical_dtype(x))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype in which operations on arrays, scalars and dtypes compute; Python's scalars and types yield.

    That of random keys goes with no other. Raises DtypeError if nothing is given.
    """
    if not arrays_and_dtypes:
        raise dtype_error("result_type needs at least one array or dtype")
    if all(getattr(x, "dtype", x) is KEY for x in arrays_and_dtypes):
        return KEY
    return promote([_operand(x) for x in arrays_and_dtypes])[0].user


def promote_types(a: Any, b: Any) -> np.dtype:
    """The common dtype of two dtypes; Python's types yield. Raises DtypeError for what is no dtype, such as arrays."""
    for given in (a, b):
        canonical_dtype(given)
    found: np.dtype = result_type(a, b)
    return found
