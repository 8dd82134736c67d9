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
    together = max(limits.nbytes // max(longest, 1), 1)
    fits = is_seen and sum(map(_slots, seen)) <= REST_WORD and longest <= limits.longest
    are_few = lines * longest <= limits.nbytes  # a dispatch more would take longer than one processor needs for all
    return together if fits and (are_few or lines >= limits.parts * together) else 0


def _result(kernel: Kernel) -> int:
    """The number of its result among its arrays."""
    return len(kernel.graph.inputs)


def _slots(kernel: Kernel) -> int:
    return len(kernel.graph.inputs) + len(kernel.graph.outputs) + len(kernel.by_descriptor)


def in_parts(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels as parts of one dispatch: what is between two of them is there for the lines at hand only."""
    found = []
    for number, kernel in enumerate(kernels):
        between = [operand_of(kernel)] if number else []
        between += [_result(kernel)] if number + 1 < len(kernels) else []
        found.append(replace(kernel, in_parts=frozenset(array for array in between if array is not None)))
    return found


def in_turn(kernels: Sequence[Kernel], launches: Sequence[Launch], together: int) -> Launch:
    """The launch of all, for so many lines at a time; each kernel has the slots of its arrays and then of their
    positions, behind those of the kernels before it."""
    lines, local = lines_of(kernels[0]), _text(launches[0]).local_size
    parts = -(-lines // together)
    turns = -(-parts // LINES_IN_TURN.groups)
    uses, declarations, calls, first = Uses(), [], [], 0
    for number, (kernel, launch) in enumerate(zip(kernels, launches, strict=True)):
        text, each = _text(launch), launch.invocations // lines
        own = text.uses.copy()
        own.descriptors = {(form, slot + first) for form, slot in own.descriptors}
        uses.include(own)
        behind, arrays = sorted(kernel.in_parts or ()), (*kernel.graph.inputs, *kernel.graph.outputs)
        parameters = ["int first_of_part", "int end_of_part", *(f"int behind{array}" for array in behind)]
        declarations.append(f"void part{number}({', '.join(parameters)}) {{")
        declarations += [*(f"    {_moved(line, first)}" for line in text.main), "}"]
        if number + 1 == len(kernels):
            calls += _read_ahead(kernel, first, local[0], uses)
        texels = (_texels_behind(arrays[array], lines, together, turns) for array in behind)
        calls.append(f"part{number}({', '.join([f'first * {each}', f'end * {each}', *texels])});")
        calls.append("subgroupBarrier();")
        first += _slots(kernel)
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


def _read_ahead(kernel: Kernel, first: int, local: int, uses: Uses) -> list[str]:
    """Reads a word of each cache line of the result's lines. What is read is written if a slot has a number that no
    slot has, which the driver does not know, so that it keeps the reads."""
    result = _result(kernel)
    line, slot = kernel.graph.outputs[0].type.nbytes // lines_of(kernel), first + result
    position = word(first + result + 1 + kernel.by_descriptor.index(result), uses)
    texels, lane = _CACHE_LINE // _TEXEL_BYTES, "int(gl_LocalInvocationID.x)"
    return [
        "uint seen = 0u;",
        f"int start = int(table.address[{position}]), after = start + end * {line} / {_TEXEL_BYTES};",
        f"start += first * {line} / {_TEXEL_BYTES} + {texels} * {lane};",
        f"for (int at = start; at < after; at += {texels * local})",
        f"    seen |= texelFetch({uses.descriptor('vectors', slot)}, at).x;",
        f"if (words[0] == ~0u) {uses.descriptor('singles', slot)}.data[0] = seen;",
    ]


def _moved(line: str, first: int) -> str:
    """A line of a kernel's shader as part of one: its slots come after others."""
    line = _WORD.sub(lambda found: f"words[{int(found[1]) + first}]", line)
    return _SEEN.sub(lambda found: f"{found[1]}{int(found[2]) + first}", line)
