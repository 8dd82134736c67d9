"""Row groups of a subgroup each, whose workgroup computes what all rows have in common once, as the norm of a vector.

Sums that are the same for every row, such as that of the vector's squares, are added up by all of the workgroup's
invocations; so are the elements of vectors that every row reads, which are then in shared memory. All workgroups add up
in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import prod

from lavax.backends.vulkan.emit.reduce.accumulators import Accumulators
from lavax.backends.vulkan.emit.reduce.early_reads import reads_of_elements
from lavax.backends.vulkan.emit.reduce.neighbours import NeighbourGroup, NeighbourRows
from lavax.backends.vulkan.emit.reduce.online_sum import phases_of
from lavax.backends.vulkan.emit.reduce.shared_results import TRANSPARENT, results_of_all_rows, same_for_all_rows
from lavax.backends.vulkan.emit.reduce.walk import RowWalk
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import GlslValue, widened
from lavax.backends.vulkan.glsl.launch import WORKGROUP, grid
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.operation import names_of_family
from lavax.passes.kernels.accesses import operand_coordinates
from lavax.passes.kernels.index import Index, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel, once_a_kernel
from lavax.passes.kernels.reads import READS, Coordinates

_Instance = tuple[Node, Coordinates]
_MOVEMENTS = TRANSPARENT - frozenset(names_of_family("elementwise"))
_SCRATCH_BITS = 32  # of the floats that shared memory holds


@dataclass(frozen=True, kw_only=True)
class CommonVectorRows(NeighbourRows):
    """A subgroup has a row, and all of a workgroup have vectors in common. Elements are vectors of four."""

    def of_all(self, length: int) -> NeighbourRows:
        """How the workgroup walks over what rows have in common: every invocation is a member."""
        steps = -(-self.steps(length) // self.local)
        return NeighbourRows(
            members=self.local, element_width=VECTOR, local=self.local, subgroup=self.subgroup, unrolled=steps,
            loop=False,
        )


class CommonVectorGroup(NeighbourGroup):
    """Writes a workgroup of subgroups with a row each."""

    schedule: CommonVectorRows

    @contextmanager
    def opened(self, rows: int) -> Iterator[list[str]]:
        """No invocation ends here, because all of a workgroup must reach its barriers."""
        groups, lanes, body = self.schedule.row_groups, self.schedule.subgroup, self.body
        bound = body.parameters.integer(rows)
        body.line(f"int member = int(gl_SubgroupID * {lanes}u + gl_SubgroupInvocationID);")
        body.line(f"int team = int({WORKGROUP} * {groups}u + gl_SubgroupID);")
        body.line(f"int row = min(team, {bound} - 1);")
        body.line("int lane_of_row = int(gl_SubgroupInvocationID);")
        workgroups = self.workgroups(rows)
        self.exists = "" if rows % groups == 0 and prod(grid(workgroups)) == workgroups else f"team < {bound}"
        body.scopes[0].variables |= {"row"}
        yield ["row"]

    @property
    def reads_early(self) -> bool:
        """Loads between walks would stall the workgroup, which waits at barriers."""
        return True

    def join_all(self, partial: Sequence[tuple[Node, str]]) -> None:
        """Joins partial results of all of the workgroup, behind a barrier."""
        for node, name in partial:
            self._exchange(node, name, self.schedule.subgroup)
        self._join_subgroups(partial, self.schedule.row_groups)


class CommonVectors:
    """Writes what all rows of a kernel have in common, and where rows find it."""

    def __init__(self, body: Body, kernel: Kernel, group: CommonVectorGroup) -> None:
        self.body, self.kernel, self.group, schedule = body, kernel, group, group.schedule
        self.reductions = results_of_all_rows(kernel)
        self.vectors = vectors_of_all_rows(kernel)
        of_all = schedule.of_all(kernel.domain.length)
        self.walk = RowWalk(body, kernel, of_all, lane="member", step="c")
        self._accumulators = Accumulators(body, of_all, kernel.domain.length, frozenset())
        self._length = schedule.steps(kernel.domain.length)
        group.declarations.append(f"shared vec4 scratch[{bytes_of_vectors(kernel) // 16}];")

    def read(self) -> None:
        """Reads what the vectors and the sums are computed from."""
        reads = [read for read in reads_of_elements(self.kernel, common=True) if same_for_all_rows(self.kernel, read)]
        self.walk.write(lambda _, condition: self._evaluate(reads))

    def write(self, row: Mapping[str, Index], functions: Callable[[], None]) -> None:
        """The sums, and the vectors, which are in shared memory when all have met. `row` is any of the rows.

        `functions` writes what is computed while the first sums are on their way.
        """
        phases = {node: phase for node, phase in phases_of(self.kernel).items() if node in self.reductions}
        last = max(phases.values())
        vectors = {number: vector for vector, number in self.vectors.items()}.values()  # one of each number
        early = [vector for vector in vectors if not _depends_on(vector, self._of_phase(phases, last))]
        late = [vector for vector in vectors if vector not in early]
        for phase in range(1, last + 1):
            self._reduce(self._of_phase(phases, phase), row, early if phase == last else [], functions)
            functions = _nothing
        if late:
            self.walk.write(lambda _, condition: self._store(late, condition))
            self.body.line("barrier();")

    def _of_phase(self, phases: dict[Node, int], phase: int) -> list[Node]:
        return [node for node, of in phases.items() if of == phase]

    def _reduce(
        self,
        reductions: list[Node],
        row: Mapping[str, Index],
        vectors: list[_Instance],
        functions: Callable[[], None],
    ) -> None:
        names = {node: self._accumulators.open(node) for node in reductions}

        def take(_: int, condition: str) -> None:
            self._store(vectors, condition)
            for node, name in names.items():
                value = self.body.value(*_operand_of(node, self.kernel))
                with self._if(condition):
                    self._accumulators.take(node, name, value)

        self.walk.write(take)
        functions()
        partial = [(node, self._accumulators.close(node, name)) for node, name in names.items()]
        self.group.join_all(partial)
        with self.body.at(row):
            for node, name in partial:
                self.body.define(node, self.kernel.coordinates[node], GlslValue(name, 1))

    def _if(self, condition: str) -> AbstractContextManager[None]:
        return self.body.block(f"if ({condition})") if condition else nullcontext()

    def _evaluate(self, instances: Collection[_Instance]) -> None:
        for node, at in instances:
            self.body.value(node, at)

    def _store(self, vectors: Collection[_Instance], condition: str) -> None:
        """Writes the elements of a step into shared memory."""
        for node, at in vectors:
            value = widened(self.body.value(node, at), VECTOR, node.dtype)
            with self._if(condition):
                self.body.line(f"{self._place(self.vectors[node, at], self.walk)} = {value};")

    def provide(self, walk: RowWalk) -> None:
        """Rows find the vectors' elements of the step that a walk visits in shared memory."""
        names: dict[int, str] = {}
        for (node, at), number in self.vectors.items():
            if number not in names:
                names[number] = self.body.name()
                kind = type_name(node.dtype, VECTOR)
                self.body.line(f"{kind} {names[number]} = {self._place(number, walk)};")
            self.body.define(node, at, GlslValue(names[number], VECTOR))

    def _place(self, number: int, walk: RowWalk) -> str:
        """Where the vector of a step is: those that lanes of a row read at once, one of each run, are neighbours."""
        run, step = self.group.schedule.run, walk.visited
        place = linear([(remainder(step, run), self._length // run), (quotient(step, run), 1)], number * self._length)
        return f"scratch[{self.body.index(place)}]"


@once_a_kernel
def vectors_of_all_rows(kernel: Kernel) -> dict[_Instance, int]:
    """The values with an element for each element of a row that are the same for all rows, as far as rows compute
    them: floats of up to 32 bits. Each has a number, and those that are computed alike have the same."""
    known = results_of_all_rows(kernel)
    elements = frozenset[str]().union(*(index.variables for index in kernel.domain.reduced_variables))
    stack = [_operand_of(node, kernel) for node in phases_of(kernel) if node not in known]
    stack += [(output, kernel.coordinates[output]) for output in kernel.graph.outputs]
    found: dict[_Instance, int] = {}
    contents: dict[Hashable, int] = {}
    numbers: dict[int, int] = {}
    seen = set(stack)
    while stack:
        node, at = stack.pop()
        if node.op not in TRANSPARENT:
            continue
        if same_for_all_rows(kernel, (node, at)):
            is_vector = any(not index.variables.isdisjoint(elements) for index in at)
            if is_vector and node.dtype.is_float and node.dtype.bits <= _SCRATCH_BITS:
                found[node, at] = numbers.setdefault(_content((node, at), contents), len(numbers))
            continue
        ahead = [read for read in READS[node.op](node, at) if read not in seen]
        seen.update(ahead)
        stack += reversed(ahead)
    return found


def bytes_of_vectors(kernel: Kernel) -> int:
    """The shared memory of the vectors of all rows."""
    return len({*vectors_of_all_rows(kernel).values()}) * 4 * kernel.domain.length


def _content(root: _Instance, numbers: dict[Hashable, int]) -> int:
    """The number of what a value is computed from: values that are computed alike have the same, wherever they stand.
    """
    known: dict[_Instance, int] = {}
    stack = [root]
    while stack:
        node, at = instance = stack[-1]
        reads = READS[node.op](node, at) if node.op in TRANSPARENT else ()
        ahead = [read for read in reads if read not in known]
        stack += ahead
        if ahead:
            continue
        stack.pop()
        if node.op not in TRANSPARENT:
            place = node.attrs["value"] if node.op == "constant" else (node, *(index.key for index in at))
            known[instance] = numbers.setdefault((node.op, node.dtype, place), len(numbers))
        elif node.op in _MOVEMENTS:
            known[instance] = known[reads[0]]
        else:
            key = node.op, node.dtype, tuple(node.attrs.items()), *(known[read] for read in reads)
            known[instance] = numbers.setdefault(key, len(numbers))
    return known[root]


def _nothing() -> None:
    """What is computed while later sums are on their way."""


def _operand_of(reduction: Node, kernel: Kernel) -> _Instance:
    return reduction.operands[0], operand_coordinates(reduction, kernel.coordinates[reduction], kernel)


def _depends_on(vector: _Instance, reductions: Collection[Node]) -> bool:
    """Whether a value is computed from one of these."""
    stack, seen = [vector[0]], {vector[0]}
    while stack:
        node = stack.pop()
        if node in reductions:
            return True
        ahead = [operand for operand in node.operands if operand not in seen]
        seen.update(ahead)
        stack += ahead
    return False
