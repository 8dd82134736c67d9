"""Operations on single elements: all operands have one shape."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.ops import integral_functions, quotient_functions, special_functions
from lavax.ir.types import TensorType, bool_, float64, uint32

_FLOAT, _NUMBER, _INTEGRAL = "float", "real number", "integer or bool"
_WHOLE, _WORD = "integer", "unsigned"
_ANALYTIC, _FIELD, _ANY = "float or complex", "number", "any"
_KINDS = {
    _FLOAT: {"float"},
    _NUMBER: {"float", "int", "uint"},
    _INTEGRAL: {"int", "uint", "bool"},
    _ANALYTIC: {"float", "complex"},
    _FIELD: {"float", "int", "uint", "complex"},
    _ANY: {"float", "int", "uint", "bool", "complex"},
    _WHOLE: {"int", "uint"},
    _WORD: {"uint"},
}


def _check_arity(name: str, operands: Sequence[TensorType], arity: int) -> None:
    if len(operands) != arity:
        raise ShapeError(f"{name} takes {arity} operands, got {len(operands)}")


def _same_shapes(name: str, operands: Sequence[TensorType]) -> None:
    for operand in operands[1:]:
        if operand.shape != operands[0].shape:
            raise ShapeError(f"{name}: operands must have one shape, got {', '.join(map(str, operands))}")


def _same_dtypes(name: str, operands: Sequence[TensorType]) -> None:
    for operand in operands[1:]:
        if operand.dtype is not operands[0].dtype and operand.dtype != operands[0].dtype:
            raise DtypeError(f"{name}: operands must have one dtype, got {', '.join(map(str, operands))}")


def _rule(name: str, arity: int, accepts: str, to_bool: bool = False) -> TypeRule:
    kinds = _KINDS[accepts]

    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        _check_arity(name, operands, arity)
        _same_shapes(name, operands)
        _same_dtypes(name, operands)
        if operands[0].dtype.kind not in kinds:
            raise DtypeError(f"{name} is not defined for {operands[0]} ({accepts} dtypes only)")
        return operands[0].with_dtype(bool_) if to_bool else operands[0]

    return infer


def _at_most_32_bits(rule: TypeRule, name: str) -> TypeRule:
    """The type rule of functions that devices compute in pairs of float32."""

    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        found = rule(operands, attrs, declared)
        if found.dtype == float64:
            raise DtypeError(f"{name} is not defined for f64: lavax.scipy.special composes it of other operations")
        return found

    return infer


def _evaluation(function: Callable[..., Any]) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        return np.asarray(function(*arrays)).astype(dtype, copy=False)

    return evaluate


def _logistic(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return np.asarray(1 / (1 + np.exp(-x)))
    decay = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1 / (1 + decay), decay / (1 + decay)))


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integers round toward zero; all bits of a quotient by zero are ones."""
    if x.dtype.kind in "fc":
        return np.asarray(x / y)
    safe = np.where(y == 0, y.dtype.type(1), y)
    floored = x // safe
    toward_zero = floored + ((floored < 0) & (x - floored * safe != 0))
    return np.where(y == 0, ~np.zeros_like(x), toward_zero).astype(x.dtype)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The result has the sign of the dividend; for integers it is x if the divisor is zero."""
    if x.dtype.kind == "f":
        return np.asarray(np.fmod(x, y))
    return np.asarray(np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y))))


def _bitwise_not(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.logical_not(x) if x.dtype == np.bool_ else np.invert(x))


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integers wrap; a negative integer exponent gives the truncated exact quotient."""
    if x.dtype.kind in "fc":
        # Not on scalars, because for an exponent of rank 0 NumPy takes a square root, which is wrong for -inf.
        return np.asarray(np.power(x.reshape(-1), y.reshape(-1))).reshape(x.shape)
    result = np.asarray(np.power(x, np.where(y < 0, y.dtype.type(0), y)))
    if x.dtype.kind == "u":
        return result
    truncated = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, truncated, result).astype(x.dtype)


def _shifted(shift: Callable[[np.ndarray, np.ndarray], np.ndarray], signed: bool) -> Callable[..., np.ndarray]:
    """Shifts bits by the unsigned distance in `y`; beyond the width, every bit is one that was shifted in."""

    def function(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        width = 8 * x.dtype.itemsize
        distance = y.view(f"u{x.dtype.itemsize}")
        lanes = x.view(f"{'i' if signed else 'u'}{x.dtype.itemsize}")
        within = shift(lanes, np.minimum(distance, width - 1).astype(lanes.dtype))
        none = np.zeros_like(lanes)
        emptied = np.where(lanes < 0, ~none, none)
        return np.asarray(np.where(distance < width, within, emptied)).view(x.dtype)

    return function


def _set_bits(x: np.ndarray) -> np.ndarray:
    """The number of bits that are 1; numpy.bitwise_count is of NumPy 2."""
    bytes_of_each = x.reshape(*x.shape, 1).copy().view(np.uint8)
    return np.asarray(np.unpackbits(bytes_of_each, axis=-1).sum(axis=-1, dtype=x.dtype))


_UNARY: dict[str, tuple[str, Callable[..., Any]]] = {
    "negate": (_FIELD, np.negative),
    "sign": (_NUMBER, np.sign),
    "floor": (_FLOAT, np.floor),
    "ceil": (_FLOAT, np.ceil),
    "round": (_FLOAT, np.rint),  # halves to the even number
    "truncate": (_FLOAT, np.trunc),
    "exp2": (_FLOAT, np.exp2),
    "log": (_ANALYTIC, np.log),
    "log2": (_FLOAT, np.log2),
    "expm1": (_ANALYTIC, np.expm1),
    "log1p": (_ANALYTIC, np.log1p),
    "sqrt": (_ANALYTIC, np.sqrt),
    "rsqrt": (_ANALYTIC, lambda x: 1 / np.sqrt(x)),
    "cbrt": (_FLOAT, np.cbrt),
    "sin": (_ANALYTIC, np.sin),
    "cos": (_ANALYTIC, np.cos),
    "tan": (_ANALYTIC, np.tan),
    "asin": (_ANALYTIC, np.arcsin),
    "acos": (_ANALYTIC, np.arccos),
    "atan": (_ANALYTIC, np.arctan),
    "sinh": (_ANALYTIC, np.sinh),
    "cosh": (_ANALYTIC, np.cosh),
    "tanh": (_ANALYTIC, np.tanh),
    "asinh": (_ANALYTIC, np.arcsinh),
    "acosh": (_ANALYTIC, np.arccosh),
    "atanh": (_ANALYTIC, np.arctanh),
    "logistic": (_ANALYTIC, _logistic),
    **{name: (_FLOAT, function) for name, function in special_functions.FUNCTIONS.items()},
    "not": (_INTEGRAL, _bitwise_not),
    "population_count": (_WHOLE, _set_bits),
    "stop_gradient": (_ANY, lambda x: x),
}

_BINARY: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": (_FIELD, np.add),
    "subtract": (_FIELD, np.subtract),
    "multiply": (_FIELD, np.multiply),
    "divide": (_FIELD, _divide),
    "remainder": (_NUMBER, _remainder),
    "modulo": (_FLOAT, np.remainder),  # with the sign of the divisor, even if zero
    "power": (_FIELD, _power),
    "atan2": (_FLOAT, np.arctan2),
    "maximum": (_ANY, np.maximum),
    "minimum": (_ANY, np.minimum),
    "and": (_INTEGRAL, np.bitwise_and),
    "or": (_INTEGRAL, np.bitwise_or),
    "xor": (_INTEGRAL, np.bitwise_xor),
    # The signedness of the dtype does not matter: the operation says whether zeros or sign bits are shifted in.
    "shift_left": (_WHOLE, _shifted(np.left_shift, signed=False)),
    "shift_right_logical": (_WHOLE, _shifted(np.right_shift, signed=False)),
    "shift_right_arithmetic": (_WHOLE, _shifted(np.right_shift, signed=True)),
}

# Complex numbers are ordered by their real parts, equal ones by their imaginary parts.
COMPARISONS: dict[str, Callable[..., Any]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def _infer_abs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    """The absolute value of a complex number is real."""
    found = _rule("abs", 1, _FIELD)(operands, attrs, declared)
    return found.with_dtype(found.dtype.part)


def _infer_where(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check_arity("where", operands, 3)
    _same_shapes("where", operands)
    condition, chosen, other = operands
    if condition.dtype != bool_:
        raise DtypeError(f"where: the condition must be bool, got {condition}")
    if chosen.dtype != other.dtype:
        raise DtypeError(f"where: both choices must have one dtype, got {chosen} and {other}")
    return chosen


def _infer_cast(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check_arity("cast", operands, 1)
    if declared is None or declared.shape != operands[0].shape:
        raise ShapeError(f"cast keeps the shape: {operands[0]} does not become {declared}")
    return declared


def _evaluate_cast(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    """Floats become integers by truncation, saturating at the ends of the range; NaN becomes 0."""
    (x,) = arrays
    if x.dtype.kind == "c" and not type.dtype.is_complex:
        x = x != 0 if type.dtype == bool_ else x.real
    if x.dtype.kind == "f" and type.dtype.is_integer:
        low, high = type.dtype.lowest, type.dtype.highest
        numbers = np.nan_to_num(x.astype(np.float64), nan=0.0)
        above, below = numbers >= float(high), numbers <= float(low)
        inside = np.where(above | below, 0.0, numbers).astype(dtype)
        return np.where(above, dtype.type(high), np.where(below, dtype.type(low), inside))
    return x.astype(dtype)


def _infer_bitcast(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check_arity("bitcast", operands, 1)
    if declared is None or declared.shape != operands[0].shape:
        raise ShapeError(f"bitcast keeps the shape: {operands[0]} does not become {declared}")
    kinds = {operands[0].dtype.kind, declared.dtype.kind}
    if kinds & {"bool", "complex"} or declared.dtype.bits != operands[0].dtype.bits:
        raise DtypeError(f"bitcast: {operands[0]} and {declared} must be numbers of one width")
    if "bf16" in (declared.dtype.name, operands[0].dtype.name):
        raise DtypeError("bitcast: the bits of bf16 are the upper half of those of f32: cast to f32 first")
    return declared


def _evaluate_bitcast(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    """The bits are those of the dtype itself, however the interpreter holds its floats."""
    (x,) = arrays
    own = x.astype(f"f{type.dtype.numpy.itemsize}") if x.dtype.kind == "f" else x
    return own.view(type.dtype.numpy).astype(dtype)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _infer_threefry(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    if attrs.get("word", 0) not in (0, 1, 2):
        raise ShapeError(f"threefry: word {attrs['word']} is not 0 (first), 1 (second) or 2 (both, by xor)")
    found = _rule("threefry", 4, _WORD)(operands, attrs, declared)
    if found.dtype != uint32:
        raise DtypeError(f"threefry works on u32, got {found}")
    return found


def _evaluate_threefry(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011) of the key (k0, k1) and the counter (c0, c1)."""
    k0, k1, first, second = (array.astype(np.uint64) for array in arrays)
    low = np.uint64(0xFFFFFFFF)
    schedule = (k0, k1, k0 ^ k1 ^ np.uint64(_PARITY))
    first, second = (first + k0) & low, (second + k1) & low
    for injection in range(5):
        for rotation in _ROTATIONS[injection % 2]:
            first = (first + second) & low
            turned = (second << np.uint64(rotation)) | (second >> np.uint64(32 - rotation))
            second = (turned & low) ^ first
        first = (first + schedule[(injection + 1) % 3]) & low
        second = (second + schedule[(injection + 2) % 3] + np.uint64(injection + 1)) & low
    return np.asarray((first, second, first ^ second)[attrs["word"]]).astype(dtype)


# With `narrow`, the result is rounded to 16 bits before anything shows it, so it need be no more exact than that.
_NARROW = {"narrow": False}
_WITH_NARROW_FORMS = frozenset(("logistic", "tanh", "erf", "erfc"))
for _name, (_accepts, _function) in _UNARY.items():
    _defaults = _NARROW if _name in _WITH_NARROW_FORMS else {}
    _type_rule = _rule(_name, 1, _accepts)
    define(Operation(_name, "elementwise", _type_rule, _evaluation(_function), tuple(_defaults), defaults=_defaults))
for _name, (_accepts, _function) in _BINARY.items():
    define(Operation(_name, "elementwise", _rule(_name, 2, _accepts), _evaluation(_function)))
_IN_PAIRS = (
    (1, {**integral_functions.UNARY, **quotient_functions.UNARY}),
    (2, {**integral_functions.BINARY, **quotient_functions.BINARY}),
    (3, integral_functions.TERNARY),
)
for _arity, _functions in _IN_PAIRS:
    for _name, _function in _functions.items():
        _type_rule = _at_most_32_bits(_rule(_name, _arity, _FLOAT), _name)
        define(Operation(_name, "elementwise", _type_rule, _evaluation(_function)))
for _name, _function in COMPARISONS.items():
    _type_rule = _rule(_name, 2, _ANY, to_bool=True)
    define(Operation(_name, "elementwise", _type_rule, _evaluation(_function)))
define(Operation("abs", "elementwise", _infer_abs, _evaluation(np.abs)))
# With `nonpositive`, no element of the operand is above 0, and denormal results may be 0.
_BOUND = {"nonpositive": False, **_NARROW}
define(Operation("exp", "elementwise", _rule("exp", 1, _ANALYTIC), _evaluation(np.exp), tuple(_BOUND), defaults=_BOUND))
define(Operation("where", "elementwise", _infer_where, _evaluation(np.where)))
define(Operation("cast", "elementwise", _infer_cast, _evaluate_cast, typed=True))
define(Operation("bitcast", "elementwise", _infer_bitcast, _evaluate_bitcast, typed=True))
# threefry(key 0, key 1, counter 0, counter 1): the word number `word` of the block.
define(Operation("threefry", "elementwise", _infer_threefry, _evaluate_threefry, ("word",)))
