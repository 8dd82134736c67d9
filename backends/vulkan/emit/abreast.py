"""Kernels side by side in one dispatch: a shader with a function per kernel, and workgroups of each."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from itertools import accumulate
from math import prod

from lavax.backends.vulkan.emit.map.choose import transposes, transposition_of
from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.emit.reduce.interleaved import InterleavedRows
from lavax.backends.vulkan.glsl.descriptor_arrays import arrays_by_descriptor
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, local_invocations
from lavax.backends.vulkan.glsl.shader import REST_WORD, ShaderText, assemble
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.ops.indexing import SCATTERS
from lavax.passes.kernels.accesses import updated_in_place
from lavax.passes.kernels.kernel import Kernel, once_a_kernel


@dataclass(frozen=True)
class SmallKernels:
    """Kernels that share a dispatch. Exercised by `python -m benchmarks models` (decoding)."""

    elements: int = 1 << 21  # that one goes over, at most: longer ones keep the device busy alone
    map_on_cpu: int = 1 << 12  # the same of a map on a CPU driver, where maps of one form share a shader


SMALL_KERNELS = SmallKernels()
_WORD, _SHARED = re.compile(r"\bwords\[(\d+)\]"), re.compile(r"\bshared_(\w+)")
_SCRATCH = re.compile(r"shared vec4 scratch\[(\d+)\];")


@once_a_kernel
def abreast_key(kernel: Kernel, profile: DeviceProfile) -> Hashable | None:
    """The size of the kernel's workgroups, which one dispatch has; None for a kernel that shares none."""
    if kernel.kind == "routine":
        return local_invocations(profile) if updates_little(kernel) else None
    elements = kernel.domain.rows * kernel.domain.length
    if elements > SMALL_KERNELS.elements or arrays_by_descriptor(kernel, profile.descriptor_range_bytes):
        return None
    if kernel.kind == "row":
        if profile.kind == "cpu":
            return None  # rows take such a driver long to compile, and kernels share their shaders
        schedule = choose_schedule(kernel, profile, lifted=False)
        return None if isinstance(schedule, InterleavedRows) else schedule.local  # those need much shared memory
    if kernel.kind == "map":
        if profile.kind == "cpu" and kernel.domain.rows > SMALL_KERNELS.map_on_cpu:
            return None
        turned = transposes(transposition_of(kernel, profile), profile, lifted=False)
        return None if turned else local_invocations(profile)
    return None


def updates_little(kernel: Kernel) -> bool:
    """Whether it is a scatter that may change its array in place: then only the updates count, not the array."""
    node = kernel.graph.outputs[0]
    if node.op not in SCATTERS or updated_in_place(kernel) is None:
        return False
    return node.operands[1].type.size <= SMALL_KERNELS.elements


def abreast(launches: Sequence[Launch], slots: Sequence[int]) -> Launch | None:
    """The launch of all; `slots` are how many each one has. None if these launches cannot share one."""
    texts = [launch.text for launch in launches if launch.text is not None]
    sizes = {text.local_size for text in texts}
    subgroups = {text.subgroup_size for text in texts} - {None}
    plain = all(not launch.words and launch.before is None and launch.order is None for launch in launches)
    groups = [prod(launch.groups) for launch in launches]
    if len(texts) < len(launches) or len(sizes) > 1 or len(subgroups) > 1 or not plain or sum(slots) > REST_WORD:
        return None
    uses, calls = Uses(), []
    declarations = _scratch_of(texts)
    starts = [0, *accumulate(groups)]
    for number, (text, first) in enumerate(zip(texts, [0, *accumulate(slots)], strict=False)):
        uses.include(text.uses)
        lines = [_moved(line, number, first) for line in text.main]
        declarations += [_moved(line, number, first) for line in text.declarations if not _SCRATCH.match(line)]
        declarations += [f"void part{number}(uint group_of_part) {{", *(f"    {line}" for line in lines), "}"]
        calls.append(f"if (workgroup < {starts[number + 1]}u) part{number}(workgroup - {starts[number]}u);")
    main = [f"uint workgroup = {WORKGROUP};", calls[0], *(f"else {call}" for call in calls[1:])]
    text = ShaderText(
        uses,
        main,
        sizes.pop(),
        declarations,
        next(iter(subgroups), None),
        shuffles=any(text.shuffles for text in texts),
        pragma="".join(dict.fromkeys(text.pragma for text in texts)),
    )
    return Launch(assemble(text), (), grid(starts[-1]), text=text)


def _scratch_of(texts: Sequence[ShaderText]) -> list[str]:
    """The shared memory of the greatest of the texts: a workgroup runs one of them."""
    sizes = [int(found[1]) for text in texts for found in map(_SCRATCH.match, text.declarations) if found is not None]
    return [f"shared vec4 scratch[{max(sizes)}];"] if sizes else []


def _moved(line: str, number: int, first: int) -> str:
    """A line of a kernel's shader as part of one: its slots come after others, its workgroups are numbered anew."""
    line = _WORD.sub(lambda found: f"words[{int(found[1]) + first}]", line.replace(WORKGROUP, "(group_of_part)"))
    return _SHARED.sub(rf"shared{number}_\1", line)
