"""What a graph may hold at each stage, as data: rules that hold from a stage on, and the check of them.

Bodies of control flow are prepared by themselves, when they are scheduled, and may hold operations of lowering from the
start, because decompositions write loops. Here they are checked for types alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lavax.base.errors import VerificationError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.operation import names_of_family
from lavax.ir.ops.attention import ROUNDED
from lavax.ir.printer import value_names
from lavax.ir.types import DTYPES
from lavax.ir.verifier import verify
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.build.inline import CALLS
from lavax.passes.numerics.rounding import is_held, rounds_operands
from lavax.passes.numerics.widen import is_computing, is_narrow
from lavax.passes.prepare.decompose.joining import MOST_JOINED
from lavax.passes.prepare.decompose.sorting import sorted_by, sorted_with_order
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS

_LOWERED, _OF_NAMED_AXES = names_of_family("lowered"), names_of_family("axis")
_WITHOUT_FORM = frozenset(("stop_gradient", "known_value", "conv"))


@dataclass(frozen=True)
class Rule:
    """What must be so from the stage `since` on, up to the one before `until`, and the nodes that break it.

    Stages are "optimized", the graph that is to be prepared, and the passes of pipeline.py.
    """

    since: str
    text: str
    broken_by: Callable[[Graph], Iterable[Node]]
    until: str | None = None

    def holds_after(self, passed: Sequence[str]) -> bool:
        """Whether it holds at the last of these stages, which are those passed so far."""
        return self.since in passed and self.until not in passed


def _no_node(is_wrong: Callable[[Node], bool]) -> Callable[[Graph], Iterable[Node]]:
    return lambda graph: filter(is_wrong, graph.nodes)


def _computes_in_few_bits(node: Node) -> bool:
    values = node.operands if node.attrs.get(ROUNDED) else (node, *node.operands)
    return is_computing(node.op) and any(is_narrow(value.dtype) for value in values if value.dtype.kind != "tuple")


def _sorted_twice(graph: Graph) -> Iterable[Node]:
    twice = sorted_with_order(graph)
    return (node for node in graph.nodes if sorted_by(node) in twice)


def _has_unrounded_operand(node: Node) -> bool:
    if not rounds_operands(node):
        return False
    return not all(is_held(operand, DTYPES[node.attrs["precision"]]) for operand in node.operands)


def _loops_too_long(node: Node) -> bool:
    if node.op == "dot":
        return sizes_of(node).k > MAX_LOOP_ITERATIONS
    return node.op in ("argmax", "argmin") and node.operands[0].shape[node.attrs["axis"]] > MAX_LOOP_ITERATIONS


RULES = (
    Rule("optimized", "lowering makes this operation later", _no_node(lambda node: node.op in _LOWERED), "complex"),
    Rule("optimized", "calls are inlined", _no_node(lambda node: node.op in CALLS)),
    Rule("optimized", "axes have no names outside vmap", _no_node(lambda node: node.op in _OF_NAMED_AXES)),
    Rule("complex", "complex values are taken apart", _no_node(lambda node: node.dtype.is_complex)),
    Rule("widen", "arithmetic is done in 32 bits or more", _no_node(_computes_in_few_bits)),
    Rule("orders", "values whose order is asked for, too, are sorted once", _sorted_twice),
    Rule("roundings", "operands are rounded to the product's precision", _no_node(_has_unrounded_operand)),
    Rule("nodes", "kernels have no form for this operation", _no_node(lambda node: node.op in _WITHOUT_FORM)),
    Rule(
        "nodes",
        "values without elements are constants",
        _no_node(lambda node: node.type.size == 0 and node.op != "constant"),
    ),
    Rule(
        "nodes",
        f"a concatenation has at most {MOST_JOINED} operands",
        _no_node(lambda node: node.op == "concatenate" and len(node.operands) > MOST_JOINED),
    ),
    Rule("nodes", f"one invocation makes at most {MAX_LOOP_ITERATIONS} iterations", _no_node(_loops_too_long)),
)


def verify_stage(graph: Graph, passed: Sequence[str], known: Graph | None = None) -> None:
    """Raises VerificationError, naming stage, node and rule, if the graph is not well formed or breaks a rule.

    `passed`: the stages so far, in order; the graph is at the last of them. `known` is well formed: most passes leave a
    graph as it is, and of what took time here, nine tenths was to find that again.
    """
    stage = passed[-1]
    try:
        if graph is not known:
            verify(graph)
    except VerificationError as error:
        raise VerificationError(f"at the stage {stage!r}: {error}") from None
    for rule in RULES:
        node = next(iter(rule.broken_by(graph)), None) if rule.holds_after(passed) else None
        if node is not None:
            where = f" (from {node.location})" if node.location else ""
            name = value_names(graph)[node]
            raise VerificationError(f"at the stage {stage!r}: {name} = {node.op}(…) : {node.type}{where}: {rule.text}")
