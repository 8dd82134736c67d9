"""Elementwise operations, of which the table of operations says all that is needed: a new one joins by itself."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir import OPERATIONS, DType, Node, TensorType, bool_
from lavax.ir.operation import names_of_family
from lavax.ir.types import DTYPES
from lavax.passes.build import builder
from lavax.passes.build.builder import build
from tests.fuzz.draw import ALL, NUMBERS, Source
from tests.operation_cases.case import DOMAINS

# Defined for floats of any size: their operands are taken as they are.
_ANY_SIZE = frozenset(
    (
        *("negate", "abs", "sign", "floor", "ceil", "round", "truncate", "stop_gradient", "add", "subtract"),
        "multiply",
        *("maximum", "minimum", "tanh", "logistic", "atan", "asinh", "sin", "cos", "barrier", "known_value"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "erf", "atan2"),
    )
)
_MODERATE = (-3.0, 3.0)
_MOST_OPERANDS = 4

REAL_DTYPES = tuple(dtype for dtype in DTYPES.values() if not dtype.is_complex)


def _accepts(op: str, dtype: DType, arity: int) -> bool:
    try:
        OPERATIONS[op].infer([TensorType((), dtype)] * arity, OPERATIONS[op].defaults, None)
    except (DtypeError, ShapeError, ValueError, KeyError):
        return False
    return True


@cache
def signature(op: str) -> tuple[int, tuple[DType, ...]]:
    """The number of operands, and the dtypes that they may have together. LookupError for another form."""
    for arity in range(1, _MOST_OPERANDS + 1):
        dtypes = tuple(dtype for dtype in REAL_DTYPES if _accepts(op, dtype, arity))
        if dtypes:
            return arity, dtypes
    raise LookupError(f"{op} takes no operands of one dtype")


def _in_domain(source: Source, op: str, position: int, x: Node) -> Node:
    if not x.dtype.is_float or (op in _ANY_SIZE and op not in DOMAINS):
        return x
    domains = DOMAINS.get(op)
    pieces = domains[position] if domains else (_MODERATE,)
    if all(low == high for low, high in pieces):  # orders, which are whole
        return builder.splat(float(source.one_of(pieces)[0]), x.type)
    return source.within(x, *source.one_of(pieces))


def _of_one_dtype(op: str, source: Source) -> Node:
    arity, dtypes = signature(op)
    x = source.pick(fits=lambda node: node.dtype in dtypes)
    operands = [x, *(x if source.chance(0.08) else source.like(x) for _ in range(arity - 1))]
    if source.chance(0.3):
        operands.reverse()
    if op == "multiply" and x.dtype.is_float and source.bound(x) > 50:
        operands[0] = source.within(operands[0], -8, 8)
    return build(op, *(_in_domain(source, op, position, each) for position, each in enumerate(operands)))


def _where(source: Source) -> Node:
    x = source.pick(ALL)
    return builder.where(source.like(x, bool_), x, source.like(x))


def _cast(source: Source) -> Node:
    x = source.pick(ALL)
    wide = any(node.dtype.bits == 64 for node in source.values)
    dtypes = [dtype for dtype in REAL_DTYPES if dtype != x.dtype and (wide or dtype.bits < 64)]
    return builder.cast(x, source.one_of(dtypes))


def _bitcast(source: Source) -> Node:
    x = source.pick(NUMBERS, fits=lambda node: node.dtype.name != "bf16")
    fitting = [d for d in REAL_DTYPES if d.bits == x.dtype.bits and d.kind != "bool" and d.name != "bf16"]
    if x.dtype.is_integer:  # bits of a number that is one
        target = source.one_of([dtype for dtype in fitting if not dtype.is_float])
        return build("bitcast", x, type=x.type.with_dtype(target))
    return build("bitcast", x, type=x.type.with_dtype(source.one_of(fitting)))


def _threefry(source: Source) -> Node:
    x = source.pick(("uint",), fits=lambda node: node.dtype.name == "u32")
    return build("threefry", x, *(source.like(x) for _ in range(3)), word=source.number(0, 3))


def _known_value(source: Source) -> Node:
    """Of one value twice: it is no function of its operands where these differ."""
    x = source.pick(ALL)
    return build("known_value", x, x)


Generator = Callable[[Source], Node]
_OTHERS: dict[str, Generator] = {
    "where": _where,
    "cast": _cast,
    "bitcast": _bitcast,
    "threefry": _threefry,
    "known_value": _known_value,
}


def _is_of_one_dtype(op: str) -> bool:
    try:
        signature(op)
    except LookupError:
        return False
    return True


GENERATORS: dict[str, Generator] = {
    **{op: partial(_of_one_dtype, op) for op in sorted(names_of_family("elementwise")) if _is_of_one_dtype(op)},
    **_OTHERS,
}
