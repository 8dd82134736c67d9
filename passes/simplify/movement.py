"""Movement: drops movement that has no effect, joins adjacent movement, and gives each value one normal form.

In normal form, transpose and broadcast work on values without axes of extent 1, and a broadcast always repeats
something. A reshape adds and removes axes of extent 1, and it comes last.
"""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.builder import broadcast, iota, reshape, transpose, transposed
from lavax.passes.build.matching import axis_groups, is_unit_reshape, unit_map, without_units
from lavax.passes.simplify import cutting, folding
from lavax.passes.simplify.rewriting import RewriteRule


def _squeezed(x: Node) -> Node:
    return reshape(x, without_units(x.shape))


def _reshape_to_same(node: Node) -> Node | None:
    (x,) = node.operands
    return x if x.shape == node.shape else None


def _reshape_twice(node: Node) -> Node | None:
    """reshape(reshape(x)) -> reshape(x)."""
    (x,) = node.operands
    return reshape(x.operands[0], node.shape) if x.op == "reshape" else None


def _reshape_of_iota(node: Node) -> Node | None:
    """reshape(iota) -> iota, if it only adds or removes axes of extent 1."""
    (x,) = node.operands
    if x.op != "iota" or not is_unit_reshape(node):
        return None
    return iota(node.type, unit_map(x.shape, node.shape)[x.attrs["axis"]])


def _reshape_of_broadcast(node: Node) -> Node | None:
    """reshape(broadcast(x)) -> broadcast(x), if it keeps the axes of x and only splits or merges repeated ones."""
    (x,) = node.operands
    if x.op != "broadcast":
        return None
    own, places = set(x.attrs["axes"]), {}
    for before, after in axis_groups(x.shape, node.shape):
        if not own.isdisjoint(before):
            if len(before) > 1 or len(after) > 1:
                return None
            places[before[0]] = after[0]
    return broadcast(x.operands[0], node.shape, [places[axis] for axis in x.attrs["axes"]])


def _transpose_of_nothing(node: Node) -> Node | None:
    axes = node.attrs["axes"]
    return node.operands[0] if axes == tuple(range(len(axes))) else None


def _transpose_with_units(node: Node) -> Node | None:
    """transpose(x) -> reshape(transpose(reshape(x))), a transpose without axes of extent 1."""
    (x,) = node.operands
    if 1 not in x.shape:
        return None
    kept = [axis for axis, extent in enumerate(x.shape) if extent != 1]
    order = [kept.index(axis) for axis in node.attrs["axes"] if axis in kept]
    return reshape(transpose(_squeezed(x), order), node.shape)


def _transpose_twice(node: Node) -> Node | None:
    (x,) = node.operands
    if x.op != "transpose":
        return None
    return transpose(x.operands[0], [x.attrs["axes"][axis] for axis in node.attrs["axes"]])


def _transpose_of_iota(node: Node) -> Node | None:
    (x,) = node.operands
    return iota(node.type, node.attrs["axes"].index(x.attrs["axis"])) if x.op == "iota" else None


def _transpose_of_broadcast(node: Node) -> Node | None:
    """transpose(broadcast(x)) -> broadcast(transpose(x)), without the transpose if the axes of x keep their order."""
    (x,) = node.operands
    if x.op != "broadcast":
        return None
    places = [node.attrs["axes"].index(axis) for axis in x.attrs["axes"]]
    order = sorted(range(len(places)), key=places.__getitem__)
    return broadcast(transposed(x.operands[0], order), node.shape, sorted(places))


def _broadcast_of_iota(node: Node) -> Node | None:
    (x,) = node.operands
    return iota(node.type, node.attrs["axes"][x.attrs["axis"]]) if x.op == "iota" else None


def _broadcast_without_repetition(node: Node) -> Node | None:
    (x,) = node.operands
    return reshape(x, node.shape) if x.type.size == node.type.size else None


def _broadcast_of_units(node: Node) -> Node | None:
    (x,) = node.operands
    if 1 not in x.shape:
        return None
    axes = [axis for axis, extent in zip(node.attrs["axes"], x.shape, strict=True) if extent != 1]
    return broadcast(_squeezed(x), node.shape, axes)


def _broadcast_twice(node: Node) -> Node | None:
    (x,) = node.operands
    if x.op != "broadcast":
        return None
    return broadcast(x.operands[0], node.shape, [node.attrs["axes"][axis] for axis in x.attrs["axes"]])


RULES: dict[str, tuple[RewriteRule, ...]] = {
    "iota": (cutting.iota_of_one,),
    "reshape": (_reshape_to_same, folding.movement, _reshape_twice, _reshape_of_iota, _reshape_of_broadcast),
    "transpose": (
        _transpose_of_nothing,
        folding.movement,
        _transpose_with_units,
        _transpose_twice,
        _transpose_of_iota,
        _transpose_of_broadcast,
    ),
    "broadcast": (
        folding.movement,
        _broadcast_without_repetition,
        _broadcast_of_units,
        _broadcast_twice,
        _broadcast_of_iota,
    ),
    **cutting.RULES,
}
