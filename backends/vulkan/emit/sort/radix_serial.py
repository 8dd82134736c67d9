"""A pass of radix sort with one invocation per tile, which has counters of its own."""

from __future__ import annotations

from lavax.backends.vulkan.emit.sort.radix_schedule import RadixPass
from lavax.backends.vulkan.emit.sort.radix_tiles import RadixTiles
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel


class SerialPass(RadixPass):
    """Writes the kernels of a pass whose tiles have an invocation each."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.routine = routine = open_routine(kernel, profile, lifted)
        self.tiles, self.body = RadixTiles(routine), routine.body
        routine.open(self.tiles.count)
        self.tiles.open("i")
        self.body.line(f"uint counters[{self.tiles.digits}];")

    def count(self) -> Launch:
        with self.tiles.every_digit():
            self.body.line("counters[d] = 0u;")
        with self.tiles.along("first", "1"):
            self.tiles.value("k")
            self.body.line("++counters[digit];")
        with self.tiles.every_digit():
            self.tiles.write_count()
        return self.routine.close(self.tiles.count)

    def move(self) -> Launch:
        with self.tiles.every_digit():
            self.body.line(f"counters[d] = {self.tiles.start()};")
        with self.tiles.along("first", "1"):
            value = self.tiles.value("k")
            self.body.line(f"{self.routine.element('row + int(counters[digit])')} = {value};")
            self.body.line("++counters[digit];")
        return self.routine.close(self.tiles.count)
