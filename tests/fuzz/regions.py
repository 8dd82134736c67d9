"""Branches, loops, and functions with their own derivatives: operations that hold programs."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.ir import Graph, Node, TensorType, int32
from lavax.ir.graph import graph_of, input_node
from lavax.ir.types import TupleType
from lavax.passes.build import builder
from lavax.passes.build.builder import build
from lavax.passes.build.control_flow import control_flow, item
from lavax.passes.differentiate import jvp, vjp
from tests.fuzz.draw import ALL, NotDrawnError, Runs, Source

Generator = Callable[[Source], Node]
_DEEPEST = 2
_TURN = TensorType((), int32)
_MOST_TURNS = 5


def _within(source: Source, given: Sequence[tuple[TensorType, Runs]], steps: int) -> tuple[list[Node], Source]:
    """The inputs of a body, and a source that has them and what a few operations made of them."""
    if source.depth >= _DEEPEST:
        raise NotDrawnError("deep enough")
    inner = Source(source.random, depth=source.depth + 1, any_operation=source.any_operation)
    inputs = [input_node(f"x{number}", type) for number, (type, _) in enumerate(given)]
    for node, (_, runs) in zip(inputs, given, strict=True):
        inner.values.append(node)
        inner.runs[node] = runs
    inner.grow(steps)
    return inputs, inner


def _held(source: Source, x: Node) -> Node:
    """What a loop carries stays within a few units."""
    if x.dtype.is_float:
        return builder.multiply(build("tanh", x), builder.splat(2.0, x.type))
    return x


def _known(source: Source, nodes: Sequence[Node]) -> list[tuple[TensorType, Runs]]:
    return [(node.type, source.evaluated(node)) for node in nodes]


def _carried_and_constant(source: Source) -> tuple[Node, Node]:
    """What a loop carries, and what it reads besides."""
    return source.pick(("float", "int", "uint")), source.pick(ALL)


def _switch(source: Source) -> Node:
    x, y = _carried_and_constant(source)
    branches = []
    for _ in range(source.number(1, 4)):
        inputs, inner = _within(source, _known(source, [x, y]), source.number(0, 4))
        branches.append(graph_of(inputs, [inner.like(inputs[0])]))
    return item(control_flow("switch", (source.small_integer(), x, y), [x.type], branches=tuple(branches)), 0)


def _while(source: Source) -> Node:
    """Of the form of a fori_loop: the number of turns hangs on a value."""
    x, y = _carried_and_constant(source)
    first = source.small_integer()
    inputs, inner = _within(source, _known(source, [first, x, y]), source.number(0, 4))
    after = builder.add(inputs[0], builder.splat(1, _TURN))
    body = graph_of(inputs, [after, _held(inner, inner.like(inputs[1]))])
    asked = [input_node(node.name, node.type) for node in inputs]
    condition = graph_of(asked, [build("less", asked[0], builder.splat(source.number(0, _MOST_TURNS), _TURN))])
    return item(control_flow("while", (first, x, y), [_TURN, x.type], condition=condition, body=body), 1)


def _scan(source: Source) -> Node:
    """Over an array, or over nothing so many times."""
    x, y = _carried_and_constant(source)
    arrays = [node for node in source.values if node.type.rank and node.shape[0] <= 17]
    over = [source.choose(arrays)] if arrays and source.chance(0.8) else []
    length = over[0].shape[0] if over else source.number(0, _MOST_TURNS)
    elements = [
        (node.type.with_shape(node.shape[1:]), tuple(run[0] for run in source.evaluated(node)))
        for node in over
        if length
    ]
    if over and not length:
        raise NotDrawnError("nothing to look at")
    given = [*_known(source, [x]), *elements, *_known(source, [y])]
    inputs, inner = _within(source, given, source.number(0, 5))
    carried, kept = _held(inner, inner.like(inputs[0])), inner.choose(inner.values)
    types = [x.type, kept.type.with_shape((length, *kept.shape))]
    attrs = dict(carries=1, sequences=len(over), length=length, reverse=source.chance(0.4))
    whole = control_flow("scan", (x, *over, y), types, body=graph_of(inputs, [carried, kept]), **attrs)
    return item(whole, source.number(0, 2))


def _function(source: Source) -> tuple[tuple[Node, Node], Graph]:
    """Operands, and a function of them that has one float result."""
    x, y = source.pick(("float",)), source.pick(ALL)
    inputs, inner = _within(source, _known(source, [x, y]), source.number(1, 5))
    return (x, y), graph_of(inputs, [inner.pick(("float",))])


def _checkpoint(source: Source) -> Node:
    operands, body = _function(source)
    types = [node.type for node in body.outputs]
    keep = source.one_of(("nothing", "dots"))
    return item(control_flow("checkpoint", operands, types, keep=keep, body=body), 0)


def _floats(graph: Graph) -> list[int]:
    return [position for position, node in enumerate(graph.inputs) if node.dtype.is_float]


def has_loop(graph: Graph) -> bool:
    """Whether reverse mode ends at a loop within it."""
    held = (value for node in graph.nodes for value in node.attrs.values())
    graphs = [each for value in held for each in (value if isinstance(value, tuple) else (value,))]
    return any(node.op == "while" for node in graph.nodes) or any(
        has_loop(each) for each in graphs if isinstance(each, Graph)
    )


def _custom_jvp(source: Source) -> Node:
    """With a rule that is what forward mode would make."""
    operands, body = _function(source)
    types = [node.type for node in body.outputs]
    made = control_flow("custom_jvp", operands, types, arguments=2, body=body, rule=jvp(body, _floats(body)))
    return item(made, 0)


def _custom_vjp(source: Source) -> Node:
    """With rules that are what reverse mode would make; all operands are kept for the way back."""
    operands, body = _function(source)
    if has_loop(body):
        raise NotDrawnError("no way back")
    back = vjp(body, _floats(body))
    backward = graph_of(back.inputs, back.outputs[len(body.outputs) :])
    forward = graph_of(body.inputs, (*body.outputs, *body.inputs))
    types = [node.type for node in body.outputs]
    made = control_flow("custom_vjp", operands, types, arguments=2, body=body, forward=forward, backward=backward)
    return item(made, 0)


def _item(source: Source) -> Node:
    """One result of what has several."""
    found = GENERATORS[source.one_of([name for name in GENERATORS if name != "item"])](source)
    (region,) = found.operands
    assert isinstance(region.type, TupleType)
    return item(region, source.number(0, len(region.type.parts)))


GENERATORS: dict[str, Generator] = {
    "switch": _switch,
    "while": _while,
    "scan": _scan,
    "checkpoint": _checkpoint,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "item": _item,
}

