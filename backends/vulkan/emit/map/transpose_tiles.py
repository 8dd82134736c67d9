"""Transpose tiles on GPUs: maps that go through shared memory tile by tile.

A workgroup computes a square tile of the result. It first copies the tile of each array that is read along the other
axis into shared memory, neighbouring invocations reading neighbours; then it computes, neighbouring invocations writing
neighbours. Tiles are of elements (transpose_elements.py) or of vectors of four (transpose_vectors.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from lavax.backends.vulkan.emit.map.transposition import Transposition
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, open_body
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, linear, quotient, remainder, variable


@dataclass(frozen=True)
class TransposeTile:
    """A square tile and its workgroup; a unit is an element or a vector of them."""

    side: int  # in units
    across: int  # neighbouring invocations
    local: int  # invocations of a workgroup
    steps: int  # in which an invocation goes over its share of the tile
    width: int  # elements of a unit
    room: int  # in shared memory, in units


class TransposeTileEmitter(ABC):
    """The state of writing one map in transpose tiles."""

    def __init__(self, transposition: Transposition, tile: TransposeTile, lifted: bool) -> None:
        self.transposition, self.kernel = transposition, transposition.kernel
        self.tile, self.lifted = tile, lifted
        self.body, self.outputs = open_body(self.kernel, lifted)
        self.read_units = transposition.read_extent // tile.width
        self.written_units = transposition.written_extent // tile.width

    @abstractmethod
    def _number_units(self) -> None:
        """Declares the units that an invocation loads and computes, from `x`, `y`, `read_start` and `written_start`."""

    @abstractmethod
    def _stage(self) -> None:
        """Copies tiles into shared memory; all loads come before the first store, so that none waits."""

    @abstractmethod
    def _at_result(self, step: int) -> dict[str, Index]:
        """The loop variables at the unit that an invocation computes in a step."""

    @abstractmethod
    def _provide(self, step: int) -> None:
        """Makes the loads of staged arrays read shared memory."""

    @abstractmethod
    def _tests(self, step: int) -> Sequence[str]:
        """The conditions that the unit computed in a step lies inside the result."""

    def emit(self) -> Launch:
        body, coordinates = self.body, self.kernel.coordinates
        groups = self._open()
        self._stage()
        body.line("barrier();")
        results = []
        for step in range(self.tile.steps):
            with body.at(self._at_result(step)):
                self._provide(step)
                outputs = self.kernel.graph.outputs
                results.append({output: body.value(output, coordinates[output]) for output in outputs})
        for step, values in enumerate(results):
            with self._where_inside(step), body.at(self._at_result(step)):
                for output, result in values.items():
                    body.store(output, coordinates[output], result, self.outputs[output])
        kinds = (type_name(node.dtype, self.tile.width) for node, _ in self.transposition.staged)
        shared = [f"shared {kind} square{number}[{self.tile.room}];" for number, kind in enumerate(kinds)]
        text = ShaderText(body.uses, body.scopes[0].lines, (self.tile.local, 1), shared)
        return Launch(assemble(text), tuple(body.parameters.words), grid(groups))

    def _open(self) -> int:
        """Finds the workgroup's tile; the number of tiles. All invocations of a workgroup reach its barrier."""
        body, side, columns = self.body, self.tile.side, self.tile.across
        across, down = -(-self.written_units // side), -(-self.read_units // side)
        groups = across * down * self.transposition.planes
        body.line(f"int group = int({WORKGROUP});")
        body.line(f"if (group >= {body.parameters.integer(groups)}) return;")
        body.line(f"int x = int(gl_LocalInvocationID.x) % {columns}, y = int(gl_LocalInvocationID.x) / {columns};")
        body.scopes[0].variables |= {"group"}
        group = variable("group", groups)
        tiles = quotient(group, across)
        self.plane = quotient(tiles, down)
        body.line(f"int written_start = {body.index(linear([(remainder(group, across), side)]))};")
        body.line(f"int read_start = {body.index(linear([(remainder(tiles, down), side)]))};")
        self._number_units()
        return groups

    def _divides(self, units: int) -> bool:
        """Whether tiles divide the axis in every shape that the shader serves."""
        return units % self.tile.side == 0 and not self.lifted

    def _number(self, name: str, text: str, count: int, inside: bool) -> None:
        """A coordinate below `count`: beyond the end of an axis the last unit is computed again, and not written."""
        bound = self.body.parameters.integer(count)
        self.body.line(f"int {name} = {text if inside else f'min({text}, {bound} - 1)'};")
        self.body.scopes[-1].variables |= {name}

    def _where_inside(self, step: int) -> AbstractContextManager[None]:
        tests = self._tests(step)
        return self.body.block(f"if ({' && '.join(tests)})") if tests else nullcontext()
