"""Transpose tiles of vectors: maps in tiles of 64 by 64 that go through shared memory four elements at a time.

All accesses are of four neighbours. An invocation loads a block of four by four, four vectors along the axis that is
read, and transposes it in registers, so that shared memory holds vectors along the axis that is written. Those of
neighbouring blocks would lie in the same banks, so the vectors of a column are stored in another order: the number of a
vector is combined with that of the column's block by exclusive or.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.map.transpose_tiles import TransposeTile, TransposeTileEmitter
from lavax.backends.vulkan.emit.map.transposition import Transposition
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, substitute, variable


@dataclass(frozen=True)
class VectorTile:
    """A tile's size, and which maps take tiles.

    docs/rejected/maps_and_rows.md, "Transposes on a GPU without squares in shared memory, and with larger ones";
    `python -m benchmarks comparison --only transpose`.
    """

    side: int = 64  # in elements
    statements: int = 384  # of the graph, times the vectors of an invocation

    @property
    def vectors(self) -> int:
        """Vectors along a side."""
        return self.side // VECTOR


VECTOR_TILE = VectorTile()
_SIDE, _VECTORS = VECTOR_TILE.side, VECTOR_TILE.vectors
_LOCAL = _VECTORS * _VECTORS
_STEPS = _SIDE // _VECTORS
_TILE = TransposeTile(_VECTORS, across=_VECTORS, local=_LOCAL, steps=_STEPS, width=VECTOR, room=_SIDE * _VECTORS)


def suits_vector_tiles(transposition: Transposition, profile: DeviceProfile, lifted: bool) -> bool:
    """Whether tiles on a GPU are worth it and fit its memory, and all staged arrays are read in aligned vectors."""
    if profile.kind != "gpu" or lifted or not transposition.has_single_axes:
        return False
    kernel = transposition.kernel
    extents = (transposition.read_extent, transposition.written_extent)
    large = all(extent >= _SIDE and extent % VECTOR == 0 for extent in extents)
    room = profile.shared_memory_bytes // (4 * _SIDE * _SIDE)
    short = _STEPS * len(kernel.graph.nodes) <= VECTOR_TILE.statements
    fits = len(transposition.staged) <= room and profile.max_workgroup_invocations >= _LOCAL
    return large and short and fits and all(_is_aligned(transposition, *staged) for staged in transposition.staged)


def _is_aligned(transposition: Transposition, node: Node, position: Index) -> bool:
    """Whether every aligned four along the axis that is read are one aligned vector in memory."""
    moved = transposition.kernel.moving.get(node, ())
    words = node.dtype.storage.itemsize == 4 and node.dtype.kind != "bool"
    (along,) = transposition.kernel.domain.outer_variables[transposition.read[0]].terms
    others = [coefficient for atom, coefficient in position.terms if atom.key != along[0].key]
    whole = all(number % VECTOR == 0 for number in (*others, position.constant))
    return words and whole and all(stride % 16 == 0 for stride in moved)


class VectorTileEmitter(TransposeTileEmitter):
    """The state of writing one map in transpose tiles of vectors."""

    def _number_units(self) -> None:
        written_inside, read_inside = self._divides(self.written_units), self._divides(self.read_units)
        self._number("written_block", "written_start + y", self.written_units, written_inside)
        self._number("read_block", "read_start + x", self.read_units, read_inside)
        self._number("written", "written_start + x", self.written_units, written_inside)
        for step in range(_STEPS):
            text = f"{VECTOR} * read_start + y + {step * _VECTORS}"
            self._number(f"read{step}", text, self.transposition.read_extent, read_inside)

    def _tests(self, step: int) -> list[str]:
        tests = []
        if not self._divides(self.written_units):
            tests.append(f"written_start + x < {self.written_units}")
        if not self._divides(self.read_units):
            tests.append(f"{VECTOR} * read_start + y + {step * _VECTORS} < {self.transposition.read_extent}")
        return tests

    def _at_result(self, step: int) -> dict[str, Index]:
        written = linear([(variable("written", self.written_units), VECTOR), (LANE, 1)])
        return self.transposition.at(self.plane, variable(f"read{step}", self.transposition.read_extent), written)

    def _at_block(self, row: int) -> dict[str, Index]:
        """The loop variables at a vector, along the axis that is read, of the block that an invocation transposes."""
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

    def _provide(self, step: int) -> None:
        column = f"y + {step * _VECTORS}"
        block = f"y / {VECTOR} + {step * _VECTORS // VECTOR}"
        for number, (node, position) in enumerate(self.transposition.staged):
            value = GlslValue(f"square{number}[({column}) * {_VECTORS} + (x ^ ({block}))]", VECTOR)
            self.body.provide(node, self.body.real(position), value)


def emit_vector_tiles(transposition: Transposition, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a map in transpose tiles of vectors, which serves one shape."""
    return VectorTileEmitter(transposition, _TILE, lifted=False).emit()
