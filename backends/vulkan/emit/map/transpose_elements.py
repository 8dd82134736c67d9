"""Transpose tiles of single elements, for any extents and dtypes.

Rows in shared memory are one element longer than the tile, so that a column of it lies in different banks.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.map.transpose_tiles import TransposeTile, TransposeTileEmitter
from lavax.backends.vulkan.emit.map.transposition import Transposition
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.lanes import GlslValue
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, substitute, variable


@dataclass(frozen=True)
class ElementTile:
    """A tile's size, and which maps take tiles.

    docs/rejected/maps_and_rows.md, "Transposes on a GPU without squares in shared memory, and with larger ones";
    `python -m benchmarks comparison --only transpose`.
    """

    side: int = 32
    rows: int = 4  # that a workgroup works on at once
    least_extent: int = 16  # of both axes: below it most of a tile would lie outside the result
    statements: int = 384  # of the graph, times the elements of an invocation

    @property
    def steps(self) -> int:
        return self.side // self.rows


ELEMENT_TILE = ElementTile()
_SIDE, _ROWS, _STEPS = ELEMENT_TILE.side, ELEMENT_TILE.rows, range(ELEMENT_TILE.steps)
_TILE = TransposeTile(
    _SIDE, across=_SIDE, local=_SIDE * _ROWS, steps=len(_STEPS), width=1, room=_SIDE * (_SIDE + 1)
)


def suits_element_tiles(transposition: Transposition, profile: DeviceProfile, lifted: bool) -> bool:
    """Whether the map is short enough to be written out for every element of an invocation of a GPU."""
    statements = len(_STEPS) * len(transposition.kernel.graph.nodes)
    return profile.kind == "gpu" and statements <= ELEMENT_TILE.statements


class ElementTileEmitter(TransposeTileEmitter):
    """The state of writing one map in transpose tiles of elements."""

    def _number_units(self) -> None:
        self._number("written", "written_start + x", self.written_units, self._divides(self.written_units))
        for step in _STEPS:
            text = f"read_start + y + {step * _ROWS}"
            self._number(f"read{step}", text, self.read_units, self._divides(self.read_units))

    def _tests(self, step: int) -> list[str]:
        integer = self.body.parameters.integer
        tests = []
        if not self._divides(self.written_units):
            tests.append(f"written_start + x < {integer(self.written_units)}")
        if not self._divides(self.read_units):
            tests.append(f"read_start + y + {step * _ROWS} < {integer(self.read_units)}")
        return tests

    def _at_result(self, step: int) -> dict[str, Index]:
        return self._at(f"read{step}", "written")

    def _at(self, read: str, written: str) -> dict[str, Index]:
        """The loop variables at an element of the tile, by the shader's variables for its two axes."""
        indices = variable(read, self.read_units), variable(written, self.written_units)
        return self.transposition.at(self.plane, *indices)

    def _stage(self) -> None:
        body = self.body
        self._number("read_along", "read_start + x", self.read_units, self._divides(self.read_units))
        for step in _STEPS:
            text = f"written_start + y + {step * _ROWS}"
            self._number(f"row{step}", text, self.written_units, self._divides(self.written_units))
        stores = []
        for number, (node, position) in enumerate(self.transposition.staged):
            for step in _STEPS:
                real = substitute(position, self._at("read_along", f"row{step}"))
                loaded = body.memory.loaded(node.dtype, body.addresses[node], body.index(real))
                name = body.declare(body.scopes[0], type_name(node.dtype, 1), loaded)
                stores.append(f"square{number}[(y + {step * _ROWS}) * {_SIDE + 1} + x] = {name};")
        for store in stores:
            body.line(store)

    def _provide(self, step: int) -> None:
        for number, (node, position) in enumerate(self.transposition.staged):
            value = GlslValue(f"square{number}[x * {_SIDE + 1} + y + {step * _ROWS}]", 1)
            self.body.provide(node, self.body.real(position), value)


def emit_element_tiles(transposition: Transposition, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a map in transpose tiles of elements."""
    return ElementTileEmitter(transposition, _TILE, lifted).emit()
