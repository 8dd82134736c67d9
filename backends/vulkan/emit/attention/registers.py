"""Tiles whose results stay in registers: row r and vector v of the result `n` is the GLSL variable `n{r}_{v}`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager

from lavax.backends.vulkan.emit.attention.tiles import Tiles
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index


class RegisterTiles(Tiles):
    """A kernel of attention whose invocations keep parts of the results from the first block to the last."""

    @abstractmethod
    def _vectors(self, node: Node) -> range:
        """An invocation's vectors of a result's row."""

    def _sum(self, node: Node, row: int, vector: int) -> str:
        return f"{node.op}{row}_{vector}"

    def open_result(self, node: Node) -> None:
        for row in range(self.height):
            names = ", ".join(f"{self._sum(node, row, vector)} = vec4(0)" for vector in self._vectors(node))
            self.line(f"vec4 {names};")

    def _scale(self, node: Node, factors: Sequence[str]) -> None:
        """Multiplies each of a result's rows by its factor, if there are factors."""
        for row, factor in enumerate(factors):
            for vector in self._vectors(node):
                self.line(f"{self._sum(node, row, vector)} *= {factor};")

    def _if_below(self, number: Index, end: int) -> AbstractContextManager[None]:
        """A block of statements for numbers below the end."""
        return self.body.block(f"if ({self.body.index(number)} < {end})" if number.high >= end else "")
