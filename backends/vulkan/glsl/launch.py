"""How a kernel's work is distributed over invocations and workgroups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from math import prod
from typing import TypeVar

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.shader import Parameters, ShaderText, word
from lavax.backends.vulkan.plan.plan import Copies, Shader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, substitute, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

_BodyKind = TypeVar("_BodyKind", bound=Body)
# Larger grids are not portable in one dimension.
_MOST_GROUPS = 65535
_GPU_INVOCATIONS = 128
_VECTOR_BYTES = 16
# The longest stride in bytes that shaders multiply by an iteration's number.
_LONGEST_STEP = 1 << 31

# The number of a workgroup, whatever the form of the grid.
WORKGROUP = "(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)"


@dataclass(frozen=True)
class Launch:
    """A kernel's shader, the numbers it gets behind its slots, and how many workgroups run it.

    Numbers that do not fit push constants go into an array (`Parameters`).
    """

    shader: Shader
    words: tuple[int, ...]
    groups: tuple[int, int, int]
    constants: tuple[bytes, ...] = ()  # the kernel's own arrays, in slots behind those of its buffers
    before: Launch | None = None  # the launch that must finish, over the same slots, before this one starts
    by_descriptor: int = 0  # how many of its first slots have positions of arrays in descriptor ranges
    order: tuple[int, ...] | None = None  # the numbers of the kernel's arrays whose slots it gets; None: all of them
    text: ShaderText | None = field(default=None, compare=False)  # of a shader that may be a part of another
    has_rest: bool = True  # whether some of its numbers may be in an array
    iterations: int = 0  # of loops that one of its workgroups makes at most, if it is known
    invocations: int = 0  # of a routine whose numbers may be worked on some at a time
    in_table: bool = False  # whether it gets its numbers from a table, as others do that share its shader
    copies: Copies | None = None  # what may take its place, with numbers of the kernel's arrays as slots
    memory_bytes: int = 0  # of memory of its own, in a slot behind all others: its first words are zeros between runs


def grid(groups: int) -> tuple[int, int, int]:
    """A grid of at least so many workgroups."""
    x = max(min(groups, _MOST_GROUPS), 1)
    return (x, -(-groups // x), 1)


def local_invocations(profile: DeviceProfile) -> int:
    """The workgroup of independent invocations: one subgroup on a CPU driver, a few on a GPU."""
    if profile.kind == "cpu":
        return profile.subgroup_size
    return min(_GPU_INVOCATIONS, profile.max_workgroup_invocations)


def open_body(kernel: Kernel, lifted: bool) -> tuple[Body, dict[Node, str]]:
    """A body with the addresses of the kernel's arrays declared; also the addresses of its outputs."""
    return open_body_of(Body, kernel, lifted)


def open_body_of(kind: type[_BodyKind], kernel: Kernel, lifted: bool) -> tuple[_BodyKind, dict[Node, str]]:
    """The same, of a class of bodies.

    Slots: the inputs, the outputs, the counters with which arrays move, then the positions of arrays in descriptor
    ranges.
    """
    arrays = [*kernel.graph.inputs, *kernel.graph.outputs]
    counters = sum(len(kernel.moving.get(node, ())) for node in arrays)
    inputs = {node: f"p{number}" for number, node in enumerate(kernel.graph.inputs)}
    outputs = {node: f"p{len(inputs) + number}" for number, node in enumerate(kernel.graph.outputs)}
    body = kind(inputs, Parameters(len(arrays) + counters + len(kernel.by_descriptor), lifted))
    body.parameters.declarations = body.scopes[0].lines
    body.memory.packed, body.memory.paired = kernel.packed, kernel.paired
    body.memory.changing = kernel.changing
    body.constants.given = kernel.given
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
    for slot, number in enumerate(kernel.by_descriptor, counter):
        behind = f" - behind{number}" if number in (kernel.in_parts or ()) else ""
        body.line(f"int w{number} = int(table.address[{word(slot, body.uses)}]){behind};")
        (body.memory.read_descriptors if number < len(inputs) else body.memory.write_descriptors)[f"p{number}"] = number
    return body, outputs


def steps_of_stride(stride: int) -> list[int]:
    """A number of bytes as a sum of 32-bit numbers."""
    whole, rest = divmod(stride, _LONGEST_STEP)
    return [_LONGEST_STEP] * whole + [rest] * (rest > 0)


def open_invocations(body: Body, count: int, local: int, name: str, subgroup: int | None = None) -> None:
    """Declares the invocation's number as `name`, and ends invocations beyond `count`.

    If `subgroup` is given, lanes of a subgroup of that size have neighbouring numbers.
    """
    lane = f"gl_SubgroupID * {subgroup}u + gl_SubgroupInvocationID" if subgroup else "gl_LocalInvocationID.x"
    body.line(f"int {name} = int({WORKGROUP} * {local}u + {lane});")
    body.line(f"if ({name} >= {body.parameters.count(count)}) return;")
    body.scopes[0].variables |= {name}


def open_strips(body: Body, count: int, local: int, strips: int) -> list[str]:
    """Gives every invocation one number per strip, a workgroup apart; workgroups divide the count."""
    names = [f"i{strip}" for strip in range(strips)]
    body.line(f"int i0 = int({WORKGROUP} * {local * strips}u + gl_LocalInvocationID.x);")
    body.line(f"if (i0 >= {count}) return;")
    for strip, name in enumerate(names[1:], 1):
        body.line(f"int {name} = i0 + {strip * local};")
    body.scopes[0].variables |= set(names)
    return names


@contextmanager
def open_turns(body: Body, count: int, local: int, turns: int, name: str = "i") -> Iterator[None]:
    """The context in which the number `name` is worked on: one to an invocation, or several, a workgroup apart, in a
    loop. Starting a workgroup takes a CPU driver as long as computing some vectors."""
    if turns == 1:
        open_invocations(body, count, local, name)
        yield
        return
    groups = -(-count // (local * turns))
    body.line(f"int group = int{WORKGROUP};")
    if prod(grid(groups)) > groups:
        body.line(f"if (group >= {body.parameters.integer(groups)}) return;")
    # The driver would unroll a loop whose end it knows.
    bound = body.parameters.unknown(turns)
    number = f"(group * {turns} + turn) * {local} + int(gl_LocalInvocationID.x)"
    within = "" if count % (local * turns) == 0 else f" && {number} < {body.parameters.integer(count)}"
    with body.block(f"for (int turn = 0; turn < {bound}{within}; ++turn)", frozenset((name,))):
        body.line(f"int {name} = {number};")
        yield


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
