"""The text of a shader some of whose arrays are in shared memory: of scans that workgroups run slice by slice."""

from __future__ import annotations

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE_NAME, GlslValue
from lavax.backends.vulkan.glsl.shader import Parameters
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, constant, flatten, substitute
from lavax.passes.kernels.reads import Coordinates

BARRIER = ("memoryBarrierShared();", "barrier();")
THREAD, SLICE, TURN = "thread", "slice", "turn"


class SliceBody(Body):
    """A body some of whose arrays are in shared memory: `held` has their names, and where in these they begin, and
    `in_fours` the names of those that are vectors of four."""

    def __init__(self, addresses: dict[Node, str], parameters: Parameters) -> None:
        super().__init__(addresses, parameters)
        self.held: dict[Node, tuple[str, str]] = {}
        self.in_fours: set[str] = set()

    def is_in_memory(self, array: Node) -> bool:
        return array not in self.held and super().is_in_memory(array)

    def load_at(self, node: Node, position: Index) -> GlslValue:
        if node not in self.held:
            return super().load_at(node, position)
        position = inside(position, node.type.size)
        if LANE_NAME not in position.variables:
            return GlslValue(self._held_at(node, self.index(position)), 1)
        name, first = self.held[node]
        if name in self.in_fours and self.is_aligned(node, position):
            base = self.index(substitute(position, {LANE_NAME: constant(0)}))
            return GlslValue(f"{name}[({first}{base}) >> 2]", VECTOR)
        texts = [self._held_at(node, text) for text in self._components(position)]
        return GlslValue(f"{type_name(node.dtype, VECTOR)}({', '.join(texts)})", VECTOR)

    def _held_at(self, node: Node, index: str) -> str:
        name, first = self.held[node]
        return self.shared_element(name, f"{first}{index}")

    def shared_element(self, name: str, index: str) -> str:
        """An element of an array in shared memory; may be assigned to."""
        return f"{name}[({index}) >> 2][({index}) & 3]" if name in self.in_fours else f"{name}[{index}]"

    def store(self, node: Node, at: Coordinates, value: GlslValue, address: str) -> None:
        if node not in self.held:
            super().store(node, at, value, address)
            return
        position = inside(self.real(flatten(at, node.shape)), node.type.size)
        self.line(f"{self._held_at(node, self.index(position))} = {value.text};")
