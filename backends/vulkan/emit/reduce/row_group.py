"""How the members of a team make one result of what each of them has reduced.

Always in the same order, so that results are the same from run to run. Members that stand side by side exchange within
their subgroup, then the subgroups of a workgroup by shared memory. Interleaved teams have their members in different
subgroups, and halve the number of partial results in shared memory until one is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lavax.backends.vulkan.emit.reduce.choose import Schedule
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.reductions import POSITIONS, REDUCTIONS, beats, shuffled, ties
from lavax.ir.graph import Node
from lavax.ir.types import DType

_LANE_OF_GROUP = "gl_LocalInvocationID.x"


@dataclass(frozen=True)
class Register:
    """A variable of a shader that holds a partial result, or a part of one."""

    name: str
    dtype: DType


class Team:
    """Joins partial results; `declarations` are the arrays in shared memory that it came to need."""

    def __init__(self, body: Body, schedule: Schedule) -> None:
        self.body, self.schedule = body, schedule
        self.declarations: list[str] = []

    def join(self, partial: Sequence[tuple[Node, str]]) -> None:
        """Makes each reduction's partial results one, which all members then have."""
        if self.schedule.interleaved:
            self._join_interleaved(partial)
            return
        within = min(self.schedule.team, self.schedule.subgroup)
        for node, name in partial:
            self._exchange(node, name, within)
        if self.schedule.team > within:
            self._join_subgroups(partial, self.schedule.team // within)

    def _exchange(self, node: Node, name: str, lanes: int) -> None:
        """A butterfly over so many neighbouring lanes, after which each has the same result."""
        for step in _doubling(lanes):
            self._join_one(node, name, lambda register, step=step: shuffled(  # type: ignore[misc]
                "subgroupShuffleXor", register.name, f"{step}u", register.dtype
            ))

    def _join_subgroups(self, partial: Sequence[tuple[Node, str]], subgroups: int) -> None:
        for register in _registers_of(partial):
            self._declare(register, subgroups)
        with self.body.block("if (gl_SubgroupInvocationID == 0u)"):
            for register in _registers_of(partial):
                self.body.line(f"{_shared(register)}[gl_SubgroupID] = {register.name};")
        self.body.line("barrier();")
        for register in _registers_of(partial):
            self.body.line(f"{register.name} = {_shared(register)}[gl_SubgroupInvocationID % {subgroups}u];")
        for node, name in partial:
            self._exchange(node, name, subgroups)

    def _join_interleaved(self, partial: Sequence[tuple[Node, str]]) -> None:
        registers = _registers_of(partial)
        for register in registers:
            self._declare(register, self.schedule.local)
            self.body.line(f"{_shared(register)}[{_LANE_OF_GROUP}] = {register.name};")
        self.body.line("barrier();")
        for step in reversed(list(_doubling(self.schedule.team))):
            distance = f"{step * self.schedule.teams}u"
            with self.body.block(f"if (lane_of_row < {step})"):
                for node, name in partial:
                    self._join_one(
                        node,
                        name,
                        lambda register, distance=distance: (  # type: ignore[misc]
                            f"{_shared(register)}[{_LANE_OF_GROUP} + {distance}]"
                        ),
                    )
                for register in registers:
                    self.body.line(f"{_shared(register)}[{_LANE_OF_GROUP}] = {register.name};")
            self.body.line("barrier();")
        for register in registers:
            self.body.line(f"{register.name} = {_shared(register)}[{_LANE_OF_GROUP} % {self.schedule.teams}u];")

    def _declare(self, register: Register, count: int) -> None:
        kind = type_name(register.dtype, self.schedule.row_width)
        self.declarations.append(f"shared {kind} {_shared(register)}[{count}];")

    def _join_one(self, node: Node, name: str, other_of: Callable[[Register], str]) -> None:
        """Takes another member's partial result in."""
        if node.op not in POSITIONS:
            joined = REDUCTIONS[node.op].join(
                name, other_of(Register(name, node.dtype)), node.dtype, self.schedule.row_width, self.body.uses
            )
            self.body.line(f"{name} = {joined};")
            return
        best, found = _registers_of([(node, name)])
        value, place, uses = self.body.name(), self.body.name(), self.body.uses
        for register, copy in ((best, value), (found, place)):
            kind = type_name(register.dtype, self.schedule.row_width)
            self.body.line(f"{kind} {copy} = {other_of(register)};")
        for dot in (f".{c}" for c in COMPONENTS) if self.schedule.row_width == VECTOR else ("",):
            better = " || ".join((
                f"{name}{dot} < 0",
                beats(node, value + dot, best.name + dot, uses),
                f"({ties(node, value + dot, best.name + dot, uses)} && {place}{dot} < {name}{dot})",
            ))
            taken = f"{best.name}{dot} = {value}{dot}; {name}{dot} = {place}{dot};"
            self.body.line(f"if ({place}{dot} >= 0 && ({better})) {{ {taken} }}")


def _doubling(end: int) -> Iterator[int]:
    step = 1
    while step < end:
        yield step
        step *= 2


def _shared(register: Register) -> str:
    return f"shared_{register.name}"


def _registers_of(partial: Sequence[tuple[Node, str]]) -> list[Register]:
    """What is kept of each partial result; for a position the best value as well."""
    found: list[Register] = []
    for node, name in partial:
        if node.op in POSITIONS:
            found.append(Register(f"{name}_best", node.operands[0].dtype))
        found.append(Register(name, node.dtype))
    return found
