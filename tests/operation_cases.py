"""Samples of every operation: one-node graphs with arrays to run them on.

The tests of the interpreter, of gradients and of the backend all run the same cases. Each case is made of the same
numbers on every run. Values lie where the operation is smooth and well conditioned, except in cases marked
`special`: infinities, NaN, signed zeros, ties, positions outside the range, integers that overflow.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from lavax.errors import DtypeError
from lavax.ir import OPERATIONS, Graph, Node, TensorType, bool_, float32, float64, int32, uint32
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.interpreter import interpret
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.ops.attention import names_of
from lavax.ir.ops.cumulative import CUMULATIVE
from lavax.ir.ops.elementwise import COMPARISONS
from lavax.ir.ops.indexing import JOINS, SCATTERS
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

    @property
    def only_float32(self) -> bool:
        """Whether no floats of other widths come in: rules of calculus do not depend on the width."""
        return all(node.dtype == float32 for node in (*self.graph.inputs, self.node) if node.dtype.is_float)

    @property
    def in_float64(self) -> bool:
        return any(node.dtype == float64 for node in (*self.graph.inputs, self.node))

    def __str__(self) -> str:
        return f"{self.op}-{self.label}"


SHAPES: tuple[Shape, ...] = ((), (1,), (3,), (17,), (41,), (3, 17), (41, 1), (2, 3, 5), (2, 1, 3, 2), (0,), (3, 0, 2))

# Where the floats of an operand lie, by operation; two intervals are for values away from zero.
_POSITIVE, _AWAY_FROM_ZERO, _ANYWHERE = ((0.2, 3.0),), ((-3.0, -0.4), (0.4, 3.0)), ((-3.0, 3.0),)
_ORDERS = ((0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (5.0, 5.0))
_DOMAINS: Mapping[str, Sequence[Any]] = {
    "log": [_POSITIVE],
    "sqrt": [_POSITIVE],
    "rsqrt": [_POSITIVE],
    "log1p": [((-0.8, 3.0),)],
    "abs": [_AWAY_FROM_ZERO],
    "sign": [_AWAY_FROM_ZERO],
    "divide": [_ANYWHERE, _AWAY_FROM_ZERO],
    "remainder": [_ANYWHERE, _AWAY_FROM_ZERO],
    "modulo": [_ANYWHERE, _AWAY_FROM_ZERO],
    "power": [_POSITIVE, _ANYWHERE],
    "log2": [_POSITIVE],
    "cbrt": [_AWAY_FROM_ZERO],
    "tan": [((-1.2, 1.2),)],
    "asin": [((-0.9, 0.9),)],
    "acos": [((-0.9, 0.9),)],
    "acosh": [((1.1, 4.0),)],
    "atanh": [((-0.9, 0.9),)],
    "atan2": [_AWAY_FROM_ZERO, _AWAY_FROM_ZERO],
    "erfinv": [((-0.9, 0.9),)],
    "ndtri": [((0.05, 0.95),)],
    "lgamma": [((0.3, 4.0), (-0.8, -0.3))],
    "digamma": [((0.3, 4.0), (-0.8, -0.3))],
    "bessel_i0e": [_AWAY_FROM_ZERO],
    "bessel_i1e": [_AWAY_FROM_ZERO],
    "expi": [((-3.0, -0.4), (0.6, 3.0))],
    "gammainc": [_POSITIVE, _POSITIVE],
    "gammaincc": [_POSITIVE, _POSITIVE],
    "beta": [_POSITIVE, _POSITIVE],
    "betainc": [_POSITIVE, _POSITIVE, ((0.05, 0.95),)],
    "boxcox": [_POSITIVE, _ANYWHERE],
    "boxcox1p": [((-0.8, 3.0),), _ANYWHERE],
    "factorial": [_POSITIVE],
    "gamma": [((0.3, 4.0), (-0.8, -0.3))],
    "kl_div": [_POSITIVE, _POSITIVE],
    "poch": [_POSITIVE, _POSITIVE],
    "expn": [_ORDERS, _POSITIVE],
    "polygamma": [_ORDERS, _POSITIVE],
    "zeta": [((1.2, 3.0),), _POSITIVE],
}
_SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))
# bfloat16, which NumPy lacks, has tests of its own.
_DTYPES = tuple(dtype for dtype in DTYPES.values() if dtype.name != "bf16")
# Dtypes that all cases are made for; of those of the others a few.
_THOROUGH = frozenset((float32, int32, uint32, bool_))
_FEW = 2


def _special_integers(dtype: DType) -> tuple[int, ...]:
    if dtype.kind == "bool":
        return 0, 1
    if dtype.kind == "int":
        return 0, 1, -1, 2, -3, 7, dtype.highest, dtype.lowest
    return 0, 1, 2, 3, 7, 1 << dtype.bits - 1, dtype.highest




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
    return np.asarray(random.uniform(lows, highs)).astype(np.float32).astype(type.dtype.numpy)


def _case(
    op: str,
    label: str,
    arrays: Sequence[np.ndarray],
    attrs: Mapping[str, Any] | None = None,
    type: TensorType | None = None,
    special: bool = False,
) -> Case:
    dtypes = {dtype.numpy: dtype for dtype in _DTYPES}
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
    values = _SPECIAL_FLOATS if dtype.is_float else _special_integers(dtype)
    with np.errstate(over="ignore", under="ignore"):
        return np.array(values, dtype.numpy)


def _elementwise(op: str, arity: int) -> Iterator[Case]:
    for dtype in _DTYPES:
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
    for dtype in _DTYPES:
        for shape in SHAPES:
            random = _random(f"where{dtype}{shape}")
            types = (TensorType(shape, bool_), TensorType(shape, dtype), TensorType(shape, dtype))
            yield _case("where", str(types[1]), [_values(random, type) for type in types])
    nan = np.array([np.nan, 1, np.nan, 2], np.float32)
    yield _case("where", "special-nan", [np.array([0, 1, 1, 0], np.bool_), nan, nan[::-1]], special=True)


def _cast() -> Iterator[Case]:
    for source in _DTYPES:
        for target in _DTYPES:
            for shape in ((), (17,), (3, 5), (0,)):
                array = _values(_random(f"cast{source}{target}{shape}"), TensorType(shape, source))
                array = np.abs(array) if target.kind == "uint" and source.is_float else array
                yield _case("cast", f"{source}-{target}-{shape}", [array], type=TensorType(shape, target))
            values = _special_values(source)
            declared = TensorType(values.shape, target)
            yield _case("cast", f"special-{source}-{target}", [values], type=declared, special=True)


def _shift(op: str) -> Iterator[Case]:
    for dtype in (int32, uint32, *(dtype for dtype in _DTYPES if dtype.is_integer and dtype not in _THOROUGH)):
        values, width = _special_values(dtype), dtype.bits
        around = [0, 1, 5, width - 1, width, width + 1, 2 ** (width - 1) - 1, -1, -(2 ** (width - 1))]
        distances = np.array(around, np.int64).astype(dtype.numpy)
        pairs = [grid.ravel() for grid in np.meshgrid(values, distances)]
        yield _case(op, f"special-{dtype}", pairs, special=True)
        for shape in SHAPES:
            type, random = TensorType(shape, dtype), _random(f"{op}{dtype}{shape}")
            bits = np.asarray(random.integers(0, 2**32, shape, np.uint32)).astype(dtype.numpy)
            if width == 64:
                bits = bits << 31
            yield _case(op, str(type), [bits, np.abs(_values(random, type))])


def _bitcast() -> Iterator[Case]:
    numbers = [dtype for dtype in _DTYPES if dtype != bool_]
    for source in numbers:
        for target in numbers:
            if source.bits != target.bits:
                continue
            for shape in ((), (17,), (3, 4), (0,)):
                random = _random(f"bitcast{source}{target}{shape}")
                floats = _values(random, TensorType(shape, DTYPES[f"f{max(source.bits, 16)}"]))
                bits = np.asarray(floats.view(f"u{floats.itemsize}"))
                array = floats if source.is_float else bits.astype(source.numpy)
                yield _case("bitcast", f"{source}-{target}-{shape}", [array], type=TensorType(shape, target))
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1e30], np.float32)
    for source, target in ((float32, uint32), (int32, float32)):
        declared = TensorType(special.shape, target)
        yield _case("bitcast", f"special-{source}-{target}", [special.view(source.numpy)], type=declared, special=True)


def _known_value() -> Iterator[Case]:
    """Of whole numbers: it is no function of its operands where these have derivatives."""
    return (case for case in _elementwise("known_value", 2) if not case.node.dtype.is_float)


def _threefry() -> Iterator[Case]:
    for word in (0, 1, 2):
        for shape in SHAPES:
            random = _random(f"threefry{word}{shape}")
            arrays = [np.asarray(random.integers(0, 2**32, shape, np.uint32)) for _ in range(4)]
            yield _case("threefry", f"{shape}-{word}", arrays, dict(word=word))
    ends = np.array([0, 2**32 - 1], np.uint32)
    words = [grid.ravel() for grid in np.meshgrid(*[ends] * 4)]
    yield _case("threefry", "special", words, dict(word=2), special=True)


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
    return ((order - type.size / 2) * (4 / max(type.size, 1))).astype(type.dtype.numpy)


def _reduction(op: str) -> Iterator[Case]:
    for dtype in _DTYPES:
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
    for dtype in _DTYPES:
        for shape, axes in _REDUCED:
            if len(axes) == 1:
                type = TensorType(shape, dtype)
                array = _distinct(_random(f"{op}{dtype}{shape}{axes}"), type)
                yield _case(op, f"{type}-{axes[0]}", [array], dict(axis=axes[0]))
    rows = np.array([[1, 2, 2], [2, np.nan, 5], [0, 0, 3], [np.inf, -np.inf, 0], [5, 5, 5]], np.float32)
    yield _case(op, "special", [rows], dict(axis=1), special=True)


# Movement


def _moved(op: str, shape: Shape, label: str, attrs: Mapping[str, Any], result: Shape | None = None) -> Iterator[Case]:
    for dtype in _DTYPES:
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
        for dtype in _DTYPES:
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
    for dtype in _DTYPES:
        for shape, axes, of in _INDEXED:
            type, random = TensorType(shape, dtype), _random(f"gather{dtype}{shape}{axes}{of}")
            for beyond, label in ((0, "inside"), (4, "special-outside")):
                arrays = [_values(random, type), *_positions(random, shape, axes, of, beyond)]
                yield _case("gather", f"{type}-{axes}-{of}-{label}", arrays, dict(axes=axes), special=beyond > 0)
    nothing = [np.zeros((0, 3), np.float32), np.zeros((0,), np.int32)]
    yield _case("gather", "empty", nothing, dict(axes=(0,)))


def _scatter(op: str) -> Iterator[Case]:
    for dtype in _DTYPES:
        if dtype.kind not in SCATTERS[op][0]:
            continue
        for shape, axes, of in _INDEXED:
            random = _random(f"{op}{dtype}{shape}{axes}{of}")
            type = TensorType(shape, dtype)
            window = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
            for beyond, label in ((0, "inside"), (4, "special-outside")):
                updates = _values(random, TensorType(of + window, dtype))
                arrays = [_values(random, type), updates, *_positions(random, shape, axes, of, beyond)]
                yield _case(op, f"{type}-{axes}-{of}-{label}", arrays, dict(axes=axes), special=beyond > 0)
    nothing = [np.zeros((0, 3), np.float32), np.zeros((2, 3), np.float32), np.zeros((2,), np.int32)]
    yield _case(op, "empty", nothing, dict(axes=(0,)))


# Routines


def _lines() -> Iterator[tuple[Shape, int]]:
    yield from (((1,), 0), ((3,), 0), ((41,), 0), ((3, 17), 0), ((3, 17), 1))
    yield from (((2, 3, 64), 2), ((0,), 0), ((2, 1, 3), 1))


def _cumulative(op: str) -> Iterator[Case]:
    for dtype in _DTYPES:
        if dtype.kind not in CUMULATIVE[op][0]:
            continue
        for shape, axis in _lines():
            random = _random(f"{op}{dtype}{shape}{axis}")
            domain = _AWAY_FROM_ZERO if op == "cumulative_prod" else _ANYWHERE
            values = _values(random, TensorType(shape, dtype), domain)
            if op == "cumulative_prod" and dtype.is_float:
                values = np.sign(values) * (1 + np.abs(values) / 100)
            yield _case(op, f"{TensorType(shape, dtype)}-{axis}", [values], dict(axis=axis))
        yield _case(op, f"special-{dtype}", [_special_values(dtype)], dict(axis=0), special=True)


def _sorting(op: str) -> Iterator[Case]:
    for dtype in _DTYPES:
        for shape, axis in _lines():
            values = _values(_random(f"{op}{dtype}{shape}{axis}"), TensorType(shape, dtype))
            yield _case(op, f"{TensorType(shape, dtype)}-{axis}", [values], dict(axis=axis), special=op == "sort_order")
        special = np.concatenate([_special_values(dtype)] * 7)
        yield _case(op, f"special-{dtype}", [special], dict(axis=0), special=True)


def _unsort() -> Iterator[Case]:
    for dtype in _DTYPES:
        for shape, axis in _lines():
            random = _random(f"unsort{dtype}{shape}{axis}")
            order = np.argsort(random.random(shape), axis=axis).astype(np.int32)
            arrays = [_values(random, TensorType(shape, dtype)), order]
            yield _case("unsort", f"{TensorType(shape, dtype)}-{axis}", arrays, dict(axis=axis))


def _sort_runs() -> Iterator[Case]:
    for dtype in _DTYPES:
        for shape, run in (((1, 5), 5), ((3, 41), 8), ((2, 64), 16), ((2, 1), 4), ((0, 3), 2), ((2, 2, 17), 4)):
            values = _values(_random(f"sort_runs{dtype}{shape}{run}"), TensorType(shape, dtype))
            yield _case("sort_runs", f"{TensorType(shape, dtype)}-{run}", [values], dict(run=run))


def _merge_runs() -> Iterator[Case]:
    for dtype in _DTYPES:
        for shape, run in (((3, 41), 32), ((2, 90), 32), ((2, 3), 32), ((2, 1), 32), ((0, 3), 32), ((2, 2, 65), 32)):
            keys = _values(_random(f"merge_runs{dtype}{shape}{run}"), TensorType(shape, dtype))
            order = _evaluated(make_node("sort_runs", [_input_like("x", keys)], dict(run=run)), keys)
            yield _case("merge_runs", f"{TensorType(shape, dtype)}-{run}", [keys, order], dict(run=run))


_DIGITS = (((7,), 0, 4, 16), ((2, 70), 3, 6, 32), ((3, 41), 24, 8, 16), ((2, 1), 8, 8, 16), ((0, 5), 0, 4, 16))


def _digits(op: str) -> Iterator[tuple[str, np.ndarray, Mapping[str, int]]]:
    for shape, shift, bits, tile in _DIGITS:
        values = _random(f"{op}{shape}").integers(0, 2**64, shape, dtype=np.uint64)
        yield f"{list(shape)}-{bits}-u64", values, dict(shift=shift + 32, bits=bits, tile=tile)
        yield f"{list(shape)}-{bits}", values.astype(np.uint32), dict(shift=shift, bits=bits, tile=tile)


def _count_digits() -> Iterator[Case]:
    for label, values, attrs in _digits("count_digits"):
        yield _case("count_digits", label, [values], attrs)


def _move_by_digit() -> Iterator[Case]:
    for label, values, attrs in _digits("move_by_digit"):
        counts = _evaluated(make_node("count_digits", [_input_like("x", values)], attrs), values)
        flat = counts.reshape(*counts.shape[:-2], -1 if counts.size else 0)
        starts = (np.cumsum(flat, axis=-1) - flat).reshape(counts.shape).astype(np.int32)
        yield _case("move_by_digit", label, [values, starts], attrs)


def _input_like(name: str, array: np.ndarray) -> Node:
    dtypes = {dtype.numpy: dtype for dtype in _DTYPES}
    return input_node(name, TensorType(array.shape, dtypes[array.dtype]))


def _evaluated(node: Node, *arrays: np.ndarray) -> np.ndarray:
    return interpret(graph_of(node.operands, [node]), *arrays)[0]


def _search_sorted() -> Iterator[Case]:
    for dtype in _DTYPES:
        for batch, length, count in (((), 5, 3), ((), 41, 64), ((3,), 17, 4), ((2, 3), 1, 5), ((), 0, 3), ((2,), 3, 0)):
            random = _random(f"search_sorted{dtype}{batch}{length}{count}")
            rows = np.sort(_values(random, TensorType((*batch, length), dtype)), axis=-1)
            values = _values(random, TensorType((*batch, count), dtype))
            for right in (False, True):
                label = f"{TensorType(rows.shape, dtype)}-{count}-{right}"
                yield _case("search_sorted", label, [rows, values], dict(right=right))
        special = np.sort(_special_values(dtype))
        yield _case("search_sorted", f"special-{dtype}", [special, special], dict(right=False), special=True)


# batch, queries, keys, head, head of the values; bias, mask; what else differs from plain attention. Every query sees a
# key, also once the mask's places are moved on.
_ATTENTION: tuple[tuple[Shape, int, int, int, int, bool, bool, Mapping[str, Any]], ...] = (
    ((), 3, 4, 2, 3, False, False, {}),
    ((2,), 5, 3, 4, 4, True, False, dict(lowest=-2, highest=1)),
    ((2, 1), 4, 4, 3, 2, False, True, dict(empty=True)),
    ((), 4, 5, 1, 2, True, True, dict(fill=-2.0, lowest=-3)),
    ((2,), 37, 45, 8, 12, False, False, dict(highest=3, empty=True)),
)


def _attention(op: str) -> Iterator[Case]:
    plain = dict(scale=0.6, fill=float("-inf"), empty=False)
    for dtype in (float32, DTYPES["f16"]):
        for number, (_, queries, keys, _, _, biased, masked, different) in enumerate(_ATTENTION):
            random = _random(f"{op}{dtype}{number}")
            attrs = dict(lowest=1 - queries, highest=keys - 1, biased=biased, masked=masked) | plain | different
            attrs = {name: attrs[name] for name in OPERATIONS[op].attributes}
            yield _case(op, f"{dtype}-{number}", _of_attention(random, op, attrs, number, dtype), attrs)
    hidden = dict(lowest=0, highest=1, biased=False, masked=False) | plain
    for empty in (False, True):
        attrs = {name: (hidden | dict(empty=empty))[name] for name in OPERATIONS[op].attributes}
        if "empty" in attrs:  # the last queries see no key
            arrays = _of_attention(_random(f"{op}special"), op, attrs, 1, float32)
            yield _case(op, f"special-{empty}", arrays, attrs, special=True)


def _of_attention(
    random: np.random.Generator, op: str, attrs: Mapping[str, Any], number: int, dtype: DType
) -> list[np.ndarray]:
    batch, queries, keys, head, values, *_ = _ATTENTION[number]
    shapes: Mapping[str, Shape] = {
        "query": (queries, head),
        "key": (keys, head),
        "value": (keys, values),
        "cotangent": (queries, values),
        "delta": (queries,),
        "logsumexp": (queries,),
        "bias": (queries, keys),
        "mask": (queries, keys),
    }
    arrays = []
    for name in names_of(op, attrs):
        type = TensorType((*batch, *shapes[name]), float32 if name in ("delta", "logsumexp") else dtype)
        if name == "mask":
            arrays.append(np.arange(prod(type.shape)).reshape(type.shape) % 3 != 1)
        else:
            arrays.append(_values(random, type, ((-1.0, 1.0),) if name != "logsumexp" else _POSITIVE))
    return arrays


# Matrices: far from singular, eigenvalues and singular values far from each other.

_MATRICES: tuple[Shape, ...] = ((1, 1), (3, 3), (2, 4, 4), (1, 2, 5, 5))
_SETTINGS_OF_PARTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "lu": [{}],
    "householder": [{}],
    "qr": [dict(complete=False), dict(complete=True)],
    "eigh": [dict(vectors=False), dict(vectors=True)],
    "jacobi": [dict(relative=False, across=False, sweeps=16), dict(relative=True, across=False, sweeps=16)],
    "svd": [dict(vectors=False, complete=False), dict(vectors=True, complete=False), dict(vectors=True, complete=True)],
}
_OF_SYMMETRIC = ("eigh", "jacobi")


def _matrix(label: str, shape: Shape, symmetric: bool = False, dtype: DType = float32) -> np.ndarray:
    """Singular values 1, 2, 3, …; symmetric matrices are positive definite."""
    random = _random(f"{label}{shape}")
    *batch, rows, columns = shape
    left = np.linalg.qr(random.normal(size=(*batch, rows, columns)))[0]
    right = np.swapaxes(left, -1, -2) if symmetric else np.linalg.qr(random.normal(size=(*batch, columns, columns)))[0]
    return np.asarray((left * np.arange(1.0, columns + 1)) @ right, dtype.numpy)


def _taken_apart(op: str) -> Iterator[Case]:
    tall = ((3, 1), (5, 3), (2, 4, 2)) if op in ("householder", "qr", "svd") else ()
    for shape in (*_MATRICES, *tall):
        for attrs in _SETTINGS_OF_PARTS[op]:
            square = shape[-1] == shape[-2]
            if attrs.get("complete") and not square and op == "svd":
                continue  # what completes the left vectors is not determined
            label = f"{list(shape)}-{'-'.join(str(value) for value in attrs.values())}"
            no_gradient = bool(attrs.get("complete")) and not square
            yield _case(op, label, [_matrix(op, shape, op in _OF_SYMMETRIC)], attrs, special=no_gradient)
    for attrs in _SETTINGS_OF_PARTS[op]:
        label = f"f64-{'-'.join(str(value) for value in attrs.values())}"
        yield _case(op, label, [_matrix(op, (2, 4, 4), op in _OF_SYMMETRIC, float64)], attrs)


def _cholesky() -> Iterator[Case]:
    for shape in _MATRICES:
        yield _case("cholesky", str(list(shape)), [_matrix("cholesky", shape, symmetric=True)], {})
    yield _case("cholesky", "f64", [_matrix("cholesky", (2, 4, 4), symmetric=True, dtype=float64)], {})


def _triangular_solve() -> Iterator[Case]:
    sizes: tuple[tuple[Shape, int], ...] = (((1, 1), 1), ((3, 3), 1), ((2, 4, 4), 3), ((5, 5), 17))
    for dtype, (shape, columns) in product((float32, float64), sizes):
        random = _random(f"triangular_solve{shape}{columns}")
        matrix = np.asarray(random.uniform(-1, 1, shape) + 2 * np.eye(shape[-1]), dtype.numpy)
        right = np.asarray(random.uniform(-3, 3, (*shape[:-1], columns)), dtype.numpy)
        for lower, transposed, unit in ((1, 0, 0), (0, 0, 1), (1, 1, 1), (0, 1, 0)):
            attrs = dict(lower=bool(lower), transposed=bool(transposed), unit_diagonal=bool(unit))
            label = f"{dtype}{list(shape)}-{columns}-{lower}-{transposed}-{unit}"
            yield _case("triangular_solve", label, [matrix, right], attrs)


def _linear_solve() -> Iterator[Case]:
    sizes: tuple[tuple[Shape, int], ...] = (((1, 1), 1), ((3, 3), 1), ((2, 4, 4), 3))
    for dtype, (shape, columns) in product((float32, float64), sizes):
        matrix = _matrix(f"linear_solve{columns}", shape, dtype=dtype)
        factored = np.asarray(_evaluated(make_node("lu", [_input_like("x", matrix)], {}), matrix), dtype.numpy)
        right = np.asarray(_random(f"linear_solve{shape}").uniform(-3, 3, (*shape[:-1], columns)), dtype.numpy)
        for transposed in (False, True):
            label = f"{dtype}{list(shape)}-{columns}-{transposed}"
            yield _case("linear_solve", label, [matrix, factored, right], dict(transposed=transposed))


def _runs(op: str) -> Iterator[Case]:
    """Updates of `count` places that rise, the last of them outside the array."""
    for dtype in _DTYPES:
        for join in (*JOINS, "set"):
            if dtype.kind == "bool" and join in ("add", "multiply"):
                continue
            for shape, axes, count, chunk in _RUNS:
                random = _random(f"{op}{dtype}{join}{shape}{axes}{count}")
                window = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
                extent = prod(shape[axis] for axis in axes)
                updates = _values(random, TensorType((count, *window), dtype))
                order = random.permutation(count).astype(np.int32)
                places = np.sort(random.integers(0, extent + 1, count)).astype(np.int32)
                runs, attrs = [updates, order, places], dict(join=join, chunk=chunk)
                label = f"{TensorType(shape, dtype)}-{count}-{chunk}-{join}"
                if op == "fold_runs":
                    yield _case(op, label, runs, attrs)
                    continue
                levels = _levels(runs, join, chunk)
                array = _values(random, TensorType(shape, dtype))
                yield _case(op, label, [array, *runs, *levels], attrs | dict(axes=axes))


# Shape of the array, axes of the places, number of updates, of those in a chunk.
_RUNS: tuple[tuple[Shape, tuple[int, ...], int, int], ...] = (
    ((5,), (0,), 17, 64),
    ((3, 4), (0,), 7, 64),
    ((2, 4, 2), (1,), 70, 64),
    ((2, 2, 3), (1, 2), 130, 8),
)


def _levels(runs: Sequence[np.ndarray], join: str, chunk: int) -> list[np.ndarray]:
    """Runs folded by chunks, chunks of those, and so on."""
    levels: list[np.ndarray] = []
    updates, order, places = runs
    while len(places) > chunk:
        nodes = [_input_like(f"x{n}", array) for n, array in enumerate((updates, order, places))]
        node = make_node("fold_runs", nodes, dict(join=join, chunk=chunk))
        levels.append(_evaluated(node, updates, order, places).astype(updates.dtype))
        updates, places = levels[-1], places[::chunk]
        order = np.arange(len(places), dtype=np.int32)
    return levels


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
    for dtype in (dtype for dtype in _DTYPES if dtype != bool_):
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


# Windows

# Shapes of both operands; contract, batch and window axes; stride, low, high, interior, dilation of each window axis.
_CONVS: tuple[tuple[Shape, Shape, Any, Any, Any, Any], ...] = (
    ((5,), (3,), ((), ()), ((), ()), ((0,), (0,)), ((1, 0, 0, 0, 1),)),
    ((2, 7, 3), (3, 3, 4), ((2,), (1,)), ((), ()), ((1,), (0,)), ((2, 1, 1, 0, 1),)),
    ((2, 3, 6), (4, 3, 2), ((1,), (1,)), ((), ()), ((2,), (2,)), ((1, 2, 1, 0, 2),)),
    ((2, 5, 4, 3), (3, 2, 3, 4), ((3,), (2,)), ((), ()), ((1, 2), (0, 1)), ((1, 1, 1, 0, 1), (2, 0, 1, 0, 1))),
    ((2, 3, 5, 4), (2, 3, 3, 3), ((1,), (1,)), ((), ()), ((2, 3), (2, 3)), ((1, 1, 1, 0, 1), (1, 1, 1, 0, 1))),
    ((1, 2, 4, 4), (3, 2, 3, 2), ((1,), (1,)), ((), ()), ((2, 3), (2, 3)), ((1, 2, 1, 1, 1), (1, 1, 2, 2, 2))),
    ((2, 2, 5, 3), (2, 4, 3, 2), ((3,), (2,)), ((1,), (0,)), ((2,), (3,)), ((1, 0, 0, 0, 1),)),
    ((2, 5, 6, 3), (3, 3, 3), ((), ()), ((3,), (2,)), ((1, 2), (0, 1)), ((1, 1, 1, 0, 1), (2, 1, 0, 0, 1))),
    ((3, 6, 2), (2, 3, 4), ((2,), (0,)), ((), ()), ((1,), (1,)), ((1, -1, -2, 0, 1),)),
    ((3, 5), (2, 3), ((), ()), ((), ()), ((1,), (0,)), ((3, -1, 4, 1, 2),)),
    ((1, 3, 3, 2, 2), (2, 2, 2, 2, 3), ((4,), (3,)), ((), ()), ((1, 2, 3), (0, 1, 2)), ((1, 1, 0, 0, 1),) * 3),
    ((2, 3, 4), (4, 5), ((2,), (0,)), ((), ()), ((), ()), ()),
    ((4, 8, 8, 8), (3, 3, 8, 16), ((3,), (2,)), ((), ()), ((1, 2), (0, 1)), ((1, 1, 1, 0, 1),) * 2),
    ((2, 4, 9, 8), (8, 4, 3, 3), ((1,), (1,)), ((), ()), ((2, 3), (2, 3)), ((2, 1, 1, 0, 1),) * 2),
    ((2, 2, 3), (4, 3, 5), ((2,), (1,)), ((), ()), ((1,), (0,)), ((1, 0, 0, 0, 1),)),
    ((0, 5, 3), (2, 3, 4), ((2,), (1,)), ((), ()), ((1,), (0,)), ((1, 0, 0, 0, 1),)),
    ((2, 5, 0), (2, 0, 4), ((2,), (1,)), ((), ()), ((1,), (0,)), ((1, 0, 0, 0, 1),)),
    ((2, 0, 3), (2, 3, 4), ((2,), (1,)), ((), ()), ((1,), (0,)), ((1, 1, 2, 0, 1),)),
)


def _conv() -> Iterator[Case]:
    for dtype in (float32, int32, uint32):
        for left, right, contract, batch, window, numbers in _CONVS:
            lists = zip(*numbers, strict=True) if numbers else [()] * 5
            names = ("stride", "low", "high", "interior", "dilation")
            attrs = dict(zip(names, map(tuple, lists), strict=True), window=window, contract=contract, batch=batch)
            label = f"{dtype}-{left}-{right}-{numbers}"
            random = _random(f"conv{label}")
            arrays = [_values(random, TensorType(shape, dtype)) for shape in (left, right)]
            yield _case("conv", label, arrays, attrs)


# The narrow shape, the wide one, and for each sheared axis: the axis, the one along it, stride and dilation.
_SHEARED: tuple[tuple[Shape, Shape, tuple[tuple[int, int, int, int], ...]], ...] = (
    ((3, 2), (4, 2), ((0, 1, 1, 1),)),
    ((3, 2), (7, 2), ((0, 1, 2, 1),)),
    ((2, 4, 3), (2, 9, 3), ((1, 2, 1, 2),)),
    ((3, 2, 4), (3, 2, 17), ((2, 0, 3, 2),)),
    ((2, 3, 4, 2, 3), (2, 4, 9, 2, 3), ((1, 3, 1, 1), (2, 4, 2, 1))),
    ((1, 3), (5, 3), ((0, 1, 2, 2),)),
    ((2, 3), (2, 3), ()),
    ((2, 3, 0), (2, 5, 0), ((1, 2, 1, 1),)),
)


def _sheared(op: str) -> Iterator[Case]:
    for narrow, wide, numbers in _SHEARED:
        lists = zip(*numbers, strict=True) if numbers else [()] * 4
        attrs = dict(zip(("axes", "along", "stride", "dilation"), map(tuple, lists), strict=True))
        shapes = (wide, narrow) if op == "shear" else (narrow, wide)
        yield from _moved(op, shapes[0], f"{shapes[1]}-{numbers}", attrs, shapes[1])
    if op == "shear":
        yield from _moved(op, (1, 3), "none", dict(axes=(0,), along=(1,), stride=(1,), dilation=(1,)), (0, 3))


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
    for dtype in (dtype for dtype in _DTYPES if dtype != bool_):
        for shape, axis in (((1,), 0), ((41,), 0), ((3, 17), 0), ((3, 17), 1), ((2, 1, 3), 2), ((0, 3), 1)):
            type = TensorType(shape, dtype)
            yield _case("iota", f"{type}-{axis}", [], dict(axis=axis), type)


_UNARY = (
    "negate", "abs", "sign", "floor", "ceil", "round", "truncate", "exp", "exp2", "log", "log2", "expm1", "log1p",
    "sqrt", "rsqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "logistic", "erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri", "lgamma", "digamma",
    "bessel_i0", "bessel_i0e",
    "bessel_i1", "bessel_i1e", "expi", "gamma", "factorial", "population_count", "not", "stop_gradient",
)
_BINARY = (
    "add", "subtract", "multiply", "divide", "remainder", "modulo", "power", "atan2", "maximum", "minimum", "and", "or",
    "xor", "gammainc", "gammaincc", "expn", "zeta", "polygamma", "beta", "poch",
    "boxcox", "boxcox1p", "kl_div",
)

# Those that hold graphs, or mean nothing outside vmap, have tests of their own.
WITHOUT_CASES = frozenset(name for name, operation in OPERATIONS.items() if operation.family in ("region", "axis"))

_MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    **{op: partial(_elementwise, op, 1) for op in _UNARY},
    **{op: partial(_elementwise, op, 2) for op in (*_BINARY, *COMPARISONS)},
    **{op: partial(_reduction, op) for op in ("sum", "prod", "max", "min")},
    **{op: partial(_position, op) for op in ("argmax", "argmin")},
    "betainc": partial(_elementwise, "betainc", 3),
    "where": _where,
    "cast": _cast,
    **{op: partial(_shift, op) for op in ("shift_left", "shift_right_logical", "shift_right_arithmetic")},
    "bitcast": _bitcast,
    "threefry": _threefry,
    "barrier": partial(_elementwise, "barrier", 2),
    "known_value": _known_value,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "flip": _flip,
    "gather": _gather,
    **{op: partial(_scatter, op) for op in SCATTERS},
    **{op: partial(_cumulative, op) for op in CUMULATIVE},
    **{op: partial(_sorting, op) for op in ("sort", "sort_order")},
    "sort_runs": _sort_runs,
    "unsort": _unsort,
    "merge_runs": _merge_runs,
    "search_sorted": _search_sorted,
    "count_digits": _count_digits,
    "move_by_digit": _move_by_digit,
    "fold_runs": partial(_runs, "fold_runs"),
    "join_runs": partial(_runs, "join_runs"),
    "dot": _dot,
    **{op: partial(_taken_apart, op) for op in _SETTINGS_OF_PARTS},
    **{op: partial(_attention, op) for op in ATTENTION},
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "linear_solve": _linear_solve,
    "conv": _conv,
    **{op: partial(_sheared, op) for op in ("shear", "unshear")},
    "constant": _constant,
    "iota": _iota,
}

OPERATIONS_WITH_CASES = frozenset(_MAKERS)


@cache
def cases_of(op: str) -> tuple[Case, ...]:
    """The cases of one operation."""
    return () if op in WITHOUT_CASES else tuple(_thinned(_MAKERS[op]()))


def _thinned(cases: Iterator[Case]) -> Iterator[Case]:
    """All cases of some dtypes, and of the others a few, with values that are special."""
    kept: Counter[tuple[Any, ...]] = Counter()
    for case in cases:
        dtypes = tuple(node.dtype for node in (*case.graph.inputs, case.node))
        if _THOROUGH.issuperset(dtypes):
            yield case
            continue
        if case.special or all(node.type.size > 1 for node in (*case.graph.inputs, case.node)):
            kept[case.special, dtypes] += 1
            few = 1 if case.special or (case.op == "cast" and not _THOROUGH.intersection(dtypes)) else _FEW
            if kept[case.special, dtypes] <= few:
                yield case


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(case for op in _MAKERS for case in cases_of(op))
