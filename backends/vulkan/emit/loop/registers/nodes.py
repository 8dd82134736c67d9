"""Nodes of a loop's body as statements over arrays in registers: one entry per operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from lavax.backends.vulkan.emit.loop.registers.held import (
    FILLED,
    LANES,
    UNUSED,
    Held,
    Statements,
    TooMuchError,
    numbered,
    parts_of,
    rows_of,
)
from lavax.backends.vulkan.emit.loop.registers.tables import updated
from lavax.backends.vulkan.emit.scatter.lines import JOINS
from lavax.backends.vulkan.glsl.expressions import EXPRESSIONS, Call, literal, type_name
from lavax.backends.vulkan.glsl.reductions import POSITIONS, REDUCTIONS, beats, ties
from lavax.ir.graph import Node
from lavax.ir.monoids import MONOIDS
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.contraction import free_axes
from lavax.ir.ops.indexing import SCATTERS
from lavax.ir.types import int32
from lavax.passes.fuse.costs import cost_of

_DTYPES = ("f32", "i32", "u32", "bool")
_MOST_REGISTERS = 512  # of an array
_LONG = 8  # operations of a function that drivers compile to twice as many instructions

Values = Mapping[Node, Held]
Rule = Callable[[Statements, Node, Sequence[Held]], Held]


def registers_of(size: int) -> int:
    return -(-size // LANES)


def computed(statements: Statements, node: Node, values: Values) -> Held:
    """The node's value from those of its operands."""
    operands = [values[operand] for operand in node.operands]
    if node.op in SCATTERS and operands[0].is_table:
        return updated(statements, node, operands)
    check(node)
    if node.op in _RULES:
        return _RULES[node.op](statements, node, operands)
    if node.op in EXPRESSIONS:
        return _elementwise(statements, node, operands)
    raise TooMuchError


def check(node: Node) -> None:
    """Raises TooMuchError for a value that is not held in registers."""
    check_dtype(node)
    if not 0 < registers_of(node.type.size) <= _MOST_REGISTERS:
        raise TooMuchError


def check_dtype(node: Node) -> None:
    """Raises TooMuchError for a value of a dtype that registers do not hold."""
    if node.dtype.name not in _DTYPES:
        raise TooMuchError


def _elementwise(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    found: list[str] = []
    cost = cost_of(node)
    for number in range(registers_of(node.type.size)):
        arguments = [operand.names[number] for operand in operands]
        text = EXPRESSIONS[node.op](Call(node, arguments, 1, statements.body.uses))
        before = statements.count
        found.append(statements.declare(type_name(node.dtype, 1), text))
        if statements.count > before:
            statements.spend(cost - 1 if cost < _LONG else 2 * cost)
    return Held(tuple(found), node.dtype, node.type.size)


def _constant(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    text = literal(node.attrs["value"], node.dtype)
    return Held((text,) * registers_of(node.type.size), node.dtype, node.type.size)


def _iota(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    counted = np.broadcast_to(
        np.arange(node.shape[node.attrs["axis"]]).reshape(
            [-1 if axis == node.attrs["axis"] else 1 for axis in range(len(node.shape))]
        ),
        node.shape,
    )
    kind = type_name(node.dtype, 1)
    names = tuple(f"{kind}({text})" for text in _integers(statements, counted))
    return Held(tuple(statements.declare(kind, name) for name in names), node.dtype, node.type.size)


def _integers(statements: Statements, numbers: np.ndarray) -> list[str]:
    """The texts of non-negative numbers that are known beforehand."""
    return [statements.numbers(tuple(row.tolist())) for row in _in_rows(numbers.reshape(-1))]


def _movement(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    """What moves elements moves their numbers as well."""
    attrs = dict(node.attrs)
    filler = attrs.get("value", 0)
    if node.op == "pad":
        attrs["value"] = FILLED
    arrays = [ids.reshape(x.shape) for ids, x in zip(numbered(operands), node.operands, strict=True)]
    moved = OPERATIONS[node.op].evaluate(arrays, attrs, node.type, np.dtype(np.int64))
    return statements.moved(operands, moved, filler)


# -- sums and products -------------------------------------------------------------------------------------------------


def _reduction(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    """Halves of an axis are joined until one element of it is left."""
    (held,) = operands
    shape, op = list(node.operands[0].shape), node.op
    join, dtype = REDUCTIONS[op].join, node.dtype
    identity = MONOIDS[op].identity(dtype)
    for axis in node.attrs["axes"]:
        while shape[axis] > 1:
            (ids,) = numbered([held])
            first, second = _halves(ids.reshape(shape), axis)
            parts = [statements.moved([held], half, identity) for half in (first, second)]
            shape[axis] = first.shape[axis]
            kind = type_name(dtype, 1)
            texts = (join(a, b, dtype, 1, statements.body.uses) for a, b in zip(*(p.names for p in parts), strict=True))
            held = Held(tuple(statements.declare(kind, text) for text in texts), dtype, prod(shape))
    return held


def _halves(ids: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The halves of an array along an axis, the second one filled up."""
    half = -(-ids.shape[axis] // 2)
    first, second = np.split(ids, [half], axis)
    if second.shape[axis] < half:
        widths = [(0, int(d == axis)) for d in range(ids.ndim)]
        second = np.pad(second, widths, constant_values=FILLED)
    return first, second


def _position(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    """Positions go with the extrema; of equals, the first one counts."""
    (held,) = operands
    axis, shape, dtype = node.attrs["axis"], list(node.operands[0].shape), node.operands[0].dtype
    uses = statements.body.uses
    counted = np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    places = Held(tuple(_integers(statements, np.broadcast_to(counted, shape))), int32, prod(shape))
    worst = MONOIDS["max" if node.op == "argmax" else "min"].identity(dtype)
    while shape[axis] > 1:
        (ids,) = numbered([held])
        halves = _halves(ids.reshape(shape), axis)
        values = [statements.moved([held], half, worst) for half in halves]
        positions = [statements.moved([places], half, int32.highest) for half in halves]
        shape[axis] = halves[0].shape[axis]
        best, at = [], []
        for a, b, i, j in zip(*(x.names for x in (*values, *positions)), strict=True):
            wins = f"({beats(node, b, a, uses)} || ({ties(node, b, a, uses)} && {j} < {i}))"
            second = statements.declare("bool", wins)
            best.append(statements.select(second, b, a, dtype))
            at.append(statements.select(second, j, i, int32))
        size = prod(shape)
        held, places = Held(tuple(best), dtype, size), Held(tuple(at), int32, size)
    return Held(places.names, node.dtype, places.size)


def _dot(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    """A sum over the products at each place of the contracted axes, or products and their sum, whatever moves less."""
    left, right = _factors(node, operands)
    by_steps = sum(_moves(side[:, :, :, k]) for side in (left, right) for k in range(left.shape[3]))
    whole = sum(map(_moves, (left, right))) + 7 * registers_of(left.size)
    if by_steps <= whole or registers_of(left.size) > _MOST_REGISTERS:
        return _in_steps(statements, node, operands, left, right)
    parts = [statements.moved(operands, side) for side in (left, right)]
    texts = [f"({a} * {b})" for a, b in zip(*(part.names for part in parts), strict=True)]
    kind = type_name(node.dtype, 1)
    held = Held(tuple(statements.declare(kind, text) for text in texts), node.dtype, left.size)
    shape = left.shape
    while shape[3] > 1:
        halves = _halves(numbered([held])[0].reshape(shape), 3)
        a, b = (statements.moved([held], half, 0) for half in halves)
        shape = halves[0].shape
        names = (statements.declare(kind, f"({x} + {y})") for x, y in zip(a.names, b.names, strict=True))
        held = Held(tuple(names), node.dtype, prod(shape))
    return held


def _in_steps(
    statements: Statements, node: Node, operands: Sequence[Held], left: np.ndarray, right: np.ndarray
) -> Held:
    kind, sums = type_name(node.dtype, 1), [""] * registers_of(node.type.size)
    for k in range(left.shape[3]):
        a, b = (statements.moved(operands, side[:, :, :, k]) for side in (left, right))
        for number, (x, y) in enumerate(zip(a.names, b.names, strict=True)):
            text = f"{sums[number]} + {x} * {y}" if sums[number] else f"({x} * {y})"
            sums[number] = statements.declare(kind, text)
    return Held(tuple(sums), node.dtype, node.type.size)


def _factors(node: Node, operands: Sequence[Held]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of both operands' elements for each product: [batch, rows, columns, sum]."""
    sides = []
    for ids, x, batch, contract in zip(
        numbered(operands), node.operands, node.attrs["batch"], node.attrs["contract"], strict=True
    ):
        free = free_axes(x.type, batch, contract)
        order = ids.reshape(x.shape).transpose(*batch, *free, *contract)
        extents = (prod(x.shape[axis] for axis in axes) for axes in (batch, free, contract))
        sides.append(order.reshape(tuple(extents)))
    left, right = sides
    whole = (left.shape[0], left.shape[1], right.shape[1], left.shape[2])
    return np.broadcast_to(left[:, :, None, :], whole), np.broadcast_to(right[:, None, :, :], whole)


def _moves(elements: np.ndarray) -> int:
    """About how many statements it takes to have these elements in registers."""
    parts = map(parts_of, set(rows_of(elements, UNUSED)))
    return sum(0 if len(of_row) == 1 and of_row[0].lanes is None else 2 * len(of_row) - 1 for of_row in parts)


# -- places that are computed ------------------------------------------------------------------------------------------


def _gather(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    array, *indices = operands
    offsets = _offsets(node)
    places = _places(statements, node, indices, offsets)
    if array.address is not None:
        texts = [statements.body.memory.loaded(node.dtype, array.address, place) for place in places]
        statements.spend_loads(array.address, len(texts))
        declare = statements.variable if array.is_table else statements.declare  # an update makes known values old
        return Held(tuple(declare(type_name(node.dtype, 1), text) for text in texts), node.dtype, node.type.size)
    rows = _in_rows(offsets.reshape(-1))
    found = [
        _chosen(statements, array, place, _reached(node, row)) for place, row in zip(places, rows, strict=True)
    ]
    return Held(tuple(found), node.dtype, node.type.size)


def _in_rows(numbers: np.ndarray) -> np.ndarray:
    """The numbers for each register, the last one filled up."""
    return np.concatenate([numbers, np.full(-numbers.size % LANES, numbers[-1])]).reshape(-1, LANES)


def _reached(node: Node, offsets: np.ndarray) -> tuple[list[int], bool]:
    """The registers in which a gather may find elements with these offsets; whether each is found in its own lane."""
    places = offsets
    for axis in node.attrs["axes"]:
        steps = np.arange(node.operands[0].shape[axis]) * _strides(node.operands[0])[axis]
        places = np.unique(places[..., None, :] + steps[:, None], axis=-2)
    own = bool((places % LANES == np.arange(LANES)).all())
    return np.unique(places // LANES).tolist(), own


def _chosen(statements: Statements, array: Held, place: str, reached: tuple[list[int], bool]) -> str:
    """The register with the elements at these places."""
    registers, own_lane = reached
    dtype, value = array.dtype, ""
    lane = statements.declare("int", f"{place} & {LANES - 1}")
    register = statements.declare("int", f"{place} >> {LANES.bit_length() - 1}")
    for number in registers:
        name = array.names[number]
        if not own_lane and not array.is_uniform:
            name = statements.shuffled(name, lane, dtype)
        test = statements.declare("bool", f"{register} == {number}") if value else ""
        value = statements.select(test, name, value, dtype) if value else name
    return value


def _strides(array: Node) -> list[int]:
    return [prod(array.shape[axis + 1 :]) for axis in range(len(array.shape))]


def _offsets(node: Node) -> np.ndarray:
    """Where in the array each element of a gather is if all indices are 0."""
    array, *given = node.operands
    axes, source, strides = node.attrs["axes"], given[0].shape, _strides(array)
    window = [axis for axis in range(len(array.shape)) if axis not in axes]
    offsets = np.zeros([1] * len(source) + [array.shape[axis] for axis in window], np.int64)
    for place, axis in enumerate(window):
        offsets = offsets + (np.arange(array.shape[axis]) * strides[axis]).reshape(
            _along(len(source) + place, offsets.shape)
        )
    return np.broadcast_to(offsets, node.shape)


def _places(statements: Statements, node: Node, indices: Sequence[Held], offsets: np.ndarray) -> list[str]:
    """The place in the array of each element that a gather gives."""
    array, axes, source = node.operands[0], node.attrs["axes"], node.operands[1].shape
    strides, window = _strides(array), len(node.shape) - len(source)
    parts = [_integers(statements, offsets)]
    for held, axis in zip(indices, axes, strict=True):
        ids = np.broadcast_to(numbered([held])[0].reshape((*source, *[1] * window)), node.shape)
        spread = statements.moved([held], ids)
        kind, high = type_name(held.dtype, 1), array.shape[axis] - 1
        clamped = [f"int(clamp({name}, {kind}(0), {kind}({high}))) * {strides[axis]}" for name in spread.names]
        parts.append([statements.declare("int", text) for text in clamped])
    texts = [" + ".join(text for text in each if text != "0") or "0" for each in zip(*parts, strict=True)]
    return [statements.declare("int", text) for text in texts]


def _scatter(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    """Each element of the array looks whether an update is its own, for one update after the other."""
    array, updates, *indices = operands
    axes, source = node.attrs["axes"], node.operands[2].shape
    count, shape, dtype = prod(source), node.shape, node.dtype
    window = [axis for axis in range(len(shape)) if axis not in axes]
    own = [np.broadcast_to(np.arange(shape[axis]).reshape(_along(axis, shape)), shape) for axis in axes]
    coordinates = [_integers(statements, each) for each in own]
    names, join = list(array.names), JOINS[node.op.removeprefix("scatter_")]
    every = numbered([updates])[0].reshape(count, *(shape[axis] for axis in window))
    for update in range(count):
        of_window = every[update].reshape([shape[axis] if axis in window else 1 for axis in range(len(shape))])
        moved = statements.moved([updates], np.broadcast_to(of_window, shape))
        chosen = [statements.moved([index], np.array([update])).names[0] for index in indices]
        for number, name in enumerate(names):
            tests = [f"{text[number]} == int({place})" for text, place in zip(coordinates, chosen, strict=True)]
            is_own = statements.declare("bool", " && ".join(tests))
            joined = join(name, moved.names[number], dtype, statements.body.uses)
            kind = type_name(dtype, 1)
            names[number] = statements.select(is_own, statements.declare(kind, joined), name, dtype)
    return Held(tuple(names), dtype, node.type.size)


def _along(axis: int, shape: Sequence[int]) -> list[int]:
    return [-1 if d == axis else 1 for d in range(len(shape))]


_RULES: dict[str, Rule] = {
    "constant": _constant,
    "iota": _iota,
    **dict.fromkeys(("reshape", "transpose", "broadcast", "slice", "pad", "concatenate", "flip"), _movement),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(POSITIONS, _position),
    "dot": _dot,
    "gather": _gather,
    **dict.fromkeys(SCATTERS, _scatter),
}
