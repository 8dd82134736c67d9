"""Elementwise operations as GLSL expressions: one entry per operation.

An expression works on scalars and, with the same text where GLSL allows it, on vectors of four. Functions named
lx_… are lavax's own (shaders_glsl); the shader brings in those that are called, for vectors too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import copysign

import numpy as np

from lavax.backends.vulkan.glsl.uses import Uses
from lavax.base.often_made import often_made
from lavax.ir.graph import Node
from lavax.ir.types import DTYPES, DType, float32, float64

VECTOR = 4
COMPONENTS = "xyzw"

# Of float32: a division by zero need not give them.
INFINITY, MINUS_INFINITY = "uintBitsToFloat(0x7f800000u)", "uintBitsToFloat(0xff800000u)"
# The types that shaders compute in: elements of 8 and 16 bits are held in 32.
_SCALARS = {"float": "float", "int": "int", "uint": "uint", "bool": "bool"}
_VECTORS = {"float": "vec4", "int": "ivec4", "uint": "uvec4", "bool": "bvec4"}
_SCALARS_64 = {"float": "double", "int": "int64_t", "uint": "uint64_t"}
_VECTORS_64 = {"float": "dvec4", "int": "i64vec4", "uint": "u64vec4"}


def type_name(dtype: DType, width: int) -> str:
    """The GLSL type of a value of this dtype and width."""
    if dtype.bits == 64:
        return (_SCALARS_64 if width == 1 else _VECTORS_64)[dtype.kind]
    return (_SCALARS if width == 1 else _VECTORS)[dtype.kind]


@often_made()
class Call:
    """One use of an expression: the node, its operands' texts and common width, and the shader's uses."""

    node: Node
    arguments: Sequence[str]
    width: int
    uses: Uses

    @property
    def kind(self) -> str:
        """The family of the operands' dtype."""
        return self.node.operands[-1].dtype.kind

    @property
    def result_type(self) -> str:
        return type_name(self.node.dtype, self.width)


Expression = Callable[[Call], str]


def _own(name: str) -> Expression:
    return lambda call: f"{call.uses.function(name, call.node.operands[-1].dtype)}({', '.join(call.arguments)})"


def _infix(symbol: str) -> Expression:
    return lambda call: f"({call.arguments[0]} {symbol} {call.arguments[1]})"


def _function(name: str) -> Expression:
    return lambda call: f"{name}({', '.join(call.arguments)})"


def _by_kind(**entries: Expression) -> Expression:
    return lambda call: entries[call.kind](call)


def _is_zero(node: Node) -> bool:
    """A literal zero of either sign."""
    return node.op == "constant" and node.dtype in (float32, float64) and node.attrs["value"] == 0


def _is_literal(node: Node, zero: float) -> bool:
    """A literal zero of exactly this sign."""
    return _is_zero(node) and copysign(1, node.attrs["value"]) == copysign(1, zero)


def _add(call: Call) -> str:
    """A driver may replace the sum with a literal zero by the other term, though -0.0 + 0.0 is 0.0."""
    left, right = call.arguments
    if _is_literal(call.node.operands[0], 0.0):
        return _plus_zero(call, right)
    return _plus_zero(call, left) if _is_literal(call.node.operands[1], 0.0) else f"({left} + {right})"


def _subtract(call: Call) -> str:
    """A driver may replace a difference with a literal zero by x or -x, though 0.0 - 0.0 and -0.0 - -0.0 are 0.0.

    And x - x by zero, whatever x is: Mesa 26 does so even where a shader asks that infinities and NaN are preserved.
    """
    left, right = call.arguments
    if left == right and call.node.dtype in (float32, float64):
        return f"{call.uses.function('lx_multiply_by_zero', call.node.dtype)}(abs({left}), {call.result_type}(0))"
    if _is_literal(call.node.operands[0], 0.0):
        return _plus_zero(call, f"(-{right})")
    return _plus_zero(call, left) if _is_literal(call.node.operands[1], -0.0) else f"({left} - {right})"


def _plus_zero(call: Call, argument: str) -> str:
    return f"{call.uses.function('lx_add_zero', call.node.dtype)}({argument})"


def _multiply(call: Call) -> str:
    """A driver may replace the product with a literal zero by zero, whatever the other factor."""
    left, right = call.arguments
    if _is_zero(call.node.operands[0]):
        left, right = right, left
    elif not _is_zero(call.node.operands[1]):
        return f"({left} * {right})"
    return f"{call.uses.function('lx_multiply_by_zero', call.node.dtype)}({left}, {right})"


def _divide(call: Call) -> str:
    """A driver may infer from literal zeros that the quotient is a number."""
    dividend, divisor = map(_is_zero, call.node.operands)
    zero = "lx_divide_by_zero" if divisor else "lx_divide_zero" if dividend else None
    return f"{call.uses.function(zero or 'lx_divide', call.node.dtype)}({', '.join(call.arguments)})"


def _exp(call: Call) -> str:
    """exp without overflow if the operand is known not to be positive; doubles have one function."""
    bounded = call.node.attrs["nonpositive"] and call.node.dtype.bits <= 32
    return _own("lx_exp_nonpositive" if bounded else "lx_exp")(call)


def _narrow_or(expression: Expression) -> Expression:
    """The short form of a function of float32 whose result is rounded to 16 bits, and `expression` elsewhere."""

    def chosen(call: Call) -> str:
        is_short = call.node.attrs["narrow"] and call.node.dtype.bits <= 32
        return (_own(f"lx_narrow_{call.node.op}") if is_short else expression)(call)

    return chosen


def _population_count(call: Call) -> str:
    is_long = call.node.dtype.bits == 64
    count = call.uses.function("lx_population_count", call.node.dtype) if is_long else "bitCount"
    return f"{call.result_type}({count}({call.arguments[0]}))"


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
        return f"{call.uses.function('lx_isnan', call.node.operands[0].dtype)}({left})"
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
    return conversion(argument, call.node.operands[0].dtype, call.node.dtype, call.width, call.uses)


def conversion(text: str, source: DType, target: DType, width: int, uses: Uses) -> str:
    """A value of one dtype as another: see the operation `cast`."""
    if source == target or (target.kind == source.kind and source.bits < target.bits <= 32):
        return text
    if target.kind == "bool":
        zero = f"{type_name(source, width)}(0)"
        return f"({text} != {zero})" if width == 1 else f"notEqual({text}, {zero})"
    if target.is_float:
        return _as_float(text, source, target, width, uses)
    if source.is_float:
        return _saturated(text, source, target, uses)
    return _wrapped(text, source, target, width)


def _as_float(text: str, source: DType, target: DType, width: int, uses: Uses) -> str:
    """Rounded once: on the way from 64 bits to 16 by way of 32, the first rounding keeps what the second needs."""
    if target.bits < 32:
        if source.name == "f64":
            text = f"{uses.function('lx_round_to_odd', source)}({text})"
        elif not source.is_float:
            text = f"{type_name(float32, width)}({text})"
        return f"{uses.function(f'lx_round_to_{target.name}')}({text})"
    return f"{type_name(target, width)}({text})"


def _saturated(text: str, source: DType, target: DType, uses: Uses) -> str:
    names = {(width, kind): name for width, of in ((32, _SCALARS), (64, _SCALARS_64)) for kind, name in of.items()}
    long = 64 if target.bits == 64 else 32
    name = names[64 if source.bits == 64 else 32, "float"], names[long, target.kind].removesuffix("_t")
    converted = f"{uses.function(f'lx_{name[0]}_to_{name[1]}')}({text})"
    if target.bits >= 32:
        return converted
    return f"clamp({converted}, {literal(target.lowest, target)}, {literal(target.highest, target)})"


def _wrapped(text: str, source: DType, target: DType, width: int) -> str:
    """Integers and truth values: the lowest bits, as the target reads them."""
    converted = text if type_name(source, width) == type_name(target, width) else f"{type_name(target, width)}({text})"
    if target.bits >= 32 or source.kind == "bool" or (target.kind == "int" and source.bits < target.bits):
        return converted
    if target.kind == "int":
        return f"bitfieldExtract({converted}, 0, {target.bits})"
    return f"({converted} & {target.highest}u)"


_UNSIGNED, _SIGNED = "uint", "int"


def _shift(function: str, lanes: str) -> Expression:
    """A shift done on lanes of one signedness, whatever the dtype's."""

    def expression(call: Call) -> str:
        value, distance = call.arguments
        dtype = call.node.dtype
        unsigned, lane = (type_name(DTYPES[f"{kind[0]}{dtype.bits}"], call.width) for kind in (_UNSIGNED, lanes))
        return f"{call.result_type}({call.uses.function(function, dtype)}({lane}({value}), {unsigned}({distance})))"

    return expression


_TO_BITS = {"f16": "lx_f16_to_bits", "f32": "floatBitsToUint", "f64": "doubleBitsToUint64"}
_FROM_BITS = {"f16": "lx_f16_from_bits", "f32": "uintBitsToFloat", "f64": "uint64BitsToDouble"}


def _named(function: str, uses: Uses) -> str:
    """A function of GLSL, which needs no record."""
    return uses.function(function) if function.startswith("lx_") else function


def _bitcast(call: Call) -> str:
    (text,) = call.arguments
    source, target = call.node.operands[0].dtype, call.node.dtype
    if source == target:
        return text
    unsigned = DTYPES[f"u{source.bits}"]
    if source.is_float:
        bits = f"{_named(_TO_BITS[source.name], call.uses)}({text})"
    else:
        bits = _wrapped(text, source, unsigned, call.width)
    if target.is_float:
        return f"{_named(_FROM_BITS[target.name], call.uses)}({bits})"
    return bits if target == unsigned else _wrapped(bits, unsigned, target, call.width)


# Operations for which lavax has a function of its own, under the operation's name.
_OWN_FUNCTIONS = (
    *("ceil", "round", "truncate", "sqrt", "rsqrt", "cbrt", "exp2", "expm1", "log", "log2", "log1p"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    *("erfcx", "erfinv", "ndtr", "ndtri", "lgamma", "digamma"),
    *("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e"),
    *("betainc", "gammainc", "gammaincc", "expn", "expi", "zeta", "polygamma"),
    *("gamma", "factorial", "beta", "poch", "boxcox", "boxcox1p", "kl_div"),
)

_IDENTITY: Expression = lambda call: call.arguments[0]  # noqa: E731

_THREEFRY = ("lx_threefry_first", "lx_threefry_second", "lx_threefry_both")

EXPRESSIONS: dict[str, Expression] = {
    "negate": lambda call: f"(-{call.arguments[0]})",
    "abs": _by_kind(float=_function("abs"), int=_function("abs"), uint=_IDENTITY),
    "sign": _by_kind(
        float=_own("lx_sign"),
        int=_function("sign"),
        uint=lambda call: f"min({call.arguments[0]}, {call.result_type}(1u))",
    ),
    "floor": _function("floor"),
    "exp": _narrow_or(_exp),
    **{name: _narrow_or(_own(f"lx_{name}")) for name in ("logistic", "tanh", "erf", "erfc")},
    **{name: _own(f"lx_{name}") for name in _OWN_FUNCTIONS},
    "population_count": _population_count,
    "not": _by_kind(
        int=lambda call: f"(~{call.arguments[0]})",
        uint=lambda call: f"(~{call.arguments[0]})",
        bool=lambda call: f"(!{call.arguments[0]})" if call.width == 1 else f"not({call.arguments[0]})",
    ),
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _by_kind(float=_divide, int=_own("lx_int_divide"), uint=_own("lx_uint_divide")),
    "remainder": _by_kind(
        float=_own("lx_fmod"), int=_own("lx_int_remainder"), uint=_own("lx_uint_remainder")
    ),
    "modulo": _own("lx_remainder"),
    "atan2": _own("lx_atan2"),
    "power": _by_kind(float=_own("lx_pow"), int=_own("lx_int_power"), uint=_own("lx_uint_power")),
    "maximum": _by_kind(
        float=_own("lx_maximum"), int=_function("max"), uint=_function("max"), bool=_truth("||", "|")
    ),
    "minimum": _by_kind(
        float=_own("lx_minimum"), int=_function("min"), uint=_function("min"), bool=_truth("&&", "&")
    ),
    "and": _by_kind(int=_infix("&"), uint=_infix("&"), bool=_truth("&&", "&")),
    "or": _by_kind(int=_infix("|"), uint=_infix("|"), bool=_truth("||", "|")),
    "xor": _by_kind(int=_infix("^"), uint=_infix("^"), bool=_truth("^^", "^")),
    "shift_left": _shift("lx_shift_left", _UNSIGNED),
    "shift_right_logical": _shift("lx_shift_right_logical", _UNSIGNED),
    "shift_right_arithmetic": _shift("lx_shift_right_arithmetic", _SIGNED),
    "barrier": lambda call: call.arguments[0],
    "threefry": lambda call: f"{call.uses.function(_THREEFRY[call.node.attrs['word']])}({', '.join(call.arguments)})",
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
    suffix = "l" if dtype.bits == 64 else ""
    if dtype.kind == "uint":
        return f"{int(value)}u{suffix}"
    if dtype.kind == "int":
        if int(value) == dtype.lowest and dtype.bits >= 32:
            return f"{type_name(dtype, 1)}({1 << dtype.bits - 1}u{suffix})"
        return f"{int(value)}{suffix}"
    number = float(value)
    return _float_literal(number, copysign(1, number), dtype)


@lru_cache(maxsize=1 << 14)
def _float_literal(value: float, sign: float, dtype: DType) -> str:
    """The text of a float; kept, since transforms write the same roots of unity a thousand times. 0 is equal to -0."""
    exact = np.float64(dtype.rounded(np.array(value, np.float64)).item())
    if dtype.bits == 64:
        return _double_literal(exact)
    rounded = np.float32(exact)
    if not np.isfinite(rounded) or 0 < abs(rounded) < np.finfo(np.float32).tiny:
        return f"uintBitsToFloat({int(rounded.view(np.uint32))}u)"
    text = (
        np.format_float_scientific(rounded, unique=True, trim="0")
        if abs(rounded) >= 1e16
        else repr(float(str(rounded)))
    )
    return f"({text})" if sign < 0 else text


def _double_literal(value: np.float64) -> str:
    if not np.isfinite(value) or 0 < abs(value) < np.finfo(np.float64).tiny:
        return f"uint64BitsToDouble({int(value.view(np.uint64))}ul)"
    return f"({float(value)!r}lf)" if np.signbit(value) else f"{float(value)!r}lf"
