"""Products of few rows by cooperative matrices, whose operands pass through shared memory.

Products of which only the sum is read are one product whose sum is as long as all of theirs.
Each subgroup has a slice of the sums, and stages it for itself: lines of the left factor's rows, and lines of columns,
of which the products' own lie beside each other in one matrix. Vectors of 16 bytes are on their way for several parts
of a slice while one is multiplied. The slices' sums are joined when a result is computed.
"""

from __future__ import annotations

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.emit.gates.choose import MatrixGateTile
from lavax.backends.vulkan.emit.gates.results import GateKernel, sum_of
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, widened
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT, eight_in_memory, matrix_type, packed, source_of
from lavax.backends.vulkan.glsl.shader import ShaderText
from lavax.ir.graph import Node
from lavax.ir.types import DTYPES
from lavax.passes.build.contraction_geometry import operand_at, sizes_of
from lavax.passes.kernels.index import Index, clamp, linear, quotient, remainder, unflatten, variable
from lavax.passes.kernels.kernel import Kernel

_VECTORS_AHEAD = 16  # of an invocation, about so many of which are on their way from memory
_STAGED = "staged"


class GatesByMatrices(GateKernel):
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, tile: MatrixGateTile, total: Node | None, lifted: bool) -> None:
        super().__init__(kernel, tile.rows, tile.columns, tile.threads, lifted)
        self.tile = tile
        self.found = self.dots if total is None else [total]
        self.dtype = DTYPES[self.dots[0].attrs["precision"]]
        self.member, self.slice = variable("member", tile.lanes), variable("slice", tile.slices)
        self.eights = tile.depth // EIGHT  # of a line

    def text(self) -> ShaderText:
        tile = self.tile
        pragma = BRAIN_FLOATS if self.dtype.name == "bf16" else ""
        shared = [f"shared uvec4 {_STAGED}[{tile.slices * tile.staged}];"]
        lines = self.body.scopes[0].lines
        return ShaderText(self.body.uses, lines, (tile.threads, 1), shared, subgroup_size=tile.lanes, pragma=pragma)

    def joined(self, number: int, element: Index) -> str:
        body, tile, name = self.body, self.tile, self.body.name()
        column = linear([(remainder(element, tile.columns), 1)], number * tile.columns)
        matrix, column = quotient(column, tile.shape.n), remainder(column, tile.shape.n)
        line = linear([(quotient(element, tile.columns), 1), (matrix, tile.rows)])
        row = linear([(line, tile.line_of_sums), (quotient(column, VECTOR), 1)])
        at = body.declare(body.scopes[-1], "int", body.index(row))
        component = body.declare(body.scopes[-1], "int", body.index(remainder(column, VECTOR)))
        body.line(f"float {name} = uintBitsToFloat({_STAGED}[{at}][{component}]);")
        term = f"uintBitsToFloat({_STAGED}[{at} + s * {tile.staged}][{component}])"
        body.line(f"{body.uses.unroll}for (int s = 1; s < {tile.slices}; ++s) {name} += {term};")
        return name

    def add_up(self) -> None:
        """Multiplies a part after the other; those behind it are loaded before."""
        body, tile = self.body, self.tile
        body.lines(["int member = int(gl_SubgroupInvocationID);", "int slice = int(gl_SubgroupID);"])
        body.line(f"int own = slice * {tile.staged};")
        body.scopes[0].variables |= {"member", "slice", "own"}
        kind = matrix_type(body, "Accumulator", tile.shape.m, tile.shape.n)
        downs = range(tile.rows // tile.shape.m)
        sums = [(down, across) for down in downs for across in range(tile.across)]
        body.line(f"{kind} {', '.join(f'{_sum(*each)} = {kind}(0.0)' for each in sums)};")
        parts = range(tile.steps * tile.sums)
        ahead = max(2, _VECTORS_AHEAD // (self._turns(tile.rows) + self._turns(tile.lines)))
        loaded = [self._load(part) for part in parts[:ahead]]
        for number in parts:
            if number:
                body.line("subgroupBarrier();")
            self._stage(loaded[number])
            loaded += [self._load(part) for part in parts[number + ahead : number + ahead + 1]]
            body.lines(["subgroupMemoryBarrierShared();", "subgroupBarrier();"])
            self._multiply(len(downs))
        body.line("subgroupBarrier();")
        for down, across in sums:
            first, layout = across * tile.rows + down * tile.shape.m, "gl_CooperativeMatrixLayoutRowMajor"
            at = f"own + {first * tile.line_of_sums}"
            body.line(f"coopMatStore({_sum(down, across)}, {_STAGED}, {at}, {tile.line_of_sums}, {layout});")

    # -- staging ------------------------------------------------------------------------------------------------------

    def _load(self, part: int) -> list[str]:
        """The names of an invocation's vectors of a part: of rows, then of columns."""
        body, tile, names = self.body, self.tile, list[str]()
        product, part = divmod(part, tile.steps)
        dots = self.dots if tile.sums == 1 else [self.dots[product]]
        for turn in range(self._turns(tile.rows)):
            line, eight = self._vector(turn)
            row = sum_of(self.first_row, clamp(line, 0, tile.rows - 1))
            row = row if self.sizes.m % tile.rows == 0 else clamp(row, 0, self.sizes.m - 1)
            names.append(body.declare(body.scopes[-1], "uvec4", self._eight(dots[0], 0, row, eight, part)))
        for turn in range(self._turns(tile.lines)):
            line, eight = self._vector(turn)
            name = body.name()
            names.append(name)
            body.line(f"uvec4 {name} = uvec4(0);")
            first, last = turn * tile.lanes // self.eights, ((turn + 1) * tile.lanes - 1) // self.eights
            for number, dot in enumerate(dots):
                begin = number * tile.columns
                if begin > last or begin + tile.columns <= first:
                    continue
                place = body.index(line)
                within = f"{place} >= {begin} && {place} < {begin + tile.columns}"
                column = clamp(linear([(line, 1)], -begin), 0, tile.columns - 1)
                column = sum_of(self.first_column, column)
                column = column if self.sizes.n % tile.columns == 0 else clamp(column, 0, self.sizes.n - 1)
                with body.block(f"if ({within})"):
                    body.line(f"{name} = {self._eight(dot, 1, column, eight, part)};")
        return names

    def _turns(self, lines: int) -> int:
        return -(-lines * self.eights // self.tile.lanes)

    def _vector(self, turn: int) -> tuple[Index, Index]:
        """The line, and the vector of it, that an invocation has in a turn."""
        number = linear([(self.member, 1)], turn * self.tile.lanes)
        return quotient(number, self.eights), remainder(number, self.eights)

    def _eight(self, dot: Node, side: int, free: Index, eight: Index, part: int) -> str:
        """Eight terms of a line of a factor, as memory holds them, or else rounded and packed."""
        body, depth, sizes = self.body, self.tile.depth, sizes_of(dot)
        lines = sizes.columns if side else sizes.rows
        halves = []
        for half in range(2):
            along = [(self.slice, self.tile.steps * depth), (eight, EIGHT), (LANE, 1)]
            summed = linear(along, part * depth + half * VECTOR)
            at = operand_at(dot, side, (), unflatten(free, lines), unflatten(summed, sizes.summed))
            halves.append((dot.operands[side], at))
        held = eight_in_memory(body, halves, self.dtype)
        if held is not None:
            return held.chosen()
        words = []
        for node, at in halves:
            source, place = source_of(node, at, self.dtype)
            words.append(packed(body, widened(body.value(source, place), VECTOR, source.dtype), self.dtype))
        return f"uvec4({', '.join(words)})"

    def _stage(self, names: list[str]) -> None:
        """Writes an invocation's vectors to the subgroup's part of shared memory."""
        tile, of_rows = self.tile, self._turns(self.tile.rows)
        for number, name in enumerate(names):
            is_column = number >= of_rows
            turn, lines = (number - of_rows, tile.lines) if is_column else (number, tile.rows)
            line, eight = self._vector(turn)
            place = linear([(line, tile.line), (eight, 1)], tile.rows * tile.line if is_column else 0)
            beyond = (turn + 1) * tile.lanes > lines * self.eights
            with self.body.block(f"if ({self.body.index(line)} < {lines})" if beyond else ""):
                self.body.line(f"{_STAGED}[own + {self.body.index(place)}] = {name};")

    def _multiply(self, downs: int) -> None:
        """Adds the products of the staged part to the sums."""
        body, shape, line = self.body, self.tile.shape, self.tile.line
        first, columns = self.tile.rows * line, [f"b{across}" for across in range(self.tile.across)]
        with body.block(""):
            body.line(f"{matrix_type(body, 'A', shape.m, shape.k)} a;")
            body.line(f"{matrix_type(body, 'B', shape.k, shape.n)} {', '.join(columns)};")
            for step in range(self.tile.depth // shape.k):
                along = step * shape.k // EIGHT
                for across, name in enumerate(columns):
                    at = f"own + {first + across * shape.n * line + along}"
                    body.line(f"coopMatLoad({name}, {_STAGED}, {at}, {line}, gl_CooperativeMatrixLayoutColumnMajor);")
                for down in range(downs):
                    at = f"own + {down * shape.m * line + along}"
                    body.line(f"coopMatLoad(a, {_STAGED}, {at}, {line}, gl_CooperativeMatrixLayoutRowMajor);")
                    for across, name in enumerate(columns):
                        total = _sum(down, across)
                        body.line(f"{total} = coopMatMulAdd(a, {name}, {total});")


def _sum(down: int, across: int) -> str:
    """The matrix of sums at a place of the tile."""
    return f"sum{down}_{across}"
