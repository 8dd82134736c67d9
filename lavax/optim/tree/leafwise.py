"""A function of one weight and what belongs to it, applied to all weights of a model.

A large model has hundreds of weights and few shapes. So inside a trace the operations of the first weights of a shape
are recorded by calling the function, and those of the others are copies of these, over their own values: a sixth of
the time.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node, with_operands
from lavax.tracer.pytrees import pytree
from lavax.tracer.tracing.trace import Trace, active_trace
from lavax.tracer.tracing.tracer import Tracer

_MOST_NODES = 64  # that a result is made of, if they are to be copied


@dataclass(frozen=True, eq=False)
class _Recorded:
    """The nodes of a result that are computed from the leaves, operands first; and whether it is weak."""

    leaves: Sequence[Node]
    nodes: Sequence[Node]
    weak: bool

    def over(self, trace: Trace, leaves: Sequence[Tracer]) -> Tracer:
        """The same result of other leaves."""
        found = {node: leaf.node for node, leaf in zip(self.leaves, leaves, strict=True)}
        for node in self.nodes:
            found[node] = with_operands(node, tuple([found.get(operand, operand) for operand in node.operands]))
        return Tracer(trace, found[self.nodes[-1]], self.weak)


def leafwise(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """`pytree.map` for a function that does the same to all leaves of the same shapes and dtypes."""
    trace = active_trace()
    if trace is None:
        return pytree.map(function, tree, *rest)
    recorded: dict[Hashable, _Recorded | None] = {}

    def applied(*leaves: Any) -> Any:
        if not all(_is_any_value(leaf, trace) for leaf in leaves):
            return function(*leaves)
        kinds = tuple([leaf.abstract for leaf in leaves])
        known = recorded.get(kinds)
        if known is not None:
            return known.over(trace, leaves)
        result = function(*leaves)
        if kinds not in recorded:
            recorded[kinds] = _record(trace, leaves, result)
        return result

    return pytree.map(applied, tree, *rest)


def _is_any_value(leaf: Any, trace: Trace) -> bool:
    """Whether nothing but the leaf's shape and dtype decides what a function does to it."""
    return isinstance(leaf, Tracer) and leaf.trace is trace and not leaf.weak and leaf.node.op != "constant"


def _record(trace: Trace, leaves: Sequence[Tracer], result: Any) -> _Recorded | None:
    """What there is to copy; None if that cannot be said."""
    nodes = [leaf.node for leaf in leaves]
    if not isinstance(result, Tracer) or result.trace is not trace or len(set(nodes)) < len(nodes):
        return None
    depends = dict.fromkeys(nodes, True)
    order: list[Node] = []
    path = [result.node]
    while path:
        node = path[-1]
        waiting = [operand for operand in node.operands if operand not in depends] if node not in depends else ()
        if waiting:
            path += waiting
            continue
        path.pop()
        if node not in depends:
            depends[node] = any(depends[operand] for operand in node.operands)
            order += [node] if depends[node] else []
        if len(depends) > _MOST_NODES:
            return None
    return _Recorded(nodes, order, result.weak) if depends[result.node] and result.node not in nodes else None
