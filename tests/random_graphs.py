"""Random graphs for fuzz tests.

The floats of an exact graph are small whole numbers and its operations keep them whole, so float64 computes it
without any rounding and two ways of computing it must agree to the bit. A smooth graph has only operations with
derivatives, and rounds.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lavax.ir import DType, Graph, Node, TensorType, bool_, float32, int32, uint32
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.passes.build import builder
from lavax.passes.build.builder import build
from lavax.passes.build.control_flow import control_flow, item

EXTENTS = (1, 2, 3, 3, 4)


@dataclass
class Source:
    """Draws from what has been built so far."""

    random: np.random.Generator
    values: list[Node] = field(default_factory=list)

    def choose(self, options: list[Node]) -> Node:
        """One of the options, more often a late one."""
        return options[-1 - int(len(options) * self.random.random() ** 3)]

    def pick(self, kinds: tuple[str, ...], least_rank: int = 0) -> Node | None:
        fitting = [node for node in self.values if node.dtype.kind in kinds and node.type.rank >= least_rank]
        return self.choose(fitting) if fitting else None

    def like(self, x: Node, dtype: DType | None = None) -> Node:
        """A value of the shape of `x`: one there is, a splat, or a broadcast of one of another shape."""
        type = x.type.with_dtype(dtype or x.dtype)
        same = [node for node in self.values if node.type == type]
        if same and self.random.random() < 0.7:
            return self.choose(same)
        fitting = [n for n in self.values if n.dtype == type.dtype and n.type.rank <= type.rank]
        for node in reversed(fitting):
            axes = range(type.rank - node.type.rank, type.rank)
            if all(e in (1, type.shape[a]) for e, a in zip(node.shape, axes, strict=True)):
                return builder.broadcast(node, type.shape, axes)
        return builder.splat(int(self.random.integers(-1 if type.dtype.kind in ("float", "int") else 0, 3)), type)

    def axes(self, x: Node) -> list[int]:
        return [axis for axis in range(x.type.rank) if self.random.random() < 0.5]

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))


NUMBERS = ("float", "int", "uint")
ALL = (*NUMBERS, "bool")
Step = Callable[[Source], Node | None]


def _held(x: Node) -> Node:
    """Small enough that products and sums of many stay whole in float64."""
    return builder.clamp(x, 0 if x.dtype.kind == "uint" else -7, 7)


def _binary(kinds: tuple[str, ...], *names: str) -> Step:
    def step(source: Source) -> Node | None:
        x = source.pick(kinds)
        if x is None:
            return None
        y = x if source.random.random() < 0.1 else source.like(x)
        if source.random.random() < 0.3:
            x, y = y, x
        name = names[source.number(0, len(names))]
        return build(name, _held(x), y) if name == "multiply" else build(name, x, y)

    return step


def _unary(kinds: tuple[str, ...], *names: str) -> Step:
    def step(source: Source) -> Node | None:
        x = source.pick(kinds)
        return x and build(names[source.number(0, len(names))], x)

    return step


def _select(source: Source) -> Node | None:
    x = source.pick(ALL)
    return x and builder.where(source.like(x, bool_), x, source.like(x))


def _cast(source: Source) -> Node | None:
    x = source.pick(ALL)
    dtype = (float32, int32, bool_)[source.number(0, 3)]
    return x and builder.cast(x, dtype)


def _reduce(source: Source) -> Node | None:
    x = source.pick(NUMBERS)
    if x is None:
        return None
    name = ("sum", "sum", "max", "min", "prod")[source.number(0, 5)]
    reduced = builder.reduce(name, _held(x) if name == "prod" else x, source.axes(x))
    return _held(reduced) if source.random.random() < 0.5 else reduced


def _position(source: Source) -> Node | None:
    x = source.pick(ALL, 1)
    return x and build(("argmax", "argmin")[source.number(0, 2)], x, axis=source.number(0, x.type.rank))


def _reshape(source: Source) -> Node | None:
    x = source.pick(ALL)
    if x is None:
        return None
    shape = [extent for extent in x.shape if extent != 1]
    if len(shape) > 1 and source.random.random() < 0.5:
        at = source.number(0, len(shape) - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    elif shape and shape[-1] % 2 == 0 and source.random.random() < 0.5:
        shape[-1:] = [shape[-1] // 2, 2]
    while len(shape) < 4 and source.random.random() < 0.4:
        shape.insert(source.number(0, len(shape) + 1), 1)
    return builder.reshape(x, shape)


def _transpose(source: Source) -> Node | None:
    x = source.pick(ALL, 1)
    return x and builder.transpose(x, source.random.permutation(x.type.rank).tolist())


def _broadcast(source: Source) -> Node | None:
    x = source.pick(ALL)
    if x is None or x.type.rank > 3:
        return None
    shape = [extent if extent > 1 else int(source.random.choice(EXTENTS)) for extent in x.shape]
    axes = list(range(len(shape)))
    for _ in range(source.number(0, 5 - len(shape))):
        at = source.number(0, len(shape) + 1)
        shape.insert(at, int(source.random.choice(EXTENTS)))
        axes = [axis + (axis >= at) for axis in axes]
    return builder.broadcast(x, shape, axes)


def _slice(source: Source) -> Node | None:
    x = source.pick(ALL, 1)
    if x is None:
        return None
    start = [source.number(0, extent) for extent in x.shape]
    limit = [source.number(low + 1, extent + 1) for low, extent in zip(start, x.shape, strict=True)]
    return builder.slice_(x, start, limit, [source.number(1, 3) for _ in x.shape])


def _pad(source: Source) -> Node | None:
    x = source.pick(ALL, 1)
    if x is None or x.type.size > 200:
        return None
    low, high, interior = ([source.number(0, 2) for _ in x.shape] for _ in range(3))
    kinds = {"float": float, "bool": bool}
    return builder.pad(x, low, high, interior, kinds.get(x.dtype.kind, int)(source.number(0, 2)))


def _concatenate(source: Source) -> Node | None:
    x = source.pick(ALL, 1)
    if x is None or x.type.size > 200:
        return None
    return builder.concatenate([x, source.like(x), x][: source.number(1, 4)], source.number(0, x.type.rank))


def _flip(source: Source) -> Node | None:
    x = source.pick(ALL, 1)
    return x and builder.flip(x, source.axes(x))


def _indices(source: Source, shape: tuple[int, ...]) -> Node:
    type = TensorType(shape, int32)
    if shape and source.random.random() < 0.5:
        return builder.iota(type, source.number(0, len(shape)))
    like = builder.splat(source.number(-2, 5), type)
    return source.like(like)


def _gather(source: Source) -> Node | None:
    x = source.pick(ALL, 1)
    if x is None:
        return None
    axes = source.axes(x) or [0]
    shape = tuple(int(source.random.choice((*EXTENTS, *x.shape))) for _ in range(source.number(0, 3)))
    gathered = builder.gather(x, [_indices(source, shape) for _ in axes], axes)
    return gathered if gathered.type.size < 500 else None


def _scatter_add(source: Source) -> Node | None:
    x = source.pick(NUMBERS, 1)
    if x is None:
        return None
    x = _held(x) if source.random.random() < 0.4 else builder.zeros(x.type)
    axes = source.axes(x) or [0]
    shape = tuple(int(source.random.choice((*EXTENTS, *x.shape))) for _ in range(source.number(0, 3)))
    window = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
    updates = source.like(builder.zeros(TensorType(shape + window, x.dtype)))
    return builder.scatter_add(x, updates, [_indices(source, shape) for _ in axes], axes)


def _dot(source: Source) -> Node | None:
    x, y = source.pick(NUMBERS), source.pick(NUMBERS)
    if x is None or y is None or x.dtype != y.dtype:
        return None
    pairs: list[tuple[int, int]] = []
    for _ in range(source.number(0, 4)):
        free = [
            (a, b)
            for a, m in enumerate(x.shape)
            for b, n in enumerate(y.shape)
            if m == n and a not in [p for p, _ in pairs] and b not in [q for _, q in pairs]
        ]
        if free:
            pairs.append(free[source.number(0, len(free))])
    cut = source.number(0, len(pairs) + 1)
    batch, contract = pairs[:cut], pairs[cut:]

    def sides(of: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
        return [a for a, _ in of], [b for _, b in of]

    product = builder.dot(_held(x), _held(y), sides(contract), sides(batch))
    return product if product.type.rank < 6 and product.type.size < 500 else None


def _constant(source: Source) -> Node | None:
    x = source.pick(ALL)
    return x and builder.splat(source.number(0, 3), x.type)


# Of movement, by the operation; any source that picks values can be given to them.
MOVES: dict[str, Step] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "pad": _pad,
    "concatenate": _concatenate,
    "flip": _flip,
}
MOVEMENTS: tuple[Step, ...] = (_reshape, _transpose, _broadcast, _slice, _pad, _concatenate, _flip)
EXACT: tuple[Step, ...] = (
    *MOVEMENTS,
    *MOVEMENTS,
    _binary(NUMBERS, "add", "subtract", "multiply", "maximum", "minimum"),
    _binary(NUMBERS, "add", "subtract", "multiply", "maximum", "minimum"),
    _binary(NUMBERS, "multiply", "subtract"),
    _unary(NUMBERS, "negate"),
    _binary(("int", "uint"), "divide", "remainder", "power"),
    _binary(("int", "uint", "bool"), "and", "or", "xor"),
    _binary(ALL, "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    _unary(NUMBERS, "negate", "abs", "sign"),
    _unary(("float",), "floor", "stop_gradient"),
    _unary(("bool",), "not"),
    _select,
    _cast,
    _reduce,
    _reduce,
    _position,
    _gather,
    _gather,
    _scatter_add,
    _scatter_add,
    _dot,
    _dot,
    _constant,
)


# Branches and loops


def _body(source: Source, types: list[TensorType], steps: int) -> tuple[list[Node], Source]:
    """The inputs of a body, and what a few operations made of them."""
    inputs = [input_node(f"x{number}", type) for number, type in enumerate(types)]
    inner = Source(source.random, list(inputs))
    while len(inner.values) < len(inputs) + steps:
        node = EXACT[source.number(0, len(EXACT))](inner)
        if node is not None and _sized(node):
            inner.values.append(node)
    return inputs, inner


def _scalar(source: Source) -> Node:
    """A small whole number that hangs on a value."""
    x = source.pick(("int",))
    if x is None:
        return builder.splat(1, TensorType((), int32))
    return _held(builder.reduce("max", _held(x), range(x.type.rank)))


def _switch(source: Source) -> Node | None:
    x, y = source.pick(NUMBERS), source.pick(ALL)
    if x is None or y is None:
        return None
    branches = []
    for _ in range(source.number(1, 4)):
        inputs, inner = _body(source, [x.type, y.type], source.number(0, 4))
        branches.append(graph_of(inputs, [_held(inner.like(inputs[0]))]))
    return item(control_flow("switch", (_scalar(source), x, y), [x.type], branches=tuple(branches)), 0)


def _while(source: Source) -> Node | None:
    x, y = source.pick(NUMBERS), source.pick(ALL)
    if x is None or y is None:
        return None
    turn = TensorType((), int32)
    inputs, inner = _body(source, [turn, x.type, y.type], source.number(0, 4))
    after = builder.add(inputs[0], builder.splat(1, turn))
    body = graph_of(inputs, [after, _held(inner.like(inputs[1]))])
    asked = [input_node(node.name, node.type) for node in inputs]
    condition = graph_of(asked, [build("less", asked[0], builder.splat(source.number(0, 5), turn))])
    first = _scalar(source)
    return item(control_flow("while", (first, _held(x), y), [turn, x.type], condition=condition, body=body), 1)


def _scan(source: Source) -> Node | None:
    x, xs, y = source.pick(NUMBERS), source.pick(ALL, 1), source.pick(ALL)
    if x is None or xs is None or y is None:
        return None
    length = xs.shape[0]
    inputs, inner = _body(source, [x.type, xs.type.with_shape(xs.shape[1:]), y.type], source.number(0, 5))
    carried, given = _held(inner.like(inputs[0])), inner.choose(inner.values)
    types = [x.type, given.type.with_shape((length, *given.shape))]
    attrs = dict(carries=1, sequences=1, length=length, reverse=bool(source.number(0, 2)))
    whole = control_flow("scan", (_held(x), xs, y), types, body=graph_of(inputs, [carried, given]), **attrs)
    return item(whole, source.number(0, 2))


WITH_REGIONS: tuple[Step, ...] = (*EXACT, *(_switch, _while, _scan) * 4)


def _sized(node: Node) -> bool:
    return 0 < node.type.size <= 2000 and node.type.rank <= 5


def random_graph(
    seed: int, steps: int = 25, operations: tuple[Step, ...] = EXACT
) -> tuple[Graph, list[np.ndarray]]:
    """A graph that is exact in float64, with four inputs (the first two floats), and arrays for the inputs."""
    random = np.random.default_rng(seed)
    dtypes = (float32, float32, int32, (bool_, uint32)[seed % 2])
    shapes = [tuple(int(extent) for extent in random.choice(EXTENTS, size=random.integers(0, 4))) for _ in dtypes]
    inputs = [
        input_node(f"x{number}", TensorType(shape, dtype))
        for number, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
    ]
    source = Source(random, list(inputs))
    while len(source.values) < steps + len(inputs):
        node = operations[source.number(0, len(operations))](source)
        if node is not None and _sized(node):
            source.values.append(node)
    outputs = [node for node in source.values[len(inputs) :] if source.random.random() < 0.2] + source.values[-2:]
    arrays = []
    for node in inputs:
        low, high = (0, 2) if node.dtype.kind in ("bool", "uint") else (-3, 4)
        arrays.append(random.integers(low, high, node.shape).astype(node.dtype.numpy))
    return graph_of(inputs, outputs), arrays


def scalar_of(graph: Graph, seed: int) -> Graph | None:
    """The sum of the float outputs, each multiplied by what makes the sum uneven; None where there is none."""
    parts = []
    for number, output in enumerate(graph.outputs):
        if output.dtype.is_float:
            weights = make_node("constant", (), dict(value=float(seed % 3 + number + 1)), output.type)
            parts.append(builder.sum_over(builder.multiply(weights, output), range(output.type.rank)))
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = builder.add(total, part)
    return graph_of(graph.inputs, [total])
