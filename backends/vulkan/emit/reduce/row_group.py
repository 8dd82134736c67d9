"""Row groups as they are written: which rows members work on, and how their partial results become one.

Results are always joined in the same order, so they are the same bits on every run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.reductions import POSITIONS, REDUCTIONS, beats, doubling, shuffled, ties
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import DType
from lavax.passes.kernels.index import Index

ScheduleT = TypeVar("ScheduleT", bound=RowSchedule)


@dataclass(frozen=True)
class Register:
    """A variable of a shader that holds a partial result, or a part of one, for `width` rows."""

    name: str
    dtype: DType
    width: int = 1

    @property
    def shared(self) -> str:
        """The array in shared memory through which members exchange this register."""
        return f"shared_{self.name}"


class RowGroup(ABC, Generic[ScheduleT]):
    """Writes one form of row group.

    `declarations` are the shared arrays that joining needed. `exists` is the condition that an invocation's row
    exists; empty if invocations without a row have ended. `shared` reductions have one result for all rows of a vector.
    """

    exists = ""

    def __init__(self, body: Body, schedule: ScheduleT, shared: Collection[Node]) -> None:
        self.body, self.schedule, self.shared = body, schedule, shared
        self.declarations: list[str] = []

    @abstractmethod
    def opened(self, rows: int) -> AbstractContextManager[list[str]]:
        """The context in which an invocation works on some of the `rows`; the variables that hold their numbers.

        Members of a group of several also learn which one they are: `lane_of_row`.
        """

    def places(self, rows: int, names: Sequence[str]) -> list[Index]:
        """The rows that an invocation works on, one after the other or at once; `names` are what `opened` gave."""
        return [self.schedule.row_index(rows, name) for name in names]

    @abstractmethod
    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        """Joins each reduction's partial results into one, which all members then hold."""

    @property
    def own_rows(self) -> int:
        """How many neighbouring rows, or vectors of them, members share of which each may be one member's own; or 0."""
        return 0

    @property
    def first_row(self) -> str:
        """The number of the first of these, in the shader."""
        return "row"

    @property
    @abstractmethod
    def reads_early(self) -> bool:
        """Whether it pays to load a row's single values before the first walk (early_reads.py)."""

    @property
    def has_barriers(self) -> bool:
        """Whether members wait for each other at barriers between walks."""
        return False

    @property
    def turns(self) -> int:
        """How many rows, or vectors of them, an invocation has one after the other."""
        return 1

    @property
    def subgroup(self) -> int | None:
        """The subgroup size that the shader requires; None if any will do."""
        return None

    def workgroups(self, rows: int) -> int:
        """How many workgroups cover all rows, or vectors of rows."""
        return -(-rows * self.schedule.members // self.schedule.local)

    def exists_of(self, number: int, rows: int) -> str:
        """The condition that the invocation's row of that number exists; empty if it always does."""
        return self.exists

    def width_of(self, node: Node) -> int:
        """How many rows' results a register of a reduction holds."""
        return 1 if node in self.shared else self.schedule.row_width

    def _registers_of(self, partial: Sequence[tuple[Node, str]]) -> list[Register]:
        """The registers of each partial result: one, and for a position the best value as well."""
        found: list[Register] = []
        for node, name in partial:
            if node.op in POSITIONS:
                found.append(Register(f"{name}_best", node.operands[0].dtype, self.width_of(node)))
            found.append(Register(name, node.dtype, self.width_of(node)))
        return found

    def _declare(self, register: Register, count: int) -> None:
        kind = type_name(register.dtype, register.width)
        self.declarations.append(f"shared {kind} {register.shared}[{count}];")

    def _exchange(self, node: Node, name: str, lanes: int) -> None:
        """A butterfly over so many neighbouring lanes, after which each has the same result."""
        for step in doubling(lanes):
            self._join_one(node, name, lambda register, step=step: shuffled(  # type: ignore[misc]
                "subgroupShuffleXor", register.name, f"{step}u", register.dtype
            ))

    def _join_one(self, node: Node, name: str, other_of: Callable[[Register], str]) -> None:
        """Joins another member's partial result into an invocation's own."""
        if node.op not in POSITIONS:
            width = self.width_of(node)
            joined = REDUCTIONS[node.op].join(
                name, other_of(Register(name, node.dtype, width)), node.dtype, width, self.body.uses
            )
            self.body.line(f"{name} = {joined};")
            return
        best, found = self._registers_of([(node, name)])
        value, position, uses = self.body.name(), self.body.name(), self.body.uses
        for register, copy in ((best, value), (found, position)):
            kind = type_name(register.dtype, self.schedule.row_width)
            self.body.line(f"{kind} {copy} = {other_of(register)};")
        for dot in (f".{c}" for c in COMPONENTS) if self.schedule.row_width == VECTOR else ("",):
            better = " || ".join((
                f"{name}{dot} < 0",
                beats(node, value + dot, best.name + dot, uses),
                f"({ties(node, value + dot, best.name + dot, uses)} && {position}{dot} < {name}{dot})",
            ))
            taken = f"{best.name}{dot} = {value}{dot}; {name}{dot} = {position}{dot};"
            self.body.line(f"if ({position}{dot} >= 0 && ({better})) {{ {taken} }}")
