"""Contractions by cooperative matrices: a workgroup stages its tile's operands, and its subgroups multiply them.

The sum is cut into parts of `depth`; the next part is loaded before the products of the present one. Shared memory
holds an operand in the order of memory, in vectors of eight elements of 16 bits: lines along the sum for each row or
column, or lines along rows or columns for each step of the sum. Loads of matrices transpose as needed. Each line has
one vector of padding, so that neighbouring lines are in different banks.

The result's matrices pass through shared memory too, one row of them per subgroup at a time. Only the device knows how
the elements of a matrix are distributed over invocations, and the epilogue needs to know.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.emit.contract.ahead import read_ahead, used
from lavax.backends.vulkan.emit.contract.bands import band_of
from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.span import Span, StagedVector, both
from lavax.backends.vulkan.emit.contract.tiles import PASSING_PADDING, CooperativeTile
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.narrow_vectors import (
    EIGHT,
    HeldVector,
    eight_in_memory,
    matrix_type,
    packed,
    source_of,
)
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DTYPES
from lavax.passes.build.contraction_geometry import neighbours_of
from lavax.passes.kernels.index import (
    Index,
    add,
    clamp,
    constant,
    linear,
    quotient,
    remainder,
    variable,
)

_STAGED = "staged"


@dataclass(frozen=True)
class ResultLoads:
    """What an invocation loads for the epilogue before it stores results. Chosen by `python -m benchmarks models`."""

    vectors: int = 4  # of results: each has its own copy of the epilogue's code, and long code is slow the first time
    loads: int = 16  # of all of them


_RESULT_LOADS = ResultLoads()


class CooperativeEmitter:
    """The state of writing one contraction by cooperative matrices."""

    def __init__(self, contraction: Contraction, tile: CooperativeTile) -> None:
        self.contraction, self.tile, self.body = contraction, tile, contraction.body
        self.dtype = DTYPES[contraction.dot.attrs["precision"]]
        sizes = contraction.sizes
        self.parts = -(-sizes.k // tile.depth)
        self.along_sum = [neighbours_of(contraction.dot, side).summed for side in range(2)]
        self.thread, self.member = variable("i", tile.threads), variable("member", tile.lanes)
        self.down, self.across = variable("down", tile.subgroups_down), variable("across", tile.subgroups_across)
        self.slice = variable("slice", tile.slices)
        self.summed = Span(sizes.k, tile.depth, variable("k", self.parts), EIGHT)

    def emit(self) -> Launch:
        body, tile = self.body, self.tile
        band = band_of(tile, self.contraction.sizes, self.contraction.profile)
        self.spans = self.contraction.open_tile(tile, EIGHT, band)
        body.line("int i = int(gl_LocalInvocationID.x);")
        body.line("int member = int(gl_SubgroupInvocationID);")
        body.line(f"int across = int(gl_SubgroupID) % {tile.subgroups_across};")
        if tile.slices == 1:
            body.line(f"int down = int(gl_SubgroupID) / {tile.subgroups_across};")
        else:
            body.line(f"int down = int(gl_SubgroupID) / {tile.subgroups_across} % {tile.subgroups_down};")
            body.line(f"int slice = int(gl_SubgroupID) / {tile.subgroups_of_slice};")
        body.scopes[0].variables |= {"i", "member", "across", "down", "slice"}
        self._declare_sums()
        self._sum_loop()
        self._write_tile()
        declarations = [f"shared uvec4 {_STAGED}[{max(sum(map(self._part, range(2))), self._passing())}];"]
        pragma = BRAIN_FLOATS if self.dtype.name == "bf16" else ""
        lines, local = body.scopes[0].lines, (tile.threads, 1)
        text = ShaderText(body.uses, lines, local, declarations, subgroup_size=tile.lanes, pragma=pragma)
        return Launch(assemble(text), tuple(body.parameters.words), self.contraction.groups(tile), text=text)

    # -- shared memory ------------------------------------------------------------------------------------------------

    def _extent(self, side: int) -> int:
        return self.tile.columns if side else self.tile.rows

    def _line(self, side: int) -> int:
        """The number of vectors of an operand's line."""
        return (self.tile.depth if self.along_sum[side] else self._extent(side)) // EIGHT

    def _stride(self, side: int) -> int:
        """The number of vectors from line to line."""
        return self._line(side) + 1

    def _part(self, side: int) -> int:
        """The number of vectors of a staged part."""
        return self._stride(side) * (self._extent(side) if self.along_sum[side] else self.tile.depth)

    def _begin(self, side: int) -> int:
        """The position of an operand's part in shared memory."""
        return self._part(0) if side else 0

    def _passing_line(self) -> int:
        """The number of vectors from row to row of the results in shared memory."""
        return self.tile.subgroup_columns // VECTOR + PASSING_PADDING

    def _passing_row(self) -> int:
        """The number of vectors of a subgroup's row of matrices."""
        return self.tile.shape.m * self._passing_line()

    def _passing(self) -> int:
        return self.tile.subgroups * self._passing_row()

    # -- the sum ------------------------------------------------------------------------------------------------------

    def _matrix(self, use: str) -> str:
        shape = self.tile.shape
        extents = {"A": (shape.m, shape.k), "B": (shape.k, shape.n), "Accumulator": (shape.m, shape.n)}
        return matrix_type(self.body, use, *extents[use])

    def _declare_sums(self) -> None:
        kind = self._matrix("Accumulator")
        for row in range(self.tile.matrices_down):
            names = ", ".join(f"s{row}_{column} = {kind}(0.0)" for column in range(self.tile.matrices_across))
            self.body.line(f"{kind} {names};")

    def _sum_loop(self) -> None:
        """The loop over parts: each iteration loads a part, multiplies the one before, and stages the loaded one."""
        body = self.body
        # How many numbers there are depends on the sizes: a shader that serves every shape reads none of them.
        reads_ahead = self.tile.reads_ahead and not body.parameters.lifted
        ahead = read_ahead(self.contraction, self.spans, self.tile) if reads_ahead else []
        with body.block("", frozenset(("k",))):
            body.line("int k = 0;")
            self._stage_parts(*self._load_parts())
        body.line("barrier();")
        with body.block(f"for (int k = 1; k < {body.parameters.integer(self.parts)}; ++k)", frozenset(("k",))):
            vectors, loaded = self._load_parts()
            self._multiply()
            body.line("barrier();")
            self._stage_parts(vectors, loaded)
            body.line("barrier();")
        self._multiply()
        body.line("barrier();")
        if ahead:
            body.line(used(ahead, f"{_STAGED}[0]"))

    def _load_parts(self) -> tuple[list[list[StagedVector]], list[list[HeldVector | None]]]:
        """The vectors of both operands that this invocation stages, with names for those that are copied unchanged."""
        vectors = [self._vectors(side) for side in range(2)]
        return vectors, [[self._load(side, vector) for vector in vectors[side]] for side in range(2)]

    def _stage_parts(self, vectors: list[list[StagedVector]], loaded: list[list[HeldVector | None]]) -> None:
        for side in range(2):
            pairs = zip(vectors[side], loaded[side], strict=True)
            self._stage(side, vectors[side], [self._within_part(side, *pair) for pair in pairs])

    # -- staging ------------------------------------------------------------------------------------------------------

    def _vectors(self, side: int) -> list[StagedVector]:
        """The vectors of an operand that this invocation stages; neighbouring invocations have neighbours in memory.

        If there are fewer vectors than invocations, several load the same one, and the first of these stages it. If
        lines are short, neighbouring invocations have lines in different banks.
        """
        count, line, vectors = self._count(side), self._line(side), []
        for start in range(0, count, self.tile.threads):
            number = remainder(add(self.thread, start), count)
            along, across = linear([(remainder(number, line), EIGHT)]), _spread(quotient(number, line), line)
            vectors.append(StagedVector(across, along) if self.along_sum[side] else StagedVector(along, across))
        return vectors

    def _count(self, side: int) -> int:
        """The number of vectors of an operand that the workgroup stages at a time."""
        return self._extent(side) * self.tile.depth // EIGHT

    def _place(self, side: int, vector: StagedVector, half: int) -> tuple[Index, Index]:
        """The indices of half a vector along the free axis and the sum; one of the two has the lanes."""
        spans = self.spans[side], self.summed
        offsets = vector.free, vector.summed
        along = int(self.along_sum[side])
        places = [span.at(offset) for span, offset in zip(spans, offsets, strict=True)]
        places[along] = spans[along].eight(offsets[along], half)
        return places[0], places[1]

    def _load(self, side: int, vector: StagedVector) -> HeldVector | None:
        """The eight elements by name if they are copied unchanged; else None, and their sources are loaded."""
        halves = [self.contraction.element(side, *self._place(side, vector, half)) for half in range(2)]
        held = eight_in_memory(self.body, halves, self.dtype)
        if held is not None:
            return replace(held, load=self.body.declare(self.body.scopes[-1], "uvec4", held.load))
        for half in range(2):
            self.contraction.load(side, *self._place(side, vector, half))
        return None

    def _stage(self, side: int, vectors: list[StagedVector], texts: list[str]) -> None:
        body, few = self.body, self._count(side) < self.tile.threads
        with body.block(f"if (i < {self._count(side)})") if few else nullcontext():
            for vector, text in zip(vectors, texts, strict=True):
                line, along = (vector.free, vector.summed) if self.along_sum[side] else (vector.summed, vector.free)
                at = body.index(linear([(line, self._stride(side)), (quotient(along, EIGHT), 1)]))
                body.line(f"{_STAGED}[{self._begin(side)} + {at}] = {text};")

    def _within_part(self, side: int, vector: StagedVector, held: HeldVector | None) -> str:
        """The vector, with zeros for elements beyond the sum and for those of the part before."""
        conditions = self._conditions(side, vector)
        if held is None:
            halves = (self._words(side, vector, half, conditions) for half in range(2))
            held = HeldVector(f"uvec4({', '.join(halves)})", ())
        return held.chosen(*(conditions if len(conditions) == 1 else ()))

    def _conditions(self, side: int, vector: StagedVector) -> list[str]:
        """The condition that the vector, or each of its elements, belongs to the part; "" if it always does."""
        along = self.along_sum[side]
        guards = self.summed.guards(self.body, vector.summed, EIGHT if along else 1)
        return [condition for _, condition in guards if condition]

    def _words(self, side: int, vector: StagedVector, half: int, conditions: list[str]) -> str:
        """Half a vector, from four numbers."""
        body = self.body
        node, at = source_of(*self.contraction.element(side, *self._place(side, vector, half)), self.dtype)
        value = widened(body.value(node, at), VECTOR, node.dtype)
        if len(conditions) == EIGHT:
            own = ", ".join(conditions[VECTOR * half : VECTOR * half + VECTOR])
            value = f"mix(vec4(0), {value}, bvec4({own}))"
        return packed(body, value, self.dtype)

    def _multiply(self) -> None:
        """Adds the products of the staged parts to the sums."""
        tile, body = self.tile, self.body
        extents = tile.shape.m, tile.shape.n
        layouts = [("Column", "Row")[self.along_sum[0]], ("Row", "Column")[self.along_sum[1]]]
        counts = tile.matrices_down, tile.matrices_across
        starts = [body.name() for _ in range(2)]
        own_depth = tile.depth // tile.slices
        for side, (name, own) in enumerate(zip(starts, (self.down, self.across), strict=True)):
            size, stride = extents[side] * counts[side], self._stride(side)
            apart, slice_apart = (size * stride, own_depth // EIGHT)
            if not self.along_sum[side]:
                apart, slice_apart = size // EIGHT, own_depth * stride
            first = linear([(own, apart), (self.slice, slice_apart)])
            body.line(f"int {name} = {self._begin(side)} + {body.index(first)};")
        with body.block(f"{body.uses.unroll}for (int step = 0; step < {own_depth // tile.shape.k}; ++step)"):
            for side, use in enumerate("AB"):
                stride = self._stride(side)
                names = ", ".join(f"{use.lower()}{number}" for number in range(counts[side]))
                body.line(f"{self._matrix(use)} {names};")
                for number in range(counts[side]):
                    along, apart = tile.shape.k // EIGHT, extents[side] * stride
                    if not self.along_sum[side]:
                        along, apart = tile.shape.k * stride, extents[side] // EIGHT
                    at = f"{starts[side]} + step * {along} + {number * apart}"
                    layout = f"gl_CooperativeMatrixLayout{layouts[side]}Major"
                    body.line(f"coopMatLoad({use.lower()}{number}, {_STAGED}, {at}, {stride}, {layout});")
            for row in range(counts[0]):
                # Back and forth, so that each product shares a matrix with the one before.
                for column in range(counts[1])[:: -1 if row % 2 else 1]:
                    body.line(f"s{row}_{column} = coopMatMulAdd(a{row}, b{column}, s{row}_{column});")

    # -- the result ---------------------------------------------------------------------------------------------------

    def _write_tile(self) -> None:
        """Writes the result, one row of matrices per subgroup at a time.

        A loop over the rows has the epilogue's code once. It runs once per tile, so its time is also that of reading
        this code: between two runs of a kernel others run, whose code takes its place in the processors' caches.
        """
        body, rows = self.body, min(self.tile.matrices_down, -(-self.contraction.sizes.m // self.tile.shape.m))
        self.own = self.first = body.name()
        body.line(f"int {self.own} = int(gl_SubgroupID) * {self._passing_row()};")
        if self.tile.slices > 1:
            self.first, grid = body.name(), self.tile.subgroups_of_slice
            body.line(f"int {self.first} = int(gl_SubgroupID) % {grid} * {self._passing_row()};")
        if rows == 1:
            self._store_row(0)
            self._write_row(constant(0))
            return
        head = f"{body.uses.keep_rolled}for (int row = 0; row < {rows}; ++row)"
        with body.block(head, frozenset(("row",))):
            for row in range(rows):
                with body.block(f"if (row == {row})"):
                    self._store_row(row)
            self._write_row(variable("row", rows))

    def _store_row(self, row: int) -> None:
        """Stores a row of the subgroup's matrices to its part of shared memory."""
        for column in range(self.tile.matrices_across):
            at = f"{self.own} + {column * self.tile.shape.n // VECTOR}, {self._passing_line()}"
            self.body.line(f"coopMatStore(s{row}_{column}, {_STAGED}, {at}, gl_CooperativeMatrixLayoutRowMajor);")

    def _write_row(self, row: Index) -> None:
        """Writes a row of matrices; the subgroups of all slices share those of a place in the grid, and join them."""
        tile, body, (rows, columns) = self.tile, self.body, self.spans
        # Subgroups pass their results to themselves, unless slices join them.
        meet = "subgroupBarrier();" if tile.slices == 1 else "barrier();"
        body.line(meet)
        line = tile.subgroup_columns // VECTOR
        count, lanes = tile.shape.m * line, tile.lanes * tile.slices
        together = self._written_together(count, lanes)
        turns = -(-count // (lanes * together))
        block = body.block if turns > 1 else body.pinned_block  # the number of a single turn is a constant
        head = f"{body.uses.keep_rolled}for (int part = 0; part < {turns}; ++part)"
        with block(head, frozenset(("part",))):
            own = linear([(self.member, 1), (self.slice, tile.lanes), (variable("part", turns), lanes * together)])
            if count % lanes:
                body.line(f"if ({body.index(own)} >= {count}) break;")
                own = clamp(own, 0, count - 1)
            numbers = [add(own, lanes * each) for each in range(together)]
            places = [
                (
                    linear([(self.down, tile.subgroup_rows), (row, tile.shape.m), (quotient(number, line), 1)]),
                    linear([(self.across, tile.subgroup_columns), (remainder(number, line), VECTOR)]),
                )
                for number in numbers
            ]
            if together > 1:
                for m, n in places:
                    self.contraction.load_for_results(rows.at(m), columns.at(n, VECTOR))
            for number, (m, n) in zip(numbers, places, strict=True):
                place = linear([(quotient(number, line), self._passing_line()), (remainder(number, line), 1)])
                value = body.declare(body.scopes[-1], "vec4", self._joined(f"{self.first} + {body.index(place)}"))
                guards = both(rows.guards(body, m), columns.guards(body, n, VECTOR))
                self.contraction.write(rows.at(m), columns.at(n, VECTOR), GlslValue(value, VECTOR), guards)
        body.line(meet)

    def _written_together(self, count: int, lanes: int) -> int:
        """How many vectors of results have their inputs loaded before the first is stored; it divides a lane's.

        Compilers keep the order of loads and stores, because two arrays may share memory.
        """
        inputs, own = self.contraction.inputs_of_results(), count // lanes
        if not inputs or count % lanes:
            return 1
        most = min(_RESULT_LOADS.vectors, _RESULT_LOADS.loads // inputs)
        return max((number for number in range(1, most + 1) if own % number == 0), default=1)

    def _joined(self, place: str) -> str:
        """The sum over slices of four results of a row of matrices."""
        apart = self.tile.subgroups_of_slice * self._passing_row()
        places = (f"{place} + {number * apart}" if number else place for number in range(self.tile.slices))
        return " + ".join(f"uintBitsToFloat({_STAGED}[{at}])" for at in places)


def _spread(number: Index, line: int) -> Index:
    """The line of shared memory with this number in the order of staging.

    Eight invocations write to all banks at a time. Shorter lines begin one vector apart in banks. So the lines that
    these invocations write together are as many lines apart as a line has vectors. Lines that do not divide eight
    vectors stay in order.
    """
    together = EIGHT // line
    if together <= 1 or EIGHT % line:
        return number
    within = remainder(number, EIGHT)
    apart = [(quotient(within, together), 1), (remainder(within, together), line)]
    return linear([(quotient(number, EIGHT), EIGHT), *apart])


def emit_cooperative(contraction: Contraction, tile: CooperativeTile) -> Launch:
    """The shader of a contraction by cooperative matrices."""
    return CooperativeEmitter(contraction, tile).emit()
