"""Convolutions as products of windows."""

from __future__ import annotations

from lavax.ir.graph import Graph, Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import transposed, zeros
from lavax.passes.build.contraction_geometry import padded_sum, sizes_of
from lavax.passes.prepare.decompose.phases import axis_of_phases, convolution_in_phases
from lavax.passes.prepare.decompose.window import convolution_as_dot
from lavax.passes.prepare.products import prepare_product
from lavax.passes.target.target import Target

# Shorter sums are not padded to whole steps.
_LEAST_SUM = 16


def prepare_convolution(node: Node, target: Target, channels_first: bool = False) -> Node:
    """The product of windows. `channels_first`: whether all readers move the windows' axes behind the others."""
    if 0 in (*node.operands[0].shape, *node.operands[1].shape):
        return zeros(node.type)
    place = axis_of_phases(node)
    if place is not None:
        return convolution_in_phases(node, place, lambda phase: prepare_convolution(phase, target, channels_first))
    staged = target.products.stages_operands
    as_rows = target.products.windows_as_rows
    product, order = convolution_as_dot(node, staged and not channels_first, as_rows, plain=not staged)
    return transposed(prepare_product(_in_whole_steps(product, target), target), order)


def _in_whole_steps(product: Node, target: Target) -> Node:
    step, length = target.products.step_of_windows, sizes_of(product).k
    is_whole = length < _LEAST_SUM or length % step == 0
    return product if is_whole else padded_sum(product, -(-length // step) * step)


def read_channels_first(graph: Graph) -> set[Node]:
    """Convolutions whose readers all move the windows' axes behind the others: channels come first there."""
    outputs = frozenset(graph.outputs)
    found = set()
    for node in [node for node in graph.nodes if node.op == "conv"]:
        readers = graph.users.get(node, ())
        if readers and node not in outputs:
            (_, batch), (_, window), (_, summed) = (node.attrs[name] for name in ("batch", "window", "contract"))
            last = node.type.rank - 1 - len(free_axes(node.operands[1].type, (*batch, *window), summed))
            if all(reader.op == "transpose" and reader.attrs["axes"][-1] == last for reader in readers):
                found.add(node)
    return found
