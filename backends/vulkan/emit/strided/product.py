"""Contractions of arrays that lie in strides, which differ only in numbers and in elementwise functions.

Such a contraction is result = epilogue(Σ left(a) · right(b), x, …). In each of the arrays a, b, x and the result, the
stride along the batch, the rows, the columns and the sum is constant, and the functions are elementwise. So one shader
serves all of them: it takes the strides and the choice of functions as parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import GlslValue, widened
from lavax.backends.vulkan.glsl.shader import Parameters
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.ir.types import float32
from lavax.passes.build.contraction_geometry import Sizes, is_strided
from lavax.passes.fuse.costs import cost_of
from lavax.passes.kernels.index import Index, Quotient, Remainder, Variable, flatten, unflatten, variable
from lavax.passes.kernels.kernel import Kernel

_BATCH, _ROW, _COLUMN, _SUM = "batch", "row", "column", "summed"


@dataclass(frozen=True)
class Strided:
    """An array: its number among the kernel's inputs and outputs, and its strides along the batch and two other axes.

    The two are an operand's free axis and the sum, or rows and columns of any other array. If the batch has two axes,
    `inner` is the stride along the inner one and `batch` that along the outer one. `begin` is the position of the first
    element, 0 except for operands.
    """

    array: int
    batch: int
    first: int
    second: int
    inner: int = 0
    begin: int = 0


@dataclass(frozen=True)
class Function:
    """A GLSL function of vectors x0, x1, … that returns a vector: its body, its cost per element, and what it uses."""

    lines: tuple[str, ...]
    cost: int
    uses: Uses = field(compare=False)


@dataclass(frozen=True)
class StridedProduct:
    """A contraction whose arrays are float32 and lie in strides."""

    sizes: Sizes
    left: Strided
    right: Strided
    others: tuple[Strided, ...]
    result: Strided
    functions: tuple[Function, Function, Function]  # of the left operand; the right one; the sum and the others
    inner: int = 1  # the extent of the batch's inner axis; 1 if the batch has one axis
    by_descriptor: bool = False  # whether all arrays may be read through descriptors

    @property
    def is_nested(self) -> bool:
        """Whether the batch has two axes, or an operand starts behind the start of its array."""
        return self.inner > 1 or self.left.begin > 0 or self.right.begin > 0

    @property
    def order(self) -> tuple[int, ...]:
        """The kernel's arrays in the shader's order."""
        return tuple(array.array for array in (self.left, self.right, *self.others, self.result))


@dataclass(frozen=True)
class _Found:
    """An array as found in an index: its stride along the whole batch, and the strides that quotients and remainders of
    the batch's number add to that, by divisor."""

    strided: Strided
    parts: dict[tuple[type, int], int]


class _Recorder(Body):
    """Writes values in terms of array elements x0, x1, …, and records which elements these are."""

    def __init__(self, first: int, names: Sequence[str]) -> None:
        super().__init__({}, Parameters(0, lifted=False))
        self.scopes[0].variables = frozenset(names)
        self.first, self.read = first, list[tuple[Node, Index]]()

    def load_at(self, node: Node, position: Index) -> GlslValue:
        self.read.append((node, position))
        return GlslValue(f"x{self.first + len(self.read) - 1}", VECTOR)

    def function(self, result: GlslValue, nodes: Sequence[Node]) -> Function:
        text = widened(result, VECTOR, float32)
        return Function((*self.scopes[0].lines, f"return {text};"), sum(map(cost_of, nodes)), self.uses)


def strided_product(kernel: Kernel, contraction: Contraction) -> StridedProduct | None:
    """The kernel as a strided product; None if it is no such product."""
    graph, dot = kernel.graph, contraction.dot
    arrays = (*graph.inputs, *graph.outputs)
    if kernel.moving or len(graph.outputs) > 1 or any(node.dtype != float32 for node in arrays):
        return None
    if not all(node is dot or is_strided(node) for node in graph.nodes):
        return None
    batch = variable(_BATCH, contraction.sizes.b)
    contraction.batch = unflatten(batch, contraction.sizes.batch)
    numbers = {node: number for number, node in enumerate(arrays)}
    left_operand, right_operand = (_operand(contraction, side, numbers) for side in range(2))
    epilogue = _epilogue(kernel, contraction, numbers)
    if left_operand is None or right_operand is None or epilogue is None:
        return None
    (found_left, left_function), (found_right, right_function) = left_operand, right_operand
    found, function = epilogue
    functions = (left_function, right_function, function)
    nested = _by_batch_axes((found_left, found_right, *found))
    if nested is None:
        return None
    (left, right, *others, result), inner = nested
    return StridedProduct(contraction.sizes, left, right, tuple(others), result, functions, inner)


def _operand(contraction: Contraction, side: int, numbers: dict[Node, int]) -> tuple[_Found, Function] | None:
    """The array that an operand is computed from, and its function; None if there are several, or not in strides."""
    sizes = contraction.sizes
    free, summed = variable(_ROW, sizes.m if side == 0 else sizes.n), variable(_SUM, sizes.k)
    body = _Recorder(0, (_BATCH, _ROW, _SUM))
    value = body.value(*contraction.element(side, free, summed))
    if len(body.read) != 1:
        return None
    ((node, position),) = body.read
    array = _strided(numbers[node], position, (_BATCH, _ROW, _SUM))
    return None if array is None else (array, body.function(value, _computed(contraction.dot.operands[side], None)))


def _epilogue(
    kernel: Kernel, contraction: Contraction, numbers: dict[Node, int]
) -> tuple[list[_Found], Function] | None:
    """The arrays that the epilogue reads, the result, and its function; None if one of the arrays is not in strides."""
    sizes, (output,) = contraction.sizes, kernel.graph.outputs
    body = _Recorder(1, (_BATCH, _ROW, _COLUMN))
    row, column = variable(_ROW, sizes.m), variable(_COLUMN, sizes.n)
    with body.at(contraction.place_of(row, column, contraction.batch)):
        body.define(contraction.dot, kernel.coordinates[contraction.dot], GlslValue("x0", VECTOR))
        value = body.value(output, kernel.coordinates[output])
        written = flatten(tuple(body.real(index) for index in kernel.coordinates[output]), output.shape)
    coordinates = [(numbers[node], position) for node, position in body.read]
    # The output may be an input's node, but has a number of its own.
    coordinates.append((len(kernel.graph.inputs), written))
    arrays = [_strided(number, position, (_BATCH, _ROW, _COLUMN)) for number, position in coordinates]
    if any(array is None or array.strided.begin for array in arrays):
        return None
    return [array for array in arrays if array], body.function(value, _computed(output, contraction.dot))


def _computed(node: Node, given: Node | None) -> list[Node]:
    """The nodes that compute a value from `given` and from arrays."""
    found: dict[Node, None] = {}
    stack = [node]
    while stack:
        node = stack.pop()
        if node is not given and node.op != INPUT and node not in found:
            found[node] = None
            stack += node.operands
    return list(found)


def _strided(number: int, position: Index, names: tuple[str, str, str]) -> _Found | None:
    """The array read at a position; None if that is no sum of multiples of the variables and of parts of the batch."""
    strides = dict.fromkeys(names, 0)
    parts: dict[tuple[type, int], int] = {}
    for atom, coefficient in position.terms:
        if coefficient < 0:
            return None
        if isinstance(atom, Variable):
            strides[atom.name] = coefficient
        elif isinstance(atom, (Quotient, Remainder)) and atom.dividend.key == _BATCH:
            parts[type(atom), atom.divisor] = coefficient
        else:
            return None
    batch, first, second = (strides[name] for name in names)
    return _Found(Strided(number, batch, first, second, begin=position.constant), parts)


def _by_batch_axes(arrays: Sequence[_Found]) -> tuple[list[Strided], int] | None:
    """The arrays by two axes of the batch, and the inner axis's extent; None if arrays divide the batch differently."""
    divisors = {divisor for array in arrays for _, divisor in array.parts}
    if not divisors:
        return [array.strided for array in arrays], 1
    if len(divisors) > 1:
        return None
    (inner,) = divisors
    found = []
    for array in arrays:
        own = array.strided
        outer_step, inner_step = (array.parts.get((kind, inner), 0) for kind in (Quotient, Remainder))
        outer, inside = inner * own.batch + outer_step, own.batch + inner_step
        found.append(replace(own, batch=outer, inner=inside))
    return found, inner
