"""Convolutions as products of windows."""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, users_of
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import transposed, zeros
from lavax.passes.prepare.decompose.phases import axis_of_phases, convolution_in_phases
from lavax.passes.prepare.decompose.window import convolution_as_dot
from lavax.passes.prepare.products import prepare_product
from lavax.passes.target.target import Target


def prepare_convolution(node: Node, target: Target, channels_first: bool = False) -> Node:
    """The product of windows. `channels_first`: whether all readers move the windows' axes behind the others."""
    if 0 in (*node.operands[0].shape, *node.operands[1].shape):
        return zeros(node.type)
    place = axis_of_phases(node)
    if place is not None:
        return convolution_in_phases(node, place, lambda phase: prepare_convolution(phase, target, channels_first))
    product, order = convolution_as_dot(node, target.products.stages_operands and not channels_first)
    return transposed(prepare_product(product, target), order)


def read_channels_first(graph: Graph) -> set[Node]:
    """Convolutions whose readers all move the windows' axes behind the others: channels come first there."""
    users, outputs = users_of(graph.nodes), frozenset(graph.outputs)
    found = set()
    for node in graph.nodes:
        readers = users.get(node, ())
        if node.op == "conv" and readers and node not in outputs:
            (_, batch), (_, window), (_, summed) = (node.attrs[name] for name in ("batch", "window", "contract"))
            last = node.type.rank - 1 - len(free_axes(node.operands[1].type, (*batch, *window), summed))
            if all(reader.op == "transpose" and reader.attrs["axes"][-1] == last for reader in readers):
                found.add(node)
    return found
