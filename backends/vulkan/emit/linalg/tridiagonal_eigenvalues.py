"""Eigenvalues and vectors of symmetric tridiagonal matrices by implicit QL steps (Golub and Van Loan, 8.3).

Every lane finds all rotations of a matrix, and has rows of the orthogonal matrix whose columns they turn into its
vectors: the product of the reflections that made the matrix tridiagonal. So several subgroups work on one matrix and
exchange nothing.
"""

from __future__ import annotations

from math import nan, prod

import numpy as np

from lavax.backends.vulkan.emit.linalg.tridiagonal import least_beside
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import TRIDIAGONAL

_ROWS = 2  # of the vectors, per lane


_LOAD = """
    diagonal[k] = DIAGONAL;
    beside[k] = BESIDE;
    if (!(abs(diagonal[k]) <= GREATEST && abs(beside[k]) <= GREATEST)) is_bad = true;
"""
# `last` is the end of the part that begins at `first` and falls apart nowhere.
_FIND_END = """
last = first;
while (last < rows - 1 && !NEGLIGIBLE(beside[last], diagonal[last], diagonal[last + 1])) ++last;
"""
_STEPS = """
int first = 0, last = 0, rotations = 0;
bool is_new = true;
while (first < rows && rotations < MOST && !is_bad) {
    if (is_new) {
        FIND_END
        is_new = false;
    }
    ++rotations;
    if (last == first) {
        ++first;
        is_new = true;
        continue;
    }
    real shift = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first]);
    real root = sqrt(shift * shift + 1.0);
    real g = diagonal[last] - diagonal[first] + beside[first] / (shift + (shift < 0.0 ? -root : root));
    real s = 1.0, c = 1.0, p = 0.0, behind = diagonal[last];
    int cut = last, i = last - 1;
    real upper = behind;
    OPEN_ROWS
    for (; i >= first; --i) {
        ++rotations;
        real own = beside[i], f = s * own, b = c * own, r = sqrt(f * f + g * g);
        beside[i + 1] = r < LEAST ? 0.0 : r;
        if (r < LEAST) break;
        s = f / r;
        c = g / r;
        real lower = diagonal[i];
        g = upper - p;
        real q = (lower - g) * s + 2.0 * c * b;
        p = s * q;
        real found = g + p;
        diagonal[i + 1] = found;
        if (i + 1 < last && NEGLIGIBLE(r, found, behind)) cut = i + 1;
        behind = found;
        g = c * q - b;
        upper = lower;
        EACH_ROW
    }
    CLOSE_ROWS
    if (i >= first) {
        diagonal[i + 1] = upper - p;
        beside[last] = 0.0;
        is_new = true;
        continue;
    }
    diagonal[first] = upper - p;
    beside[first] = g;
    beside[last] = 0.0;
    first += NEGLIGIBLE(g, diagonal[first], behind) ? 1 : 0;
    last = cut;
}
is_bad = is_bad || first < rows;
"""
# The rank of each value; equal values keep their order.
_RANK = """
for (int k = lane; k < rows; k += LANES) {
    real value = diagonal[k];
    int rank = 0;
    for (int j = 0; j < rows; ++j) {
        real other = diagonal[j];
        rank += int(other < value || (other == value && j < k));
    }
    ranks[k] = is_bad ? k : rank;
}
subgroupBarrier();
"""


def _for_rows(text: str) -> str:
    return "\n".join(text.replace("#", str(number)) for number in range(_ROWS))


class _Eigenvalues:
    """The state of writing the kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.lanes = profile.subgroup_size
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, self.lanes)
        self.node, self.body = self.routine.node, self.routine.body
        self.reflections, self.diagonal, self.beside = self.node.operands
        *batch, self.rows = self.diagonal.shape
        self.with_vectors = self.node.attrs["vectors"]
        self.parts = -(-self.rows // (self.lanes * _ROWS)) if self.with_vectors else 1
        self.matrices = prod(batch)
        self.routine.open(self.matrices * self.parts * self.lanes)
        matrix = self.routine.position("matrix", f"i / {self.lanes * self.parts}", self.matrices)
        self.batch = unflatten(matrix, tuple(batch))
        self.body.line(f"int lane = i % {self.lanes}, part = i / {self.lanes} % {self.parts};")
        self.routine.integer("rows", self.rows)
        self.routine.integer("size", self.node.type.size // self.matrices)

    def emit(self) -> Launch:
        body = self.body
        self._load()
        if self.with_vectors:
            self._multiply_reflections()
        body.lines(self._steps().splitlines())
        body.lines(_RANK.replace("LANES", str(self.lanes)).strip().splitlines())
        self._store()
        declarations = [
            f"#define real {type_name(self.node.dtype, 1)}",
            self._negligible(),
            f"shared int ranks[{self.rows}];",
        ]
        lines, lanes = body.scopes[0].lines, self.lanes
        text = ShaderText(body.uses, lines, (lanes, 1), declarations, subgroup_size=lanes, shuffles=True)
        return Launch(assemble(text), tuple(body.parameters.words), grid(self.matrices * self.parts))

    def _number(self, value: float) -> str:
        return literal(value, self.node.dtype)

    def _negligible(self) -> str:
        """Whether an element beside the diagonal is rounding next to those around it, or next to 1."""
        unit = float(np.finfo(self.node.dtype.numpy).eps)
        bound = f"{self._number(unit)} * (abs(a) + abs(b)) + {self._number(least_beside(self.node.dtype))}"
        return f"#define NEGLIGIBLE(e, a, b) (abs(e) <= {bound})"

    def _load(self) -> None:
        body = self.body
        body.line(f"real diagonal[{self.rows}], beside[{self.rows}];")
        body.line("bool is_bad = false;")
        with body.block("for (int k = 0; k < rows; ++k)", frozenset(("k",))):
            at = (*self.batch, variable("k", self.rows))
            text = _LOAD.replace("DIAGONAL", self.routine.read(self.diagonal, at))
            text = text.replace("BESIDE", self.routine.read(self.beside, at))
            greatest = self._number(float(np.finfo(self.node.dtype.numpy).max))
            body.lines(text.replace("GREATEST", greatest).strip().splitlines())

    def _multiply_reflections(self) -> None:
        """The first one first, because each lane has rows of their product."""
        body = self.body
        for number in range(_ROWS):
            body.line(f"int own{number} = (part * {_ROWS} + {number}) * {self.lanes} + lane;")
            body.line(f"real row{number}[{self.rows + self.lanes}];")
            elements = f"for (int k = 0; k < {self.rows + self.lanes}; ++k)"
            body.line(f"{elements} row{number}[k] = k == own{number} ? 1.0 : 0.0;")
        with body.block("for (int k = 0; k < rows - 2; ++k)", frozenset(("k",))):
            body.line(f"real {', '.join(f'sum{number} = 0.0' for number in range(_ROWS))};")
            self._each_element("sum# += u * row#[start + n];")
            self._each_element("row#[start + n] -= sum# * u;")

    def _each_element(self, text: str) -> None:
        """The elements `u` of reflection k, which lanes load side by side and pass on."""
        body = self.body
        with body.block(f"for (int start = k + 1; start < rows; start += {self.lanes})"):
            place = self.routine.position("one", "min(start + lane, rows - 1)", self.rows)
            value = self.routine.read(self.reflections, (*self.batch, variable("k", self.rows), place))
            body.line(f"real element = start + lane < rows ? {value} : 0.0;")
            with body.block(f"{body.uses.unroll}for (int n = 0; n < {self.lanes}; ++n)"):
                body.line("real u = subgroupShuffle(element, uint(n));")
                body.lines(_for_rows(text).splitlines())

    def _steps(self) -> str:
        text = _STEPS.replace("FIND_END", _FIND_END.strip()).replace("MOST", str(TRIDIAGONAL.most_rotations)).strip()
        text = text.replace("LEAST", self._number(least_beside(self.node.dtype)))
        if not self.with_vectors:
            return "\n".join(line for line in text.splitlines() if "ROW" not in line)
        text = text.replace("OPEN_ROWS", _for_rows("real high# = row#[last];"))
        each = "real low# = row#[i];\nrow#[i + 1] = s * low# + c * high#;\nhigh# = c * low# - s * high#;"
        return text.replace("EACH_ROW", _for_rows(each)).replace("CLOSE_ROWS", _for_rows("row#[i + 1] = high#;"))

    def _store(self) -> None:
        body, failed = self.body, self._number(nan)
        with body.block(f"for (int k = lane; k < rows && part == 0; k += {self.lanes})"):
            body.line(f"{self.routine.element('matrix * size + ranks[k]')} = is_bad ? {failed} : diagonal[k];")
        if not self.with_vectors:
            return
        with body.block("for (int k = 0; k < rows; ++k)"):
            body.line("int target = matrix * size + rows + ranks[k] * rows;")
            for number in range(_ROWS):
                element = self.routine.element(f"target + own{number}")
                body.line(f"if (own{number} < rows) {element} = is_bad ? {failed} : row{number}[k];")


def emit_tridiagonal_eigh(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of tridiagonal_eigh."""
    return _Eigenvalues(kernel, profile, lifted).emit()
