"""Sorting of short runs: an invocation counts the elements of a run that come before its own.

A GPU's invocations have an element each. On a CPU driver, where a read is a loop over the lanes and comparing is not,
they have several of a row that is one run, and read each other element once for all of them.
"""

from __future__ import annotations

from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import before, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import ZERO, flatten, linear, variable
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class OwnElements:
    """How many elements an invocation of a CPU driver may have, in rows of at least as many.

    docs/performance/sorts_on_cpus.md, "Orders of short rows".
    """

    counts: tuple[int, ...] = (8, 4)


OWN_ELEMENTS = OwnElements()


def emit_sort_runs(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of sort_runs."""
    (node,) = kernel.graph.outputs
    length = node.shape[-1]
    if profile.kind == "cpu" and not lifted and length <= node.attrs["run"]:
        for count in OWN_ELEMENTS.counts:
            if count <= length:
                return _emit_several(kernel, profile, count)
    return _emit_single(kernel, profile, lifted)


def _emit_several(kernel: Kernel, profile: DeviceProfile, count: int) -> Launch:
    """Invocations have elements that are as far apart as there are invocations for a row."""
    routine = open_routine(kernel, profile, lifted=False)
    body, (keys,) = routine.body, routine.operands
    length, dtype, uses = keys.shape[-1], keys.dtype, routine.body.uses
    apart = -(-length // count)
    *row, slot = routine.open_elements((*keys.shape[:-1], apart))
    extent = routine.integer("extent", length)
    owned: list[str] = []
    for number in range(count):
        place = body.index(linear([(slot, 1)], number * apart))
        body.line(f"int place{number} = {place};")
        routine.position(f"at{number}", f"min(place{number}, {extent} - 1)", length)
        owned.append(routine.read(keys, (*row, variable(f"at{number}", length))))
        body.line(f"int rank{number} = 0;")
    with body.block(f"for (int j = 0; j < {extent}; ++j)", frozenset(("j",))):
        other = routine.read(keys, (*row, variable("j", length)))
        for number, own in enumerate(owned):
            ahead, behind = before(other, own, dtype, uses), before(own, other, dtype, uses)
            body.line(f"rank{number} += int(mix({ahead}, !{behind}, j < place{number}));")
    first = body.index(flatten((*row, ZERO), keys.shape))
    for number in range(count):
        result = routine.element(f"{first} + rank{number}")
        body.line(f"if (place{number} < {extent}) {result} = place{number};")
    return routine.close(keys.type.size // length * apart)


def _emit_single(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """Invocations have an element each."""
    routine = open_routine(kernel, profile, lifted)
    body, (keys,) = routine.body, routine.operands
    length = keys.shape[-1]
    *row, place = routine.open_elements(keys.shape)
    run = routine.integer("run", min(routine.node.attrs["run"], length))
    extent = routine.integer("extent", length)
    body.line(f"int own_place = {body.index(place)};")
    body.line(f"int start = own_place / {run} * {run};")
    own = routine.read(keys, (*row, place))
    body.line("int rank = start;")
    with body.block(f"for (int j = start; j < min(start + {run}, {extent}); ++j)", frozenset(("j",))):
        other = routine.read(keys, (*row, variable("j", length)))
        uses = routine.body.uses
        ahead, behind = before(other, own, keys.dtype, uses), before(own, other, keys.dtype, uses)
        body.line(f"rank += int(mix({ahead}, !{behind}, j < own_place));")
    first = body.index(flatten((*row, ZERO), keys.shape))
    body.line(f"{routine.element(f'{first} + rank')} = own_place;")
    return routine.close(keys.type.size)
