"""Batching of calls, by batching their bodies and rules."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.ir.graph import Graph, LaterGraph, Node, graph_of
from lavax.ir.types import TensorType, int32
from lavax.passes.batch.batch_rule import Axis, BatchRule, Operand
from lavax.passes.build.builder import build, sum_over


def batched_body(graph: Graph, batched: Sequence[bool], axis: Axis) -> Graph:
    """`graph` with the batch axis in front of those inputs and of all outputs."""
    from lavax.passes.batch.batching import batch  # batching uses these rules

    axes = [0 if flag else None for flag in batched]
    return batch(graph, axes, [0] * len(graph.outputs), axis.size, axis.name)


def _custom_vjp(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    """Operands and residuals have the batch axis only if they differ between elements."""
    flags = [operand.batched for operand in operands]
    attrs = {
        "arguments": node.attrs["arguments"],
        "body": batched_body(node.attrs["body"], flags, axis),
        "forward": _rule(node, ("forward",), lambda forward: _batched_forward(node, forward, flags, axis)),
        "backward": _rule(
            node,
            ("forward", "backward"),
            lambda forward, backward: _batched_backward(node, forward, backward, flags, axis),
        ),
    }
    return Operand(build(node.op, *(operand.node for operand in operands), **attrs), True)


def _rule(node: Node, names: Sequence[str], made: Callable[..., Graph]) -> Graph | LaterGraph:
    """The result of `made` on the rules of these names; computed on demand if one of them is."""
    rules = [node.attrs[name] for name in names]
    texts = {rule.text for rule in rules if isinstance(rule, LaterGraph)}
    if not texts:
        return made(*rules)
    text = LaterGraph.ITSELF if texts == {LaterGraph.ITSELF} else LaterGraph.LATER
    return LaterGraph(lambda: made(*(rule.graph if isinstance(rule, LaterGraph) else rule for rule in rules)), text)


def _batched_forward(node: Node, forward: Graph, flags: Sequence[bool], axis: Axis) -> Graph:
    from lavax.passes.batch.batching import batch  # batching uses these rules

    count = len(node.attrs["body"].outputs)
    differ = _differing_residuals(forward, count, flags, axis)
    axes = [0] * count + [0 if flag else None for flag in differ]
    return batch(forward, [0 if flag else None for flag in flags], axes, axis.size, axis.name)


def _differing_residuals(forward: Graph, results: int, flags: Sequence[bool], axis: Axis) -> list[bool]:
    from lavax.passes.batch.batching import differing_outputs

    return differing_outputs(forward, [0 if flag else None for flag in flags], axis.size, axis.name)[results:]


def _batched_backward(node: Node, forward: Graph, backward: Graph, flags: Sequence[bool], axis: Axis) -> Graph:
    """The cotangent of an operand that is the same for all elements is the sum over the elements."""
    differ = _differing_residuals(forward, len(node.attrs["body"].outputs), flags, axis)
    cotangents = len(backward.inputs) - len(differ)
    each = batched_body(backward, [*differ, *[True] * cotangents], axis)
    floats = [p for p, operand in enumerate(node.operands[: node.attrs["arguments"]]) if operand.dtype.is_inexact]
    found = [
        output if flags[position] else sum_over(output, (0,))
        for position, output in zip(floats, each.outputs, strict=True)
    ]
    return graph_of(each.inputs, found)


def _custom_jvp(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    """Operands and their tangents have the batch axis only if they differ between elements."""
    flags = [operand.batched for operand in operands]
    first = node.operands[: node.attrs["arguments"]]
    of_tangents = [flag for operand, flag in zip(first, flags, strict=False) if operand.dtype.is_inexact]
    attrs = {
        "arguments": node.attrs["arguments"],
        "body": batched_body(node.attrs["body"], flags, axis),
        "rule": _rule(node, ("rule",), lambda rule: batched_body(rule, [*flags, *of_tangents], axis)),
    }
    return Operand(build(node.op, *(operand.node for operand in operands), **attrs), True)


def _checkpoint(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    body = batched_body(node.attrs["body"], [operand.batched for operand in operands], axis)
    attrs = {**node.attrs, "body": body}
    return Operand(build(node.op, *(operand.node for operand in operands), **attrs), True)


def _custom_vmap(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    """The graph that the function's own rule gives, as the only branch of a switch, which is inlined later."""
    graph = node.attrs["batching"].batched(axis.size, tuple(operand.batched for operand in operands))
    number = build("constant", type=TensorType((), int32), value=0)
    return Operand(build("switch", number, *(operand.node for operand in operands), branches=(graph,)), True)


RULES: dict[str, BatchRule] = {
    "checkpoint": _checkpoint,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "custom_vmap": _custom_vmap,
}
