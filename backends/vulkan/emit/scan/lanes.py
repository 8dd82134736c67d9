"""Cumulative kernels whose lanes stand side by side along a line: some lanes of a subgroup, all of them, or a workgroup
of several subgroups have a chunk.

Each lane has a few vectors of neighbours, a subgroup's width apart, all loaded before the first is used. A lane folds
each vector by itself, the lanes fold these among themselves, and the subgroups of a workgroup fold theirs in shared
memory. What may overflow is joined with its neighbours only, so that nothing does on the way but in the result.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise

from lavax.backends.vulkan.emit.scan.lines import lines_of
from lavax.backends.vulkan.glsl.body import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid
from lavax.backends.vulkan.glsl.reductions import shuffled
from lavax.backends.vulkan.glsl.routine import open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class Team:
    """Who has a chunk: so many subgroups, or so many lanes of one, of which each has so many vectors of `width` at a
    time. A workgroup has `chunks` of them; where one takes several subgroups, one."""

    subgroups: int
    lanes: int
    vectors: int
    width: int
    chunks: int = 1

    @property
    def subgroup_vectors(self) -> int:
        return self.lanes * self.vectors

    @property
    def local(self) -> int:
        return self.chunks * self.subgroups * self.lanes


class LanesEmitter:
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool, team: Team) -> None:
        (node,) = kernel.graph.outputs
        self.lines, self.team = lines_of(node), team
        self.routine = open_routine(kernel, profile, lifted, team.local)
        self.subgroup = profile.subgroup_size
        self.body, self.dtype = self.routine.body, node.dtype
        self.kind, self.wide = type_name(node.dtype, 1), type_name(node.dtype, team.width)
        self.steps = self.lines.length // team.width
        self.chunk_steps = -(-min(self.lines.chunk, self.lines.length) // team.width)
        self.groups = self.lines.count * self.lines.parts

    def emit(self) -> Launch:
        self._open()
        if self.lines.wholes:
            self._write_whole()
        else:
            self._write_folds()
        shared = f"shared {self.kind} exchanged[{2 * self.team.subgroups}];"
        lines, local = self.body.scopes[0].lines, (self.team.local, 1)
        declarations = [shared] if self.team.subgroups > 1 else []
        shader = assemble(ShaderText(self.body.uses, lines, local, declarations, self.subgroup, shuffles=True))
        return Launch(shader, tuple(self.body.parameters.words), grid(-(-self.groups // self.team.chunks)))

    def _joined(self, earlier: str, later: str, width: int = 1) -> str:
        return self.lines.joined(earlier, later, self.body.uses, width)

    def _declare(self, name: str, text: str, kind: str = "") -> None:
        self.body.line(f"{kind or self.kind} {name} = {text};")

    def _open(self) -> None:
        """Where the chunk is, in vectors: from `first` to before `end`."""
        lines, body, integer = self.lines, self.body, self.body.parameters.integer
        self._declare("group", self._chunk_number(), "int")
        body.line(f"if (group >= {integer(self.groups)}) return;")
        body.scopes[0].variables |= {"group"}
        self.line, self.part = unflatten(variable("group", self.groups), (lines.count, lines.parts))
        of_subgroup = "int(gl_SubgroupInvocationID)"
        self._declare("lane", of_subgroup if self.alone else f"{of_subgroup} % {self.team.lanes}", "int")
        if not self.alone:
            self._declare("lanes", f"{of_subgroup} - lane", "int")
        if self.team.subgroups > 1:
            self._declare("team", "int(gl_SubgroupID)", "int")
        self._declare("first", f"{body.index(linear([(self.part, self.chunk_steps)]))}", "int")
        self._declare("end", f"min(first + {integer(self.chunk_steps)}, {integer(self.steps)})", "int")

    @property
    def alone(self) -> bool:
        """Whether all lanes of a subgroup have the same chunk."""
        return self.team.lanes == self.subgroup

    def _chunk_number(self) -> str:
        """Which chunk an invocation works for."""
        if self.team.chunks == 1:
            return f"int({WORKGROUP})"
        inside = f"gl_SubgroupID * {self.subgroup // self.team.lanes}u"
        shared = "" if self.alone else f" + gl_SubgroupInvocationID / {self.team.lanes}u"
        return f"int({WORKGROUP} * {self.team.chunks}u + {inside}{shared})"

    def _turns(self, step: int) -> AbstractContextManager[None]:
        return self.body.block(f"for (int k = first; k < end; k += {step})")

    # -- vectors ------------------------------------------------------------------------------------------------------

    def _place(self, step: Index) -> Coordinates:
        """Where the vector of that number along the line is."""
        width, length = self.team.width, self.lines.length
        lane = [(LANE, 1)] if width == VECTOR else []
        if self.lines.reverse:
            return self.lines.at(self.line, linear([(step, -width), *lane], length - width))
        return self.lines.at(self.line, linear([(step, width), *lane]))

    def _load(self, start: str) -> list[Coordinates]:
        """`folded0` and so on: a lane's vectors, a lane's neighbour being that of the lane; and where they are."""
        places = []
        for number in range(self.team.vectors):
            self._declare(f"step{number}", f"{start} + {number * self.team.lanes} + lane", "int")
            inside = f"min(step{number}, {self.body.parameters.integer(self.steps - 1)})"
            places.append(self._place(self.routine.position(f"inside{number}", inside, self.steps)))
        for number, at in enumerate(places):
            value = self.body.value(self.lines.array, at)
            self._declare(f"folded{number}", widened(value, self.team.width, self.dtype), self.wide)
        return places

    def _fold_vectors(self) -> None:
        """Partial folds of every vector in itself, and the `whole` of each."""
        order = COMPONENTS[::-1] if self.lines.reverse else COMPONENTS
        for number in range(self.team.vectors):
            name = f"folded{number}"
            if self.team.width == VECTOR:
                for earlier, later in pairwise(order):
                    self.body.line(f"{name}.{later} = {self._joined(f'{name}.{earlier}', f'{name}.{later}')};")
            self._declare(f"whole{number}", f"{name}.{order[-1]}" if self.team.width == VECTOR else name)

    # -- among lanes --------------------------------------------------------------------------------------------------

    def _of_lane(self, value: str, lane: str) -> str:
        place = f"uint({lane})" if self.alone else f"uint(lanes + {lane})"
        return shuffled("subgroupShuffle", value, place, self.dtype)

    def _fold_lanes(self, name: str, lanes: int) -> None:
        """Partial folds of what the first lanes have, in place of it."""
        distance = 1
        while distance < lanes:
            other = self._of_lane(name, f"max(lane - {distance}, 0)")
            self.body.line(f"{name} = mix({self._joined(other, name)}, {name}, lane < {distance});")
            distance *= 2

    def _joined_lanes(self, name: str) -> None:
        """In all lanes the fold of what they have, which pairs, then fours and so on, of neighbours join."""
        distance = 1
        while distance < self.team.lanes:
            other = shuffled("subgroupShuffleXor", name, f"{distance}u", self.dtype)
            self.body.line(f"{name} = {self._joined(name, other)};")
            distance *= 2

    # -- kernels ------------------------------------------------------------------------------------------------------

    def _write_whole(self) -> None:
        """The fold of the chunk, of which each subgroup has its share."""
        body, integer, subgroups = self.body, self.body.parameters.integer, self.team.subgroups
        if subgroups > 1:
            share = -(-self.chunk_steps // subgroups)
            body.line(f"first += team * {integer(share)};")
            body.line(f"end = min(first + {integer(share)}, end);")
        self._declare("total", self.lines.identity())
        with self._turns(self.team.subgroup_vectors):
            self._load("k")
            self._fold_vectors()
            for number in range(self.team.vectors):
                name = f"whole{number}"
                body.line(f"{name} = mix({self.lines.identity()}, {name}, step{number} < end);")
                if self.lines.overflows:
                    self._joined_lanes(name)
                body.line(f"total = {self._joined('total', name)};")
        if not self.lines.overflows:
            self._joined_lanes("total")
        if subgroups > 1:
            body.line("if (lane == 0) exchanged[team] = total;")
            body.line("barrier();")
            body.line("total = exchanged[0];")
            for number in range(1, subgroups):
                body.line(f"total = {self._joined('total', f'exchanged[{number}]')};")
        at = self.lines.at(self.line, self.part)
        with body.block("if (gl_LocalInvocationID.x == 0u)" if subgroups > 1 else "if (lane == 0)"):
            body.store(self.routine.node, at, GlslValue("total", 1), self.routine.target)

    def _write_folds(self) -> None:
        """All partial folds of the chunk; what it starts from is joined last, so that sums round it once."""
        body, team, starts = self.body, self.team, self.lines.starts
        if starts is not None:
            self._declare("start", body.value(starts, self.lines.at(self.line, self.part)).text)
        self._declare("carry", self.lines.identity())
        if team.subgroups > 1:
            self._declare("slot", "0", "int")
        with self._turns(team.subgroup_vectors * team.subgroups):
            own = f" + team * {team.subgroup_vectors}" if team.subgroups > 1 else ""
            places = self._load(f"k{own}")
            self._fold_vectors()
            for number in range(team.vectors):
                self._fold_lanes(f"whole{number}", team.lanes)
                self._declare(f"total{number}", self._of_lane(f"whole{number}", str(team.lanes - 1)))
            self._find_starts()
            for number, at in enumerate(places):
                self._write_vector(number, at)

    def _find_starts(self) -> None:
        """`start0` and so on: the fold of all before the lanes' vectors of that number; `carry`: of this turn too."""
        vectors, joined = self.team.vectors, self._joined
        if self.team.subgroups > 1:
            self._exchange()
        else:
            self._declare("start0", "carry")
        for number in range(1, vectors):
            self._declare(f"start{number}", joined(f"start{number - 1}", f"total{number - 1}"))
        if self.team.subgroups == 1:
            self.body.line(f"carry = {joined(f'start{vectors - 1}', f'total{vectors - 1}')};")

    def _exchange(self) -> None:
        """The workgroup's subgroups tell each other what they have, by turns in one half of the memory or the other, so
        that nobody has to wait until all have read."""
        body, subgroups, joined = self.body, self.team.subgroups, self._joined
        whole = "total0"
        for number in range(1, self.team.vectors):
            whole = joined(whole, f"total{number}")
        body.line(f"if (lane == 0) exchanged[slot + team] = {whole};")
        body.line("barrier();")
        self._declare("teams", f"exchanged[slot + min(lane, {subgroups - 1})]")
        self._fold_lanes("teams", subgroups)
        self._declare("before", self._of_lane("teams", "max(team - 1, 0)"))
        self._declare("start0", f"mix({joined('carry', 'before')}, carry, team == 0)")
        body.line(f"carry = {joined('carry', self._of_lane('teams', str(subgroups - 1)))};")
        body.line(f"slot = {subgroups} - slot;")

    def _write_vector(self, number: int, at: Coordinates) -> None:
        name, start = f"folded{number}", f"start{number}"
        self._declare(f"earlier{number}", self._of_lane(f"whole{number}", "max(lane - 1, 0)"))
        self._declare(f"own{number}", f"mix({self._joined(start, f'earlier{number}')}, {start}, lane == 0)")
        if self.lines.starts is not None:
            self.body.line(f"own{number} = {self._joined('start', f'own{number}')};")
        own = widened(GlslValue(f"own{number}", 1), self.team.width, self.dtype)
        self.body.line(f"{name} = {self._joined(own, name, self.team.width)};")
        with self.body.block(f"if (step{number} < end)"):
            self.body.store(self.routine.node, at, GlslValue(name, self.team.width), self.routine.target)
