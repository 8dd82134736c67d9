"""The order in which fusion walks over a graph's nodes: routines that one kernel can compute come together.

A routine needs what the next one of its kernel reads to be there as well. An example is the gradient of attention's
values, which does without the sums that the gradient of keys reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.ir.graph import Node
from lavax.passes.build.attention import TOGETHER, joint_kernel_key


def walk(nodes: Sequence[Node]) -> list[Node]:
    """The nodes in topological order, those of a joint kernel one after another if none needs another."""
    last = _last_of_group(nodes)
    if not last:
        return list(nodes)
    found: list[Node] = []
    waiting: dict[Node, Node] = {}  # a delayed node -> the one that it waits for
    for node in nodes:
        cause = next((waiting[operand] for operand in node.operands if operand in waiting), None) if waiting else None
        cause = cause or last.get(node)
        if cause is not None and cause is not node:
            waiting[node] = cause
            continue
        if not waiting:
            found.append(node)
            continue
        ready = [other for other, awaited in waiting.items() if awaited is node]
        group = [other for other in ready if last.get(other) is node]
        found += [*group, node, *(other for other in ready if other not in group)]
        for other in ready:
            del waiting[other]
    return found


def _last_of_group(nodes: Sequence[Node]) -> dict[Node, Node]:
    """For each node whose kernel could compute another one, too, that needs more: the last of those, if it does not
    need the node itself."""
    groups: dict[tuple[object, ...] | None, list[Node]] = {}
    for node in nodes:
        if node.op in TOGETHER:
            groups.setdefault(joint_kernel_key(node), []).append(node)
    several = [group for group in groups.values() if len(group) > 1]
    if not several:
        return {}
    number = {node: place for place, node in enumerate(nodes)}
    return {
        node: last
        for *others, last in several
        for node in others
        if _comes_before(node, last.operands, number) and not _is_needed(node, last, number)
    }


def _comes_before(node: Node, operands: Sequence[Node], number: Mapping[Node, int]) -> bool:
    return any(number.get(operand, -1) > number[node] for operand in operands)


def _is_needed(node: Node, later: Node, number: Mapping[Node, int]) -> bool:
    seen: set[Node] = set()
    stack = [later]
    while stack:
        read = stack.pop()
        if read is node:
            return True
        if read not in seen and number.get(read, -1) > number[node]:
            seen.add(read)
            stack.extend(read.operands)
    return False
