"""What a product's results are computed from besides it, loaded before it: memory takes as long as all else."""

from __future__ import annotations

from collections.abc import Collection

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.lanes import GlslValue
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses
from lavax.passes.kernels.kernel import Kernel


def load_ahead(body: Body, kernel: Kernel, elsewhere: Collection[Node] = ()) -> None:
    """Loads what the outputs of the body's current element read, but not the arrays `elsewhere`.

    Nor what they read at places that are computed numbers: those are not there yet.
    """
    roots = [(node, kernel.coordinates[node]) for node in kernel.graph.outputs]
    for node, positions in accesses(kernel, roots).items():
        for position in positions:
            if node in elsewhere or position.reads_array:
                continue
            place = body.real(position)
            text, kind = body.load_at(node, place).text, type_name(node.dtype, 1)
            body.provide(node, place, GlslValue(body.declare(body.scopes[-1], kind, text), 1))
