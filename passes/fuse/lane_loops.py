"""Loops whose lanes never meet, as one kernel: each invocation runs all turns for its own element.

A loop runs lane by lane if every value that it carries or stacks is a scalar or has one shape, the lanes, and if what a
lane computes needs of those only its own element. Arrays that do not change may be read anywhere, and those of a
sequence at places that are known beforehand. Loops and branches inside must run lane by lane too.

One dispatch takes a bounded number of turns, since drivers end dispatches that take too long. A longer scan is a
repetition of that kernel over parts of its sequences; a loop that depends on data asks, after each dispatch, whether it
is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node, graph_of, input_node, make_node, with_operands
from lavax.ir.types import TensorType, TupleType
from lavax.passes.build.ended_lanes import asked_by_lane
from lavax.passes.fuse.costs import cost_of
from lavax.passes.kernels.index import flatten, variable
from lavax.passes.kernels.reads import READS, Coordinates
from lavax.passes.kernels.runs import reads_in_one
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS

Prepare = Callable[[Graph], Graph]
_BODIES = {"scan": ("body",), "while": ("condition", "body"), "switch": ("branches",)}
Shape = tuple[int, ...]


@dataclass(frozen=True)
class LaneLoops:
    """The loops that are one kernel, and the turns of a dispatch. Checked by `python -m benchmarks loops`."""

    most_nodes: int = 256  # of all bodies: drivers compile longer shaders for seconds
    operations: int = 1 << 29  # of a dispatch: a slow device takes some tenths of a second
    # The same if lanes end by themselves, which most do long before the last one.
    operations_at_most: int = 1 << 33
    least_turns: int = 2  # of a dispatch that ends before the lanes do: what is carried is copied after each


LANE_LOOPS = LaneLoops()
MOST_TURNS_IN_LOOP = 32  # of a kernel's own loop that depends on data, within another one


def bodies_of(node: Node) -> tuple[Graph, ...]:
    """The graphs that a branch or loop holds."""
    found: list[Graph] = []
    for name in _BODIES[node.op]:
        held = node.attrs[name]
        found += held if isinstance(held, tuple) else (held,)
    return tuple(found)


def prepared_within(node: Node, prepare: Prepare) -> Node:
    """The loop with prepared bodies, and so on inside them."""
    attrs = dict(node.attrs)
    for name in _BODIES[node.op]:
        held = attrs[name]
        one = not isinstance(held, tuple)
        attrs[name] = _prepared(held, prepare) if one else tuple(_prepared(graph, prepare) for graph in held)
    return make_node(node.op, node.operands, attrs, node.type)


def _prepared(graph: Graph, prepare: Prepare) -> Graph:
    graph = prepare(graph)
    if not any(node.op in _BODIES for node in graph.nodes):
        return graph
    renamed: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        changed = with_operands(node, tuple(renamed[operand] for operand in node.operands))
        renamed[node] = prepared_within(changed, prepare) if node.op in _BODIES else changed
    return graph_of(graph.inputs, [renamed[output] for output in graph.outputs])


def lanes_of(node: Node) -> Shape | None:
    """The shape of the lanes of a loop with prepared bodies; None if it does not run lane by lane."""
    lanes = shape_of_lanes(node)
    if lanes is None or not _has_bounded_turns(node):
        return None
    if node.op == "while" and most_turns(node, lanes) < LANE_LOOPS.least_turns:
        return None
    own = _own_inputs(node)
    others = len(node.operands) - own
    return lanes if _runs_by_lane(node, lanes, [False] * own, others, rows_of(node)) else None


def shape_of_lanes(node: Node) -> Shape | None:
    """The shape that the lanes of a loop have, if it runs lane by lane; None if its shapes or its size forbid that."""
    if node.op not in ("scan", "while") or _nodes_within(node) > LANE_LOOPS.most_nodes:
        return None
    body = node.attrs["body"]
    carried = node.attrs["carries"] if node.op == "scan" else _own_inputs(node)
    shapes = {value.shape for value in (*body.inputs[:carried], *body.outputs)} - {()}
    lanes = shapes.pop() if shapes else ()
    return None if shapes or prod(lanes) == 0 or node.attrs.get("length") == 0 else lanes


def _own_inputs(node: Node) -> int:
    """How many inputs of the body are carried or taken from sequences."""
    attrs = node.attrs
    return int(attrs["carries"] + attrs["sequences"]) if node.op == "scan" else len(attrs["body"].outputs)


def rows_of(node: Node) -> frozenset[Node]:
    """The inputs of a scan's body that are elements of sequences."""
    first = node.attrs["carries"] if node.op == "scan" else _own_inputs(node)
    return frozenset(node.attrs["body"].inputs[first : _own_inputs(node)])


def rows_read(node: Node, lanes: Shape, runs: bool) -> list[tuple[Node, Coordinates]]:
    """What a lane reads in a turn of a scan: inputs of the body that are not carried, at places that all turns have.

    With `runs`, those of one array that are end to end are one read, as in shaders that know where they begin.
    """
    body = node.attrs["body"]
    known = frozenset(body.inputs[node.attrs["carries"] :])
    variables = frozenset(f"lane{axis}" for axis in range(len(lanes)))
    within = (operand for inner in body.nodes if inner.op in _BODIES for operand in inner.operands)
    roots = [*body.outputs, *(operand for operand in within if operand.shape in (lanes, ()))]
    found: dict[tuple[Node, Coordinates], None] = {}
    for read in _reads_of(roots, lanes, runs):
        if read[0] in known and not any(index.reads_array or index.variables - variables for index in read[1]):
            found[read] = None
    return list(found)


def _reads_of(roots: Sequence[Node], lanes: Shape, runs: bool = False) -> Iterator[tuple[Node, Coordinates]]:
    """All that a lane's elements of some values are computed from, each once."""
    stack: list[tuple[Node, Coordinates]] = [(root, at_lane(root.shape, lanes)) for root in roots]
    seen = set()
    while stack:
        read = stack.pop()
        if read in seen:
            continue
        seen.add(read)
        yield read
        node, at = read
        if node.op in READS:
            stack.extend(reads_in_one(node, at) if runs else READS[node.op](node, at))


def at_lane(shape: Shape, lanes: Shape) -> Coordinates:
    """A lane's own element of a value that is a scalar or has the lanes' shape."""
    return tuple(variable(f"lane{axis}", extent) for axis, extent in enumerate(lanes)) if shape else ()


def own_condition(loop: Node, lanes: Shape) -> Node:
    """The condition on which a lane goes on: that of all lanes or, of "any lane", its own.

    A lane whose own condition does not hold may end before the others, as its values stay as they are from then on.
    """
    own = asked_by_lane(loop) if lanes else None
    output: Node = loop.attrs["condition"].outputs[0]
    return own if own is not None and own.shape == lanes else output


def _nodes_within(node: Node) -> int:
    return sum(
        1 + (_nodes_within(inner) if inner.op in _BODIES else 0) for graph in bodies_of(node) for inner in graph.nodes
    )


def _runs_by_lane(
    node: Node, lanes: Shape, own: Sequence[bool], others: int, rows: frozenset[Node] = frozenset()
) -> bool:
    """Whether a loop or branch does; the inputs of its bodies are `own`, of which each lane has its element, then
    `others`, which may be read anywhere. `own` says of each whether it may be; `rows` may be at places that are known.
    """
    readable = [*own, *[True] * others]
    if node.op == "while":
        asked = node.attrs["condition"]
        if not _computes_by_lane(graph_of(asked.inputs, [own_condition(node, lanes)]), lanes, readable):
            return False
        return _computes_by_lane(node.attrs["body"], lanes, readable)
    return all(_computes_by_lane(graph, lanes, readable, rows) for graph in bodies_of(node))


def _computes_by_lane(
    graph: Graph, lanes: Shape, readable: Sequence[bool], rows: frozenset[Node] = frozenset()
) -> bool:
    """Whether a lane's elements of the outputs need only its elements of the inputs, except of those `readable`, and of
    `rows`, whose places must be known."""
    anywhere = {node for node, is_readable in zip(graph.inputs, readable, strict=True) if is_readable}
    roots = list(graph.outputs)
    for node in graph.nodes:
        if node.op in _BODIES:
            if not _region_by_lane(node, lanes, anywhere):
                return False
            roots += [operand for operand in node.operands if operand not in anywhere]
    if any(root.shape not in (lanes, ()) for root in roots):
        return False
    for node, at in _reads_of(roots, lanes):
        if node in anywhere or node.op in READS:
            continue
        if node in rows:
            is_known = not any(index.reads_array for index in at)
        else:
            own = node.op in (INPUT, "item") and node.shape in (lanes, ())
            is_known = own and flatten(at, node.shape) == flatten(at_lane(node.shape, lanes), node.shape)
        if not is_known:
            return False
    return True


def _region_by_lane(node: Node, lanes: Shape, anywhere: set[Node]) -> bool:
    """Whether a branch or loop inside a loop does. Its sequences and stacked results would be arrays of a lane."""
    assert isinstance(node.type, TupleType)
    if any(part.shape not in (lanes, ()) for part in node.type.parts):
        return False
    match node.op:
        case "scan":
            if node.attrs["sequences"] or len(node.type.parts) > node.attrs["carries"]:
                return False
            first, carried = 0, node.attrs["carries"]
        case "while":
            first, carried = 0, len(node.type.parts)
        case _:
            first, carried = 1, 0
    own = [False] * carried + [operand in anywhere for operand in node.operands[first + carried :]]
    return _runs_by_lane(node, lanes, own, 0)


# -- the turns of a dispatch -------------------------------------------------------------------------------------------


def most_turns(node: Node, lanes: Shape) -> int:
    """How many turns one dispatch takes at most."""
    iterations, operations = _turn(node)
    most = LANE_LOOPS.operations if node.op == "scan" else LANE_LOOPS.operations_at_most
    bounds = MAX_LOOP_ITERATIONS // iterations, most // ((1 + operations) * max(prod(lanes), 64))
    return max(1, min(bounds))


def operations_of(node: Node) -> int:
    """Floating-point operations of a loop that runs lane by lane: of all turns of a scan, else of one turn."""
    turns = node.attrs["length"] if node.op == "scan" else 1
    return int(turns * _turn(node, _is_float)[1] * prod(shape_of_lanes(node) or ()))


def iterations_of(node: Node, turns: int) -> int:
    """Iterations of loops that a lane makes in so many turns of a loop that runs lane by lane."""
    return turns * _turn(node)[0]


def _has_bounded_turns(node: Node) -> bool:
    """Whether the loops inside the body end after turns that are known and fit a dispatch."""
    iterations, _ = _turn(node)
    return iterations <= MAX_LOOP_ITERATIONS and all(
        inner.op != "while" for graph in bodies_of(node) for inner in _every(graph)
    )


def _is_float(node: Node) -> bool:
    return any(value.dtype.is_float for value in (node, *node.operands))


def _turn(node: Node, counts: Callable[[Node], bool] = lambda node: True) -> tuple[int, int]:
    """The iterations of loops in one turn, itself counted, and the operations of a lane by nodes that count."""
    iterations, operations = 1, 0
    for graph in bodies_of(node):
        for inner in graph.nodes:
            if inner.op in _BODIES:
                below, times = _turn(inner, counts), inner.attrs.get("length", 1)
                iterations, operations = iterations + times * below[0], operations + times * below[1]
            elif counts(inner):
                operations += cost_of(inner)
    return iterations, operations


def _every(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        if node.op in _BODIES:
            for inner in bodies_of(node):
                yield from _every(inner)


def with_turns(node: Node, used: Sequence[int], turns: int | None) -> Graph:
    """A graph of the loop alone, with the results `used`; of a scan, that many of its turns."""
    attrs = dict(node.attrs)
    types, parts = [operand.type for operand in node.operands], list(node.type.parts)  # type: ignore[attr-defined]
    if turns is not None:
        carries, sequences = attrs["carries"], attrs["sequences"]
        attrs["length"] = turns
        for position in range(carries, carries + sequences):
            types[position] = _of_length(types[position], turns)
        parts[carries:] = [_of_length(part, turns) for part in parts[carries:]]
    inputs = [input_node(f"a{number}", type) for number, type in enumerate(types)]
    whole = make_node(node.op, tuple(inputs), attrs, TupleType(node.type.shape, node.type.dtype, tuple(parts)))
    items = [make_node("item", (whole,), {"index": position}, parts[position]) for position in used]
    return Graph(tuple(inputs), (whole, *items), tuple(items))


def _of_length(type: TensorType, length: int) -> TensorType:
    return type.with_shape((length, *type.shape[1:]))
