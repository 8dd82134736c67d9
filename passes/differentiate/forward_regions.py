"""Forward mode through operations with several results, which have no cotangent rule to transpose: one rule each."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.ir.graph import Node
from lavax.passes.differentiate import calls, forward_control_flow

# rule(node, tangents of its operands, None where there is none): a node that gives what `node` gives in its first
# parts, and the tangent or None of each part of `node`.
ForwardRule = Callable[[Node, Sequence[Node | None]], tuple[Node, list[Node | None]]]

REGION_RULES: dict[str, ForwardRule] = {
    "checkpoint": calls.checkpoint_forwards,
    "custom_jvp": calls.custom_jvp_forwards,
    "custom_vjp": calls.custom_vjp_forwards,
    "scan": forward_control_flow.scan_forwards,
    "switch": forward_control_flow.switch_forwards,
    "while": forward_control_flow.while_forwards,
}
