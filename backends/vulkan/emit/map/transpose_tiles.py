"""Transposes on GPUs: maps in squares that go through shared memory.

A workgroup computes a square of the result. It first copies the square of each array that is read along the other axis
into shared memory, neighbouring invocations reading neighbours; then it computes, neighbouring invocations writing
neighbours. Squares are of elements (transpose_elements.py) or of vectors of four (transpose_vectors.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from lavax.backends.vulkan.emit.map.transposition import Transposition
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, open_body
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.passes.kernels.index import Index, linear, quotient, remainder, variable


@dataclass(frozen=True)
class Square:
    """Units along a side, elements or vectors of them; invocations, `across` of them side by side; in how many turns an
    invocation goes over its share of the square, and what the square takes in shared memory, in units."""

    side: int
    across: int
    local: int
    turns: int
    width: int  # elements of a unit
    room: int


class SquareEmitter(ABC):
    """The state of writing one map in squares."""

    def __init__(self, transposition: Transposition, square: Square, lifted: bool) -> None:
        self.transposition, self.kernel = transposition, transposition.kernel
        self.square, self.lifted = square, lifted
        self.body, self.outputs = open_body(self.kernel, lifted)
        self.read_units = transposition.read_extent // square.width
        self.written_units = transposition.written_extent // square.width

    @abstractmethod
    def _number_units(self) -> None:
        """Declares the places an invocation loads and computes, from `x`, `y`, `read_start` and `written_start`."""

    @abstractmethod
    def _stage(self) -> None:
        """Copies squares into shared memory; all loads are written before the first store, so that none waits."""

    @abstractmethod
    def _at_result(self, turn: int) -> dict[str, Index]:
        """The loop variables at what an invocation computes in a turn."""

    @abstractmethod
    def _provide(self, turn: int) -> None:
        """Has the loads of staged arrays read shared memory."""

    @abstractmethod
    def _tests(self, turn: int) -> Sequence[str]:
        """The conditions that what is computed in a turn lies inside of the result."""

    def emit(self) -> Launch:
        body, places = self.body, self.kernel.places
        groups = self._open()
        self._stage()
        body.line("barrier();")
        results = []
        for turn in range(self.square.turns):
            with body.at(self._at_result(turn)):
                self._provide(turn)
                results.append({output: body.value(output, places[output]) for output in self.kernel.graph.outputs})
        for turn, values in enumerate(results):
            with self._where_inside(turn), body.at(self._at_result(turn)):
                for output, result in values.items():
                    body.store(output, places[output], result, self.outputs[output])
        kinds = (type_name(node.dtype, self.square.width) for node, _ in self.transposition.staged)
        shared = [f"shared {kind} square{number}[{self.square.room}];" for number, kind in enumerate(kinds)]
        text = ShaderText(body.uses, body.scopes[0].lines, (self.square.local, 1), shared)
        return Launch(assemble(text), tuple(body.parameters.words), grid(groups))

    def _open(self) -> int:
        """Finds out which square a workgroup has, and how many there are; all of a workgroup go to its barrier."""
        body, side, columns = self.body, self.square.side, self.square.across
        across, down = -(-self.written_units // side), -(-self.read_units // side)
        groups = across * down * self.transposition.planes
        body.line(f"int group = int({WORKGROUP});")
        body.line(f"if (group >= {body.parameters.integer(groups)}) return;")
        body.line(f"int x = int(gl_LocalInvocationID.x) % {columns}, y = int(gl_LocalInvocationID.x) / {columns};")
        body.scopes[0].variables |= {"group"}
        group = variable("group", groups)
        squares = quotient(group, across)
        self.plane = quotient(squares, down)
        body.line(f"int written_start = {body.index(linear([(remainder(group, across), side)]))};")
        body.line(f"int read_start = {body.index(linear([(remainder(squares, down), side)]))};")
        self._number_units()
        return groups

    def _divides(self, units: int) -> bool:
        """Whether squares end where the axis does, in every shape that the shader serves."""
        return units % self.square.side == 0 and not self.lifted

    def _number(self, name: str, text: str, count: int, inside: bool) -> None:
        """A place below `count`: beyond the end of an axis its last one is worked on once more, and not written."""
        bound = self.body.parameters.integer(count)
        self.body.line(f"int {name} = {text if inside else f'min({text}, {bound} - 1)'};")
        self.body.scopes[-1].variables |= {name}

    def _where_inside(self, turn: int) -> AbstractContextManager[None]:
        tests = self._tests(turn)
        return self.body.block(f"if ({' && '.join(tests)})") if tests else nullcontext()
