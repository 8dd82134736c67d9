"""Transposes on GPUs in squares of single elements, for any extents and dtypes.

Rows in shared memory are one element longer than the square, so that a column of it lies in different banks.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.map.transpose_tiles import Square, SquareEmitter
from lavax.backends.vulkan.emit.map.transposition import Transposition
from lavax.backends.vulkan.glsl.body import GlslValue
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.passes.kernels.index import Index, substitute, variable
from lavax.passes.kernels.kernel import Kernel

# Elements along a side of a square, and how many rows of it are worked on at once.
_SIDE, _ROWS = 32, 4
_TURNS = range(_SIDE // _ROWS)
_SQUARE = Square(_SIDE, across=_SIDE, local=_SIDE * _ROWS, turns=len(_TURNS), width=1, room=_SIDE * (_SIDE + 1))
# Below this extent most of a square would lie outside the result.
LEAST_EXTENT = 16
# Statements of a map, times the elements of an invocation.
_MOST_STATEMENTS = 384


def suits_squares(kernel: Kernel) -> bool:
    """Whether the map is short enough to be written out for every element of an invocation."""
    return len(_TURNS) * len(kernel.graph.nodes) <= _MOST_STATEMENTS


class TiledMapEmitter(SquareEmitter):
    """The state of writing one map in squares of elements."""

    def _number_units(self) -> None:
        self._number("written", "written_start + x", self.written_units, self._divides(self.written_units))
        for turn in _TURNS:
            text = f"read_start + y + {turn * _ROWS}"
            self._number(f"read{turn}", text, self.read_units, self._divides(self.read_units))

    def _tests(self, turn: int) -> list[str]:
        integer = self.body.parameters.integer
        tests = []
        if not self._divides(self.written_units):
            tests.append(f"written_start + x < {integer(self.written_units)}")
        if not self._divides(self.read_units):
            tests.append(f"read_start + y + {turn * _ROWS} < {integer(self.read_units)}")
        return tests

    def _at_result(self, turn: int) -> dict[str, Index]:
        return self._at(f"read{turn}", "written")

    def _at(self, read: str, written: str) -> dict[str, Index]:
        """The loop variables at an element of the square, by the shader's variables for its two axes."""
        indices = variable(read, self.read_units), variable(written, self.written_units)
        return self.transposition.at(self.plane, *indices)

    def _stage(self) -> None:
        body = self.body
        self._number("read_along", "read_start + x", self.read_units, self._divides(self.read_units))
        for turn in _TURNS:
            text = f"written_start + y + {turn * _ROWS}"
            self._number(f"row{turn}", text, self.written_units, self._divides(self.written_units))
        stores = []
        for number, (node, position) in enumerate(self.transposition.staged):
            for turn in _TURNS:
                real = substitute(position, self._at("read_along", f"row{turn}"))
                loaded = body.loaded(node.dtype, body.addresses[node], body.index(real))
                name = body.declare(body.scopes[0], type_name(node.dtype, 1), loaded)
                stores.append(f"square{number}[(y + {turn * _ROWS}) * {_SIDE + 1} + x] = {name};")
        for store in stores:
            body.line(store)

    def _provide(self, turn: int) -> None:
        for number, (node, position) in enumerate(self.transposition.staged):
            value = GlslValue(f"square{number}[x * {_SIDE + 1} + y + {turn * _ROWS}]", 1)
            self.body.provide(node, self.body.real(position), value)


def emit_tiled_map(transposition: Transposition, lifted: bool) -> Launch:
    """The shader of a map in squares."""
    return TiledMapEmitter(transposition, _SQUARE, lifted).emit()
