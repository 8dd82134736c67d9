"""Elementwise operations as GLSL expressions: one entry an operation.

An expression works on scalars and, with the same text where GLSL allows it, on vectors of four. Functions named
lx_… are lavax's own (shaders_glsl); the shader brings in those that are called, for vectors too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lavax.ir.graph import Node
from lavax.ir.types import DType

VECTOR = 4
COMPONENTS = "xyzw"

_SCALARS = {"f32": "float", "i32": "int", "u32": "uint", "bool": "bool"}
_VECTORS = {"f32": "vec4", "i32": "ivec4", "u32": "uvec4", "bool": "bvec4"}


def type_name(dtype: DType, width: int) -> str:
    """The GLSL type of a value of this dtype and width."""
    return (_SCALARS if width == 1 else _VECTORS)[dtype.name]


@dataclass(frozen=True)
class Call:
    """What an expression is written for: the node, the operands' texts and their common width."""

    node: Node
    arguments: Sequence[str]
    width: int

    @property
    def kind(self) -> str:
        """The family of the operands' dtype."""
        return self.node.operands[-1].dtype.kind

    @property
    def result_type(self) -> str:
        return type_name(self.node.dtype, self.width)


Expression = Callable[[Call], str]


def _infix(symbol: str) -> Expression:
    return lambda call: f"({call.arguments[0]} {symbol} {call.arguments[1]})"


def _function(name: str) -> Expression:
    return lambda call: f"{name}({', '.join(call.arguments)})"


def _by_kind(**entries: Expression) -> Expression:
    return lambda call: entries[call.kind](call)


def _is_zero(node: Node) -> bool:
    return node.op == "constant" and node.dtype.is_float and node.attrs["value"] == 0


def _multiply(call: Call) -> str:
    """A driver may take the product with a literal zero for zero, whatever the other factor."""
    left, right = call.arguments
    if _is_zero(call.node.operands[0]):
        left, right = right, left
    elif not _is_zero(call.node.operands[1]):
        return f"({left} * {right})"
    return f"lx_multiply_by_zero({left}, {right})"


def _divide(call: Call) -> str:
    """A driver may take literal zeros for leave to assume that the quotient is a number."""
    dividend, divisor = map(_is_zero, call.node.operands)
    name = "lx_divide_by_zero" if divisor else "lx_divide_zero" if dividend else "lx_divide"
    return f"{name}({', '.join(call.arguments)})"


def _relational(symbol: str, function: str) -> Expression:
    """Comparisons; false counts as less than true."""

    def expression(call: Call) -> str:
        left, right = call.arguments
        if call.kind == "bool":
            unsigned = "uint" if call.width == 1 else "uvec4"
            left, right = f"{unsigned}({left})", f"{unsigned}({right})"
        return f"({left} {symbol} {right})" if call.width == 1 else f"{function}({left}, {right})"

    return expression


def _not_equal(call: Call) -> str:
    """A float unequal to itself is a NaN, which a driver may assume away unless asked by its bits."""
    left, right = call.arguments
    if call.kind == "float" and left == right:
        return f"lx_isnan({left})"
    return _relational("!=", "notEqual")(call)


def _truth(symbol: str, bits: str) -> Expression:
    """A logical operation on truth values."""
    return lambda call: (
        f"({call.arguments[0]} {symbol} {call.arguments[1]})"
        if call.width == 1
        else f"bvec4(uvec4({call.arguments[0]}) {bits} uvec4({call.arguments[1]}))"
    )


def _where(call: Call) -> str:
    condition, chosen, other = call.arguments
    return f"mix({other}, {chosen}, {condition})"  # never ?:, which becomes a branch


def _cast(call: Call) -> str:
    (argument,) = call.arguments
    source, target = call.kind, call.node.dtype.kind
    if source == target:
        return argument
    if target == "bool":
        zero = f"{type_name(call.node.operands[0].dtype, call.width)}(0)"
        return f"({argument} != {zero})" if call.width == 1 else f"notEqual({argument}, {zero})"
    if source == "float":
        return f"lx_float_to_{target}({argument})"
    return f"{call.result_type}({argument})"


_UNSIGNED, _SIGNED = {1: "uint", VECTOR: "uvec4"}, {1: "int", VECTOR: "ivec4"}


def _shift(function: str, lanes: dict[int, str]) -> Expression:
    """A shift done on lanes of one signedness, whatever the dtype's."""

    def expression(call: Call) -> str:
        value, distance = call.arguments
        shifted = f"{function}({lanes[call.width]}({value}), {_UNSIGNED[call.width]}({distance}))"
        return f"{call.result_type}({shifted})"

    return expression


def _bitcast(call: Call) -> str:
    (argument,) = call.arguments
    source, target = call.kind, call.node.dtype.kind
    if source == target:
        return argument
    if "float" not in (source, target):
        return f"{call.result_type}({argument})"
    return f"{source}BitsTo{target.capitalize()}({argument})"


# Functions of one number that lavax has its own of, under the operation's name.
_OWN_FUNCTIONS = (
    *("ceil", "round", "truncate", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "logistic"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri", "lgamma", "digamma"),
    *("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e"),
)

_IDENTITY: Expression = lambda call: call.arguments[0]  # noqa: E731

_THREEFRY = ("lx_threefry_first", "lx_threefry_second", "lx_threefry_both")

EXPRESSIONS: dict[str, Expression] = {
    "negate": lambda call: f"(-{call.arguments[0]})",
    "abs": _by_kind(float=_function("abs"), int=_function("abs"), uint=_IDENTITY),
    "sign": _by_kind(
        float=_function("lx_sign"),
        int=_function("sign"),
        uint=lambda call: f"min({call.arguments[0]}, {call.result_type}(1u))",
    ),
    "floor": _function("floor"),
    **{name: _function(f"lx_{name}") for name in _OWN_FUNCTIONS},
    "population_count": lambda call: f"{call.result_type}(bitCount({call.arguments[0]}))",
    "not": _by_kind(
        int=lambda call: f"(~{call.arguments[0]})",
        uint=lambda call: f"(~{call.arguments[0]})",
        bool=lambda call: f"(!{call.arguments[0]})" if call.width == 1 else f"not({call.arguments[0]})",
    ),
    "add": _infix("+"),
    "subtract": _infix("-"),
    "multiply": _multiply,
    "divide": _by_kind(float=_divide, int=_function("lx_int_divide"), uint=_function("lx_uint_divide")),
    "remainder": _by_kind(
        float=_function("lx_fmod"), int=_function("lx_int_remainder"), uint=_function("lx_uint_remainder")
    ),
    "modulo": _function("lx_remainder"),
    "atan2": _function("lx_atan2"),
    "power": _by_kind(float=_function("lx_pow"), int=_function("lx_int_power"), uint=_function("lx_uint_power")),
    "maximum": _by_kind(
        float=_function("lx_maximum"), int=_function("max"), uint=_function("max"), bool=_truth("||", "|")
    ),
    "minimum": _by_kind(
        float=_function("lx_minimum"), int=_function("min"), uint=_function("min"), bool=_truth("&&", "&")
    ),
    "and": _by_kind(int=_infix("&"), uint=_infix("&"), bool=_truth("&&", "&")),
    "or": _by_kind(int=_infix("|"), uint=_infix("|"), bool=_truth("||", "|")),
    "xor": _by_kind(int=_infix("^"), uint=_infix("^"), bool=_truth("^^", "^")),
    "shift_left": _shift("lx_shift_left", _UNSIGNED),
    "shift_right_logical": _shift("lx_shift_right_logical", _UNSIGNED),
    "shift_right_arithmetic": _shift("lx_shift_right_arithmetic", _SIGNED),
    "barrier": lambda call: call.arguments[0],
    "threefry": lambda call: f"{_THREEFRY[call.node.attrs['word']]}({', '.join(call.arguments)})",
    "bitcast": _bitcast,
    "equal": _relational("==", "equal"),
    "not_equal": _not_equal,
    "less": _relational("<", "lessThan"),
    "less_equal": _relational("<=", "lessThanEqual"),
    "greater": _relational(">", "greaterThan"),
    "greater_equal": _relational(">=", "greaterThanEqual"),
    "where": _where,
    "cast": _cast,
}


def literal(value: float | int | bool, dtype: DType) -> str:
    """A constant as GLSL text that means exactly this value, rounded to the dtype."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.kind == "uint":
        return f"{int(value)}u"
    if dtype.kind == "int":
        return f"int({int(value) + (1 << 32)}u)" if int(value) == -(1 << 31) else str(int(value))
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.float32(value)
    if not np.isfinite(rounded) or 0 < abs(rounded) < np.finfo(np.float32).tiny:
        return f"uintBitsToFloat({int(rounded.view(np.uint32))}u)"
    text = (
        np.format_float_scientific(rounded, unique=True, trim="0")
        if abs(rounded) >= 1e16
        else repr(float(str(rounded)))
    )
    return text if rounded >= 0 and not np.signbit(rounded) else f"({text})"
