"""Vectors of eight neighbouring elements of 16 bits: the form in which shared memory holds matrices' operands."""

from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.glsl import end_to_end
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import is_multiple, lane_step, quotient_exact
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.ir.types import DType, float32
from lavax.passes.kernels.index import Index, add, constant, flatten, substitute
from lavax.passes.kernels.reads import READS, Coordinates, Within, inside_pad, inside_unshear

EIGHT = 8
# Operations that only read from other places in memory.
_MOVING = frozenset(("reshape", "transpose", "broadcast", "slice", "flip", "shear"))

# A node, and the coordinates of four of its elements by lane.
Element = tuple[Node, Coordinates]


def source_of(node: Node, at: Coordinates, dtype: DType) -> Element:
    """The node that an element is a moved and rounded element of, and the coordinates there."""
    while node.op in _MOVING or (node.op == "cast" and node.dtype in (float32, dtype)):
        if node.op == "cast" and dtype not in (node.dtype, node.operands[0].dtype):
            break
        if node.op == "cast" and node.operands[0].dtype not in (float32, dtype):
            break
        ((node, at),) = READS[node.op](node, at)
    return node, at


@dataclass(frozen=True)
class HeldVector:
    """Eight neighbours in memory, and the conditions without which all eight are zeros beside the array."""

    load: str
    conditions: tuple[str, ...]

    def chosen(self, *further: str) -> str:
        """The eight elements, or zeros where a condition, or one of the further ones, does not hold."""
        every = (*self.conditions, *further)
        return f"{' && '.join(every)} ? {self.load} : uvec4(0)" if every else self.load


def eight_in_memory(body: Body, halves: Sequence[Element], dtype: DType) -> HeldVector | None:
    """Eight elements, given as two halves, if memory holds them next to each other in the dtype."""
    held = [_held(half, dtype) for half in halves]
    place = _place(body, [source for source, _ in held], dtype)
    conditions = [[body.within(condition) for condition in outside] for _, outside in held]
    if place is None or conditions[0] != conditions[1] or any(value.width > 1 for value in conditions[0]):
        return None
    address, position = place
    load = f"{body.uses.reference('u32', 'x4')}({address}).data[{position}]"
    return HeldVector(load, tuple(value.text for value in conditions[0]))


def _place(body: Body, sources: Sequence[Element], dtype: DType) -> tuple[str, str] | None:
    """The address of the array that has the eight elements next to each other, and their position from there."""
    (node, first), (other, second) = sources
    if node is other and node.op == "concatenate" and node.dtype == dtype:
        return end_to_end.eight(body, node, first, second)
    found = _position(body, sources, dtype)
    return None if found is None else (body.addresses[found[0]], body.index(found[1]))


def _held(element: Element, dtype: DType) -> tuple[Element, list[Within]]:
    """The source of an element among zeros that are no part of an array, and the conditions that it is no such zero."""
    conditions: list[Within] = []
    while True:
        node, at = source_of(*element, dtype)
        if node.op == "pad" and node.attrs["value"] == 0:
            conditions += inside_pad(node, at)
        elif node.op == "unshear":
            conditions += inside_unshear(node, at)
        else:
            return (node, at), conditions
        (element,) = READS[node.op](node, at)


def _position(body: Body, sources: Sequence[Element], dtype: DType) -> tuple[Node, Index] | None:
    """The array that has the eight elements next to each other, and their position in it, in vectors."""
    (node, _), (other, _) = sources
    stored = node is other and node.op == INPUT and node.dtype == dtype
    if not stored or node in body.unaligned:
        return None
    first, second = (body.real(flatten(at, node.shape)) for _, at in sources)
    base = substitute(first, {"lane": constant(0)})
    if lane_step(first) != 1 or add(first, VECTOR) != second or not is_multiple(base, EIGHT):
        return None
    return node, quotient_exact(base, EIGHT)


def packed(body: Body, four: str, dtype: DType) -> str:
    """Four numbers rounded to the dtype, as two words."""
    bits = body.declare(body.scopes[-1], "uvec4", f"{body.uses.function(f'lx_{dtype.name}_to_bits')}({four})")
    return f"{bits}.xz | {bits}.yw << 16"


# GLSL's names of the orders of a matrix's elements in memory.
ROW_MAJOR, COLUMN_MAJOR = (f"gl_CooperativeMatrixLayout{order}Major" for order in ("Row", "Column"))


def matrix_type(body: Body, use: str, rows: int, columns: int) -> str:
    """The type of a subgroup's matrices: of sums in float32, or of operands, whose elements are written as float16_t
    also if they are bfloat16 (compile/brain_floats.py)."""
    body.uses.extension("cooperative_matrix")
    kind = "float" if use == "Accumulator" else "float16_t"
    return f"coopmat<{kind}, gl_ScopeSubgroup, {rows}, {columns}, gl_MatrixUse{use}>"
