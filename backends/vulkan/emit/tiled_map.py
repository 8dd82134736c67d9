"""Maps that read an array along another axis than they write: transposes, by way of shared memory.

A workgroup computes a square of the result. It first copies the square of each such array into shared memory,
neighbouring invocations reading neighbours; then it computes, neighbouring invocations writing neighbours. Rows in
shared memory are one element longer than the square, so that a column of it lies in different banks.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from lavax.backends.vulkan.emit.body import Value
from lavax.backends.vulkan.emit.expressions import type_name
from lavax.backends.vulkan.emit.launch import WORKGROUP, Launch, grid, open_body
from lavax.backends.vulkan.emit.shader import ShaderText, assemble
from lavax.backends.vulkan.plan import Shader
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import accesses, roots_of
from lavax.passes.kernels.index import (
    Index,
    Variable,
    flatten,
    linear,
    quotient,
    remainder,
    substitute,
    unflatten,
    variable,
)
from lavax.passes.kernels.kernel import Kernel

# Elements along a side of a square, and how many rows of it are worked on at once.
_SIDE, _ROWS = 32, 4
# Below this extent most of a square would lie outside the result.
_LEAST_EXTENT = 16
# Arrays of one kernel that go through shared memory.
_MOST_STAGED = 4
# Statements of a map, times the elements of an invocation.
_MOST_STATEMENTS = 384


@dataclass(frozen=True)
class Tiling:
    """A map's results are neighbours along the axis `written`, the elements of `staged` along the axis `read`.

    `staged` are arrays and the positions at which they are read, in the kernel's loop variables.
    """

    written: int
    read: int
    staged: tuple[tuple[Node, Index], ...]


def find_tiling(kernel: Kernel, profile: DeviceProfile) -> Tiling | None:
    """How to compute the map in squares; None where its reads are along the same axis as its writes."""
    if profile.kind == "cpu" or _SIDE // _ROWS * len(kernel.graph.nodes) > _MOST_STATEMENTS:
        return None
    outputs = kernel.graph.outputs
    written = {_unit_axis(kernel, flatten(kernel.places[output], output.shape)) for output in outputs}
    if len(written) != 1:
        return None
    (along,) = written
    if along is None or not _is_long(kernel, along):
        return None
    reads = [
        (node, position, _unit_axis(kernel, position))
        for node, positions in accesses(kernel, roots_of(kernel)).items()
        for position in sorted(positions, key=lambda index: index.key)
        if node.dtype.bits not in kernel.packed and _coefficient(kernel, position, along) not in (None, 0, 1)
    ]
    axes = [axis for _, _, axis in reads if axis is not None and axis != along and _is_long(kernel, axis)]
    if not axes:
        return None
    read = max(axes, key=axes.count)
    staged = tuple((node, position) for node, position, axis in reads if axis == read)
    return Tiling(along, read, staged[:_MOST_STAGED])


def _is_long(kernel: Kernel, axis: int) -> bool:
    return kernel.domain.outer[axis] >= _LEAST_EXTENT


def _unit_axis(kernel: Kernel, position: Index) -> int | None:
    """The axis along which the position grows by one."""
    axes = (axis for axis in range(len(kernel.domain.outer)) if _coefficient(kernel, position, axis) == 1)
    return next(axes, None)


def _coefficient(kernel: Kernel, position: Index, axis: int) -> int | None:
    """By how much the position grows along an axis; None if not always by the same."""
    names = kernel.domain.outer_variables[axis].variables
    found = 0
    for atom, coefficient in position.terms:
        if names.isdisjoint(atom.variables):
            continue
        if not isinstance(atom, Variable):
            return None
        found = coefficient
    return found


class TiledMapEmitter:
    """The state of writing one map in squares."""

    def __init__(self, kernel: Kernel, tiling: Tiling, lifted: bool) -> None:
        self.kernel, self.tiling = kernel, tiling
        self.lifted = lifted
        self.body, self.outputs = open_body(kernel, lifted)
        self.read_extent = kernel.domain.outer[tiling.read]
        self.written_extent = kernel.domain.outer[tiling.written]

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
        kinds = (type_name(node.dtype, 1) for node, _ in self.tiling.staged)
        shared = [f"shared {kind} square{n}[{_SIDE * (_SIDE + 1)}];" for n, kind in enumerate(kinds)]
        text = ShaderText(body.scopes[0].lines, (_SIDE * _ROWS, 1), shared)
        return Launch(Shader(assemble(text)), tuple(body.parameters.words), grid(groups))

    def _open(self) -> int:
        """Finds out which square a workgroup has, and how many there are; all of a workgroup go to its barrier."""
        body, outer = self.body, self.kernel.domain.outer
        across, down = -(-self.written_extent // _SIDE), -(-self.read_extent // _SIDE)
        rest = [1 if axis in (self.tiling.written, self.tiling.read) else n for axis, n in enumerate(outer)]
        groups = across * down
        for extent in rest:
            groups *= extent
        body.line(f"int group = int({WORKGROUP});")
        body.line(f"if (group >= {body.parameters.integer(groups)}) return;")
        body.line(f"int x = int(gl_LocalInvocationID.x) % {_SIDE}, y = int(gl_LocalInvocationID.x) / {_SIDE};")
        body.scopes[0].variables |= {"group"}
        group = variable("group", groups)
        squares = quotient(group, across)
        self.others = unflatten(quotient(squares, down), tuple(rest))
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
        indices = list(self.others)
        indices[self.tiling.read] = variable(read, self.read_extent)
        indices[self.tiling.written] = variable(written, self.written_extent)
        pairs = zip(self.kernel.domain.outer_variables, indices, strict=True)
        return {variable.key: index for variable, index in pairs if not variable.is_constant}

    def _stage(self, turns: range) -> None:
        """Copies squares into shared memory; all loads are written before the first store, so that none waits."""
        body = self.body
        self._number("read_along", "read_start + x", self.read_extent)
        for turn in turns:
            self._number(f"row{turn}", f"written_start + y + {turn * _ROWS}", self.written_extent)
        stores = []
        for number, (node, position) in enumerate(self.tiling.staged):
            for turn in turns:
                real = substitute(position, self._at("read_along", f"row{turn}"))
                loaded = body.loaded(node.dtype, body.addresses[node], body.index(real))
                name = body.declare(body.scopes[0], type_name(node.dtype, 1), loaded)
                stores.append(f"square{number}[(y + {turn * _ROWS}) * {_SIDE + 1} + x] = {name};")
        for store in stores:
            body.line(store)

    def _provide(self, turn: int) -> None:
        """Has the loads of staged arrays read shared memory."""
        for number, (node, position) in enumerate(self.tiling.staged):
            value = Value(f"square{number}[x * {_SIDE + 1} + y + {turn * _ROWS}]", 1)
            self.body.scopes[0].loads[node, self.body.real(position)] = value


def emit_tiled_map(kernel: Kernel, tiling: Tiling, lifted: bool) -> Launch:
    """The shader of a map in squares."""
    return TiledMapEmitter(kernel, tiling, lifted).emit()
