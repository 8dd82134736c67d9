"""Kernels that one shader serves, in one dispatch, with workgroups of each.

Such kernels are equal but for their arrays, as those that write a token into the caches of layers, or are products that
differ in their numbers only (strided/). Which slots and words a workgroup uses follows from its number: by a division
if all kernels have the same words and the push constants hold all slots, else from a table in memory, in which there is
room for any number of kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

import numpy as np

from lavax.backends.vulkan.emit.abreast import updates_little
from lavax.backends.vulkan.emit.strided.kernel import shader_key
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid
from lavax.backends.vulkan.glsl.shader import REST_WORD, ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.kernel import Kernel, kernel_key, once_a_kernel

_KINDS = frozenset({"contract", "row"})  # maps that are equal are merged (map/merged.py)
_WORD = re.compile(r"\bwords\[(\d+)\]")
_MOST_GROUPS = 65535  # in a grid of one dimension


@dataclass(frozen=True)
class Part:
    """One of the kernels, and the numbers that its shader gets; `seen` are the slots that its bindings refer to."""

    launch: Launch
    slots: tuple[int, ...]
    seen: tuple[int, ...]

    @property
    def groups(self) -> int:
        return prod(self.launch.groups)


@once_a_kernel
def same_shader_key(kernel: Kernel, profile: DeviceProfile) -> Hashable | None:
    """Equal for kernels that one shader serves in one dispatch; None for a kernel that shares none."""
    if kernel.kind not in _KINDS and not (kernel.kind == "routine" and updates_little(kernel)):
        return None
    strided = shader_key(kernel, profile) if kernel.kind == "contract" else None
    return kernel_key(kernel) if strided is None else strided


def by_division(parts: Sequence[Part]) -> Launch | None:
    """The launch of kernels that are equal but for their arrays, whose slots stand one after the other in the push
    constants, before the words that all get; None if they cannot be dispatched so."""
    launch, slots = parts[0].launch, len(parts[0].slots)
    words, every = launch.words, slots * len(parts)
    equal = all(part.launch.words == words and part.launch.groups == launch.groups for part in parts)
    if not equal or not _share(parts) or launch.shader.bindings or every + len(words) > REST_WORD:
        return None

    def of_part(number: int) -> str:
        return f"words[{number}u + first_slot]" if number < slots else f"words[{number - slots + every}]"

    groups = parts[0].groups
    total = grid(groups * len(parts))
    # A grid of two dimensions may have more workgroups than the parts, for which there are no slots.
    is_larger = prod(total) > groups * len(parts)
    start = [
        *([f"if ({WORKGROUP} >= {groups * len(parts)}u) return;"] if is_larger else []),
        f"uint number_of_part = {WORKGROUP} / {groups}u, first_slot = {slots}u * number_of_part;",
        f"uint group_of_part = {WORKGROUP} - {groups}u * number_of_part;",
    ]
    text = _by_part(launch.text, start, of_part)
    return None if text is None else Launch(assemble(text), words, total, text=text)


def by_table(parts: Sequence[Part]) -> Launch | None:
    """The launch of kernels whose slots and words stand in a table, its constant; None if they cannot be dispatched so.

    Behind the table's slot it gets the number of its first workgroup.
    """
    launch, total = parts[0].launch, sum(part.groups for part in parts)
    if not _share(parts) or total > _MOST_GROUPS:
        return None
    text = None if launch.text is None else replace(launch.text, uses=launch.text.uses.copy())
    words = "" if text is None else text.uses.reference("u32")
    start = [
        f"{words} numbers_of = {words}(table.address[words[0]]);",
        f"uint workgroup = {WORKGROUP} + words[1], entry = numbers_of.data[workgroup];",
        "uint group_of_part = workgroup - numbers_of.data[entry];",
    ]
    text = _by_part(text, start, lambda number: f"numbers_of.data[entry + {number + 1}u]")
    return None if text is None else Launch(assemble(text), (0,), (total, 1, 1), (_table(parts),), text=text)


def _share(parts: Sequence[Part]) -> bool:
    """Whether the launches are nothing but one shader over slots and words, all in push constants, as those of strided
    products always are."""
    return all(
        part.launch.shader == parts[0].launch.shader
        and part.launch.before is None
        and not part.launch.constants
        and (len(part.slots) + len(part.launch.words) <= REST_WORD or part.launch.order is not None)
        for part in parts
    )


def _by_part(text: ShaderText | None, start: list[str], word: Callable[[int], str]) -> ShaderText | None:
    """The text with workgroups numbered within their part, and its words; `start` says which part it is."""
    if text is None or any(_WORD.search(line) or WORKGROUP in line for line in text.declarations):
        return None
    lines = (line.replace(WORKGROUP, "(group_of_part)") for line in text.main)
    return replace(text, main=[*start, *(_WORD.sub(lambda found: word(int(found[1])), line) for line in lines)])


def _table(parts: Sequence[Part]) -> bytes:
    """For each workgroup where the entry of its part begins, then the entries: the first workgroup, slots, words."""
    firsts = [0, *accumulate(part.groups for part in parts)]
    entries = [(first, *part.slots, *part.launch.words) for first, part in zip(firsts, parts, strict=False)]
    starts = accumulate((len(entry) for entry in entries[:-1]), initial=firsts[-1])
    owners = np.repeat(list(starts), [part.groups for part in parts])
    return np.concatenate([owners, *entries]).astype(np.uint32).tobytes()
