"""Transposes on GPUs in vectors: maps in squares of 64 by 64 that go through shared memory four elements at a time.

As in tiled_map.py, but all accesses are of four neighbours. An invocation loads a block of four by four, four vectors
along the axis that is read, and turns it in registers; so shared memory holds vectors along the axis that is written.
Those of neighbouring blocks would lie in the same banks, so the vectors of a column are stored in another order: the
number of a vector is combined with that of the column's block by exclusive or.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from lavax.backends.vulkan.emit.body import LANE, Value
from lavax.backends.vulkan.emit.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.emit.launch import WORKGROUP, Launch, grid, open_body
from lavax.backends.vulkan.emit.shader import ShaderText, assemble
from lavax.backends.vulkan.emit.transposition import Transposition
from lavax.backends.vulkan.plan import Shader
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, quotient, remainder, substitute, variable

# Elements along a side of a square, and vectors.
_SIDE = 64
_VECTORS = _SIDE // VECTOR
_LOCAL = _VECTORS * _VECTORS
_TURNS = _SIDE // _VECTORS
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


class TiledVectorEmitter:
    """The state of writing one map in squares of vectors."""

    def __init__(self, transposition: Transposition) -> None:
        self.transposition, self.kernel = transposition, transposition.kernel
        self.body, self.outputs = open_body(self.kernel, lifted=False)
        self.read_vectors = transposition.read_extent // VECTOR
        self.written_vectors = transposition.written_extent // VECTOR

    def emit(self) -> Launch:
        body, places = self.body, self.kernel.places
        groups = self._open()
        self._stage()
        body.line("barrier();")
        results = []
        for turn in range(_TURNS):
            with body.at(self._at_result(turn)):
                self._provide(turn)
                results.append({output: body.value(output, places[output]) for output in self.kernel.graph.outputs})
        for turn, values in enumerate(results):
            with self._where_inside(turn), body.at(self._at_result(turn)):
                for output, result in values.items():
                    body.store(output, places[output], result, self.outputs[output])
        kinds = (type_name(node.dtype, VECTOR) for node, _ in self.transposition.staged)
        shared = [f"shared {kind} square{number}[{_SIDE * _VECTORS}];" for number, kind in enumerate(kinds)]
        text = ShaderText(body.scopes[0].lines, (_LOCAL, 1), shared)
        return Launch(Shader(assemble(text)), (), grid(groups))

    def _open(self) -> int:
        """Finds out which square a workgroup has, and how many there are; all of a workgroup go to its barrier."""
        body, local = self.body, "int(gl_LocalInvocationID.x)"
        across, down = -(-self.written_vectors // _VECTORS), -(-self.read_vectors // _VECTORS)
        groups = across * down * self.transposition.planes
        body.line(f"int group = int({WORKGROUP});")
        body.line(f"if (group >= {groups}) return;")
        body.line(f"int x = {local} % {_VECTORS}, y = {local} / {_VECTORS};")
        body.scopes[0].variables |= {"group"}
        group = variable("group", groups)
        squares = quotient(group, across)
        self.plane = quotient(squares, down)
        body.line(f"int written_start = {body.index(linear([(remainder(group, across), _VECTORS)]))};")
        body.line(f"int read_start = {body.index(linear([(remainder(squares, down), _VECTORS)]))};")
        self._number("written_block", "written_start + y", self.written_vectors, _VECTORS)
        self._number("read_block", "read_start + x", self.read_vectors, _VECTORS)
        self._number("written", "written_start + x", self.written_vectors, _VECTORS)
        for turn in range(_TURNS):
            text = f"{VECTOR} * read_start + y + {turn * _VECTORS}"
            self._number(f"read{turn}", text, self.transposition.read_extent, _SIDE)
        return groups

    def _number(self, name: str, text: str, count: int, side: int) -> None:
        """Beyond the end of an axis its last elements are worked on once more, and not written."""
        self.body.line(f"int {name} = {f'min({text}, {count - 1})' if count % side else text};")
        self.body.scopes[-1].variables |= {name}

    def _where_inside(self, turn: int) -> AbstractContextManager[None]:
        tests = []
        if self.written_vectors % _VECTORS:
            tests.append(f"written_start + x < {self.written_vectors}")
        if self.read_vectors % _VECTORS:
            tests.append(f"{VECTOR} * read_start + y + {turn * _VECTORS} < {self.transposition.read_extent}")
        return self.body.block(f"if ({' && '.join(tests)})") if tests else nullcontext()

    def _at_result(self, turn: int) -> dict[str, Index]:
        """The loop variables at a vector of the results."""
        written = linear([(variable("written", self.written_vectors), VECTOR), (LANE, 1)])
        return self.transposition.at(self.plane, variable(f"read{turn}", self.transposition.read_extent), written)

    def _at_block(self, row: int) -> dict[str, Index]:
        """The loop variables at a vector, along the axis that is read, of the block that an invocation turns."""
        read = linear([(variable("read_block", self.read_vectors), VECTOR), (LANE, 1)])
        written = linear([(variable("written_block", self.written_vectors), VECTOR)], row)
        return self.transposition.at(self.plane, read, written)

    def _stage(self) -> None:
        """Copies squares into shared memory; all loads are written before the first store, so that none waits."""
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
        """Has the loads of staged arrays read shared memory."""
        column = f"y + {turn * _VECTORS}"
        block = f"y / {VECTOR} + {turn * _VECTORS // VECTOR}"
        for number, (node, position) in enumerate(self.transposition.staged):
            value = Value(f"square{number}[({column}) * {_VECTORS} + (x ^ ({block}))]", VECTOR)
            self.body.provide(node, self.body.real(position), value)


def emit_tiled_vectors(transposition: Transposition) -> Launch:
    """The shader of a map in squares of vectors."""
    return TiledVectorEmitter(transposition).emit()
