"""Contractions by shared tiles: a workgroup stages the operands of its tile in shared memory.

The sum is cut into parts of `depth`. While the staged parts are multiplied, each invocation already loads its share of
the next parts to registers. In shared memory, both operands lie along their free axis, in vectors of four:

    shared_a[buffer][step of the sum][row / 4]        shared_b[buffer][step of the sum][column / 4]

An operand that lies along the sum in memory is transposed on the way, one component per store. An invocation's vectors
of four rows or columns are the width of the workgroup apart, so that neighbouring invocations read and write
neighbours.

Products are written element by element, along a row to its end and back along the next one, so each shares a factor
with the one before. Processors that read few registers per cycle still have that factor, if the driver keeps the order
(docs/performance/products.md says what it is worth).
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext

from lavax.backends.vulkan.emit.contract.bands import band_of
from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.span import Span, StagedVector, both
from lavax.backends.vulkan.emit.contract.tiles import SharedTile
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.build.contraction_geometry import neighbours_of
from lavax.passes.kernels.index import Index, add, clamp, linear, quotient, remainder, variable

_NAMES = ("shared_a", "shared_b")
_JOINED = "shared_sums"


@dataclass(frozen=True)
class SharedLayout:
    """How invocations share memory. Chosen by `python -m benchmarks.contraction_tiles`."""

    # A block of neighbouring invocations, which together read 32 + 16 different numbers of shared memory.
    block_across: int = 8
    block_down: int = 4
    # Vectors of padding behind four steps of a transposed operand. Neighbouring invocations store 8 rows and 4 vectors
    # along the sum at once, and these then go to 32 different banks.
    padding: int = 2
    # Loads in flight while an invocation writes its results: 64 registers, which the loop needed as well.
    loads_ahead: int = 16


_LAYOUT = SharedLayout()


class SharedTileEmitter:
    """The state of writing one contraction by shared tiles."""

    def __init__(self, contraction: Contraction, tile: SharedTile) -> None:
        self.contraction, self.tile, self.body = contraction, tile, contraction.body
        self.scalar, self.kind = (type_name(contraction.dot.dtype, width) for width in (1, VECTOR))
        sizes = contraction.sizes
        self.parts = -(-sizes.k // tile.depth)
        self.transposed = [neighbours_of(contraction.dot, side).summed for side in range(2)]
        self.thread = variable("i", tile.threads)
        self.summed = Span(sizes.k, tile.depth, variable("k", self.parts))

    def emit(self) -> Launch:
        body, tile = self.body, self.tile
        band = band_of(tile, self.contraction.sizes, self.contraction.profile)
        self.spans = self.contraction.open_tile(tile, band=band)
        body.line("int i = int(gl_LocalInvocationID.x);")
        body.scopes[0].variables |= {"i"}
        self._place_invocation()
        self._declare_sums()
        self._sum_loop()
        self._write_tile()
        text = ShaderText(body.uses, body.scopes[0].lines, (tile.threads, 1), self._declarations())
        return Launch(assemble(text), tuple(body.parameters.words), self.contraction.groups(tile), text=text)

    def _place_invocation(self) -> None:
        """The rows and columns of the tile that belong to this invocation, in vectors."""
        tile = self.tile
        blocked = tile.threads_across % _LAYOUT.block_across == 0 and tile.threads_down % _LAYOUT.block_down == 0
        across = _LAYOUT.block_across if blocked else tile.threads_across
        down = _LAYOUT.block_down if blocked else tile.threads_down
        own = remainder(self.thread, tile.threads_of_slice)
        self.slice = quotient(self.thread, tile.threads_of_slice)
        block, inside = quotient(own, across * down), remainder(own, across * down)
        blocks_across = tile.threads_across // across
        if tile.interleaved:
            pair, lower = quotient(inside, 2), remainder(inside, 2)
            column, row = remainder(pair, across), linear([(quotient(pair, across), 2), (lower, 1)])
        else:
            column, row = remainder(inside, across), quotient(inside, across)
        self.across = linear([(column, 1), (remainder(block, blocks_across), across)])
        self.down = linear([(row, 1), (quotient(block, blocks_across), down)])

    # -- shared memory ------------------------------------------------------------------------------------------------

    def _extent(self, side: int) -> int:
        return self.tile.columns if side else self.tile.rows

    def _stride(self, side: int) -> int:
        """The number of vectors from step to step of the sum."""
        return self._extent(side) // VECTOR

    def _part(self, side: int) -> int:
        """The number of vectors of a staged part."""
        padding = self.transposed[side] * _LAYOUT.padding * (self.tile.depth // VECTOR)
        return self.tile.depth * self._stride(side) + padding

    def _declarations(self) -> list[str]:
        sizes = (self.tile.buffers * self._part(side) for side in range(2))
        arrays = dict(zip(_NAMES, sizes, strict=True))
        if self.tile.slices > 1:
            arrays[_JOINED] = self.tile.slices * self._vectors_of_tile()
        return [f"shared {self.kind} {name}[{size}];" for name, size in arrays.items()]

    def _buffer(self, turn: str, side: int) -> str:
        """The position of an iteration's part."""
        return f"({turn} & 1) * {self._part(side)} + " if self.tile.buffers == 2 else ""

    # -- the sum ------------------------------------------------------------------------------------------------------

    def _declare_sums(self) -> None:
        for row in range(self.tile.register_rows):
            names = ", ".join(f"s{row}_{column} = {self.scalar}(0)" for column in range(self.tile.register_columns))
            self.body.line(f"{self.scalar} {names};")

    def _vectors(self) -> range:
        return range(self.tile.register_columns // VECTOR)

    def _sum_loop(self) -> None:
        """The loop over parts, with one more iteration than parts: each loads a part, multiplies the one before, and
        stages the loaded one."""
        body = self.body
        bound = body.parameters.integer(self.parts)
        with body.block(f"for (int turn = 0; turn <= {bound}; ++turn)", frozenset(("turn", "k"))):
            body.line(f"int k = min(turn, {body.parameters.integer(self.parts - 1)});")
            vectors = [self._staged(side) for side in range(2)]
            for side in range(2):
                for vector in vectors[side]:
                    self.contraction.load(side, *self._place(side, vector))
            with body.block("if (turn > 0)"):
                self._multiply()
            if self.tile.buffers == 1:
                body.line("barrier();")
            for side in range(2):
                self._stage_all(side, vectors[side])
            body.line("barrier();")

    def _staged(self, side: int) -> list[StagedVector]:
        """The vectors of an operand that this invocation stages; neighbouring invocations have neighbours in memory.

        If there are fewer vectors than invocations, several load the same one, and the first of these stages it.
        """
        tile, extent = self.tile, self._extent(side)
        line = (tile.depth if self.transposed[side] else extent) // VECTOR
        count = self._count(side)
        vectors = []
        for start in range(0, count, tile.threads):
            number = remainder(add(self.thread, start), count)
            along, across = linear([(remainder(number, line), VECTOR)]), quotient(number, line)
            vectors.append(StagedVector(across, along) if self.transposed[side] else StagedVector(along, across))
        return vectors

    def _count(self, side: int) -> int:
        """The number of vectors of an operand that the workgroup stages at a time."""
        return self._extent(side) * self.tile.depth // VECTOR

    def _place(self, side: int, vector: StagedVector) -> tuple[Index, Index]:
        """The indices of a vector along the free axis and the sum; one of the two has the lanes."""
        free, summed = (1, VECTOR) if self.transposed[side] else (VECTOR, 1)
        return self.spans[side].at(vector.free, free), self.summed.at(vector.summed, summed)

    def _stage_all(self, side: int, vectors: list[StagedVector]) -> None:
        values = [self._within_part(side, vector) for vector in vectors]
        few = self._count(side) < self.tile.threads
        with self.body.block(f"if (i < {self._count(side)})") if few else nullcontext():
            for vector, value in zip(vectors, values, strict=True):
                self._stage(side, vector, value)

    def _stage(self, side: int, vector: StagedVector, value: str) -> None:
        """Stores a vector to shared memory, where the tile's rows or columns are neighbours."""
        body, name, stride = self.body, _NAMES[side], self._stride(side)
        start = self._buffer("turn", side)
        if not self.transposed[side]:
            at = body.index(linear([(vector.summed, stride), (quotient(vector.free, VECTOR), 1)]))
            body.line(f"{name}[{start}{at}] = {value};")
            return
        four = value if value.isidentifier() else body.declare(body.scopes[-1], self.kind, value)
        row, component = quotient(vector.free, VECTOR), body.index(remainder(vector.free, VECTOR))
        for step, lane in enumerate(COMPONENTS):
            fours = quotient(vector.summed, VECTOR)
            at = body.index(linear([(add(vector.summed, step), stride), (fours, _LAYOUT.padding), (row, 1)]))
            body.line(f"{name}[{start}{at}][{component}] = {four}.{lane};")

    def _within_part(self, side: int, vector: StagedVector) -> str:
        """The vector, with zeros for elements beyond the sum and for those of the part before."""
        value = self.contraction.operand(side, *self._place(side, vector))
        text = widened(value, VECTOR, self.contraction.dot.dtype)
        width = VECTOR if self.transposed[side] else 1
        guards = self.summed.guards(self.body, vector.summed, width)
        if guards[0][0] is None:
            ((_, condition),) = guards
            return f"{condition} ? {text} : {self.kind}(0)" if condition else text
        return f"mix({self.kind}(0), {text}, bvec4({', '.join(condition for _, condition in guards)}))"

    def _multiply(self) -> None:
        """Adds the products of the staged parts to the sums."""
        tile, body = self.tile, self.body
        groups = range(tile.register_rows // VECTOR)
        starts = [body.name() for _ in range(2)]
        steps = tile.depth // tile.slices
        for side, (name, place) in enumerate(zip(starts, (self.down, self.across), strict=True)):
            slice_apart = self._part(side) // tile.slices
            first = body.index(linear([(self.slice, slice_apart), (place, 1)]))
            body.line(f"int {name} = {self._buffer('(turn - 1)', side)}{first};")
        with body.block(f"{body.uses.unroll}for (int step = 0; step < {steps}; ++step)"):
            for side, count, apart in ((0, groups, tile.threads_down), (1, self._vectors(), tile.threads_across)):
                for number in count:
                    padding = f" + step / {VECTOR} * {_LAYOUT.padding}" if self.transposed[side] else ""
                    at = f"{starts[side]} + step * {self._stride(side)}{padding} + {number * apart}"
                    body.line(f"{self.kind} {'ab'[side]}{number} = {_NAMES[side]}[{at}];")
            for row in range(tile.register_rows):
                columns = range(tile.register_columns)
                for column in reversed(columns) if row % 2 else columns:
                    factors = f"{_component('a', row)} * {_component('b', column)}"
                    body.line(f"s{row}_{column} += {factors};")

    # -- the result ---------------------------------------------------------------------------------------------------

    def _write_tile(self) -> None:
        """Writes the results, four neighbours at a time, while the loads for later ones are in flight.

        Compilers keep the order of loads and stores, because two arrays may share memory. So a load right before its
        store would be waited for alone.
        """
        along_rows = self.contraction.lies_along_rows()
        if self.tile.slices == 1:
            self._write_fours(self._own_fours(along_rows))
            return
        for four in self._own_fours(along_rows):
            at = self.body.index(self._joined_place(four))
            self.body.line(f"{_JOINED}[{at}] = {four.text};")
        self.body.line("barrier();")
        idle = self._vectors_of_tile() < self.tile.threads
        with self.body.pinned_block(f"if (i < {self._vectors_of_tile()})") if idle else nullcontext():
            self._write_fours(self._joined_fours(along_rows))

    def _write_fours(self, fours: list[Four]) -> None:
        waiting, ahead = deque[int](), 0
        for number, four in enumerate(fours):
            while ahead < len(fours) and (ahead <= number or sum(waiting) < _LAYOUT.loads_ahead):
                waiting.append(self.contraction.load_for_results(*self._place_of(fours[ahead])))
                ahead += 1
            self._write(four)
            waiting.popleft()

    def _own_fours(self, along_rows: bool) -> list[Four]:
        """All of this invocation's sums, by neighbours in the results' memory."""
        return [
            self._own_four(VECTOR * group, VECTOR * vector + lane, True)
            if along_rows
            else self._own_four(VECTOR * group + lane, VECTOR * vector, False)
            for group in range(self.tile.register_rows // VECTOR)
            for vector in self._vectors()
            for lane in range(VECTOR)
        ]

    def _own_four(self, row: int, column: int, along_rows: bool) -> Four:
        """Four sums from a row and column of the invocation's on."""
        starts = (row, self.down, self.tile.threads_down), (column, self.across, self.tile.threads_across)
        m, n = (
            linear([(place, VECTOR)], number // VECTOR * apart * VECTOR + number % VECTOR)
            for number, place, apart in starts
        )
        height, width = (VECTOR, 1) if along_rows else (1, VECTOR)
        sums = (f"s{row + down}_{column + across}" for down in range(height) for across in range(width))
        return Four(m, n, along_rows, f"{self.kind}({', '.join(sums)})")

    # -- the sums of slices -------------------------------------------------------------------------------------------

    def _vectors_of_tile(self) -> int:
        return self.tile.rows * self.tile.columns // VECTOR

    def _joined_place(self, four: Four) -> Index:
        """Where a slice's sums wait for those of the others: a tile a slice, in the order of the results."""
        if four.along_rows:
            line, vector, length = four.n, quotient(four.m, VECTOR), self.tile.rows // VECTOR
        else:
            line, vector, length = four.m, quotient(four.n, VECTOR), self.tile.columns // VECTOR
        return linear([(self.slice, self._vectors_of_tile()), (line, length), (vector, 1)])

    def _joined_fours(self, along_rows: bool) -> list[Four]:
        """The sums over all slices that this invocation writes; neighbouring invocations write neighbours."""
        count, threads = self._vectors_of_tile(), self.tile.threads
        return [self._joined_four(start, along_rows) for start in range(0, count, threads)]

    def _joined_four(self, start: int, along_rows: bool) -> Four:
        tile, count = self.tile, self._vectors_of_tile()
        length = (tile.rows if along_rows else tile.columns) // VECTOR
        number = clamp(add(self.thread, start), 0, count - 1)
        line, along = quotient(number, length), linear([(remainder(number, length), VECTOR)])
        at = self.body.index(number)
        text = " + ".join(f"{_JOINED}[{at} + {slice * count}]" for slice in range(tile.slices))
        return Four(along, line, True, text) if along_rows else Four(line, along, False, text)

    def _place_of(self, four: Four) -> tuple[Index, Index]:
        rows, columns = self.spans
        return rows.at(four.m, four.height), columns.at(four.n, four.width)

    def _write(self, four: Four) -> None:
        body, (rows, columns) = self.body, self.spans
        along = columns.guards(body, four.n, four.width), rows.guards(body, four.m, four.height)
        guards = both(*along) if four.along_rows else both(*reversed(along))
        name = body.declare(body.scopes[-1], self.kind, four.text)
        self.contraction.write(*self._place_of(four), GlslValue(name, VECTOR), guards)


@dataclass(frozen=True)
class Four:
    """Four neighbouring sums: the offsets of the first one in the tile, their direction, and their text."""

    m: Index
    n: Index
    along_rows: bool
    text: str

    @property
    def height(self) -> int:
        return VECTOR if self.along_rows else 1

    @property
    def width(self) -> int:
        return 1 if self.along_rows else VECTOR


def _component(name: str, number: int) -> str:
    """The factor of a row or column, in the vectors that a step reads."""
    return f"{name}{number // VECTOR}.{COMPONENTS[number % VECTOR]}"


def emit_shared(contraction: Contraction, tile: SharedTile) -> Launch:
    """The shader of a contraction by shared tiles."""
    return SharedTileEmitter(contraction, tile).emit()
