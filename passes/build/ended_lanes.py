"""Loops that go on while any of their lanes does, and keep the values of lanes that have ended.

A loop over a batch is one (passes/batch/control_flow.py). Its condition is the maximum of what each lane asks, and its
body gives a lane's values back as they are where that does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lavax.ir.graph import INPUT, Node


def asked_by_lane(loop: Node) -> Node | None:
    """What each lane of such a loop asks, a node of its condition; None for other loops."""
    asked = _joined_by_maximum(loop.attrs["condition"].outputs[0])
    every = range(len(loop.attrs["body"].outputs))
    return asked if asked is not None and keeps_ended(loop, asked, every) else None


def _joined_by_maximum(node: Node) -> Node | None:
    """What a scalar is the maximum of, at once or in parts, which may be padded; None if it is no maximum."""
    if node.type.rank:
        return None
    found = node
    while found.op in ("max", "reshape") or (found.op == "pad" and found.attrs["value"] is False):
        found = found.operands[0]
    return None if found is node else found


def keeps_ended(loop: Node, condition: Node, places: Iterable[int]) -> bool:
    """Whether the body keeps what is carried at these places where the condition of a lane does not hold."""
    asked, body = loop.attrs["condition"], loop.attrs["body"]
    same = dict(zip(asked.inputs, body.inputs, strict=True))
    return all(_keeps(body.outputs[place], body.inputs[place], condition, same) for place in places)


def _keeps(output: Node, before: Node, condition: Node, same: Mapping[Node | None, Node]) -> bool:
    """Whether `output` is `before` where the condition of a lane does not hold."""
    if output is before:
        return True
    if output.op in ("and", "or"):  # a flag by which lanes run stays False, or one by which they have ended stays True
        flag = condition if output.op == "and" else condition.operands[0] if condition.op == "not" else None
        return before in output.operands and same.get(flag) is before
    if output.op == "add" and output.dtype.is_integer and before in output.operands:  # counts the lane's turns
        return any(each.op == "cast" and _is_of_lane(each.operands[0], condition, same) for each in output.operands)
    if output.op != "where":
        return False
    choice, held, ended = output.operands
    if ended is before:
        return _is_of_lane(choice, condition, same)
    return held is before and condition.op == "not" and _is_of_lane(choice, condition.operands[0], same)


def _is_of_lane(choice: Node, condition: Node, same: Mapping[Node | None, Node]) -> bool:
    """Whether a choice is a lane's condition, for each of the lane's elements."""
    leading = tuple(range(condition.type.rank))
    if choice.op == "broadcast" and choice.attrs["axes"] == leading and choice.type.rank > condition.type.rank:
        choice = choice.operands[0]
    return _is_equal(condition, choice, same)


def _is_equal(one: Node, other: Node, same: Mapping[Node | None, Node]) -> bool:
    """Whether two nodes compute the same from inputs that are the same."""
    stack, seen = [(one, other)], set()
    while stack:
        left, right = stack.pop()
        if (left, right) in seen or same.get(left) is right:
            continue
        seen.add((left, right))
        if left.op == INPUT or (left.op, left.type, left.attrs) != (right.op, right.type, right.attrs):
            return False
        stack += zip(left.operands, right.operands, strict=True)
    return True
