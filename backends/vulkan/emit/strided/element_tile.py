"""Tiles of strided products whose arrays are accessed element by element, on CPU drivers."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.tiles import Tile
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class ElementTile(Tile):
    """Rows and columns of the result that the lanes of one subgroup compute; both are multiples of their number."""

    lanes: int

    @property
    def threads(self) -> int:
        return self.lanes

    @property
    def shares(self) -> int:
        """The rows of the left operand that a lane reads."""
        return self.rows // self.lanes

    @property
    def own_columns(self) -> int:
        return self.columns // self.lanes

    @property
    def sums(self) -> int:
        """The sums of a lane."""
        return self.rows * self.own_columns
