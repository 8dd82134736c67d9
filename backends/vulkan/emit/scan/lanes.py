"""Scans whose lanes share lines: a chunk belongs to some lanes of a subgroup, to all of them, or to several subgroups.

Each lane has a few vectors of neighbours, a subgroup's width apart, and loads all of them before it uses the first. A
lane folds each vector by itself, the lanes fold these results among themselves, and the subgroups of a workgroup fold
theirs in shared memory. Folds that may overflow join neighbours only, so that no intermediate result overflows unless
the final one does.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import pairwise

from lavax.backends.vulkan.emit.scan.lines import lines_of
from lavax.backends.vulkan.emit.scan.schedule import Lanes
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid
from lavax.backends.vulkan.glsl.reductions import shuffled
from lavax.backends.vulkan.glsl.routine import open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


class LanesEmitter:
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: Lanes) -> None:
        (node,) = kernel.graph.outputs
        self.lines, self.schedule = lines_of(node), schedule
        self.routine = open_routine(kernel, profile, lifted, schedule.local)
        self.subgroup = profile.subgroup_size
        self.body, self.dtype = self.routine.body, node.dtype
        self.kind, self.wide = type_name(node.dtype, 1), type_name(node.dtype, schedule.width)
        self.steps = self.lines.length // schedule.width
        self.chunk_steps = -(-min(self.lines.chunk, self.lines.length) // schedule.width)
        self.groups = self.lines.count * self.lines.parts

    def emit(self) -> Launch:
        self._open()
        if self.lines.wholes:
            self._write_whole()
        else:
            self._write_folds()
        shared = f"shared {self.kind} exchanged[{2 * self.schedule.subgroups}];"
        lines, local = self.body.scopes[0].lines, (self.schedule.local, 1)
        declarations = [shared] if self.schedule.subgroups > 1 else []
        text = ShaderText(self.body.uses, lines, local, declarations, self.subgroup, shuffles=True)
        groups = grid(-(-self.groups // self.schedule.chunks))
        return Launch(assemble(text), tuple(self.body.parameters.words), groups, text=text)

    def _joined(self, earlier: str, later: str, width: int = 1) -> str:
        return self.lines.joined(earlier, later, self.body.uses, width)

    def _declare(self, name: str, text: str, kind: str = "") -> None:
        self.body.line(f"{kind or self.kind} {name} = {text};")

    def _open(self) -> None:
        """Declares the chunk's bounds in vectors: `first`, and the `end` behind the last one."""
        lines, body, integer = self.lines, self.body, self.body.parameters.integer
        self._declare("share", self._chunk_number(), "int")
        body.line(f"if (share >= {integer(self.groups)}) return;")
        body.scopes[0].variables |= {"share"}
        self.line, self.part = unflatten(variable("share", self.groups), (lines.count, lines.parts))
        of_subgroup = "int(gl_SubgroupInvocationID)"
        self._declare("lane", of_subgroup if self.alone else f"{of_subgroup} % {self.schedule.lanes}", "int")
        if not self.alone:
            self._declare("lanes", f"{of_subgroup} - lane", "int")
        if self.schedule.subgroups > 1:
            self._declare("team", "int(gl_SubgroupID)", "int")
        self._declare("first", f"{body.index(linear([(self.part, self.chunk_steps)]))}", "int")
        self._declare("end", f"min(first + {integer(self.chunk_steps)}, {integer(self.steps)})", "int")

    @property
    def alone(self) -> bool:
        """Whether all lanes of a subgroup have the same chunk."""
        return self.schedule.lanes == self.subgroup

    def _chunk_number(self) -> str:
        """The number of an invocation's chunk."""
        if self.schedule.chunks == 1:
            return f"int({WORKGROUP})"
        inside = f"gl_SubgroupID * {self.subgroup // self.schedule.lanes}u"
        shared = "" if self.alone else f" + gl_SubgroupInvocationID / {self.schedule.lanes}u"
        return f"int({WORKGROUP} * {self.schedule.chunks}u + {inside}{shared})"

    def _loop(self, step: int) -> AbstractContextManager[None]:
        return self.body.block(f"for (int k = first; k < end; k += {step})")

    # -- vectors ------------------------------------------------------------------------------------------------------

    def _place(self, step: Index) -> Coordinates:
        """The coordinates of the vector of that number along the line."""
        width, length = self.schedule.width, self.lines.length
        lane = [(LANE, 1)] if width == VECTOR else []
        if self.lines.reverse:
            return self.lines.at(self.line, linear([(step, -width), *lane], length - width))
        return self.lines.at(self.line, linear([(step, width), *lane]))

    def _load(self, start: str) -> list[Coordinates]:
        """Loads a lane's vectors as `folded0` and so on, neighbours in neighbouring lanes; their coordinates."""
        places = []
        for number in range(self.schedule.vectors):
            self._declare(f"step{number}", f"{start} + {number * self.schedule.lanes} + lane", "int")
            inside = f"min(step{number}, {self.body.parameters.integer(self.steps - 1)})"
            places.append(self._place(self.routine.position(f"inside{number}", inside, self.steps)))
        for number, at in enumerate(places):
            value = self.body.value(self.lines.array, at)
            self._declare(f"folded{number}", widened(value, self.schedule.width, self.dtype), self.wide)
        return places

    def _fold_vectors(self) -> None:
        """Folds every vector by itself, and declares the `whole` of each."""
        order = COMPONENTS[::-1] if self.lines.reverse else COMPONENTS
        for number in range(self.schedule.vectors):
            name = f"folded{number}"
            if self.schedule.width == VECTOR:
                for earlier, later in pairwise(order):
                    self.body.line(f"{name}.{later} = {self._joined(f'{name}.{earlier}', f'{name}.{later}')};")
            self._declare(f"whole{number}", f"{name}.{order[-1]}" if self.schedule.width == VECTOR else name)

    # -- among lanes --------------------------------------------------------------------------------------------------

    def _of_lane(self, value: str, lane: str) -> str:
        place = f"uint({lane})" if self.alone else f"uint(lanes + {lane})"
        return shuffled("subgroupShuffle", value, place, self.dtype)

    def _fold_lanes(self, name: str, lanes: int) -> None:
        """Replaces the values of the first lanes by their partial folds."""
        distance = 1
        while distance < lanes:
            other = self._of_lane(name, f"max(lane - {distance}, 0)")
            self.body.line(f"{name} = mix({self._joined(other, name)}, {name}, lane < {distance});")
            distance *= 2

    def _joined_lanes(self, name: str) -> None:
        """Gives all lanes the fold of their values, joining neighbours in pairs, then fours and so on."""
        distance = 1
        while distance < self.schedule.lanes:
            other = shuffled("subgroupShuffleXor", name, f"{distance}u", self.dtype)
            self.body.line(f"{name} = {self._joined(name, other)};")
            distance *= 2

    # -- kernels ------------------------------------------------------------------------------------------------------

    def _write_whole(self) -> None:
        """Writes the fold of the chunk, which subgroups share."""
        body, integer, subgroups = self.body, self.body.parameters.integer, self.schedule.subgroups
        if subgroups > 1:
            share = -(-self.chunk_steps // subgroups)
            body.line(f"first += team * {integer(share)};")
            body.line(f"end = min(first + {integer(share)}, end);")
        self._declare("total", self.lines.identity())
        with self._loop(self.schedule.subgroup_vectors):
            self._load("k")
            self._fold_vectors()
            for number in range(self.schedule.vectors):
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
        """Writes all partial folds of the chunk; its start is joined last, so that sums round it once."""
        body, schedule, starts = self.body, self.schedule, self.lines.starts
        if starts is not None:
            self._declare("start", body.value(starts, self.lines.at(self.line, self.part)).text)
        self._declare("carry", self.lines.identity())
        if schedule.subgroups > 1:
            self._declare("slot", "0", "int")
        with self._loop(schedule.subgroup_vectors * schedule.subgroups):
            own = f" + team * {schedule.subgroup_vectors}" if schedule.subgroups > 1 else ""
            places = self._load(f"k{own}")
            self._fold_vectors()
            for number in range(schedule.vectors):
                self._fold_lanes(f"whole{number}", schedule.lanes)
                self._declare(f"total{number}", self._of_lane(f"whole{number}", str(schedule.lanes - 1)))
            self._find_starts()
            for number, at in enumerate(places):
                self._write_vector(number, at)

    def _find_starts(self) -> None:
        """Declares `start0` and so on, the folds before the lanes' vectors, and `carry`, for the next iteration."""
        vectors, joined = self.schedule.vectors, self._joined
        if self.schedule.subgroups > 1:
            self._exchange()
        else:
            self._declare("start0", "carry")
        for number in range(1, vectors):
            self._declare(f"start{number}", joined(f"start{number - 1}", f"total{number - 1}"))
        if self.schedule.subgroups == 1:
            self.body.line(f"carry = {joined(f'start{vectors - 1}', f'total{vectors - 1}')};")

    def _exchange(self) -> None:
        """Subgroups exchange folds in alternating halves of shared memory, so that none waits until all have read."""
        body, subgroups, joined = self.body, self.schedule.subgroups, self._joined
        whole = "total0"
        for number in range(1, self.schedule.vectors):
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
        own = widened(GlslValue(f"own{number}", 1), self.schedule.width, self.dtype)
        self.body.line(f"{name} = {self._joined(own, name, self.schedule.width)};")
        with self.body.block(f"if (step{number} < end)"):
            self.body.store(self.routine.node, at, GlslValue(name, self.schedule.width), self.routine.target)


def emit_lanes(kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: Lanes) -> Launch:
    """The shader of a scan whose lanes share lines."""
    return LanesEmitter(kernel, profile, lifted, schedule).emit()
