"""What all schedules of contractions share: operands through the prologue, results through the epilogue, by tile."""

from __future__ import annotations

from collections.abc import Iterator

from lavax.backends.vulkan.emit.contract.span import Guard, Span
from lavax.backends.vulkan.emit.contract.tiles import Tile
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import GlslValue
from lavax.backends.vulkan.glsl.launch import WORKGROUP, grid, open_body
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.kept import kept
from lavax.ir.graph import INPUT, Node
from lavax.passes.build.contraction_geometry import operand_at, sizes_of
from lavax.passes.kernels.index import (
    Index,
    constant,
    flatten,
    grows_by_one,
    linear,
    quotient,
    remainder,
    substitute,
    unflatten,
    variable,
)
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import READS, Coordinates


class Contraction:
    """The state of writing one contract kernel. `batch` is set when the tiles get their numbers."""

    def __init__(self, kernel: Kernel, dot: Node, profile: DeviceProfile, lifted: bool) -> None:
        self.kernel, self.dot, self.profile = kernel, dot, profile
        self.sizes = sizes_of(dot)
        self.body, self.outputs = open_body(kernel, lifted)
        self.batch: Coordinates = ()

    def open_tile(self, tile: Tile, unit: int = VECTOR, band: int = 1) -> tuple[Span, Span]:
        """Gives each workgroup of `groups` tile number `t`, and exits in workgroups beyond the last tile.

        Tiles are taken in bands of so many rows of tiles (bands.py).
        """
        count, (across, down, _) = tile.tiles(self.sizes), self.groups(tile)
        self.body.line(f"int t = int{WORKGROUP};")
        if across * down > count:
            self.body.line(f"if (t >= {self.body.parameters.integer(count)}) return;")
        self.body.scopes[0].variables |= {"t"}
        number = variable("t", count)
        # A shader that serves every shape knows no lengths of rows.
        if band == 1 or self.body.parameters.lifted:
            return self.spans(number, tile.rows, tile.columns, unit)
        return self._spans_in_bands(number, tile.rows, tile.columns, unit, band)

    def groups(self, tile: Tile) -> tuple[int, int, int]:
        """A grid with one workgroup per tile."""
        return grid(tile.tiles(self.sizes))

    def spans(self, tile: Index, rows: int, columns: int, unit: int = VECTOR) -> tuple[Span, Span]:
        """The rows and the columns of a tile of this size, by its number."""
        sizes = self.sizes
        across, down = -(-sizes.n // columns), -(-sizes.m // rows)
        rest = quotient(tile, across)
        self.batch = unflatten(quotient(rest, down), sizes.batch)
        across_at, down_at = remainder(tile, across), remainder(rest, down)
        return Span(sizes.m, rows, down_at, unit), Span(sizes.n, columns, across_at, unit)

    def _spans_in_bands(self, tile: Index, rows: int, columns: int, unit: int, band: int) -> tuple[Span, Span]:
        """The same, where tiles go down a band before they go on to its next column. The last band may have fewer
        rows."""
        body, sizes = self.body, self.sizes
        across, down = -(-sizes.n // columns), -(-sizes.m // rows)
        self.batch = unflatten(quotient(tile, across * down), sizes.batch)
        of_matrix = remainder(tile, across * down)
        above, within = quotient(of_matrix, band * across), remainder(of_matrix, band * across)
        if down % band:
            body.line(f"int above = {body.index(above)} * {band};")
            body.line(f"uint high = uint(min({band}, {down} - above)), within = uint({body.index(within)});")
            body.line("int across_at = int(within / high), down_at = above + int(within % high);")
            body.scopes[0].variables |= {"across_at", "down_at"}
            down_at, across_at = variable("down_at", down), variable("across_at", across)
        else:
            down_at = linear([(above, band), (remainder(within, band), 1)])
            across_at = quotient(within, band)
        return Span(sizes.m, rows, down_at, unit), Span(sizes.n, columns, across_at, unit)

    def operand(self, side: int, free: Index, summed: Index) -> GlslValue:
        """An element of the left (0) or right (1) operand."""
        return self.body.value(*self.element(side, free, summed))

    def element(self, side: int, free: Index, summed: Index) -> tuple[Node, Coordinates]:
        """An operand, and the coordinates of its element there."""
        return self.dot.operands[side], self._place(side, free, summed)

    def _place(self, side: int, free: Index, summed: Index) -> Coordinates:
        extents = self.sizes.rows if side == 0 else self.sizes.columns
        return operand_at(self.dot, side, self.batch, unflatten(free, extents), unflatten(summed, self.sizes.summed))

    def load(self, side: int, free: Index, summed: Index) -> None:
        """Loads the array elements that an operand's element is computed from, except those at gathered coordinates."""
        for node, at in self._reads(self.dot.operands[side], self._place(side, free, summed)):
            self.body.value(node, at)

    def inputs_of_results(self) -> int:
        """The number of elements that the epilogue loads per result, of arrays with at least as many elements."""
        return len(set(self._read_for_results))

    def load_for_results(self, m: Index, n: Index) -> int:
        """Loads the epilogue's other inputs for one element or four, and returns the number of loads.

        Arrays that several elements read, such as a bias, are left out.
        """
        before = self.body.loads()
        with self.body.at(self.place_of(m, n, self.batch)):
            for node, at in self._read_for_results:
                self.body.value(node, at)
        return self.body.loads() - before

    @kept
    def _read_for_results(self) -> list[tuple[Node, Coordinates]]:
        """What the epilogue reads of arrays with at least as many elements as there are results."""
        coordinates = self.kernel.coordinates
        reads = (read for output in self.kernel.graph.outputs for read in self._reads(output, coordinates[output]))
        return [(node, at) for node, at in reads if node.type.size >= self.dot.type.size]

    def _reads(self, node: Node, at: Coordinates) -> Iterator[tuple[Node, Coordinates]]:
        """The array elements that an element is computed from, at coordinates that depend on no other element."""
        seen: set[tuple[Node, Coordinates]] = set()
        stack = [(node, at)]
        while stack:
            node, at = stack.pop()
            if (node, at) in seen or node.op == "gather" or node is self.dot:
                continue
            seen.add((node, at))
            if node.op == INPUT:
                yield node, at
            else:
                stack.extend(reversed(READS[node.op](node, at)))

    def lies_along_rows(self) -> bool:
        """Whether neighbours in the results' memory are rows of the contraction, not columns."""
        row, column = variable("row", self.sizes.m), variable("column", self.sizes.n)
        batch = tuple(variable(f"batch{number}", extent) for number, extent in enumerate(self.sizes.batch))
        place = self.place_of(row, column, batch)
        positions = [
            flatten(tuple(substitute(index, place) for index in self.kernel.coordinates[output]), output.shape)
            for output in self.kernel.graph.outputs
        ]
        along = [sum(grows_by_one(position, name) for position in positions) for name in ("row", "column")]
        return along[0] > along[1]

    def place_of(self, m: Index, n: Index, batch: Coordinates) -> dict[str, Index]:
        """The values of the kernel's loop variables at an element of the contraction."""
        indices = (*batch, *unflatten(m, self.sizes.rows), *unflatten(n, self.sizes.columns))
        pairs = zip(self.kernel.domain.outer_variables, indices, strict=True)
        return {variable.key: index for variable, index in pairs if not variable.is_constant}

    def write(self, m: Index, n: Index, value: GlslValue, guards: list[Guard]) -> None:
        """Writes the results of one element of the contraction, or of four: those lanes whose conditions hold."""
        coordinates = self.kernel.coordinates
        with self.body.at(self.place_of(m, n, self.batch)):
            self.body.define(self.dot, coordinates[self.dot], value)
            results = {output: self.body.value(output, coordinates[output]) for output in self.kernel.graph.outputs}
            for lane, condition in guards:
                for output, result in results.items():
                    if condition:
                        with self.body.block(f"if ({condition})"):
                            self._store(output, result, lane)
                    else:
                        self._store(output, result, lane)

    def _store(self, output: Node, value: GlslValue, lane: int | None) -> None:
        """Stores a vector, or one lane of it."""
        at = tuple(self.body.real(index) for index in self.kernel.coordinates[output])
        if lane is not None:
            at = tuple(substitute(index, {"lane": constant(lane)}) for index in at)
            value = GlslValue(f"{value.text}.{COMPONENTS[lane]}", 1) if value.width == VECTOR else value
        with self.body.at({}):
            self.body.store(output, at, value, self.outputs[output])
