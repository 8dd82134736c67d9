"""How a kernel's work is spread over invocations and workgroups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.shader import Parameters, word
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, substitute, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# Grids beyond this are not portable in one dimension.
_MOST_GROUPS = 65535
_GPU_INVOCATIONS = 128
_VECTOR_BYTES = 16
# Of the bytes that shaders multiply by a number of turns.
_LONGEST_STEP = 1 << 31

# The number of a workgroup, whatever the form of the grid.
WORKGROUP = "(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)"


@dataclass(frozen=True)
class Launch:
    """A kernel's shader, the numbers it gets behind its slots, and how many workgroups run it.

    Numbers for which push constants have no room are given as an array (`Parameters`).
    """

    shader: Shader
    words: tuple[int, ...]
    groups: tuple[int, int, int]
    constants: tuple[bytes, ...] = ()  # arrays of the kernel's own, in slots behind those of its buffers
    before: Launch | None = None  # what must have run, over the same slots, before this one starts
    windowed: int = 0  # how many of its slots, from the first on, are those of the arrays' positions in windows
    order: tuple[int, ...] | None = None  # whose slots it gets, of the kernel's arrays by number; None: of all of them


def grid(groups: int) -> tuple[int, int, int]:
    """A number of workgroups as a grid of at least as many."""
    x = max(min(groups, _MOST_GROUPS), 1)
    return (x, -(-groups // x), 1)


def local_invocations(profile: DeviceProfile) -> int:
    """The workgroup of independent invocations: one subgroup on a CPU driver, a few on a GPU."""
    if profile.kind == "cpu":
        return profile.subgroup_size
    return min(_GPU_INVOCATIONS, profile.max_workgroup_invocations)


def open_body(kernel: Kernel, lifted: bool) -> tuple[Body, dict[Node, str]]:
    """A body with the addresses of the kernel's arrays at hand; also the addresses of its outputs.

    Slots: the inputs, the outputs, for each array that moves the counters it moves with, then the windowed arrays'
    positions.
    """
    arrays = [*kernel.graph.inputs, *kernel.graph.outputs]
    counters = sum(len(kernel.moving.get(node, ())) for node in arrays)
    inputs = {node: f"p{number}" for number, node in enumerate(kernel.graph.inputs)}
    outputs = {node: f"p{len(inputs) + number}" for number, node in enumerate(kernel.graph.outputs)}
    body = Body(inputs, Parameters(len(arrays) + counters + len(kernel.windowed), lifted))
    body.parameters.declarations = body.scopes[0].lines
    body.packed, body.paired = kernel.packed, kernel.paired
    body.unaligned = {
        node for node, strides in kernel.moving.items() if any(stride % _VECTOR_BYTES for stride in strides)
    }
    counter = len(arrays)
    for number, node in enumerate(arrays):
        address = f"table.address[{word(number, body.uses)}]"
        for stride in kernel.moving.get(node, ()):
            turn = f"{body.uses.reference('i32')}(table.address[{word(counter, body.uses)}]).data[0]"
            for step in steps_of_stride(stride):
                address = f"{body.uses.access('behind')}({address}, {turn}, {step}u)"
            counter += 1
        body.line(f"uint64_t p{number} = {address};")
    for slot, number in enumerate(kernel.windowed, counter):
        body.line(f"int w{number} = int(table.address[{word(slot, body.uses)}]);")
        (body.read_windows if number < len(inputs) else body.write_windows)[f"p{number}"] = number
    return body, outputs


def steps_of_stride(stride: int) -> list[int]:
    """A number of bytes as a sum of numbers of 32 bits."""
    whole, rest = divmod(stride, _LONGEST_STEP)
    return [_LONGEST_STEP] * whole + [rest] * (rest > 0)


def open_invocations(body: Body, count: int, local: int, name: str, subgroup: int | None = None) -> None:
    """Numbers the invocations, `name` being the number, and ends those beyond `count`.

    With `subgroup` given, lanes of a subgroup of that size have neighbouring numbers.
    """
    lane = f"gl_SubgroupID * {subgroup}u + gl_SubgroupInvocationID" if subgroup else "gl_LocalInvocationID.x"
    body.line(f"int {name} = int({WORKGROUP} * {local}u + {lane});")
    body.line(f"if ({name} >= {body.parameters.integer(count)}) return;")
    body.scopes[0].variables |= {name}


def open_strips(body: Body, count: int, local: int, strips: int) -> list[str]:
    """Gives every invocation so many numbers, each a workgroup further on; workgroups divide the count."""
    names = [f"i{strip}" for strip in range(strips)]
    body.line(f"int i0 = int({WORKGROUP} * {local * strips}u + gl_LocalInvocationID.x);")
    body.line(f"if (i0 >= {count}) return;")
    for strip, name in enumerate(names[1:], 1):
        body.line(f"int {name} = i0 + {strip * local};")
    body.scopes[0].variables |= set(names)
    return names


def at_row(row: Index, kernel: Kernel) -> dict[str, Index]:
    """The outer variables' values in the row of that number."""
    return _values(kernel.domain.outer_variables, unflatten(row, kernel.domain.outer))


def at_element(element: Index, kernel: Kernel) -> dict[str, Index]:
    """The reduced variables' values at that element of a row."""
    return _values(kernel.domain.reduced_variables, unflatten(element, kernel.domain.reduced))


def _values(variables: Coordinates, indices: Coordinates) -> dict[str, Index]:
    pairs = zip(variables, indices, strict=True)
    return {variable.key: index for variable, index in pairs if not variable.is_constant}


def placed(at: Coordinates, values: Mapping[str, Index]) -> Coordinates:
    """Coordinates with loop variables replaced."""
    return tuple(substitute(index, values) for index in at)
