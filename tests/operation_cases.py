"""Samples of every operation: one-node graphs with arrays to run them on.

The tests of the interpreter, of gradients and of the backend all run the same cases. Each case is made of the same
numbers on every run. Values lie where the operation is smooth and well conditioned, except in cases marked
`special`: infinities, NaN, signed zeros, ties, positions outside the range, integers that overflow.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from zlib import crc32

import numpy as np

from lavax.errors import DtypeError
from lavax.ir import OPERATIONS, Graph, Node, TensorType, bool_, float32, int32, uint32
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.ops.elementwise import COMPARISONS
from lavax.ir.types import DTYPES, DType

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One operation on sample operands; `arrays` has one array an input, in the dtype's NumPy form."""

    op: str
    label: str
    graph: Graph
    arrays: tuple[np.ndarray, ...]
    special: bool = False

    @property
    def node(self) -> Node:
        return self.graph.outputs[0]

    def __str__(self) -> str:
        return f"{self.op}-{self.label}"


SHAPES: tuple[Shape, ...] = ((), (1,), (3,), (17,), (41,), (3, 17), (41, 1), (2, 3, 5), (2, 1, 3, 2), (0,), (3, 0, 2))

# Where the floats of an operand lie, by operation; two intervals are for values away from zero.
_POSITIVE, _AWAY_FROM_ZERO, _ANYWHERE = ((0.2, 3.0),), ((-3.0, -0.4), (0.4, 3.0)), ((-3.0, 3.0),)
_DOMAINS: Mapping[str, Sequence[Any]] = {
    "log": [_POSITIVE],
    "sqrt": [_POSITIVE],
    "rsqrt": [_POSITIVE],
    "log1p": [((-0.8, 3.0),)],
    "abs": [_AWAY_FROM_ZERO],
    "sign": [_AWAY_FROM_ZERO],
    "divide": [_ANYWHERE, _AWAY_FROM_ZERO],
    "remainder": [_ANYWHERE, _AWAY_FROM_ZERO],
    "power": [_POSITIVE, _ANYWHERE],
}
_SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))
_SPECIAL_INTEGERS = {
    "int": (0, 1, -1, 2, -3, 7, 2**31 - 1, -(2**31)),
    "uint": (0, 1, 2, 3, 7, 2**31, 2**32 - 1),
    "bool": (0, 1),
}


def _random(label: str) -> np.random.Generator:
    return np.random.default_rng(crc32(label.encode()))


def _values(random: np.random.Generator, type: TensorType, domain: Any = _ANYWHERE) -> np.ndarray:
    if type.dtype.kind == "bool":
        return np.asarray(random.integers(0, 2, type.shape)).astype(np.bool_)
    if type.dtype.is_integer:
        low = -9 if type.dtype.kind == "int" else 0
        return np.asarray(random.integers(low, 10, type.shape)).astype(type.dtype.numpy)
    chosen = np.asarray(random.integers(0, len(domain), type.shape))
    lows, highs = (np.array(ends)[chosen] for ends in zip(*domain, strict=True))
    return np.asarray(random.uniform(lows, highs)).astype(np.float32)


def _case(
    op: str,
    label: str,
    arrays: Sequence[np.ndarray],
    attrs: Mapping[str, Any] | None = None,
    type: TensorType | None = None,
    special: bool = False,
) -> Case:
    dtypes = {dtype.numpy: dtype for dtype in DTYPES.values()}
    inputs = [
        input_node(f"x{number}", TensorType(array.shape, dtypes[array.dtype])) for number, array in enumerate(arrays)
    ]
    node = make_node(op, inputs, attrs or {}, type)
    return Case(op, label, graph_of(inputs, [node]), tuple(arrays), special)


def _accepts(op: str, types: Sequence[TensorType], declared: TensorType | None = None) -> bool:
    try:
        OPERATIONS[op].infer(types, {}, declared)
    except DtypeError:
        return False
    return True


# Elementwise


def _special_values(dtype: DType) -> np.ndarray:
    values = _SPECIAL_FLOATS if dtype.is_float else _SPECIAL_INTEGERS[dtype.kind]
    return np.array(values, dtype.numpy)


def _elementwise(op: str, arity: int) -> Iterator[Case]:
    for dtype in DTYPES.values():
        if not _accepts(op, [TensorType((), dtype)] * arity):
            continue
        domains = _DOMAINS.get(op, [_ANYWHERE] * arity)
        for shape in SHAPES:
            random = _random(f"{op}{dtype}{shape}")
            arrays = [_values(random, TensorType(shape, dtype), domain) for domain in domains]
            yield _case(op, str(TensorType(shape, dtype)), arrays)
        values = _special_values(dtype)
        pairs = [grid.ravel() for grid in np.meshgrid(*[values] * arity)]
        yield _case(op, f"special-{dtype}", pairs, special=True)


def _where() -> Iterator[Case]:
    for dtype in DTYPES.values():
        for shape in SHAPES:
            random = _random(f"where{dtype}{shape}")
            types = (TensorType(shape, bool_), TensorType(shape, dtype), TensorType(shape, dtype))
            yield _case("where", str(types[1]), [_values(random, type) for type in types])
    nan = np.array([np.nan, 1, np.nan, 2], np.float32)
    yield _case("where", "special-nan", [np.array([0, 1, 1, 0], np.bool_), nan, nan[::-1]], special=True)


def _cast() -> Iterator[Case]:
    for source in DTYPES.values():
        for target in DTYPES.values():
            for shape in ((), (17,), (3, 5), (0,)):
                array = _values(_random(f"cast{source}{target}{shape}"), TensorType(shape, source))
                array = np.abs(array) if target.kind == "uint" and source.is_float else array
                yield _case("cast", f"{source}-{target}-{shape}", [array], type=TensorType(shape, target))
            values = _special_values(source)
            declared = TensorType(values.shape, target)
            yield _case("cast", f"special-{source}-{target}", [values], type=declared, special=True)


# Reductions

_REDUCED: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((), ()),
    ((1,), (0,)),
    ((3,), (0,)),
    ((41,), (0,)),
    ((3, 17), (0,)),
    ((3, 17), (1,)),
    ((17, 3), (0, 1)),
    ((3, 17), ()),
    ((1, 17), (0,)),
    ((2, 3, 5), (0, 2)),
    ((2, 3, 5), (1,)),
    ((2, 1, 3, 2), (1, 3)),
    ((0, 3), (1,)),
)


def _distinct(random: np.random.Generator, type: TensorType) -> np.ndarray:
    """Floats of which no two are near each other; whole numbers of a small range."""
    if not type.dtype.is_float:
        return _values(random, type)
    order = random.permutation(type.size).reshape(type.shape)
    return ((order - type.size / 2) * (4 / max(type.size, 1))).astype(np.float32)


def _reduction(op: str) -> Iterator[Case]:
    for dtype in DTYPES.values():
        for shape, axes in _REDUCED:
            type, random = TensorType(shape, dtype), _random(f"{op}{dtype}{shape}{axes}")
            if not _accepts_reduction(op, dtype):
                continue
            array = _distinct(random, type) if op in ("max", "min") else _values(random, type, _AWAY_FROM_ZERO)
            yield _case(op, f"{type}-{axes}", [array], dict(axes=axes))
    if op in ("sum", "prod"):
        yield _case(op, "empty", [np.zeros((3, 0), np.float32)], dict(axes=(1,)))
    rows = np.array([[1, 2, 2], [np.nan, 1, 5], [0, 0, 3], [np.inf, -np.inf, 0], [2, 0, 4]], np.float32)
    yield _case(op, "special", [rows], dict(axes=(1,)), special=True)


def _accepts_reduction(op: str, dtype: DType) -> bool:
    return dtype.kind != "bool" or op in ("max", "min")


def _position(op: str) -> Iterator[Case]:
    for dtype in DTYPES.values():
        for shape, axes in _REDUCED:
            if len(axes) == 1:
                type = TensorType(shape, dtype)
                array = _distinct(_random(f"{op}{dtype}{shape}{axes}"), type)
                yield _case(op, f"{type}-{axes[0]}", [array], dict(axis=axes[0]))
    rows = np.array([[1, 2, 2], [2, np.nan, 5], [0, 0, 3], [np.inf, -np.inf, 0], [5, 5, 5]], np.float32)
    yield _case(op, "special", [rows], dict(axis=1), special=True)


# Movement


def _moved(op: str, shape: Shape, label: str, attrs: Mapping[str, Any], result: Shape | None = None) -> Iterator[Case]:
    for dtype in DTYPES.values():
        type = TensorType(shape, dtype)
        attributes = dict(attrs)
        if "value" in attributes:
            kinds: dict[str, Any] = {"float": float, "bool": bool}
            attributes["value"] = kinds.get(dtype.kind, int)(attributes["value"])
        declared = None if result is None else TensorType(result, dtype)
        array = _values(_random(f"{op}{type}{label}"), type)
        yield _case(op, f"{type}-{label}", [array], attributes, declared)


def _reshape() -> Iterator[Case]:
    for shape, result in (
        ((), (1, 1)),
        ((1,), ()),
        ((3, 17), (51,)),
        ((41,), (41, 1)),
        ((2, 3, 4), (4, 6)),
        ((6, 4), (3, 2, 2, 2)),
        ((3, 0), (0, 5)),
    ):
        yield from _moved("reshape", shape, str(result), {}, result)


def _transpose() -> Iterator[Case]:
    for shape, axes in (
        ((), ()),
        ((3,), (0,)),
        ((3, 17), (1, 0)),
        ((41, 1), (1, 0)),
        ((2, 3, 5), (2, 0, 1)),
        ((2, 3, 1, 4), (3, 2, 0, 1)),
        ((0, 3), (1, 0)),
    ):
        yield from _moved("transpose", shape, str(axes), dict(axes=axes))


def _broadcast() -> Iterator[Case]:
    for shape, axes, result in (
        ((), (), ()),
        ((), (), (3, 5)),
        ((3,), (0,), (3, 41)),
        ((17,), (1,), (3, 17)),
        ((1, 5), (0, 1), (3, 5)),
        ((3, 1), (0, 2), (3, 2, 4)),
        ((2, 3), (1, 2), (1, 2, 3)),
        ((3,), (0,), (3, 0)),
    ):
        yield from _moved("broadcast", shape, f"{axes}-{result}", dict(axes=axes), result)


def _slice() -> Iterator[Case]:
    for shape, start, limit, stride in (
        ((), (), (), ()),
        ((17,), (3,), (11,), (1,)),
        ((41,), (0,), (41,), (3,)),
        ((41,), (5,), (40,), (7,)),
        ((3, 17), (1, 2), (2, 17), (1, 4)),
        ((2, 3, 5), (0, 0, 1), (2, 3, 5), (1, 2, 2)),
        ((5,), (2,), (2,), (1,)),
        ((0, 3), (0, 1), (0, 2), (1, 1)),
    ):
        yield from _moved("slice", shape, f"{start}-{limit}-{stride}", dict(start=start, limit=limit, stride=stride))


def _pad() -> Iterator[Case]:
    for shape, low, high, interior, value in (
        ((), (), (), (), 1),
        ((3,), (1,), (2,), (0,), 0),
        ((17,), (0,), (0,), (2,), 1),
        ((3, 5), (1, 0), (0, 2), (0, 1), 1),
        ((2, 1, 3), (0, 1, 1), (1, 0, 1), (1, 2, 0), 0),
        ((0,), (1,), (2,), (3,), 1),
        ((41,), (0,), (0,), (0,), 0),
    ):
        attrs = dict(low=low, high=high, interior=interior, value=value)
        yield from _moved("pad", shape, f"{low}-{high}-{interior}", attrs)


def _concatenate() -> Iterator[Case]:
    for shapes, axis in (
        (((3,),), 0),
        (((3,), (1,), (17,)), 0),
        (((3, 5), (3, 1), (3, 0), (3, 2)), 1),
        (((1, 5), (41, 5)), 0),
        (((2, 3, 2), (2, 1, 2), (2, 4, 2)), 1),
    ):
        for dtype in DTYPES.values():
            random = _random(f"concatenate{dtype}{shapes}")
            arrays = [_values(random, TensorType(shape, dtype)) for shape in shapes]
            yield _case("concatenate", f"{dtype}-{shapes}-{axis}", arrays, dict(axis=axis))


def _flip() -> Iterator[Case]:
    for shape, axes in (((), ()), ((17,), (0,)), ((3, 5), (0,)), ((3, 5), (0, 1)), ((2, 1, 41), (1, 2)), ((0,), (0,))):
        yield from _moved("flip", shape, str(axes), dict(axes=axes))


# Indexing

# Shape of the array, indexed axes, shape of the positions.
_INDEXED: tuple[tuple[Shape, tuple[int, ...], Shape], ...] = (
    ((5,), (0,), ()),
    ((5,), (0,), (3,)),
    ((41,), (0,), (17,)),
    ((1,), (0,), (3, 2)),
    ((3, 17), (0,), (4,)),
    ((3, 17), (1,), (2, 3)),
    ((3, 17), (0, 1), (5,)),
    ((2, 3, 5), (1,), ()),
    ((2, 3, 5), (0, 2), (4, 1)),
    ((2, 3, 5), (0, 1, 2), (7,)),
    ((3, 4), (0,), (0,)),
)


def _positions(
    random: np.random.Generator, shape: Shape, axes: Sequence[int], of: Shape, beyond: int
) -> list[np.ndarray]:
    return [np.asarray(random.integers(-beyond, shape[axis] + beyond, of)).astype(np.int32) for axis in axes]


def _gather() -> Iterator[Case]:
    for dtype in DTYPES.values():
        for shape, axes, of in _INDEXED:
            type, random = TensorType(shape, dtype), _random(f"gather{dtype}{shape}{axes}{of}")
            for beyond, label in ((0, "inside"), (4, "special-outside")):
                arrays = [_values(random, type), *_positions(random, shape, axes, of, beyond)]
                yield _case("gather", f"{type}-{axes}-{of}-{label}", arrays, dict(axes=axes), special=beyond > 0)
    nothing = [np.zeros((0, 3), np.float32), np.zeros((0,), np.int32)]
    yield _case("gather", "empty", nothing, dict(axes=(0,)))


def _scatter_add() -> Iterator[Case]:
    for dtype in (float32, int32, uint32):
        for shape, axes, of in _INDEXED:
            random = _random(f"scatter_add{dtype}{shape}{axes}{of}")
            type = TensorType(shape, dtype)
            window = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
            for beyond, label in ((0, "inside"), (4, "special-outside")):
                updates = _values(random, TensorType(of + window, dtype))
                arrays = [_values(random, type), updates, *_positions(random, shape, axes, of, beyond)]
                yield _case("scatter_add", f"{type}-{axes}-{of}-{label}", arrays, dict(axes=axes), special=beyond > 0)
    nothing = [np.zeros((0, 3), np.float32), np.zeros((2, 3), np.float32), np.zeros((2,), np.int32)]
    yield _case("scatter_add", "empty", nothing, dict(axes=(0,)))


# Contraction

_DOTS: tuple[tuple[Shape, Shape, Any, Any], ...] = (
    ((3,), (3,), ((0,), (0,)), ((), ())),
    ((), (), ((), ()), ((), ())),
    ((), (2, 3), ((), ()), ((), ())),
    ((3,), (5,), ((), ()), ((), ())),
    ((7, 5), (5, 3), ((1,), (0,)), ((), ())),
    ((5, 7), (5, 3), ((0,), (0,)), ((), ())),
    ((7, 5), (3, 5), ((1,), (1,)), ((), ())),
    ((1, 17), (17, 41), ((1,), (0,)), ((), ())),
    ((41, 1), (1, 3), ((1,), (0,)), ((), ())),
    ((17,), (17, 3), ((0,), (0,)), ((), ())),
    ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((3, 2, 4), (4, 5, 2), ((2,), (0,)), ((1,), (2,))),
    ((2, 3, 4, 5), (5, 3, 2), ((3,), (0,)), ((1, 0), (1, 2))),
    ((2, 3, 4), (4, 3, 6), ((1, 2), (1, 0)), ((), ())),
    ((2, 3, 4), (4, 3, 6), ((2, 1), (0, 1)), ((), ())),
    ((2, 3), (3, 2), ((1,), (0,)), ((0,), (1,))),
    ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
    ((3, 0), (0, 2), ((1,), (0,)), ((), ())),
    ((0, 3), (3, 2), ((1,), (0,)), ((), ())),
)


def _dot() -> Iterator[Case]:
    for dtype in (float32, int32, uint32):
        for left, right, contract, batch in _DOTS:
            label = f"{dtype}-{left}-{right}-{contract}-{batch}"
            random = _random(f"dot{label}")
            arrays = [_values(random, TensorType(shape, dtype)) for shape in (left, right)]
            yield _case("dot", label, arrays, dict(contract=contract, batch=batch))
    for sides in ((65, 33, 129), (130, 70, 1), (3, 300, 5)):
        m, k, n = sides
        random = _random(f"dot{sides}")
        arrays = [_values(random, TensorType(shape, float32)) for shape in ((m, k), (k, n))]
        yield _case("dot", f"f32-{m}x{k}x{n}", arrays, dict(contract=((1,), (0,)), batch=((), ())))


# Sources


def _constant() -> Iterator[Case]:
    for value, dtype in ((2.5, float32), (-0.0, float32), (7, int32), (-7, int32), (7, uint32), (True, bool_)):
        for shape in ((), (1,), (3, 17), (0,)):
            type = TensorType(shape, dtype)
            yield _case("constant", f"{value}-{type}", [], dict(value=value), type)
    for value in ("nan", "inf", "-inf"):
        type = TensorType((3,), float32)
        yield _case("constant", f"special-{value}", [], dict(value=float(value)), type, special=True)


def _iota() -> Iterator[Case]:
    for dtype in (float32, int32, uint32):
        for shape, axis in (((1,), 0), ((41,), 0), ((3, 17), 0), ((3, 17), 1), ((2, 1, 3), 2), ((0, 3), 1)):
            type = TensorType(shape, dtype)
            yield _case("iota", f"{type}-{axis}", [], dict(axis=axis), type)


_UNARY = (
    "negate", "abs", "sign", "floor", "exp", "log", "expm1", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh",
    "logistic", "not", "stop_gradient",
)
_BINARY = (
    "add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "and", "or", "xor",
)

_MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    **{op: partial(_elementwise, op, 1) for op in _UNARY},
    **{op: partial(_elementwise, op, 2) for op in (*_BINARY, *COMPARISONS)},
    **{op: partial(_reduction, op) for op in ("sum", "prod", "max", "min")},
    **{op: partial(_position, op) for op in ("argmax", "argmin")},
    "where": _where,
    "cast": _cast,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "flip": _flip,
    "gather": _gather,
    "scatter_add": _scatter_add,
    "dot": _dot,
    "constant": _constant,
    "iota": _iota,
}

OPERATIONS_WITH_CASES = frozenset(_MAKERS)


@cache
def cases_of(op: str) -> tuple[Case, ...]:
    """The cases of one operation."""
    return tuple(_MAKERS[op]())


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(case for op in _MAKERS for case in cases_of(op))
