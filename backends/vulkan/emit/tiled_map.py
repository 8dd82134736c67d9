"""Transposes on GPUs: maps in squares that go through shared memory.

A workgroup computes a square of the result. It first copies the square of each array that is read along the other axis
into shared memory, neighbouring invocations reading neighbours; then it computes, neighbouring invocations writing
neighbours. Rows in shared memory are one element longer than the square, so that a column of it lies in different
banks.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from lavax.backends.vulkan.emit.body import Value
from lavax.backends.vulkan.emit.expressions import type_name
from lavax.backends.vulkan.emit.launch import WORKGROUP, Launch, grid, open_body
from lavax.backends.vulkan.emit.shader import ShaderText, assemble
from lavax.backends.vulkan.emit.transposition import Transposition
from lavax.backends.vulkan.plan import Shader
from lavax.passes.kernels.index import Index, linear, quotient, remainder, substitute, variable
from lavax.passes.kernels.kernel import Kernel

# Elements along a side of a square, and how many rows of it are worked on at once.
_SIDE, _ROWS = 32, 4
# Below this extent most of a square would lie outside the result.
LEAST_EXTENT = 16
# Statements of a map, times the elements of an invocation.
_MOST_STATEMENTS = 384


def suits_squares(kernel: Kernel) -> bool:
    """Whether the map is short enough to be written out for every element of an invocation."""
    return _SIDE // _ROWS * len(kernel.graph.nodes) <= _MOST_STATEMENTS


class TiledMapEmitter:
    """The state of writing one map in squares."""

    def __init__(self, transposition: Transposition, lifted: bool) -> None:
        self.transposition, self.kernel, self.lifted = transposition, transposition.kernel, lifted
        self.body, self.outputs = open_body(self.kernel, lifted)
        self.read_extent, self.written_extent = transposition.read_extent, transposition.written_extent

    def emit(self) -> Launch:
        body = self.body
        groups = self._open()
        turns = range(_SIDE // _ROWS)
        self._stage(turns)
        body.line("barrier();")
        results = []
        for turn in turns:
            with body.at(self._at(f"read{turn}", "written")):
                self._provide(turn)
                places = self.kernel.places
                results.append({output: body.value(output, places[output]) for output in self.kernel.graph.outputs})
        for turn in turns:
            with self._where_inside(turn), body.at(self._at(f"read{turn}", "written")):
                for output, result in results[turn].items():
                    body.store(output, self.kernel.places[output], result, self.outputs[output])
        kinds = (type_name(node.dtype, 1) for node, _ in self.transposition.staged)
        shared = [f"shared {kind} square{n}[{_SIDE * (_SIDE + 1)}];" for n, kind in enumerate(kinds)]
        text = ShaderText(body.scopes[0].lines, (_SIDE * _ROWS, 1), shared)
        return Launch(Shader(assemble(text)), tuple(body.parameters.words), grid(groups))

    def _open(self) -> int:
        """Finds out which square a workgroup has, and how many there are; all of a workgroup go to its barrier."""
        body = self.body
        across, down = -(-self.written_extent // _SIDE), -(-self.read_extent // _SIDE)
        groups = across * down * self.transposition.planes
        body.line(f"int group = int({WORKGROUP});")
        body.line(f"if (group >= {body.parameters.integer(groups)}) return;")
        body.line(f"int x = int(gl_LocalInvocationID.x) % {_SIDE}, y = int(gl_LocalInvocationID.x) / {_SIDE};")
        body.scopes[0].variables |= {"group"}
        group = variable("group", groups)
        squares = quotient(group, across)
        self.plane = quotient(squares, down)
        body.line(f"int written_start = {body.index(linear([(remainder(group, across), _SIDE)]))};")
        body.line(f"int read_start = {body.index(linear([(remainder(squares, down), _SIDE)]))};")
        self._number("written", "written_start + x", self.written_extent)
        for turn in range(_SIDE // _ROWS):
            self._number(f"read{turn}", f"read_start + y + {turn * _ROWS}", self.read_extent)
        return groups

    def _number(self, name: str, text: str, extent: int) -> None:
        """Beyond the end of an axis its last element is worked on once more, and not written."""
        bound = self.body.parameters.integer(extent)
        self.body.line(f"int {name} = {text if self._divides(extent) else f'min({text}, {bound} - 1)'};")
        self.body.scopes[-1].variables |= {name}

    def _divides(self, extent: int) -> bool:
        """Whether squares end where the axis does, in every shape that the shader serves."""
        return extent % _SIDE == 0 and not self.lifted

    def _where_inside(self, turn: int) -> AbstractContextManager[None]:
        integer = self.body.parameters.integer
        tests = []
        if not self._divides(self.written_extent):
            tests.append(f"written_start + x < {integer(self.written_extent)}")
        if not self._divides(self.read_extent):
            tests.append(f"read_start + y + {turn * _ROWS} < {integer(self.read_extent)}")
        return self.body.block(f"if ({' && '.join(tests)})") if tests else nullcontext()

    def _at(self, read: str, written: str) -> dict[str, Index]:
        """The loop variables at an element of the square, by the shader's variables for its two axes."""
        indices = variable(read, self.read_extent), variable(written, self.written_extent)
        return self.transposition.at(self.plane, *indices)

    def _stage(self, turns: range) -> None:
        """Copies squares into shared memory; all loads are written before the first store, so that none waits."""
        body = self.body
        self._number("read_along", "read_start + x", self.read_extent)
        for turn in turns:
            self._number(f"row{turn}", f"written_start + y + {turn * _ROWS}", self.written_extent)
        stores = []
        for number, (node, position) in enumerate(self.transposition.staged):
            for turn in turns:
                real = substitute(position, self._at("read_along", f"row{turn}"))
                loaded = body.loaded(node.dtype, body.addresses[node], body.index(real))
                name = body.declare(body.scopes[0], type_name(node.dtype, 1), loaded)
                stores.append(f"square{number}[(y + {turn * _ROWS}) * {_SIDE + 1} + x] = {name};")
        for store in stores:
            body.line(store)

    def _provide(self, turn: int) -> None:
        """Has the loads of staged arrays read shared memory."""
        for number, (node, position) in enumerate(self.transposition.staged):
            value = Value(f"square{number}[x * {_SIDE + 1} + y + {turn * _ROWS}]", 1)
            self.body.provide(node, self.body.real(position), value)


def emit_tiled_map(transposition: Transposition, lifted: bool) -> Launch:
    """The shader of a map in squares."""
    return TiledMapEmitter(transposition, lifted).emit()
