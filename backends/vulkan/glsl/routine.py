"""Kernels of routines: one node, whose own emitter computes one array of results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.bounds import inside, note
from lavax.backends.vulkan.glsl.launch import (
    Launch,
    grid,
    local_invocations,
    open_body,
    open_invocations,
    open_turns,
)
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import DType
from lavax.passes.kernels.index import Index, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(eq=False)
class RoutineShader:
    """The state of writing a routine's shader, whose workgroups have `local` invocations."""

    node: Node
    body: Body
    target: str  # the address of the result
    local: int
    turns: int = 1  # how many numbers an invocation works on, one after the other
    is_part: bool = False  # whether a shader calls it for some of the numbers at a time (emit/lines_in_turn.py)

    @property
    def operands(self) -> tuple[Node, ...]:
        return self.node.operands

    def integer(self, name: str, value: int) -> str:
        """Declares a size of the shape at hand under a name."""
        self.body.line(f"int {name} = {self.body.parameters.integer(value)};")
        return name

    def open(self, invocations: int, name: str = "i") -> Index:
        """Numbers the invocations and ends those beyond the count; the number as an index."""
        open_invocations(self.body, invocations, self.local, name)
        return variable(name, invocations)

    @contextmanager
    def open_turns(self, count: int, turns: int) -> Iterator[Index]:
        """The context in which a number is worked on, of which each invocation has so many; the number as an index."""
        if self.is_part:
            each = f"int i = first_of_part + int(gl_LocalInvocationID.x); i < end_of_part; i += {self.local}"
            with self.body.block(f"for ({each})", frozenset(("i",))):
                yield variable("i", count)
            return
        self.turns = turns
        with open_turns(self.body, count, self.local, turns):
            yield variable("i", count)

    def open_elements(self, shape: tuple[int, ...]) -> Coordinates:
        """One invocation per element of `shape`; its coordinates."""
        return unflatten(self.open(prod(shape)), shape)

    def position(self, name: str, text: str, extent: int) -> Index:
        """Declares a number that the shader computes, from 0 to extent - 1, as an index into arrays."""
        self.body.line(f"int {name} = {text};")
        self.body.scopes[-1].variables |= {name}
        return variable(name, extent)

    def read(self, operand: Node, at: Coordinates) -> str:
        return self.body.value(operand, at).text

    def element(self, position: Index | str) -> str:
        """The result's element at a row-major position, to be assigned to.

        A text says nothing of its bounds, so it is clamped.
        """
        size = self.node.type.size
        if isinstance(position, Index):
            text = self.body.index(inside(position, size))
        else:
            note("clamped")
            text = f"clamp({position}, 0, {self.body.parameters.count(size)} - 1)"
        return self.body.memory.element(self.node.dtype, self.target, text)

    def close(self, invocations: int, subgroup: bool = False) -> Launch:
        lanes = self.local if subgroup else None
        lines, local = self.body.scopes[0].lines, (self.local, 1)
        groups = -(-invocations // (self.local * self.turns))
        text = ShaderText(self.body.uses, lines, local, subgroup_size=lanes, shuffles=subgroup)
        words = tuple(self.body.parameters.words)
        return Launch(assemble(text), words, grid(groups), text=text, invocations=invocations)


def open_routine(kernel: Kernel, profile: DeviceProfile, lifted: bool, local: int | None = None) -> RoutineShader:
    """The routine of a kernel of one node."""
    (node,) = kernel.graph.outputs
    body, outputs = open_body(kernel, lifted)
    body.parameters.only_counts = node.op.startswith("fourier_")
    is_part = kernel.in_parts is not None
    return RoutineShader(node, body, outputs[node], local or local_invocations(profile), is_part=is_part)


def before(first: str, second: str, dtype: DType, uses: Uses) -> str:
    """Whether one value comes before another in a sorted array: NaN after all numbers."""
    if dtype.kind == "bool":
        return f"(!{first} && {second})"
    if dtype.is_float:
        isnan = uses.function("lx_isnan", dtype)
        return f"({first} < {second} || (!{isnan}({first}) && {isnan}({second})))"
    return f"({first} < {second})"
