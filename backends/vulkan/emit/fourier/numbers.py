"""Complex numbers in memory, whose parts lie side by side. Positions count numbers."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.emit.fourier.beside import lines_beside, place_beside, writes_parts_apart
from lavax.backends.vulkan.emit.fourier.butterflies import Number
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.expressions import VECTOR, literal, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.neighbours import NUMBER_TYPES, number_at
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, unflatten
from lavax.passes.kernels.kernel import Kernel


def open_step(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> RoutineShader:
    """The routine of a step."""
    routine = open_routine(kernel, profile, lifted)
    routine.body.memory.stores_long_words = profile.stores_long_words
    return routine


def beneath_reshapes(value: Node) -> Node:
    """The value whose elements are the same, in the same order."""
    while value.op == "reshape":
        (value,) = value.operands
    return value


def _beneath_factor(value: Node) -> tuple[Node, float]:
    """The value whose elements are the same in the same order, or are multiplied by a number, which is given too."""
    inner = beneath_reshapes(value)
    if inner.op == "multiply" and inner.operands[1].op == "constant":
        return beneath_reshapes(inner.operands[0]), inner.operands[1].attrs["value"]
    return inner, 1.0


def read_number(routine: RoutineShader, operand: Node, position: Index) -> Number:
    """The number at a position: one texel through a descriptor, which may be scaled, or else part by part."""
    body, (stored, factor) = routine.body, _beneath_factor(operand)
    slot = body.memory.read_descriptors.get(body.addresses.get(stored, ""))
    if slot is None:
        sides = (unflatten(linear([(position, 2)], side), operand.shape) for side in (0, 1))
        body.loads_numbers = True
        found = Number(*(routine.read(operand, at) for at in sides))
        body.loads_numbers = False
        return found
    text = number_at(body, operand.dtype, slot, body.index(inside(position, operand.type.size // 2)))
    kind = NUMBER_TYPES[operand.dtype]
    scaled = text if factor == 1 else f"{text} * {literal(factor, operand.dtype)}"
    name = body.declare(body.scopes[-1], kind, scaled)
    return Number(f"{name}.x", f"{name}.y")


def read_neighbours(routine: RoutineShader, operand: Node, position: Index) -> str:
    """Two neighbours from an even position on, as the name of a vec4."""
    return read_four(routine, operand, linear([(position, 2)]))


def read_four(routine: RoutineShader, operand: Node, position: Index) -> str:
    """Four real numbers from a multiple of four on, of which a position counts each, as the name of a vec4."""
    body, at = routine.body, unflatten(linear([(position, 1), (LANE, 1)]), operand.shape)
    value = body.value(operand, at)
    if value.width == VECTOR:
        return value.text
    kind = type_name(operand.dtype, VECTOR)
    return body.declare(body.scopes[-1], kind, widened(value, VECTOR, operand.dtype))  # all are one element


def write_real(routine: RoutineShader, position: Index, text: str) -> None:
    """Writes a real number, of which a position counts each."""
    at = unflatten(place_beside(routine, position, 1), routine.node.shape)
    routine.body.store(routine.node, at, GlslValue(text, 1), routine.target)


def write_number(routine: RoutineShader, position: Index, number: Number) -> None:
    """Writes both parts at once through a descriptor, or else one by one, as those that lie apart."""
    body, parts = routine.body, (number.real, number.imaginary)
    if writes_parts_apart(routine):
        for side, text in enumerate(parts):
            write_real(routine, linear([(position, 2)], side), text)
        return
    position = place_beside(routine, position, 2)
    slot = body.memory.write_descriptors.get(routine.target)
    if slot is None:
        for side, text in enumerate(parts):
            body.line(f"{routine.element(linear([(position, 2)], side))} = {text};")
        return
    text = body.index(inside(position, routine.node.type.size // 2))
    if routine.node.dtype.bits == 64:
        body.line(body.memory.stored_doubles(slot, text, f"dvec2({', '.join(parts)})"))
    else:
        body.line(body.memory.stored_two(slot, text, f"vec2({', '.join(parts)})"))


def write_neighbours(routine: RoutineShader, position: Index, first: Number, second: Number) -> None:
    """Writes two numbers that are neighbours, from an even position on."""
    if lines_beside(routine) > 1:
        for side, number in enumerate((first, second)):
            write_number(routine, linear([(position, 1)], side), number)
        return
    parts = (first.real, first.imaginary, second.real, second.imaginary)
    kind = type_name(routine.node.dtype, VECTOR)
    write_four(routine, linear([(position, 2)]), f"{kind}({', '.join(parts)})")


def write_line(routine: RoutineShader, start: Index, numbers: Sequence[Number]) -> None:
    """Writes numbers that lie one behind the other: two at a time if their count is even, as then `start` is."""
    if len(numbers) % 2:
        for k, number in enumerate(numbers):
            write_number(routine, linear([(start, 1)], k), number)
    else:
        for k in range(0, len(numbers), 2):
            write_neighbours(routine, linear([(start, 1)], k), *numbers[k : k + 2])


def write_four(routine: RoutineShader, position: Index, text: str) -> None:
    """Writes a vec4 of real numbers from a multiple of four on, of which a position counts each."""
    body, node = routine.body, routine.node
    name = body.declare(body.scopes[-1], type_name(node.dtype, VECTOR), text)
    at = unflatten(linear([(position, 1), (LANE, 1)]), node.shape)
    body.store(node, at, GlslValue(name, VECTOR), routine.target)
