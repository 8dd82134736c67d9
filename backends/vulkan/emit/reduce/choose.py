"""Which schedule a row kernel gets: which row groups share its rows, and how a member walks over its elements."""

from __future__ import annotations

from lavax.backends.vulkan.emit.reduce.choose_cpu import candidates_on_cpu, choose_on_cpu
from lavax.backends.vulkan.emit.reduce.choose_gpu import candidates_on_gpu, choose_on_gpu
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS


def choose_schedule(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> RowSchedule:
    """The schedule of a row kernel on a device of this profile; one of few if `lifted`: other shapes are to share it.
    """
    choose = choose_on_gpu if _shares_as_gpu(profile) else choose_on_cpu
    return choose(kernel, profile, lifted)


def candidates(kernel: Kernel, profile: DeviceProfile) -> list[RowSchedule]:
    """The schedules worth timing, first the one that is chosen without timing."""
    others = candidates_on_gpu if _shares_as_gpu(profile) else candidates_on_cpu
    return list(dict.fromkeys([choose_schedule(kernel, profile, lifted=False), *others(kernel, profile)]))


def longest_row(profile: DeviceProfile) -> int:
    """Longer rows of neighbouring elements are better reduced in parts: the longest loops of row groups allow no more.
    """
    members = profile.subgroup_size if _shares_as_gpu(profile) else 1
    return MAX_LOOP_ITERATIONS * members


def long_column(profile: DeviceProfile) -> int | None:
    """The elements from which few columns are reduced in parts; None if no special number is needed.

    A workgroup has a line of neighbouring columns, so few columns leave most of a GPU idle. Exercised by
    `python -m benchmarks models` (ResNet-50).
    """
    return 1 << 11 if _shares_as_gpu(profile) else None


def turned_values(profile: DeviceProfile) -> int | None:
    """The elements of a value, one for each row, from which a map transposes it; None if rows write it as it lies.

    Exercised by `python -m benchmarks models` (ResNet-50): sums of four parts of 590,000 weights' gradients and Adam's
    update of the weights, which lie in another order, took an H100 48 µs in one kernel. With those of 147,000, a step
    in bfloat16 took 5.1 to 5.4 ms in place of 4.85, because the map waits.
    """
    return 1 << 19 if profile.kind != "cpu" else None


def _shares_as_gpu(profile: DeviceProfile) -> bool:
    return profile.kind != "cpu" and profile.subgroup_shuffle
