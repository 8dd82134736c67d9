"""Rows of matrices that are joined to a number each, which all elements of the row then hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lavax.backends.vulkan.emit.attention.tiles import joined
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.narrow_vectors import COLUMN_MAJOR, ROW_MAJOR
from lavax.base.quick_dataclasses import dataclass

if TYPE_CHECKING:
    from lavax.backends.vulkan.emit.attention.cooperative import CooperativeTiles

# The functions that join two elements of a row, by the operation.
_JOINING = {"max": "greater_of", "+": "sum_of"}


@dataclass(frozen=True)
class FoldedRows:
    """Where shaders may reduce the rows of a matrix, they do; else rows pass through shared memory."""

    tiles: CooperativeTiles
    used: set[str] = field(default_factory=set)  # the operations of reductions

    def fold(self, join: str, names: Sequence[str]) -> None:
        tiles = self.tiles
        if not tiles.converts:
            for name in names:
                self._fold_in_shared_memory(join, name)
            return
        tiles.body.uses.extension("cooperative_matrix_2")
        self.used.add(join)
        for name in names:
            reduced = tiles.body.name()
            tiles.line(f"{tiles.sum_kind()} {reduced};")
            tiles.line(f"coopMatReduceNV({reduced}, {name}, gl_CooperativeMatrixReduceRowNV, {_JOINING[join]});")
            tiles.line(f"{name} = {reduced};")

    def functions(self) -> list[str]:
        """The functions that reductions call."""
        given = "const in float left, const in float right"
        return [
            f"float {_JOINING[join]}({given}) {{ return {joined(join, 'left', 'right')}; }}"
            for join in sorted(self.used)
        ]

    def _fold_in_shared_memory(self, join: str, name: str) -> None:
        """Each lane joins its part of a row, lanes of a row join theirs, and the results are repeated in the matrix."""
        tiles, shape = self.tiles, self.tiles.shape
        own, four, across = tiles.body.name(), tiles.body.name(), shape.across
        vectors = shape.shape.n // VECTOR
        stride = vectors | 1
        tiles.line(f"coopMatStore({name}, staged, own, {stride}, {ROW_MAJOR});")
        tiles.line("subgroupBarrier();")
        first = f"own + row * {stride} + place * {vectors} / {across}"
        tiles.line(f"vec4 {four} = uintBitsToFloat(staged[{first}]);")
        for number in range(1, -(-vectors // across)):
            tiles.line(f"{four} = {joined(join, four, f'uintBitsToFloat(staged[{first} + {number}])')};")
        halves = (joined(join, f"{four}.{a}", f"{four}.{b}") for a, b in ("xy", "zw"))
        tiles.line(f"float {own} = {joined(join, *halves)};")
        if across > vectors and join == "+":
            tiles.line(f"if (place % {across // vectors} != 0) {own} = 0.0;  // another lane has this vector, too")
        distance = shape.shape.m
        while distance < shape.lanes:
            tiles.line(f"{own} = {joined(join, own, f'subgroupShuffleXor({own}, {distance}u)')};")
            distance *= 2
        tiles.line("subgroupBarrier();")
        tiles.line(f"staged[own + row / {VECTOR}][row % {VECTOR}] = floatBitsToUint({own});")
        tiles.line("subgroupBarrier();")
        tiles.line(f"coopMatLoad({name}, staged, own, 0, {COLUMN_MAJOR});")
        tiles.line("subgroupBarrier();")
