"""The two kernels of a pass of radix sort, which each of its schedules writes, and the limits of shared tiles."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class SharedTiles:
    """Tiles that a workgroup shares. docs/rejected/sorting_and_scatters.md, "Radix sort on a GPU without order in
    shared memory, and more subgroups"; `python -m benchmarks algorithms`."""

    subgroups: int = 8  # of a workgroup; every tile is a multiple of their lanes
    widest_subgroup: int = 64
    held: int = 16  # values of a tile that a lane keeps in registers, at most


SHARED_TILES = SharedTiles()


class RadixPass(ABC):
    """One schedule: it writes the two kernels of a pass."""

    @abstractmethod
    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None: ...

    @abstractmethod
    def count(self) -> Launch:
        """The kernel that counts the values of each digit in each tile."""

    @abstractmethod
    def move(self) -> Launch:
        """The kernel that moves the values of each tile by their digits."""
