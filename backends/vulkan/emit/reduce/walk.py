"""Walks over rows: loops, or statements written out one after the other, that visit each element of a member."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.launch import at_element
from lavax.passes.kernels.index import ZERO, Index, linear, variable
from lavax.passes.kernels.kernel import Kernel

# Is given the number of a strip and the condition that the element exists, "" if it always does.
Visit = Callable[[int, str], None]

# Steps per member that are added up plainly before their sum is added with its rounding error (accumulators.py).
_CHUNK = 32
STEP = "k"  # the shader's variable that numbers the steps of a loop


class RowWalk:
    """Writes walks over `rows` of an invocation, by their numbers, given as values of the kernel's outer variables.

    `lane` is the shader's variable for which member an invocation is, `step` that which numbers steps.
    """

    def __init__(
        self, body: Body, kernel: Kernel, schedule: RowSchedule, lane: str = "lane_of_row", step: str = STEP
    ) -> None:
        self.body, self.kernel, self.schedule, self._lane, self._step = body, kernel, schedule, lane, step
        self.rows: Mapping[int, dict[str, Index]] = {}
        self.runs = schedule.steps(kernel.domain.length) // schedule.run
        self.visited = ZERO  # the step that is visited
        self.bound = ""  # the number of runs of steps, in the shader
        self.iterations = 0  # of the loops written so far

    def write(
        self,
        visit: Visit,
        chunk: Callable[[], AbstractContextManager[None]] | None = None,
        after: Callable[[], None] = lambda: None,
        ends: Visit | None = None,
    ) -> None:
        """Visits the elements of each strip's row; those that are in no step first, by `ends` if it is given.

        With `chunk` a loop goes from chunk to chunk of the row and visits each chunk within that context. `after`
        follows what is written out: all visits, or those of one iteration.
        """
        self.bound = self.body.parameters.integer(self.runs)
        if self.schedule.ends:
            self._visit_ends(ends or visit)
        first = self._lane if self.schedule.is_shared else "0"
        self.iterations += self._iterations(chunk is not None)
        if not self.schedule.loop:
            self._write_out(first, visit)
            after()
        elif chunk is None:
            self._loop(first, self.bound, visit, after)
        else:
            length = _CHUNK * self.schedule.members
            header = f"for (int chunk = {first}; chunk < {self.bound}; chunk += {length})"
            with self.body.block(header), chunk():
                self.body.line(f"int chunk_end = min(chunk + {length}, {self.bound});")
                self._loop("chunk", "chunk_end", visit, after)

    def _iterations(self, has_chunks: bool) -> int:
        """How many iterations an invocation makes, also the last one of each loop, which only ends it; or one if
        nothing is a loop."""
        if not self.schedule.loop:
            return 1
        members, several = self.schedule.members, self.schedule.unrolled // self.schedule.run
        chunks = -(-self.runs // (_CHUNK * members)) if has_chunks else 0
        return -(-self.runs // (members * several)) + 1 + 2 * chunks

    def _write_out(self, first: str, visit: Visit) -> None:
        for number in range(self.schedule.unrolled // self.schedule.run):
            always = self.schedule.members * (number + 1) <= self.runs
            self._visit_run(number, first, visit, always=always)

    def _loop(self, first: str, end: str, visit: Visit, after: Callable[[], None]) -> None:
        several = self.schedule.unrolled // self.schedule.run
        stride = self.schedule.members * several
        name = self._step
        with self.body.block(f"for (int {name} = {first}; {name} < {end}; {name} += {stride})", frozenset((name,))):
            self._visit_steps(name, visit, "")
            for number in range(1, several):
                self._visit_run(number, name, visit, always=self.runs % stride == 0)
            after()

    def _visit_run(self, number: int, first: str, visit: Visit, *, always: bool) -> None:
        """Visits the member's run of that number, counted from `first`; beyond the last run, the last is read."""
        name = f"{self._step}{number}"
        scope = self.body.scopes[-1]
        run = _sum(first, number * self.schedule.members)
        if name not in scope.variables:
            self.body.line(f"int {name} = {run if always else f'min({run}, {self.bound} - 1)'};")
            scope.variables |= {name}
        self._visit_steps(name, visit, "" if always else f"{run} < {self.bound}")

    def _visit_steps(self, name: str, visit: Visit, condition: str) -> None:
        """Visits the steps of the run whose number is the shader's variable of that name."""
        for number in range(self.schedule.run):
            self._visit_strips(linear([(variable(name, self.runs), self.schedule.run)], number), visit, condition)

    def _visit_strips(self, step: Index, visit: Visit, condition: str) -> None:
        self.visited = step
        for strip, row in self.rows.items():
            element = at_element(self.schedule.element_of(strip, step), self.kernel)
            with self.body.at(row | element):
                visit(strip, condition)

    def _visit_ends(self, visit: Visit) -> None:
        """Visits the elements before and behind a row's steps, one a member."""
        schedule, ends = self.schedule, self.schedule.ends
        behind = self.kernel.domain.length - ends
        for strip, row in self.rows.items():
            name, scope = f"end{strip}", self.body.scopes[-1]
            if name not in scope.variables:
                before = schedule.element_of(strip, ZERO).constant
                lane = f"min(lane_of_row, {ends - 1})"
                self.body.line(f"int {name} = {lane} + (lane_of_row < {before} ? 0 : {behind});")
                scope.variables |= {name}
            element = at_element(variable(name, self.kernel.domain.length), self.kernel)
            with self.body.at(row | element):
                visit(strip, f"lane_of_row < {ends}")


def _sum(text: str, number: int) -> str:
    if text == "0" or not number:
        return str(number) if text == "0" else text
    return f"{text} + {number}"
