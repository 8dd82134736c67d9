"""Branches, loops, and functions with their own derivatives: operations that hold programs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from lavax.ir import Graph, Node, TensorType, int32
from lavax.ir.graph import graph_of, input_node
from lavax.ir.types import TupleType
from lavax.passes.build import builder
from lavax.passes.build.builder import build
from lavax.passes.build.control_flow import control_flow, item
from lavax.passes.differentiate import jvp, vjp
from tests.fuzz.draw import ALL, NUMBERS, NotDrawnError, Runs, Source
from tests.fuzz.noise import IllConditionedError

Generator = Callable[[Source], Node]
_DEEPEST = 2
_TURN = TensorType((), int32)
_MOST_TURNS = 5
CARRIED = (*NUMBERS, *NUMBERS, "bool", "complex")


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
    if x.dtype.is_complex:
        return builder.multiply(x, builder.splat(0.5, x.type))
    return x


def _known(source: Source, nodes: Sequence[Node]) -> list[tuple[TensorType, Runs]]:
    return [(node.type, source.evaluated(node)) for node in nodes]


def _switch(source: Source) -> Node:
    given = _picked(source, NUMBERS, 1, 3) + _picked(source, ALL, 0, 2)
    kept = source.number(1, 3)
    branches, results = [], list(given[:1])
    for number in range(source.number(1, 4)):
        inputs, inner = _within(source, _known(source, given), source.number(0, 4))
        if number == 0:
            results += [inner.choose(inner.values) for _ in range(kept - 1)]
        branches.append(graph_of(inputs, [_after(inner, node) for node in results]))
    types = [node.type for node in results]
    whole = control_flow("switch", (source.small_integer(), *given), types, branches=tuple(branches))
    return _one_of_several(source, whole, range(kept))


def _picked(source: Source, kinds: Sequence[str], least: int, most: int) -> list[Node]:
    return [source.pick(kinds) for _ in range(source.number(least, most))]


def _after(inner: Source, before: Node) -> Node:
    """What a turn makes of what it carries: mostly a new value, else another that is carried, or the same."""
    same = [node for node in inner.values if node.type == before.type]
    if same and inner.chance(0.25):
        return inner.choose(same[::-1])
    return _held(inner, inner.like(before))


def _one_of_several(source: Source, whole: Node, positions: Sequence[int]) -> Node:
    """One result; others may become values, too, for one to read beside the other."""
    chosen = source.one_of(positions)
    for position in positions:
        if position != chosen and source.chance(0.5):
            with suppress(NotDrawnError, IllConditionedError):
                source.add(item(whole, position))
    return item(whole, chosen)


def _while(source: Source) -> Node:
    """Of the form of a fori_loop: the number of turns hangs on a value. Another value that is carried may end it."""
    carried, constant = _picked(source, CARRIED, 1, 4), _picked(source, ALL, 0, 3)
    first = source.small_integer()
    given = [first, *carried, *constant]
    inputs, inner = _within(source, _known(source, given), source.number(0, 4))
    after = builder.add(inputs[0], builder.splat(1, _TURN))
    body = graph_of(inputs, [after, *(_after(inner, node) for node in inputs[1 : 1 + len(carried)])])
    asked = [input_node(node.name, node.type) for node in inputs]
    goes_on = build("less", asked[0], builder.splat(source.number(0, _MOST_TURNS), _TURN))
    also = [node for node in asked[1:] if node.dtype.is_float and node.type.size]
    if also and source.chance(0.3):
        low = builder.reduce("min", also[0], range(also[0].type.rank))
        goes_on = build("and", goes_on, build("less", low, builder.splat(1.3, low.type)))
    condition = graph_of(asked, [goes_on])
    types = [_TURN, *(node.type for node in carried)]
    return _one_of_several(
        source, control_flow("while", given, types, condition=condition, body=body), range(len(types))
    )


def _sequences(source: Source) -> tuple[list[Node], int]:
    """Up to three arrays of one length, or none and a length."""
    arrays = [node for node in source.values if node.type.rank and node.shape[0] <= 17]
    if not arrays or source.chance(0.2):
        return [], source.number(0, _MOST_TURNS)
    first = source.choose(arrays)
    others = [node for node in arrays if node.shape[0] == first.shape[0]]
    over = [first, *(source.choose(others) for _ in range(source.one_of((0, 0, 1, 2))))]
    if not first.shape[0]:
        raise NotDrawnError("nothing to look at")
    return over, first.shape[0]


def _scan(source: Source) -> Node:
    """Over arrays, or over nothing so many times."""
    carried, (over, length) = _picked(source, CARRIED, 0, 4), _sequences(source)
    constant = _picked(source, ALL, 0, 3)
    elements = [
        (node.type.with_shape(node.shape[1:]), tuple(run[0] for run in source.evaluated(node))) for node in over
    ]
    given = [*_known(source, carried), *elements, *_known(source, constant)]
    if not given:
        raise NotDrawnError("nothing to compute with")
    inputs, inner = _within(source, given, source.number(0, 5))
    turned = [_after(inner, node) for node in inputs[: len(carried)]]
    kept = [inner.choose(inner.values) for _ in range(source.number(0 if carried else 1, 3))]
    types = [node.type for node in carried] + [node.type.with_shape((length, *node.shape)) for node in kept]
    attrs = dict(carries=len(carried), sequences=len(over), length=length, reverse=source.chance(0.4))
    operands = (*carried, *over, *constant)
    whole = control_flow("scan", operands, types, body=graph_of(inputs, [*turned, *kept]), **attrs)
    return _one_of_several(source, whole, range(len(types)))


def _function(source: Source) -> tuple[tuple[Node, Node], Graph]:
    """Operands, and a function of them that has one float result."""
    x, y = source.pick(("float",)), source.pick(ALL)
    inputs, inner = _within(source, _known(source, [x, y]), source.number(1, 5))
    return (x, y), graph_of(inputs, [inner.pick(("float",))])


def _checkpoint(source: Source) -> Node:
    operands, body = _function(source)
    types = [node.type for node in body.outputs]
    keep = source.one_of(("nothing", "dots"))
    return item(control_flow("checkpoint", operands, types, keep=keep, body=body, named=0), 0)


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

