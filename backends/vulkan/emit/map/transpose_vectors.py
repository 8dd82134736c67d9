"""Transposes on GPUs in vectors: maps in squares of 64 by 64 that go through shared memory four elements at a time.

All accesses are of four neighbours. An invocation loads a block of four by four, four vectors
along the axis that is read, and turns it in registers; so shared memory holds vectors along the axis that is written.
Those of neighbouring blocks would lie in the same banks, so the vectors of a column are stored in another order: the
number of a vector is combined with that of the column's block by exclusive or.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.map.transpose_tiles import Square, SquareEmitter
from lavax.backends.vulkan.emit.map.transposition import Transposition
from lavax.backends.vulkan.glsl.body import LANE, GlslValue
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, substitute, variable

# Elements along a side of a square, and vectors.
_SIDE = 64
_VECTORS = _SIDE // VECTOR
_LOCAL = _VECTORS * _VECTORS
_TURNS = _SIDE // _VECTORS
_SQUARE = Square(_VECTORS, across=_VECTORS, local=_LOCAL, turns=_TURNS, width=VECTOR, room=_SIDE * _VECTORS)
# Statements of a map, times the vectors of an invocation.
_MOST_STATEMENTS = 384


def suits_vectors(transposition: Transposition, profile: DeviceProfile) -> bool:
    """Whether squares of that size are worth while and find room, and all that is staged comes in aligned vectors."""
    kernel = transposition.kernel
    extents = (transposition.read_extent, transposition.written_extent)
    large = all(extent >= _SIDE and extent % VECTOR == 0 for extent in extents)
    room = profile.shared_memory_bytes // (4 * _SIDE * _SIDE)
    short = _TURNS * len(kernel.graph.nodes) <= _MOST_STATEMENTS
    fits = len(transposition.staged) <= room and profile.max_workgroup_invocations >= _LOCAL
    return large and short and fits and all(_is_aligned(transposition, *staged) for staged in transposition.staged)


def _is_aligned(transposition: Transposition, node: Node, position: Index) -> bool:
    """Whether four neighbours along the axis that is read are one vector, wherever a fourth one begins."""
    moved = transposition.kernel.moving.get(node, ())
    words = node.dtype.storage.itemsize == 4 and node.dtype.kind != "bool"
    (along,) = transposition.kernel.domain.outer_variables[transposition.read].terms
    others = [coefficient for atom, coefficient in position.terms if atom.key != along[0].key]
    whole = all(number % VECTOR == 0 for number in (*others, position.constant))
    return words and whole and all(stride % 16 == 0 for stride in moved)


class TiledVectorEmitter(SquareEmitter):
    """The state of writing one map in squares of vectors."""

    def _number_units(self) -> None:
        written_inside, read_inside = self._divides(self.written_units), self._divides(self.read_units)
        self._number("written_block", "written_start + y", self.written_units, written_inside)
        self._number("read_block", "read_start + x", self.read_units, read_inside)
        self._number("written", "written_start + x", self.written_units, written_inside)
        for turn in range(_TURNS):
            text = f"{VECTOR} * read_start + y + {turn * _VECTORS}"
            self._number(f"read{turn}", text, self.transposition.read_extent, read_inside)

    def _tests(self, turn: int) -> list[str]:
        tests = []
        if not self._divides(self.written_units):
            tests.append(f"written_start + x < {self.written_units}")
        if not self._divides(self.read_units):
            tests.append(f"{VECTOR} * read_start + y + {turn * _VECTORS} < {self.transposition.read_extent}")
        return tests

    def _at_result(self, turn: int) -> dict[str, Index]:
        written = linear([(variable("written", self.written_units), VECTOR), (LANE, 1)])
        return self.transposition.at(self.plane, variable(f"read{turn}", self.transposition.read_extent), written)

    def _at_block(self, row: int) -> dict[str, Index]:
        """The loop variables at a vector, along the axis that is read, of the block that an invocation turns."""
        read = linear([(variable("read_block", self.read_units), VECTOR), (LANE, 1)])
        written = linear([(variable("written_block", self.written_units), VECTOR)], row)
        return self.transposition.at(self.plane, read, written)

    def _stage(self) -> None:
        body = self.body
        stores = []
        for number, (node, position) in enumerate(self.transposition.staged):
            kind = type_name(node.dtype, VECTOR)
            loaded = [body.load_at(node, substitute(position, self._at_block(row))) for row in range(VECTOR)]
            rows = [body.declare(body.scopes[0], kind, value.text) for value in loaded]
            for column, component in enumerate(COMPONENTS):
                turned = f"{kind}({', '.join(f'{row}.{component}' for row in rows)})"
                stores.append(f"square{number}[(x * {VECTOR} + {column}) * {_VECTORS} + (y ^ x)] = {turned};")
        for store in stores:
            body.line(store)

    def _provide(self, turn: int) -> None:
        column = f"y + {turn * _VECTORS}"
        block = f"y / {VECTOR} + {turn * _VECTORS // VECTOR}"
        for number, (node, position) in enumerate(self.transposition.staged):
            value = GlslValue(f"square{number}[({column}) * {_VECTORS} + (x ^ ({block}))]", VECTOR)
            self.body.provide(node, self.body.real(position), value)


def emit_tiled_vectors(transposition: Transposition) -> Launch:
    """The shader of a map in squares of vectors."""
    return TiledVectorEmitter(transposition, _SQUARE, lifted=False).emit()
