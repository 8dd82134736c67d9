"""Kernels that make rotations until a matrix is diagonal, and turn its vectors by them.

Every lane finds all rotations of a matrix, and has rows of the orthogonal matrices whose columns they turn into its
vectors: of the products of the reflections that the matrix comes from. So several subgroups work on one matrix and
exchange nothing.

The algorithm is GLSL text: it has `rows`, the arrays `diagonal` and `beside`, and sets `is_bad` if it finds no values.
Of each side's matrix a lane has the rows `SIDE0`, `SIDE1`, …; `for_rows` repeats a text for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan, prod

import numpy as np

from lavax.backends.vulkan.emit.linalg.reflection import least_beside
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import unflatten, variable
from lavax.passes.kernels.kernel import Kernel

_MOST_ROWS = 4  # of each side's vectors, per lane

_LOAD = """
    diagonal[k] = DIAGONAL;
    beside[k] = BESIDE;
    if (!(abs(diagonal[k]) <= GREATEST && abs(beside[k]) <= GREATEST)) is_bad = true;
"""
# The rank of each value; equal values keep their order.
_RANK = """
for (int k = lane; k < rows; k += LANES) {
    real value = diagonal[k];
    int rank = 0;
    for (int j = 0; j < rows; ++j) {
        real other = diagonal[j];
        rank += int(other BEFORE value || (other == value && j < k));
    }
    ranks[k] = is_bad ? k : rank;
}
subgroupBarrier();
"""


def without_rows(text: str) -> str:
    """An algorithm without what it does to rows, in lines whose placeholders have ROW in their names."""
    return "\n".join(line for line in text.splitlines() if "ROW" not in line)


class RotatingKernel:
    """The state of writing the kernel. `sides` are the reflections of each side; without vectors they are not read."""

    def __init__(
        self,
        kernel: Kernel,
        profile: DeviceProfile,
        lifted: bool,
        sides: Mapping[str, Node],
        diagonal: Node,
        beside: Node,
    ) -> None:
        self.lanes = profile.subgroup_size
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, self.lanes)
        self.node, self.body = self.routine.node, self.routine.body
        self.with_vectors = self.node.attrs["vectors"]
        self.sides = sides if self.with_vectors else {}
        *batch, self.rows = diagonal.shape
        self.rows_of_lane = min(-(-self.rows // self.lanes), _MOST_ROWS)
        self.parts = -(-self.rows // (self.lanes * self.rows_of_lane)) if self.with_vectors else 1
        self.matrices = prod(batch)
        self.routine.open(self.matrices * self.parts * self.lanes)
        matrix = self.routine.position("matrix", f"i / {self.lanes * self.parts}", self.matrices)
        self.batch = unflatten(matrix, tuple(batch))
        self.body.line(f"int lane = i % {self.lanes}, part = i / {self.lanes} % {self.parts};")
        self.routine.integer("rows", self.rows)
        self.routine.integer("size", self.node.type.size // self.matrices)
        self._load(diagonal, beside)
        if self.sides:
            self._multiply_reflections()

    def number(self, value: float) -> str:
        return literal(value, self.node.dtype)

    def for_rows(self, text: str) -> str:
        """The text for each row of a lane, whose number replaces #."""
        return "\n".join(text.replace("#", str(number)) for number in range(self.rows_of_lane))

    def write(self, text: str) -> None:
        """Adds the algorithm."""
        self.body.lines(text.strip().splitlines())

    def close(self, *, falling: bool) -> Launch:
        """Stores values and vectors in order."""
        rank = _RANK.replace("LANES", str(self.lanes)).replace("BEFORE", ">" if falling else "<")
        self.body.lines(rank.strip().splitlines())
        self._store()
        declarations = [
            f"#define real {type_name(self.node.dtype, 1)}",
            self._negligible(),
            f"shared int ranks[{self.rows}];",
        ]
        lines, lanes = self.body.scopes[0].lines, self.lanes
        text = ShaderText(self.body.uses, lines, (lanes, 1), declarations, subgroup_size=lanes, shuffles=True)
        return Launch(assemble(text), tuple(self.body.parameters.words), grid(self.matrices * self.parts))

    def _negligible(self) -> str:
        """Whether an element beside the diagonal is rounding next to those around it, or next to 1."""
        unit = float(np.finfo(self.node.dtype.numpy).eps)
        bound = f"{self.number(unit)} * (abs(a) + abs(b)) + {self.number(least_beside(self.node.dtype))}"
        return f"#define NEGLIGIBLE(e, a, b) (abs(e) <= {bound})"

    def _load(self, diagonal: Node, beside: Node) -> None:
        body = self.body
        body.line(f"real diagonal[{self.rows}], beside[{self.rows}];")
        body.line("bool is_bad = false;")
        with body.block("for (int k = 0; k < rows; ++k)", frozenset(("k",))):
            at = (*self.batch, variable("k", self.rows))
            text = _LOAD.replace("DIAGONAL", self.routine.read(diagonal, at))
            text = text.replace("BESIDE", self.routine.read(beside, at))
            greatest = self.number(float(np.finfo(self.node.dtype.numpy).max))
            body.lines(text.replace("GREATEST", greatest).strip().splitlines())

    def _multiply_reflections(self) -> None:
        """The first one first, because each lane has rows of their product."""
        body = self.body
        for number in range(self.rows_of_lane):
            body.line(f"int own{number} = (part * {self.rows_of_lane} + {number}) * {self.lanes} + lane;")
        for side, reflections in self.sides.items():
            extent = self.rows + self.lanes
            body.lines(self.for_rows(f"real {side}#[{extent}];").splitlines())
            unit = f"for (int k = 0; k < {extent}; ++k) {side}#[k] = k == own# ? 1.0 : 0.0;"
            body.lines(self.for_rows(unit).splitlines())
            with body.block("for (int k = 0; k < rows; ++k)", frozenset(("k",))):
                body.lines(self.for_rows("real sum# = 0.0;").splitlines())
                self._each_element(reflections, f"sum# += u * {side}#[start + n];")
                self._each_element(reflections, f"{side}#[start + n] -= sum# * u;")

    def _each_element(self, reflections: Node, text: str) -> None:
        """The elements `u` of reflection k, which lanes load side by side and pass on."""
        body = self.body
        with body.block(f"for (int start = k; start < rows; start += {self.lanes})"):
            place = self.routine.position("one", "min(start + lane, rows - 1)", self.rows)
            value = self.routine.read(reflections, (*self.batch, variable("k", self.rows), place))
            body.line(f"real element = start + lane < rows ? {value} : 0.0;")
            with body.block(f"{body.uses.unroll}for (int n = 0; n < {self.lanes}; ++n)"):
                body.line("real u = subgroupShuffle(element, uint(n));")
                body.lines(self.for_rows(text).splitlines())

    def _store(self) -> None:
        body, failed = self.body, self.number(nan)
        with body.block(f"for (int k = lane; k < rows && part == 0; k += {self.lanes})"):
            body.line(f"{self.routine.element('matrix * size + ranks[k]')} = is_bad ? {failed} : diagonal[k];")
        for number, side in enumerate(self.sides):
            with body.block("for (int k = 0; k < rows; ++k)"):
                before = f"rows + {number} * rows * rows" if number else "rows"
                body.line(f"int target = matrix * size + {before} + ranks[k] * rows;")
                for row in range(self.rows_of_lane):
                    element = self.routine.element(f"target + own{row}")
                    body.line(f"if (own{row} < rows) {element} = is_bad ? {failed} : {side}{row}[k];")
