"""The operands of a subgroup's rows, which are left operands of products: matrices, or numbers in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lavax.backends.vulkan.emit.attention.cooperative_shape import PIECE
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import add, clamp, linear, quotient, remainder

if TYPE_CHECKING:
    from lavax.backends.vulkan.emit.attention.cooperative import CooperativeTiles


@dataclass(frozen=True)
class OperandsOfRows:
    """Matrices are loaded once, by way of the subgroup's part of shared memory, a piece of the rows at a time. Where
    registers are too few for them, the rows stay in that part, and a matrix is loaded where it is multiplied."""

    tiles: CooperativeTiles
    operands: Sequence[Node]

    @property
    def stay(self) -> bool:
        return self.tiles.shape.rows_kept > 0

    def load(self) -> None:
        m, down = self.tiles.shape.shape.m, self.tiles.shape.down
        for operand in self.operands:
            head = self.tiles.shape.held(operand)
            piece = head if self.stay else min(head, PIECE)
            for row in range(down):
                for begin in range(0, head, piece):
                    length = min(piece, head - begin)
                    self._stage(operand, row * m, begin, length, self._place(operand, row) if self.stay else 0)
                    if not self.stay:
                        self._take(operand, row, begin, length)

    def matrix(self, operand: Node, row: int, step: int) -> str:
        """The matrix of a row of matrices that is multiplied in a step of a product."""
        if not self.stay:
            return self._name(operand, row, step)
        tiles, name = self.tiles, self.tiles.body.name()
        at = self._place(operand, row) + step * tiles.shape.shape.k // EIGHT
        tiles.load_left(name, at, tiles.shape.operand_stride(tiles.shape.held(operand)))
        return name

    def _place(self, operand: Node, row: int) -> int:
        """Where a row of matrices that stays begins, behind those of the operands before."""
        shape = self.tiles.shape
        rows = (self.operands.index(operand) * shape.down + row) * shape.shape.m
        return rows * shape.operand_stride(shape.head)

    def _name(self, operand: Node, row: int, step: int) -> str:
        return f"{self.tiles.of_matrices(f'rows{self.operands.index(operand)}_', row, '_')}{step}"

    def _stage(self, operand: Node, below: int, begin: int, length: int, place: int) -> None:
        """Copies some elements of the rows of a row of matrices to shared memory."""
        tiles, lanes = self.tiles, self.tiles.shape.lanes
        m, line, stride = tiles.shape.shape.m, length // EIGHT, tiles.shape.operand_stride(length)
        lane = linear([(tiles.place, m), (tiles.own_row, 1)])
        for start in range(0, m * line, lanes):
            number = add(lane, start)
            ends = start + lanes > m * line
            with tiles.body.block(f"if ({tiles.body.index(number)} < {m * line})" if ends else ""):
                number = clamp(number, 0, m * line - 1)
                row, along = quotient(number, line), remainder(number, line)
                at = tiles.inside(linear([(tiles.first_row, 1), (row, 1)], below))
                elements = linear([(along, EIGHT)], begin)
                text = tiles.within(operand, elements, tiles.eight(operand, at, elements))
                to = tiles.body.index(linear([(row, stride), (along, 1)], place))
                tiles.line(f"staged[own + {to}] = {text};")
        tiles.line("subgroupBarrier();")

    def _take(self, operand: Node, row: int, begin: int, length: int) -> None:
        """Loads what was staged to matrices."""
        k, stride = self.tiles.shape.shape.k, self.tiles.shape.operand_stride(length)
        for step in range(length // k):
            self.tiles.load_left(self._name(operand, row, begin // k + step), step * k // EIGHT, stride)
        self.tiles.line("subgroupBarrier();")
