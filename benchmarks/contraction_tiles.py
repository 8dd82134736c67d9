"""The time of products of several sizes with each tile and number of parts: the basis of emit/contract/choose.py.

Run as `python -m benchmarks.contraction_tiles [PRODUCT ...]`, with products such as 4096x4096x4096, 1x4096x4096:b (the
right operand transposed), 64*256x256x256 (a batch) and 4096x4096x4096@bf16 (operands and result of a narrower dtype,
with cooperative matrices if the device has them). Times are the device's own, of the kernels alone. If PyTorch and its
device are available, its product of that dtype (strict float32) is timed by the clock over calls in flight.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import lavax as lx
from benchmarks.pytorch_calls import pytorch, seconds_a_call
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.emit.contract import kernel as contract
from lavax.backends.vulkan.emit.contract.tiles import (
    BROADCAST_TILES,
    COOPERATIVE_TILES,
    NARROW_TILES,
    OTHER_TILES,
    REGISTER_TILES,
    SHARED_TILES,
    ContractSchedule,
    SubgroupTile,
    broadcast_tile,
    cooperative_tile,
    fits,
)
from lavax.backends.vulkan.measure.profiling import profile_program
from lavax.base.errors import DeviceError
from lavax.ir.types import DTYPES
from lavax.passes.target.target import ANY_DEVICE

PRODUCTS = (
    "256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "4096x4096x4096:b",
    "4096x4096x4096:a", "4097x4095x4099", "64*256x256x256", "64x4096x4096", "16x4096x4096", "8x4096x4096",
    "1x4096x4096", "1x4096x4096:b", "8x4096x4096:b", "512x65536x512:a",
    "1024x1024x1024@bf16", "4096x4096x4096@bf16", "4096x4096x4096:b@bf16", "4096x4096x4096:a@bf16",
    "4096x4096x4096@f16",
)  # fmt: skip
# Rows, columns, depth, subgroups down and across.
OTHER_COOPERATIVE_TILES = (
    (128, 256, 32, 2, 4),
    (256, 128, 32, 4, 2),
    (128, 128, 64, 2, 4),
    (128, 128, 32, 2, 4),
    (128, 64, 64, 2, 2),
    (64, 128, 64, 2, 2),
    (64, 64, 32, 2, 2),
)
PARTS = (1, 4, 16, 64)
_FEW = 16


@dataclass(frozen=True)
class Product:
    """A batch of products m × k × n; `transposed` names the operands that are transposed in memory."""

    batch: int
    m: int
    k: int
    n: int
    transposed: str
    dtype: str = "f32"

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        left, right = (self.m, self.k), (self.k, self.n)
        left, right = left[::-1] if "a" in self.transposed else left, right[::-1] if "b" in self.transposed else right
        return ((self.batch, *left), (self.batch, *right)) if self.batch > 1 else (left, right)

    def __call__(self, left: Any, right: Any) -> Any:
        left = left.swapaxes(-1, -2) if "a" in self.transposed else left
        return left @ (right.swapaxes(-1, -2) if "b" in self.transposed else right)


def product_of(text: str) -> Product:
    """The product of a text such as 64*256x256x256:ab@bf16. Raises ValueError."""
    described, _, dtype = text.partition("@")
    sizes, _, transposed = described.partition(":")
    batch, _, rest = sizes.rpartition("*")
    m, k, n = map(int, rest.split("x"))
    return Product(int(batch or 1), m, k, n, transposed, dtype or "f32")


def candidates(product: Product, backend: VulkanBackend) -> Iterator[tuple[ContractSchedule, int]]:
    """The candidates: tiles and numbers of parts."""
    profile, few = backend.profile, min(product.m, product.n) < _FEW
    if any(shape.dtype == product.dtype for shape in profile.matrices) and not few:
        for numbers in (*COOPERATIVE_TILES, *OTHER_COOPERATIVE_TILES):
            wide = cooperative_tile(numbers, product.dtype, profile)
            within = wide.rows <= 2 * product.m and wide.columns <= 2 * product.n
            if within and wide.divides() and fits(wide, profile):
                yield from ((wide, parts) for parts in PARTS if parts == 1 or product.k // parts >= 4 * wide.depth)
        return
    if profile.kind == "gpu" and not few:
        for tile in (*SHARED_TILES, *NARROW_TILES[:2], *OTHER_TILES):
            within = tile.rows <= 2 * product.m and tile.columns <= 2 * product.n
            if within and fits(tile, profile):
                yield from ((tile, parts) for parts in PARTS if parts == 1 or product.k // parts >= 4 * tile.depth)
        return
    if profile.kind == "cpu":
        yield from ((broadcast_tile(tile, profile.subgroup_size), 1) for tile in BROADCAST_TILES)
    own = [tile for tile in REGISTER_TILES if tile.rows <= product.m and tile.columns <= product.n]
    yield from ((tile, parts) for tile in own for parts in PARTS if few or parts == 1)
    if few and "b" in product.transposed:
        extents = [(min(product.m, rows), min(product.n, columns)) for rows in (4, 8) for columns in (1, 2, 4, 8)]
        yield from ((SubgroupTile(*extent, profile.subgroup_size), 1) for extent in dict.fromkeys(extents))


@contextmanager
def forced(schedule: ContractSchedule, parts: int, backend: VulkanBackend) -> Iterator[None]:
    """A context in which contractions are lowered for the backend with this schedule and number of parts."""
    target = {"target": ANY_DEVICE.with_parts(lambda dot: parts)}
    with patch.object(contract, "choose_schedule", lambda *_: schedule), patch.dict(backend.__dict__, target):
        yield


def seconds(product: Product, backend: VulkanBackend, buffers: Sequence[Any]) -> float:
    """The time of the product's kernels on the device."""
    kinds = (lx.ShapeDtype(shape, DTYPES[product.dtype].user) for shape in product.shapes())
    compiled = backend.lower(lx.trace(product)(*kinds)).compile()
    return sum(dispatch.seconds for dispatch in profile_program(compiled.program, buffers))


def peer_seconds(product: Product, operands: tuple[np.ndarray, np.ndarray]) -> float | None:
    """PyTorch's time per call; None if it has no device."""
    torch = pytorch()
    if torch is None:
        return None
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[product.dtype]
    left, right = (torch.from_numpy(operand).cuda().to(dtype) for operand in operands)
    return seconds_a_call(lambda: product(left, right), torch)


def _row(name: str, taken: float, operations: int) -> str:
    return f"| {name:52} | {taken * 1e3:9.4f} | {operations / taken / 1e9:9.1f} |"


def measure(product: Product, backend: VulkanBackend) -> Iterator[str]:
    """The lines of a table: the choice, PyTorch, all candidates, fastest first, and those that do not fit."""
    random = np.random.default_rng(0)
    left, right = product.shapes()
    operands = random.standard_normal(left, np.float32), random.standard_normal(right, np.float32)
    buffers = [backend.upload(DTYPES[product.dtype].to_storage(operand)) for operand in operands]
    operations = 2 * product.batch * product.m * product.k * product.n
    yield f"| {'tile':52} | {'ms':>9} | {'GFLOP/s':>9} |"
    yield f"| {'-' * 52} | {'-' * 9} | {'-' * 9} |"
    yield _row("as chosen", seconds(product, backend, buffers), operations)
    peer = peer_seconds(product, operands)
    if peer is not None:
        yield _row("PyTorch", peer, operations)
    found, refused = [], []
    for schedule, parts in candidates(product, backend):
        name = f"{type(schedule).__name__}{astuple(schedule)} in {parts}"
        with forced(schedule, parts, backend):
            try:
                found.append((seconds(product, backend, buffers), name))
            except DeviceError as error:
                refused.append(f"{name}: {error}")
    yield from (_row(name, taken, operations) for taken, name in sorted(found))
    yield from refused


def main() -> None:
    backend = VulkanBackend()
    print(backend.profile.name)
    for text in sys.argv[1:] or PRODUCTS:
        print(f"\n{text}\n")
        for line in measure(product_of(text), backend):
            print(line, flush=True)


if __name__ == "__main__":
    main()
