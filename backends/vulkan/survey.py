"""What the Vulkan devices of this machine offer, and which schedules some typical kernels get on each.

Import late: importing loads Vulkan, and raises DeviceError if there is no loader. No device is opened.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields

from lavax.backends.vulkan.device import features
from lavax.backends.vulkan.device.device import largest_block
from lavax.backends.vulkan.device.extensions import with_extensions
from lavax.backends.vulkan.device.instance import PhysicalDevice, choose_device, instance, physical_devices
from lavax.backends.vulkan.emit.candidates import schedules_of
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.base import config
from lavax.base.errors import DeviceError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.operation import OPERATIONS
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule

# Families of operations that are no routine by themselves.
_PLAIN = frozenset({"source", "elementwise", "movement"})


@dataclass(frozen=True)
class SurveyedDevice:
    """A device of this machine. One that lacks something (`physical.missing`) has no profile."""

    physical: PhysicalDevice
    is_chosen: bool
    profile: DeviceProfile | None
    largest_array: int

    @property
    def features(self) -> tuple[list[str], list[str]]:
        """The optional features that it has, and those that it lacks."""
        if self.profile is None:
            return [], []
        flags = [field.name for field in fields(self.profile) if field.type == "bool"]
        found = {name: bool(getattr(self.profile, name)) for name in flags}
        found["cooperative_matrices"] = bool(self.profile.matrices)
        return [name for name, has in found.items() if has], [name for name, has in found.items() if not has]

    def schedules(self, graphs: Mapping[str, Graph]) -> Iterator[tuple[str, list[str]]]:
        """For each named graph, simplified, the schedules of its kernels in the order of their first use."""
        if self.profile is None:
            return
        target = target_of(self.profile, self.physical.memory_bytes, self.largest_array)
        for name, graph in graphs.items():
            program = schedule(prepare(graph, target), target=target)
            found = Counter(_schedule_text(step.kernel, self.profile) for step in steps_of(program.steps))
            yield name, [f"{text} ×{times}" if times > 1 else text for text, times in found.items()]


def survey() -> list[SurveyedDevice]:
    """All devices that the loader reports, best first. Raises DeviceError if there is no loader or no driver."""
    try:
        chosen = choose_device(config.device_selector())
    except DeviceError:
        if not physical_devices():
            raise
        chosen = None
    return [_surveyed(physical, physical is chosen) for physical in physical_devices()]


def _surveyed(physical: PhysicalDevice, is_chosen: bool) -> SurveyedDevice:
    if physical.missing:
        return SurveyedDevice(physical, False, None, 0)
    profile = with_extensions(features.read_profile(physical.handle), instance(), physical.handle)
    return SurveyedDevice(physical, is_chosen, profile, largest_block(physical.handle))


def _schedule_text(kernel: Kernel, profile: DeviceProfile) -> str:
    schedules = schedules_of(kernel, profile)
    if schedules:
        return repr(schedules[0])
    routines = (node.op for node in kernel.graph.nodes if OPERATIONS[node.op].family not in _PLAIN)
    return next(routines, kernel.kind)
