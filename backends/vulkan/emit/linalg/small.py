"""Small matrices on CPU drivers: one invocation has a whole one in registers, with no barrier and no loop.

So the shader is plain text that may be a part of a workgroup's loop, and a batch fills the lanes. Sums have the order
that the kernels for larger matrices have.
"""

from __future__ import annotations

from math import nan, prod

from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, literal, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, quotient_exact
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.ops.linear_algebra import parts_of
from lavax.passes.kernels.index import Index, constant, flatten, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class SmallMatrices:
    """The most rows. Longer texts take drivers long to compile. Checked by `python -m benchmarks loops`."""

    cholesky: int = 16
    lu: int = 8
    triangular_solve: int = 16


SMALL_MATRICES = SmallMatrices()


def is_small(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> bool:
    """Whether an invocation factors, or solves for, a matrix of this kernel by itself."""
    (node,) = kernel.graph.outputs
    rows, columns = node.operands[0].shape[-2:]
    return profile.kind == "cpu" and not lifted and columns <= rows <= getattr(SMALL_MATRICES, node.op)


class _Registers:
    """The state of writing a kernel whose invocations have a matrix, or a right side, each."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile) -> None:
        self.routine: RoutineShader = open_routine(kernel, profile, False)
        self.body, self.node = self.routine.body, self.routine.node
        self.real = type_name(self.node.dtype, 1)

    def line(self, text: str) -> None:
        self.body.line(text)

    def at(self, matrix: Node, batch: Coordinates, row: int, column: int) -> str:
        """An element, which is read beside its neighbours."""
        if matrix.shape[-1] % VECTOR or matrix.dtype.bits != 32:
            return self.routine.read(matrix, (*batch, constant(row), constant(column)))
        first, component = divmod(column, VECTOR)
        place = (*batch, constant(row), linear([(LANE, 1)], first * VECTOR))
        found = self.body.value(matrix, place)
        return f"{found.text}.{COMPONENTS[component]}" if found.width == VECTOR else found.text

    def read_all(self, matrix: Node, batch: Coordinates, lower: bool = False) -> None:
        """Gives the elements the names a<row>_<column>."""
        rows, columns = matrix.shape[-2:]
        for row in range(rows):
            for column in range(row + 1 if lower else columns):
                self.line(f"{self.real} a{row}_{column} = {self.at(matrix, batch, row, column)};")

    def write(self, first: Index, texts: list[str]) -> None:
        """Writes elements from a position of the result on, four at once where they are aligned."""
        aligned = first.constant % VECTOR == 0 and all(step % VECTOR == 0 for _, step in first.terms)
        fours = len(texts) // VECTOR * VECTOR if aligned and self._holds_fours() else 0
        for number in range(0, fours, VECTOR):
            place = self.body.index(quotient_exact(_behind(first, number), VECTOR))
            text = f"{type_name(self.node.dtype, VECTOR)}({', '.join(texts[number : number + VECTOR])})"
            self.line(self.body.memory.stored_four(self.node.dtype, self.routine.target, place, text))
        for number in range(fours, len(texts)):
            self.line(f"{self.routine.element(_behind(first, number))} = {texts[number]};")

    def _holds_fours(self) -> bool:
        return self.node.dtype.bits == 32 and self.node not in self.body.unaligned


def _behind(first: Index, number: int) -> Index:
    return linear([(first, 1)], number)


def _open_matrix(kernel: Kernel, profile: DeviceProfile) -> tuple[_Registers, Coordinates, Index]:
    """An invocation per matrix: its place in the batch, and the position of its result."""
    writing = _Registers(kernel, profile)
    batch = tuple(writing.node.operands[0].shape[:-2])
    matrix = writing.routine.open(prod(batch))
    size = writing.node.type.size // prod(batch)
    first = linear([(variable("i", prod(batch)), size)], 0) if prod(batch) > 1 else constant(0)
    return writing, unflatten(matrix, batch), first


def emit_small_cholesky(kernel: Kernel, profile: DeviceProfile) -> Launch:
    """Column by column: an element less the products of the rows before it, over the pivot's root."""
    writing, batch, first = _open_matrix(kernel, profile)
    matrix = writing.node.operands[0]
    rows = matrix.shape[-1]
    writing.read_all(matrix, batch, lower=True)
    writing.line("bool positive = true;")
    for k in range(rows):
        for r in range(k, rows):
            products = " + ".join(f"a{r}_{j} * a{k}_{j}" for j in range(k))
            if products:
                writing.line(f"a{r}_{k} -= {products};")
        writing.line(f"positive = positive && a{k}_{k} > 0.0;")
        writing.line(f"a{k}_{k} = sqrt(a{k}_{k});")
        for r in range(k + 1, rows):
            writing.line(f"a{r}_{k} /= a{k}_{k};")
    failed, zero = literal(nan, writing.node.dtype), literal(0.0, writing.node.dtype)
    for r in range(rows):
        for c in range(r + 1):
            writing.line(f"a{r}_{c} = positive ? a{r}_{c} : {failed};")
        writing.write(_behind(first, r * rows), [f"a{r}_{c}" if c <= r else zero for c in range(rows)])
    return writing.routine.close(prod(matrix.shape[:-2]))


def emit_small_lu(kernel: Kernel, profile: DeviceProfile) -> Launch:
    """Rows are exchanged by choosing between registers. The first of equal pivots is taken."""
    writing, batch, first = _open_matrix(kernel, profile)
    matrix, real = writing.node.operands[0], writing.real
    rows, columns = matrix.shape[-2:]
    starts = parts_of("lu", matrix.type, writing.node.attrs)
    writing.read_all(matrix, batch)
    for r in range(rows):
        writing.line(f"{real} order{r} = {real}({r});")
    for name in ("sign = 1.0", "held", "highest"):
        writing.line(f"{real} {name};")
    writing.line("int pivot;")
    for k in range(columns):
        writing.line(f"pivot = {k}; highest = -1.0;")
        for r in range(k, rows):
            writing.line(f"if (abs(a{r}_{k}) > highest) {{ highest = abs(a{r}_{k}); pivot = {r}; }}")
        for r in range(k + 1, rows):
            exchanged = [(f"a{k}_{c}", f"a{r}_{c}") for c in range(columns)] + [(f"order{k}", f"order{r}")]
            for one, other in exchanged:
                writing.line(f"held = {one};")
                writing.line(f"{one} = pivot == {r} ? {other} : {one};")
                writing.line(f"{other} = pivot == {r} ? held : {other};")
        writing.line(f"sign = pivot == {k} ? sign : -sign;")
        for r in range(k + 1, rows):
            writing.line(f"a{r}_{k} = a{k}_{k} != 0.0 ? a{r}_{k} / a{k}_{k} : a{r}_{k};")
            for c in range(k + 1, columns):
                writing.line(f"a{r}_{c} -= a{r}_{k} * a{k}_{c};")
    factors = [f"a{r}_{c}" for r in range(rows) for c in range(columns)]
    texts = {"factors": factors, "permutation": [f"order{r}" for r in range(rows)], "parity": ["sign"]}
    for name, (start, _) in starts.items():
        writing.write(_behind(first, start), texts[name])
    return writing.routine.close(prod(matrix.shape[:-2]))


def emit_small_triangular_solve(kernel: Kernel, profile: DeviceProfile) -> Launch:
    """An invocation per right side: each unknown less the products of those before it, over the diagonal."""
    writing = _Registers(kernel, profile)
    matrix, right = writing.routine.operands
    attrs, steps = writing.node.attrs, right.shape[-2]
    sides = (*right.shape[:-2], right.shape[-1])
    *batch, column = writing.routine.open_elements(sides)
    forwards = attrs["lower"] != attrs["transposed"]
    order = range(steps) if forwards else range(steps - 1, -1, -1)
    found: list[int] = []

    def factor(row: int, column: int) -> str:
        return writing.at(matrix, tuple(batch), *((column, row) if attrs["transposed"] else (row, column)))

    for row in order:
        value = writing.routine.read(right, (*batch, constant(row), column))
        writing.line(f"{writing.real} x{row} = {value};")
        for earlier in found:
            writing.line(f"x{row} -= {factor(row, earlier)} * x{earlier};")
        if not attrs["unit_diagonal"]:
            writing.line(f"x{row} /= {factor(row, row)};")
        found.append(row)
    for row in range(steps):
        place = flatten((*batch, constant(row), column), right.shape)
        writing.line(f"{writing.routine.element(place)} = x{row};")
    return writing.routine.close(prod(sides))
