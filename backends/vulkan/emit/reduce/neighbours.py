"""Row groups of neighbouring invocations, for rows whose elements are neighbours in memory.

Members exchange within their subgroup first, then the subgroups of a workgroup exchange through shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lavax.backends.vulkan.emit.reduce.row_group import RowGroup
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.launch import open_invocations
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node


@dataclass(frozen=True, kw_only=True)
class NeighbourRows(RowSchedule):
    """Part of a subgroup, a subgroup or a whole workgroup shares a row; `subgroup` lanes exchange by shuffles.

    It shares as many neighbouring rows as are `together`: what they have in common is read and computed once.
    """

    subgroup: int
    together: int = 1


class NeighbourGroup(RowGroup[NeighbourRows]):
    """Writes row groups of neighbouring invocations."""

    @contextmanager
    def opened(self, rows: int) -> Iterator[list[str]]:
        schedule, body = self.schedule, self.body
        subgroup = None if schedule.local == schedule.subgroup else schedule.subgroup
        open_invocations(body, rows // schedule.together * schedule.members, schedule.local, "i", subgroup)
        if not schedule.is_shared:
            yield ["i"]
            return
        names = ["row", *(f"row{number}" for number in range(1, schedule.together))]
        first = f"i / {schedule.members}" if schedule.together == 1 else f"i / {schedule.members} * {schedule.together}"
        body.line(f"int row = {first};")
        body.lines(f"int {name} = row + {number};" for number, name in enumerate(names[1:], 1))
        body.line(f"int lane_of_row = i % {schedule.members};")
        body.scopes[0].variables |= set(names)
        yield names

    def workgroups(self, rows: int) -> int:
        return super().workgroups(rows // self.schedule.together)

    @property
    def own_rows(self) -> int:
        together = self.schedule.together
        return together if 1 < together <= self.schedule.members else 0

    @property
    def reads_early(self) -> bool:
        """A workgroup with one row is often alone on its processor, where a load between walks stalls it."""
        return self.has_barriers

    @property
    def has_barriers(self) -> bool:
        return self.schedule.members > self.schedule.subgroup

    @property
    def subgroup(self) -> int | None:
        return self.schedule.subgroup

    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        lanes = min(self.schedule.members, self.schedule.subgroup)
        for node, name in partial:
            self._exchange(node, name, lanes)
        if self.schedule.members > lanes:
            self._join_subgroups(partial, self.schedule.members // lanes)

    def _join_subgroups(self, partial: Sequence[tuple[Node, str]], subgroups: int) -> None:
        for register in self._registers_of(partial):
            self._declare(register, subgroups)
        with self.body.block("if (gl_SubgroupInvocationID == 0u)"):
            for register in self._registers_of(partial):
                self.body.line(f"{register.shared}[gl_SubgroupID] = {register.name};")
        self.body.line("barrier();")
        for register in self._registers_of(partial):
            self.body.line(f"{register.name} = {register.shared}[gl_SubgroupInvocationID % {subgroups}u];")
        for node, name in partial:
            self._exchange(node, name, subgroups)
