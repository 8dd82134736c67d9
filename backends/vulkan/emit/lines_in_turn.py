"""Steps of Fourier transforms for a few lines at a time, in one dispatch of a CPU driver.

A dispatch of one step goes over all lines, so that the next one finds none of them in a processor's cache. Here a
workgroup, which is one subgroup, takes a few lines through all steps before it takes the next ones. What is between two
steps has a place for the lines that each workgroup has at a time, in the array that would have all of them.

The last step writes numbers that lie far apart. A processor waits for each cache line that it writes to and does not
have, one after the other, but reads several at once: so the result's lines are read before they are written.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lavax.backends.vulkan.emit.linalg.matrices import is_one_subgroup
from lavax.backends.vulkan.glsl.descriptor_arrays import arrays_by_descriptor
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, local_invocations
from lavax.backends.vulkan.glsl.shader import REST_WORD, ShaderText, assemble, word
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.plan import BINDINGS
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.schedule.lines_in_turn import lines_of, operand_of


@dataclass(frozen=True)
class LinesInTurn:
    """Chosen by `python -m benchmarks fft`."""

    nbytes: int = 1 << 15  # of the lines that a workgroup takes at a time, at least
    longest: int = 1 << 23  # bytes of a line
    parts: int = 4  # for so many processors, at least
    groups: int = 64  # workgroups, at most


LINES_IN_TURN = LinesInTurn()
_WORD = re.compile(r"\bwords\[(\d+)\]")
_SEEN = re.compile(rf"\b({'|'.join(BINDINGS)})(\d+)\b")
_TEXEL_BYTES, _CACHE_LINE = 16, 64


def lines_at_a_time(kernels: Sequence[Kernel], profile: DeviceProfile) -> int:
    """How many lines a workgroup takes through all kernels, each of which reads what the one before it writes; 0 if
    each is better dispatched for itself."""
    limits, lines = LINES_IN_TURN, lines_of(kernels[0])
    if not is_one_subgroup(profile, local_invocations(profile)):
        return 0
    seen = [
        replace(kernel, by_descriptor=arrays_by_descriptor(kernel, profile.descriptor_range_bytes))
        for kernel in kernels
    ]
    is_seen = all((part.in_parts or frozenset()) <= {*part.by_descriptor} for part in in_parts(seen))
    is_seen &= _result(seen[-1]) in seen[-1].by_descriptor
    longest = max(kernel.graph.outputs[0].type.nbytes for kernel in kernels) // max(lines, 1)
    together = _whole(max(limits.nbytes // max(longest, 1), 1), kernels[-1])
    fits = is_seen and _count(slots_in_turn(seen)) <= REST_WORD and longest <= limits.longest
    are_few = lines * longest <= limits.nbytes  # a dispatch more would take longer than one processor needs for all
    return together if fits and (are_few or lines >= limits.parts * together) else 0


def _whole(lines: int, last: Kernel) -> int:
    """So many lines or more, whose results are one part of what the last step writes."""
    beside = int(last.graph.outputs[0].attrs.get("beside", 1))
    return -(-lines // beside) * beside


def _result(kernel: Kernel) -> int:
    """The number of its result among its arrays."""
    return len(kernel.graph.inputs)


def slots_in_turn(kernels: Sequence[Kernel]) -> list[list[int]]:
    """The slots that each kernel's own have among those of the dispatch: of its arrays, and then of their positions.
    What one kernel writes and the next one reads has the same ones."""
    found: list[list[int]] = []
    for number, kernel in enumerate(kernels):
        shared: dict[int, int] = {}
        if number:
            before = kernels[number - 1]
            written = (found[-1][slot] for slot in _slots(before, _result(before)))
            shared.update(zip(_slots(kernel, operand_of(kernel)), written, strict=True))
        own, new = [], _count(found)
        for slot in range(_result(kernel) + 1 + len(kernel.by_descriptor)):
            own.append(shared.get(slot, new))
            new += slot not in shared
        found.append(own)
    return found


def _slots(kernel: Kernel, array: int | None) -> list[int]:
    """A kernel's own slots of an array that is seen through descriptors: its own and its position's."""
    assert array is not None
    return [array, _result(kernel) + 1 + kernel.by_descriptor.index(array)]


def _count(slots: Sequence[Sequence[int]]) -> int:
    return max((slot + 1 for own in slots for slot in own), default=0)


def in_parts(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels as parts of one dispatch: what is between two of them is there for the lines at hand only."""
    found = []
    for number, kernel in enumerate(kernels):
        between = [operand_of(kernel)] if number else []
        between += [_result(kernel)] if number + 1 < len(kernels) else []
        found.append(replace(kernel, in_parts=frozenset(array for array in between if array is not None)))
    return found


def in_turn(kernels: Sequence[Kernel], launches: Sequence[Launch], together: int) -> Launch:
    """The launch of all, for so many lines at a time, with the slots of `slots_in_turn`."""
    lines, local = lines_of(kernels[0]), _text(launches[0]).local_size
    parts = -(-lines // together)
    turns = -(-parts // LINES_IN_TURN.groups)
    uses, declarations, calls = Uses(), [], []
    for number, (kernel, launch, slots) in enumerate(zip(kernels, launches, slots_in_turn(kernels), strict=True)):
        text, each = _text(launch), launch.invocations // lines
        own = text.uses.copy()
        own.descriptors = {(form, slots[slot]) for form, slot in own.descriptors}
        uses.include(own)
        behind, arrays = sorted(kernel.in_parts or ()), (*kernel.graph.inputs, *kernel.graph.outputs)
        parameters = ["int first_of_part", "int end_of_part", *(f"int behind{array}" for array in behind)]
        declarations.append(f"void part{number}({', '.join(parameters)}) {{")
        declarations += [*(f"    {_moved(line, slots)}" for line in text.main), "}"]
        if number + 1 == len(kernels):
            calls += _read_ahead(kernel, slots, local[0], uses)
        texels = (_texels_behind(arrays[array], lines, together, turns) for array in behind)
        calls.append(f"part{number}({', '.join([f'first * {each}', f'end * {each}', *texels])});")
        calls.append("subgroupBarrier();")
    main = [
        f"int group = int({WORKGROUP}), last = min((group + 1) * {turns * together}, {lines});",
        f"for (int first = group * {turns * together}; first < last; first += {together}) {{",
        f"    int end = min(first + {together}, last);",
        *(f"    {line}" for line in calls),
        "}",
    ]
    shader = ShaderText(uses, main, local, declarations, local[0], shuffles=True)
    return Launch(assemble(shader), (), grid(-(-parts // turns)), text=shader)


def _text(launch: Launch) -> ShaderText:
    assert launch.text is not None and not launch.words, "steps in turn have nothing but their slots"
    return launch.text


def _texels_behind(array: Node, lines: int, together: int, turns: int) -> str:
    """How many texels before its own place among all lines a workgroup's line is: all workgroups' lines at hand lie
    side by side, each beginning at the place within a texel at which it would lie otherwise."""
    if turns == 1:
        return "0"
    line = array.type.nbytes // lines
    return f"first * {line} / {_TEXEL_BYTES} - group * {together * line // _TEXEL_BYTES + 2}"


def _read_ahead(kernel: Kernel, slots: Sequence[int], local: int, uses: Uses) -> list[str]:
    """Reads a word of each cache line of the result's lines. What is read is written if a slot has a number that no
    slot has, which the driver does not know, so that it keeps the reads."""
    result = _result(kernel)
    line, (slot, place) = kernel.graph.outputs[0].type.nbytes // lines_of(kernel), _slots(kernel, result)
    slot, position = slots[slot], word(slots[place], uses)
    texels, lane = _CACHE_LINE // _TEXEL_BYTES, "int(gl_LocalInvocationID.x)"
    return [
        "uint seen = 0u;",
        f"int start = int(table.address[{position}]), after = start + end * {line} / {_TEXEL_BYTES};",
        f"start += first * {line} / {_TEXEL_BYTES} + {texels} * {lane};",
        f"for (int at = start; at < after; at += {texels * local})",
        f"    seen |= texelFetch({uses.descriptor('vectors', slot)}, at).x;",
        f"if (words[0] == ~0u) {uses.descriptor('singles', slot)}.data[0] = seen;",
    ]


def _moved(line: str, slots: Sequence[int]) -> str:
    """A line of a kernel's shader as part of one, which has other slots."""
    line = _WORD.sub(lambda found: f"words[{slots[int(found[1])]}]", line)
    return _SEEN.sub(lambda found: f"{found[1]}{slots[int(found[2])]}", line)
