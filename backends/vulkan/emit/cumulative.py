"""Cumulative kernels: every line along the axis is folded from its start, each partial result written.

Two schedules: *shared*, where the lanes of one subgroup take neighbouring elements of a line, fold them among
themselves and carry the whole on to the next elements; and *single*, one invocation a line.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from lavax.backends.vulkan.emit.body import LANE, Value, widened
from lavax.backends.vulkan.emit.expressions import COMPONENTS, VECTOR, literal, own_function, type_name
from lavax.backends.vulkan.emit.launch import Launch
from lavax.backends.vulkan.emit.reductions import REDUCTIONS, Reduction, shuffled
from lavax.backends.vulkan.emit.routine import Routine, open_routine
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.types import DType
from lavax.passes.kernels.index import Index, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# log(exp(a) + exp(b)); two equal infinities have no distance.
_LOGSUMEXP = "({larger}({0}, {1}) + {log1p}({exp}(-abs(mix({0} - {1}, {zero}, {equal})))))"


def _logsumexp(left: str, right: str, dtype: DType, width: int) -> str:
    zero = literal(0.0, dtype) if width == 1 else f"{type_name(dtype, width)}(0.0)"
    same = f"{left} == {right}" if width == 1 else f"equal({left}, {right})"
    larger, log1p, exp = (own_function(f"lx_{name}", dtype) for name in ("maximum", "log1p", "exp"))
    return _LOGSUMEXP.format(left, right, zero=zero, equal=same, larger=larger, log1p=log1p, exp=exp)


FOLDS: dict[str, Reduction] = {
    "cumulative_sum": REDUCTIONS["sum"],
    "cumulative_prod": REDUCTIONS["prod"],
    "cumulative_max": REDUCTIONS["max"],
    "cumulative_min": REDUCTIONS["min"],
    "cumulative_logsumexp": Reduction(
        REDUCTIONS["max"].identity, _logsumexp
    ),
}


def _is_shared(node: Node, profile: DeviceProfile) -> bool:
    """Where the elements of a line are neighbours in memory, or there are few lines."""
    length, axis = node.shape[node.attrs["axis"]], node.attrs["axis"]
    subgroup = profile.subgroup_size
    neighbours = prod(node.shape[axis + 1 :]) == 1 or node.type.size // length < subgroup
    return profile.subgroup_shuffle and length >= 2 * subgroup and neighbours


class CumulativeEmitter:
    """The state of writing one cumulative kernel."""

    def __init__(self, routine: Routine) -> None:
        self.routine, self.node, self.body = routine, routine.node, routine.body
        self.axis = self.node.attrs["axis"]
        self.length = self.node.shape[self.axis]
        self.across = self.node.shape[: self.axis] + self.node.shape[self.axis + 1 :]
        self.fold = FOLDS[self.node.op]
        self.kind = type_name(self.node.dtype, 1)

    def _join(self, left: str, right: str, width: int = 1) -> str:
        return self.fold.join(left, right, self.node.dtype, width)

    def _shuffled(self, value: str, lane: str) -> str:
        return shuffled("subgroupShuffle", value, lane, self.node.dtype)

    def _at(self, line: Index, along: Index) -> Coordinates:
        outer = unflatten(line, self.across)
        return (*outer[: self.axis], along, *outer[self.axis :])

    def _declare(self, name: str, text: str, kind: str = "") -> None:
        self.body.line(f"{kind or self.kind} {name} = {text};")

    def emit_single(self) -> Launch:
        lines = prod(self.across)
        line = self.routine.open(lines)
        self._declare("total", f"{self.kind}({self.fold.identity(self.node.dtype)})")
        bound = self.body.parameters.integer(self.length)
        with self.body.block(f"for (int k = 0; k < {bound}; ++k)", frozenset(("k",))):
            at = self._at(line, variable("k", self.length))
            value = self.body.value(self.node.operands[0], at)
            self.body.line(f"total = {self._join('total', value.text)};")
            self.body.store(self.node, at, Value("total", 1), self.routine.target)
        return self.routine.close(lines)

    def emit_shared(self) -> Launch:
        local, lines = self.routine.local, prod(self.across)
        self.routine.open(lines * local)
        line = self.routine.position("line", f"i / {local}", lines)
        self._declare("lane_of_line", f"i % {local}", "int")
        width = VECTOR if self.length % VECTOR == 0 else 1
        steps = self.length // width
        bound = self.routine.integer("steps", steps)
        self._declare("carry", f"{self.kind}({self.fold.identity(self.node.dtype)})")
        with self.body.block(f"for (int k = 0; k < {bound}; k += {local})"):
            step = self.routine.position("c", f"min(k + lane_of_line, {bound} - 1)", steps)
            along = linear([(step, VECTOR), (LANE, 1)]) if width == VECTOR else step
            at = self._at(line, along)
            self._fold_step(at, width)
            with self.body.block(f"if (k + lane_of_line < {bound})"):
                self.body.store(self.node, at, Value("folded", width), self.routine.target)
            self.body.line(f"carry = {self._join('carry', self._shuffled('whole', f'{local - 1}u'))};")
        return self.routine.close(lines * local, subgroup=True)

    def _fold_step(self, at: Coordinates, width: int) -> None:
        """`folded`: the fold of all up to this lane's elements; `whole`: of this step's alone."""
        value = self.body.value(self.node.operands[0], at)
        self._declare("folded", widened(value, width, self.node.dtype), type_name(self.node.dtype, width))
        if width == VECTOR:
            for earlier, later in pairwise(COMPONENTS):
                self.body.line(f"folded.{later} = {self._join(f'folded.{earlier}', f'folded.{later}')};")
        self._declare("whole", "folded.w" if width == VECTOR else "folded")
        distance = 1
        while distance < self.routine.local:
            other = f"other{distance}"
            self._declare(other, self._shuffled("whole", f"uint(max(lane_of_line - {distance}, 0))"))
            self.body.line(f"whole = mix({self._join(other, 'whole')}, whole, lane_of_line < {distance});")
            distance *= 2
        self._declare("earlier", self._shuffled("whole", "uint(max(lane_of_line - 1, 0))"))
        self.body.line(f"earlier = mix({self._join('carry', 'earlier')}, carry, lane_of_line == 0);")
        start = widened(Value("earlier", 1), width, self.node.dtype)
        self.body.line(f"folded = {self._join(start, 'folded', width)};")


def emit_cumulative(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a cumulative operation."""
    (node,) = kernel.graph.outputs
    if _is_shared(node, profile):
        return CumulativeEmitter(open_routine(kernel, profile, lifted, profile.subgroup_size)).emit_shared()
    return CumulativeEmitter(open_routine(kernel, profile, lifted)).emit_single()
