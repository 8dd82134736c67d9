"""How elementwise operations are written."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lavax.ir.graph import Node
from lavax.ir.types import DTYPES, DType
from lavax.onnx.writing.writer import Held, Rule, Writer, element_type

_I32, _I64, _U32 = DTYPES["i32"], DTYPES["i64"], DTYPES["u32"]
# Integers without sign that no wider ones stand for, and those with a sign that have their width.
SIGNED = {_U32: _I32, DTYPES["u64"]: _I64}
# Runtimes compute with 32- and 64-bit integers that have a sign; others pass through them, and wrap when they come
# back. Not through 64 bits, which readers may not have.
_WIDER = {"i8": _I32, "i16": _I32, "u8": _I32, "u16": _I32, "u32": _I32}


def _spread(node: Node, writer: Writer) -> tuple[int, ...]:
    """The extents of an elementwise result of operands as they are held."""
    shapes = [writer.held(operand).shape for operand in node.operands]
    return np.broadcast_shapes(*shapes)


def _rule(make: Callable[[Writer, Node, list[str]], str]) -> Rule:
    """A rule on operands as they are held."""

    def write(writer: Writer, node: Node) -> Held:
        names = [writer.held(operand).name for operand in node.operands]
        return Held(make(writer, node, names), _spread(node, writer))

    return write


def _arithmetic(operator: str) -> Rule:
    """A rule for an operator on numbers, in wider integers if need be."""
    return _rule(lambda writer, node, names: _in_wider(writer, node.dtype, names, operator))


def _in_wider(writer: Writer, dtype: DType, names: Sequence[str], operator: str, **attributes: int) -> str:
    wider = _WIDER.get(dtype.name)
    if wider is None:
        plain: str = writer.add(operator, names, **attributes)
        return plain
    made = writer.add(operator, [writer.cast(name, wider) for name in names], **attributes)
    return writer.cast(made, dtype)


def _named(operator: str) -> Rule:
    return _rule(lambda writer, node, names: writer.add(operator, names))


def _extremum(operator: str, of_truth: str) -> Rule:
    def make(writer: Writer, node: Node, names: list[str]) -> str:
        if node.dtype.kind == "bool":
            made: str = writer.add(of_truth, names)
            return made
        if node.dtype in SIGNED:
            ordered = [in_order(writer, name, node.dtype) for name in names]
            return out_of_order(writer, writer.add(operator, ordered), node.dtype)
        return _in_wider(writer, node.dtype, names, operator)

    return _rule(make)


def in_order(writer: Writer, name: str, dtype: DType) -> str:
    """Integers without sign as ones of their width with a sign, in the same order: readers may not have 64 bits."""
    top = writer.number(1 << dtype.bits - 1, dtype)
    return writer.cast(writer.add("BitwiseXor", [name, top]), SIGNED[dtype])


def out_of_order(writer: Writer, name: str, dtype: DType) -> str:
    """The integers without sign that `in_order` was given."""
    made: str = writer.add("BitwiseXor", [writer.cast(name, dtype), writer.number(1 << dtype.bits - 1, dtype)])
    return made


def _logic(of_truth: str, of_bits: str) -> Rule:
    return _rule(lambda writer, node, names: writer.add(of_truth if node.dtype.kind == "bool" else of_bits, names))


def _comparison(operator: str) -> Rule:
    def make(writer: Writer, node: Node, names: list[str]) -> str:
        dtype = node.operands[0].dtype
        wider = _I32 if dtype.kind == "bool" and operator != "Equal" else _WIDER.get(dtype.name)
        if dtype in SIGNED:
            given = [in_order(writer, name, dtype) for name in names]
        else:
            given = names if wider is None else [writer.cast(name, wider) for name in names]
        made: str = writer.add(operator, given)
        return made

    return _rule(make)


def _first(writer: Writer, node: Node) -> Held:
    """The first operand; the others only say when."""
    return writer.held(node.operands[0])


def _not_equal(writer: Writer, node: Node) -> Held:
    found = _comparison("Equal")(writer, node)
    assert isinstance(found, Held)
    return Held(writer.add("Not", [found.name]), found.shape)


def _where(writer: Writer, node: Node, names: list[str]) -> str:
    condition, chosen, other = names
    if node.dtype.kind == "bool":
        first = writer.add("And", [condition, chosen])
        truth: str = writer.add("Or", [first, writer.add("And", [writer.add("Not", [condition]), other])])
        return truth
    wider = _WIDER.get(node.dtype.name)
    if wider is None:
        plain: str = writer.add("Where", names)
        return plain
    made = writer.add("Where", [condition, writer.cast(chosen, wider), writer.cast(other, wider)])
    return writer.cast(made, node.dtype)


def _power(writer: Writer, node: Node, names: list[str]) -> str:
    if node.dtype == _U32:  # runtimes do not wrap powers
        made = writer.add("Pow", [writer.cast(name, _I64) for name in names])
        return writer.cast(made, node.dtype)
    return _in_wider(writer, node.dtype, names, "Pow")


def _divide(writer: Writer, node: Node, names: list[str]) -> str:
    if node.dtype in SIGNED:
        return _unsigned_quotient(writer, node.dtype, *names)
    return _in_wider(writer, node.dtype, names, "Div")


def _unsigned_quotient(writer: Writer, dtype: DType, x: str, y: str) -> str:
    """The quotient of integers without sign, by integers of their width with a sign.

    Half of x has no sign bit. Twice its quotient is the wanted one, or one less than it. A divisor with the highest bit
    goes into x once at most. Warren, "Hacker's Delight", 9-3.
    """
    signed = SIGNED[dtype]
    is_large = writer.add("Less", [writer.cast(y, signed), writer.number(0, signed)])
    divisor = writer.add("Where", [is_large, writer.number(1, signed), writer.cast(y, signed)])
    half = writer.cast(writer.add("BitShift", [x, writer.number(1, dtype)], direction="RIGHT"), signed)
    twice = writer.add("Mul", [writer.add("Div", [half, divisor]), writer.number(2, signed)])
    rest = writer.add("Sub", [writer.cast(x, signed), writer.add("Mul", [twice, divisor])])
    below = in_order(writer, y, dtype)
    goes_again = writer.add("GreaterOrEqual", [in_order(writer, writer.cast(rest, dtype), dtype), below])
    quotient = writer.add("Add", [twice, writer.cast(goes_again, signed)])
    goes_once = writer.add("GreaterOrEqual", [in_order(writer, x, dtype), below])
    made = writer.add("Where", [is_large, writer.cast(goes_once, signed), quotient])
    return writer.cast(made, dtype)


def _remainder(writer: Writer, node: Node, names: list[str]) -> str:
    if node.dtype in SIGNED:
        signed = SIGNED[node.dtype]
        quotient = _unsigned_quotient(writer, node.dtype, *names)
        whole = writer.add("Mul", [writer.cast(quotient, signed), writer.cast(names[1], signed)])
        return writer.cast(writer.add("Sub", [writer.cast(names[0], signed), whole]), node.dtype)
    return _in_wider(writer, node.dtype, names, "Mod", fmod=1)


def _modulo(writer: Writer, node: Node, names: list[str]) -> str:
    """The remainder, which gets the divisor's sign."""
    zero = writer.number(0.0, node.dtype)
    rest = writer.add("Mod", names, fmod=1)
    differ = writer.add("Xor", [writer.add("Less", [rest, zero]), writer.add("Less", [names[1], zero])])
    moves = writer.add("And", [differ, writer.add("Not", [writer.add("Equal", [rest, zero])])])
    made: str = writer.add("Where", [moves, writer.add("Add", [rest, names[1]]), rest])
    return made


def _truncate(writer: Writer, node: Node, names: list[str]) -> str:
    made: str = writer.add("Mul", [writer.add("Sign", names), writer.add("Floor", [writer.add("Abs", names)])])
    return made


def _log2(writer: Writer, node: Node, names: list[str]) -> str:
    made: str = writer.add("Mul", [writer.add("Log", names), writer.number(1 / math.log(2), node.dtype)])
    return made


def _exp2(writer: Writer, node: Node, names: list[str]) -> str:
    made: str = writer.add("Pow", [writer.number(2.0, node.dtype), names[0]])
    return made


def _expm1(writer: Writer, node: Node, names: list[str]) -> str:
    """tanh(x/2) · (exp(x) + 1), which is exact near 0."""
    half = writer.add("Tanh", [writer.add("Mul", [names[0], writer.number(0.5, node.dtype)])])
    grown = writer.add("Add", [writer.add("Exp", names), writer.number(1.0, node.dtype)])
    made: str = writer.add("Mul", [half, grown])
    return made


def _log1p(writer: Writer, node: Node, names: list[str]) -> str:
    """log(u) · x / (u - 1) with u = 1 + x rounded (Kahan); log(u) where u is x, and x where u is 1."""
    (x,), one = names, writer.number(1.0, node.dtype)
    u = writer.add("Add", [x, one])
    logarithm = writer.add("Log", [u])
    is_small, is_large = writer.add("Equal", [u, one]), writer.add("Equal", [u, x])
    step = writer.add("Where", [writer.add("Or", [is_small, is_large]), one, writer.add("Sub", [u, one])])
    quotient = writer.add("Div", [writer.add("Mul", [logarithm, x]), step])
    made: str = writer.add("Where", [is_small, x, writer.add("Where", [is_large, logarithm, quotient])])
    return made


def _rsqrt(writer: Writer, node: Node, names: list[str]) -> str:
    made: str = writer.add("Reciprocal", [writer.add("Sqrt", names)])
    return made


def _cbrt(writer: Writer, node: Node, names: list[str]) -> str:
    root = writer.add("Pow", [writer.add("Abs", names), writer.number(1 / 3, node.dtype)])
    made: str = writer.add("Mul", [writer.add("Sign", names), root])
    return made


def _erfc(writer: Writer, node: Node, names: list[str]) -> str:
    made: str = writer.add("Sub", [writer.number(1.0, node.dtype), writer.add("Erf", names)])
    return made


def _atan2(writer: Writer, node: Node, names: list[str]) -> str:
    """The angle of the quotient, turned by half a turn where x is negative."""
    (y, x), zero = names, writer.number(0.0, node.dtype)
    turn = [writer.number(math.pi, node.dtype), writer.number(-math.pi, node.dtype)]
    half = writer.add("Where", [writer.add("Less", [y, zero]), turn[1], turn[0]])
    on_axis = writer.add("Equal", [x, zero])
    safe = writer.add("Where", [on_axis, writer.number(1.0, node.dtype), x])
    angle = writer.add("Atan", [writer.add("Div", [y, safe])])
    turned = writer.add("Where", [writer.add("Less", [x, zero]), writer.add("Add", [angle, half]), angle])
    quarter = writer.add("Mul", [writer.add("Sign", [y]), writer.number(math.pi / 2, node.dtype)])
    made: str = writer.add("Where", [on_axis, quarter, turned])
    return made


def _shift(direction: str, arithmetic: bool = False) -> Rule:
    def make(writer: Writer, node: Node, names: list[str]) -> str:
        word, signed = (DTYPES["u64"], _I64) if node.dtype.bits == 64 else (_U32, _I32)

        def choice(condition: str, one: str, other: str) -> str:
            """Runtimes choose among integers with a sign alone."""
            return writer.cast(writer.add("Where", [condition, *(writer.cast(x, signed) for x in (one, other))]), word)

        x, distance = names
        lanes = writer.cast(x, word)
        is_negative = None
        if arithmetic and node.dtype.kind == "int":  # bits of a negative number are shifted in as ones
            is_negative = writer.add("Less", [x, writer.number(0, node.dtype)])
            lanes = choice(is_negative, writer.add("BitwiseNot", [lanes]), lanes)
        by = writer.cast(distance, word)
        wide = writer.number(node.dtype.bits, word)
        is_within = writer.add("Less", [writer.cast(by, _I64), writer.cast(wide, _I64)])
        zero = writer.number(0, word)
        moved = writer.add("BitShift", [lanes, choice(is_within, by, zero)], direction=direction)
        kept = choice(is_within, moved, zero)
        if is_negative is not None:
            kept = choice(is_negative, writer.add("BitwiseNot", [kept]), kept)
        return writer.cast(kept, node.dtype)

    return _rule(make)


def _cast(writer: Writer, node: Node, names: list[str]) -> str:
    made: str = writer.add("Cast", names, to=element_type(node.dtype))
    return made


_NAMED = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "known_value": "Identity", "log": "Log", "logistic": "Sigmoid", "negate": "Neg", "round": "Round", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "stop_gradient": "Identity", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip

RULES: dict[str, Rule] = {
    **{name: _named(operator) for name, operator in _NAMED.items()},
    "add": _arithmetic("Add"),
    "and": _logic("And", "BitwiseAnd"),
    "atan2": _rule(_atan2),
    "barrier": _first,
    "cast": _rule(_cast),
    "cbrt": _rule(_cbrt),
    "divide": _rule(_divide),
    "equal": _comparison("Equal"),
    "erfc": _rule(_erfc),
    "exp2": _rule(_exp2),
    "expm1": _rule(_expm1),
    "greater": _comparison("Greater"),
    "greater_equal": _comparison("GreaterOrEqual"),
    "less": _comparison("Less"),
    "less_equal": _comparison("LessOrEqual"),
    "log1p": _rule(_log1p),
    "log2": _rule(_log2),
    "maximum": _extremum("Max", "Or"),
    "minimum": _extremum("Min", "And"),
    "modulo": _rule(_modulo),
    "multiply": _arithmetic("Mul"),
    "not": _logic("Not", "BitwiseNot"),
    "not_equal": _not_equal,
    "or": _logic("Or", "BitwiseOr"),
    "power": _rule(_power),
    "remainder": _rule(_remainder),
    "rsqrt": _rule(_rsqrt),
    "shift_left": _shift("LEFT"),
    "shift_right_arithmetic": _shift("RIGHT", arithmetic=True),
    "shift_right_logical": _shift("RIGHT"),
    "subtract": _arithmetic("Sub"),
    "truncate": _rule(_truncate),
    "where": _rule(_where),
    "xor": _logic("Xor", "BitwiseXor"),
}
