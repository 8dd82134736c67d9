"""Which products of few rows in loops are computed side by side (kernel.py), and in which tiles."""

from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile, MatrixShape
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node
from lavax.ir.types import float32
from lavax.passes.build.contraction_geometry import Sizes, neighbours_of, sizes_of
from lavax.passes.target.kernel_limits import MOST_GATES


@dataclass(frozen=True)
class GateProducts:
    """The products, and the work of an invocation. Exercised by `python -m benchmarks architectures`."""

    rows: int = 256  # of a product, at most
    summed: tuple[int, int] = (32, 4096)  # the shortest and the longest sum
    products: int = 1 << 25  # of one contraction: more are no longer a matter of waiting for memory
    products_by_matrices: int = 1 << 26
    results_by_matrices: int = 1 << 11  # of all gates, for each processor: two tiles of 1,024
    threads: int = 256  # of a workgroup, at most
    sums: int = 8  # vectors of sums that an invocation adds up
    tile_rows: int = 32
    tile_columns: tuple[int, ...] = (16, 8, 4)  # of each product
    # Rows and columns of products of which the sum is read, with the tiles that each processor has at least.
    tiles_of_sum: tuple[tuple[int, int, int], ...] = ((32, 16, 2), (16, 16, 1), (16, 8, 1))
    long_sum: int = 4096  # one tile is enough: what is read takes longer than what waits for it
    matrices_across: int = 2  # of a tile
    idle_part: int = 8  # there are as many tiles as processors, if possible, but one of so many may have none
    subgroups: int = 8  # of a workgroup that multiplies matrices: each has a slice of the sums
    steps: int = 16  # of a subgroup, at most: they are written out


GATE_PRODUCTS = GateProducts()


@dataclass(frozen=True)
class GateTile:
    """A workgroup's rows, and its columns of each product. An invocation has `register_rows` of the rows, four columns
    of each product, and every `slices`th vector of four terms of their sums. Of the slices, `lanes` are a subgroup that
    adds up its sums by itself."""

    rows: int
    columns: int
    register_rows: int
    slices: int
    lanes: int = 1

    @property
    def vectors_across(self) -> int:
        return self.columns // VECTOR

    @property
    def units(self) -> int:
        """The invocations of a slice."""
        return self.rows // self.register_rows * self.vectors_across

    @property
    def threads(self) -> int:
        return self.units * self.slices

    @property
    def parts(self) -> int:
        """The sums for one element that pass through shared memory."""
        return self.slices // self.lanes

    @property
    def line(self) -> int:
        """Parts of one element lie side by side, and one number behind them: neighbouring elements are in different
        banks of shared memory."""
        return self.parts + 1

    def shared_bytes(self, products: int) -> int:
        return 4 * products * self.rows * self.columns * self.line

    def tiles(self, sizes: Sizes) -> int:
        return -(-sizes.m // self.rows) * -(-sizes.n // self.columns)


@dataclass(frozen=True)
class MatrixGateTile:
    """A workgroup's rows, and its columns of each product, which are beside each other in `across` matrices, or of the
    sum of `sums` products. Each subgroup of `lanes` has a slice of each sum, as `steps` parts of `depth` terms."""

    rows: int
    columns: int
    slices: int
    steps: int
    lanes: int
    shape: MatrixShape
    depth: int = 32
    sums: int = 1
    across: int = 1

    @property
    def lines(self) -> int:
        """Columns of all products, and those that fill the last matrix."""
        return self.across * self.shape.n

    @property
    def threads(self) -> int:
        return self.slices * self.lanes

    @property
    def line(self) -> int:
        """Vectors of 16 bytes from a staged line to the next: one more than it has, so that banks differ."""
        return self.depth // 8 + 1

    @property
    def line_of_sums(self) -> int:
        """The same for rows of sums, which take the place of staged lines: each matrix has rows of its own."""
        return max(self.line, self.shape.n // VECTOR + 1)

    @property
    def staged(self) -> int:
        """Vectors of a subgroup in shared memory: staged lines, then sums."""
        return max((self.rows + self.lines) * self.line, self.across * self.rows * self.line_of_sums)


def are_gates(dot: Node, profile: DeviceProfile) -> bool:
    """Whether a product in a loop is computed beside others."""
    if profile.kind == "cpu" or profile.packed or GATE_PRODUCTS.threads > profile.max_workgroup_invocations:
        return False
    sizes, (shortest, longest) = sizes_of(dot), GATE_PRODUCTS.summed
    if not dot.dtype.is_float or dot.dtype.bits > float32.bits or sizes.batch or not (sizes.rows and sizes.columns):
        return False
    fours = sizes.columns[-1] % VECTOR == 0 and sizes.summed[-1:] and sizes.summed[-1] % VECTOR == 0
    few = sizes.m <= GATE_PRODUCTS.rows and sizes.m * sizes.n * sizes.k <= _most_products(dot, sizes, profile)
    return bool(fours) and few and shortest <= sizes.k <= longest


def _most_products(dot: Node, sizes: Sizes, profile: DeviceProfile) -> int:
    """More if a device multiplies them by matrices, which a loop has in the order that these need: so many of each
    gate, where a product is of several gates, or of the sum over their terms."""
    precision = dot.attrs["precision"] or dot.operands[0].dtype.name
    right = dot.operands[1]
    while right.op in ("cast", "slice", "transpose"):
        (right,) = right.operands
    has_matrices = any(shape.dtype == precision for shape in profile.matrices)
    most = GATE_PRODUCTS.results_by_matrices * profile.processors
    if right.op != INPUT or not has_matrices or sizes.m * sizes.n > most:
        return GATE_PRODUCTS.products
    gates = max(sizes.k // sizes.n, sizes.n // sizes.k, 1)
    return GATE_PRODUCTS.products_by_matrices * min(gates, MOST_GATES)


def _are_enough(tiles: int, beside: int, profile: DeviceProfile) -> bool:
    """Whether nearly every processor has a tile, of this kernel or of those beside it."""
    return tiles * beside >= profile.processors - profile.processors // GATE_PRODUCTS.idle_part


def tile_of(sizes: Sizes, products: int, profile: DeviceProfile, beside: int = 1) -> GateTile:
    """The largest tile of which every processor has one, with as many slices as there are invocations for.

    `beside`: how many such kernels share the device.
    """
    own = 1 << (GATE_PRODUCTS.sums // products).bit_length() - 1
    own = min(own, 1 << (sizes.m - 1).bit_length())
    rows = min(GATE_PRODUCTS.tile_rows, -(-sizes.m // own) * own)
    has_lanes = profile.subgroup_shuffle and profile.knows_subgroup_size
    found = None
    for columns in GATE_PRODUCTS.tile_columns:
        tile = GateTile(rows, columns, own, 1)
        slices = 1 << min(GATE_PRODUCTS.threads // tile.units, sizes.k // VECTOR).bit_length() - 1
        while GateTile(rows, columns, own, slices).shared_bytes(products) > profile.shared_memory_bytes:
            slices //= 2
        lanes = profile.subgroup_size if has_lanes and slices % profile.subgroup_size == 0 else 1
        found = GateTile(rows, columns, own, slices, lanes)
        if _are_enough(found.tiles(sizes), beside, profile):
            break
    assert found is not None
    return found


def sum_of_products(graph: Graph) -> Node | None:
    """The sum of all products of a graph, if nothing else reads one of them."""
    terms = {node for node in graph.nodes if node.op == "dot"}
    if len(terms) < 2:
        return None
    for node in graph.nodes:
        left_and_right = {*node.operands}
        alone = (graph.users[x] == [node] and x not in graph.outputs for x in left_and_right)
        if node.op == "add" and len(left_and_right) > 1 and left_and_right <= terms and all(alone):
            terms = terms - left_and_right | {node}
    return terms.pop() if len(terms) == 1 else None


def matrix_tile_of(
    dots: Sequence[Node], is_sum: bool, profile: DeviceProfile, beside: int = 1
) -> MatrixGateTile | None:
    """The tile of products of rounded factors that a device multiplies by matrices; None for others.

    Several products share the left factor, whose rows are staged once for all, or only their sum is read (`is_sum`),
    which is one product of a long sum. An H100 takes 5.8 and 8.1 µs for a turn of four with and without matrices, and
    5.0 and 4.9 for one; an H200 7.6 and 9.6 for the sum of four.
    """
    precisions, sizes = {dot.attrs["precision"] for dot in dots}, sizes_of(dots[0])
    is_small = sizes.m * sizes.n * sizes.k <= GATE_PRODUCTS.products
    if (len(dots) == 1 and is_small) or len(precisions) > 1 or (not is_sum and len(set(map(left_factor, dots))) > 1):
        return None
    if not all(map(is_along_sum, dots)):
        return None
    (dtype,) = precisions
    shape = next((each for each in profile.matrices if each.dtype == dtype), None)
    depth = MatrixGateTile.depth
    if shape is None or GATE_PRODUCTS.tile_rows % shape.m or shape.n % VECTOR or depth % shape.k:
        return None
    parts, sums = sizes.k // depth, len(dots) if is_sum else 1
    slices = next(count for count in range(GATE_PRODUCTS.subgroups, 0, -1) if parts % count == 0)
    if sizes.k % depth or parts // slices * sums > GATE_PRODUCTS.steps:
        return None
    found = None
    for rows, columns, least in _tiles(sizes, is_sum, sums * sizes.k, shape):
        across = -(-columns * (1 if is_sum else len(dots)) // shape.n)
        lanes = profile.subgroup_size
        tile = MatrixGateTile(rows, columns, slices, parts // slices, lanes, shape, sums=sums, across=across)
        if across > GATE_PRODUCTS.matrices_across or 16 * tile.staged * slices > profile.shared_memory_bytes:
            continue
        found = tile
        if _are_enough(-(-sizes.m // rows) * -(-sizes.n // columns) // least, beside, profile):
            break
    return found if found is not None and found.threads <= GATE_PRODUCTS.threads else None


def _tiles(sizes: Sizes, is_sum: bool, sum_length: int, shape: MatrixShape) -> list[tuple[int, int, int]]:
    """Rows and columns of tiles, those first that read the least, and the tiles that each processor has at least.

    Of a sum, workgroups read both factors over its whole length: about as many columns as rows are the least to read.
    """
    tiles = [(GATE_PRODUCTS.tile_rows, columns, 1) for columns in GATE_PRODUCTS.tile_columns]
    most = -(-sizes.m // shape.m) * shape.m
    of_kind = GATE_PRODUCTS.tiles_of_sum if is_sum else tiles
    is_long = sum_length >= GATE_PRODUCTS.long_sum
    return [(max(shape.m, min(rows, most)), columns, 1 if is_long else least) for rows, columns, least in of_kind]


def left_factor(dot: Node) -> tuple[Node, tuple[int, ...]]:
    """What products with the same left factor share."""
    return dot.operands[0], dot.attrs["contract"][0]


def is_along_sum(dot: Node) -> bool:
    """Whether neighbours of the right factor lie along the sum."""
    near = neighbours_of(dot, 1)
    return near.summed and not near.free
