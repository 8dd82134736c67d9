"""Constants as text: literals, or numbers that the shader gets when it runs."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from lavax.backends.vulkan.glsl.expressions import literal
from lavax.backends.vulkan.glsl.shader import Parameters
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node

_FROM_INT = {"float": "intBitsToFloat", "int": "int", "uint": "uint"}


@dataclass
class ConstantTexts:
    """The constants of one shader; those in `given`, of 32 bits, are among its parameters."""

    parameters: Parameters
    given: frozenset[Node] = frozenset()
    _texts: dict[Node, str] = field(default_factory=dict)

    def of(self, node: Node) -> str:
        """A scalar expression for a constant."""
        if node not in self.given:
            return literal(node.attrs["value"], node.dtype)
        if node not in self._texts:
            (bits,) = node.dtype.to_storage(np.array([node.attrs["value"]], node.dtype.numpy)).view(np.uint32)
            self._texts[node] = f"{_FROM_INT[node.dtype.kind]}({self.parameters.unknown(int(bits))})"
        return self._texts[node]
