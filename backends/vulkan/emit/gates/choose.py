"""Which products of few rows in loops are computed side by side (kernel.py), and in which tiles."""

from __future__ import annotations

from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import float32
from lavax.passes.build.contraction_geometry import Sizes, sizes_of


@dataclass(frozen=True)
class GateProducts:
    """The products, and the work of an invocation. Exercised by `python -m benchmarks architectures`."""

    rows: int = 256  # of a product, at most
    summed: tuple[int, int] = (32, 4096)  # the shortest and the longest sum
    products: int = 1 << 25  # of one contraction: more are no longer a matter of waiting for memory
    threads: int = 256  # of a workgroup, at most
    sums: int = 8  # vectors of sums that an invocation adds up
    tile_rows: int = 32
    tile_columns: tuple[int, ...] = (16, 8, 4)  # of each product
    busy_invocations: int = 256  # of a processor: there are at least as many tiles as processors, if possible


GATE_PRODUCTS = GateProducts()


@dataclass(frozen=True)
class GateTile:
    """A workgroup's rows, and its columns of each product. An invocation has `register_rows` of the rows, four columns
    of each product, and every `slices`th vector of four terms of their sums."""

    rows: int
    columns: int
    register_rows: int
    slices: int

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
    def line(self) -> int:
        """Sums of slices for one element lie side by side, and one number behind them: neighbouring elements are in
        different banks of shared memory."""
        return self.slices + 1

    def shared_bytes(self, products: int) -> int:
        return 4 * products * self.rows * self.columns * self.line

    def tiles(self, sizes: Sizes) -> int:
        return -(-sizes.m // self.rows) * -(-sizes.n // self.columns)


def are_gates(dot: Node, profile: DeviceProfile) -> bool:
    """Whether a product in a loop is computed beside others."""
    if profile.kind == "cpu" or profile.packed or GATE_PRODUCTS.threads > profile.max_workgroup_invocations:
        return False
    sizes, (shortest, longest) = sizes_of(dot), GATE_PRODUCTS.summed
    if not dot.dtype.is_float or dot.dtype.bits > float32.bits or sizes.batch or not (sizes.rows and sizes.columns):
        return False
    fours = sizes.columns[-1] % VECTOR == 0 and sizes.summed[-1:] and sizes.summed[-1] % VECTOR == 0
    few = sizes.m <= GATE_PRODUCTS.rows and sizes.m * sizes.n * sizes.k <= GATE_PRODUCTS.products
    return bool(fours) and few and shortest <= sizes.k <= longest


def tile_of(sizes: Sizes, products: int, profile: DeviceProfile) -> GateTile:
    """The largest tile of which every processor has one, with as many slices as there are invocations for."""
    own = 1 << (GATE_PRODUCTS.sums // products).bit_length() - 1
    own = min(own, 1 << (sizes.m - 1).bit_length())
    rows = min(GATE_PRODUCTS.tile_rows, -(-sizes.m // own) * own)
    processors = profile.busy_invocations // GATE_PRODUCTS.busy_invocations
    found = None
    for columns in GATE_PRODUCTS.tile_columns:
        tile = GateTile(rows, columns, own, 1)
        slices = 1 << min(GATE_PRODUCTS.threads // tile.units, sizes.k // VECTOR).bit_length() - 1
        while GateTile(rows, columns, own, slices).shared_bytes(products) > profile.shared_memory_bytes:
            slices //= 2
        found = GateTile(rows, columns, own, slices)
        if found.tiles(sizes) >= processors:
            break
    assert found is not None
    return found
