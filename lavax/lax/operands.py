"""What functions of lax take: operands of certain dtypes, of one dtype, and of one shape."""
from __future__ import annotations

from collections.abc import Collection

import lavax.numpy as lnp
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.tracing.tracer import Tracer
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import PythonScalar, Value

FLOATS = ("float",)
INTEGERS = ("int", "uint")
BITS = (*INTEGERS, "bool")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "bool")
ANALYTIC = (*FLOATS, "complex")
FIELDS = (*NUMBERS, "complex")
ANY = (*ALL, "complex")
_WORDS = {
    "bool": "truth values",
    "complex": "complex numbers",
    "float": "floats",
    "int": "signed integers",
    "uint": "unsigned integers",
}


def accepted(name: str, kinds: Collection[str], *operands: ArrayLike) -> list[Value]:
    """The operands as values. Raises DtypeError, which begins with lax.`name`, for dtypes of other kinds."""
    values = [as_value(operand) for operand in operands]
    for value in values:
        if value.type.dtype.kind not in kinds:
            raise dtype_error(
                f"lax.{name}: operands are {' or '.join(_WORDS[kind] for kind in kinds)}, got {value.type}. "
                "Use lavax.numpy, or lax.convert_element_type"
            )
    return values


def of_one_dtype(name: str, *operands: ArrayLike) -> list[Value]:
    """The operands as values of one dtype. Python's numbers take that of the arrays, but floats not that of integers.

    Raises DtypeError, which begins with lax.`name`, for other operands.
    """
    values = [as_value(operand) for operand in operands]
    dtypes = {value.type.dtype for value in values if not value.weak}
    held = dtypes.pop() if dtypes else None
    if dtypes or (held and any(value.weak and not _takes(value, held.kind) for value in values)):
        raise dtype_error(
            f"lax.{name}: operands have one dtype, or are Python's numbers of its kind; got "
            f"{', '.join(str(value.type) for value in values)}. Use lavax.numpy, or lax.convert_element_type"
        )
    if held is None:
        return values
    return [value if value.type.dtype == held else lnp.astype(value, held) for value in values]


def known_number(value: Value) -> PythonScalar | None:
    """The number that all elements equal, if that is known while a function is traced: also that of another dtype."""
    if isinstance(value, Array):
        return value.splat
    if not isinstance(value, Tracer):
        return None
    made, dtype = value.node.operands[0] if value.node.op == "cast" else value.node, value.type.dtype
    if made.op != "constant":
        return None
    number: PythonScalar = made.attrs["value"]
    held = float(number) if dtype.is_float and isinstance(number, int) else number
    return held if dtype.holds(held) else None


def _takes(number: Value, kind: str) -> bool:
    """Whether Python's number, an integer or a float, can have a dtype of this kind."""
    if number.type.dtype.is_complex:
        return kind == "complex"
    return kind in ANALYTIC or (kind != "bool" and number.type.dtype.is_integer)


def of_one_shape(name: str, values: list[Value]) -> list[Value]:
    """The values, if they have one shape but for scalars and extents of 1. Raises ShapeError."""
    shapes = {value.shape for value in values if value.shape}
    if len(set(map(len, shapes))) > 1 or any(len({*extents, 1}) > 2 for extents in zip(*shapes, strict=False)):
        raise shape_error(
            f"lax.{name}: operands have one shape, or are scalars; got {', '.join(str(value.type) for value in values)}"
        )
    return values
