"""Merging of neighbouring sorted runs.

Each invocation bisects the number of elements that the left run gives to find where its part of the result begins in
both runs, and merges from there.
"""

from __future__ import annotations

from math import prod

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, before, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import ZERO, Index, flatten
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class MergedElements:
    """Elements that one invocation writes: many make the search for its start cheap, few give more invocations.

    Every run is a multiple of them. Exercised by `python -m benchmarks algorithms`.
    """

    cpu: int = 32
    gpu: int = 8


MERGED_ELEMENTS = MergedElements()


class MergeEmitter:
    """The state of writing one merging kernel."""

    def __init__(self, routine: RoutineShader, share: int) -> None:
        self.routine, self.share = routine, share
        self.body: Body = routine.body
        self.keys, self.order = routine.operands
        self.row: list[Index]

    def emit(self) -> Launch:
        length = self.keys.shape[-1]
        parts = (*self.keys.shape[:-1], -(-length // self.share))
        *self.row, part = self.routine.open_elements(parts)
        self.routine.integer("extent", length)
        self.routine.integer("run", self.routine.node.attrs["run"])
        self.body.line(f"int first = {self.body.index(part)} * {self.share};")
        self.body.line("int low = first / (2 * run) * (2 * run);")
        self.body.line("int middle = min(low + run, extent), high = min(low + 2 * run, extent);")
        self._find_start()
        self._merge()
        return self.routine.close(prod(parts))

    def _key(self, place: str, name: str) -> tuple[str, str]:
        """The position and the key at a rank of the order, which is clamped to the row."""
        length = self.keys.shape[-1]
        at = self.routine.position(f"{name}_at", f"clamp({place}, 0, extent - 1)", length)
        position = self.routine.read(self.order, (*self.row, at))
        where = self.routine.position(f"{name}_where", position, length)
        return position, self.routine.read(self.keys, (*self.row, where))

    def _find_start(self) -> None:
        """Declares `left` and `right`: the first elements of both runs that do not come before `first`."""
        body = self.body
        body.line("int ahead = first - low;")
        body.line("int least = max(0, ahead - (high - middle)), most = min(ahead, middle - low);")
        with body.block("while (least < most)"):
            body.line("int centre = (least + most) / 2;")
            _, left = self._key("low + centre", "probe_left")
            _, right = self._key("middle + ahead - 1 - centre", "probe_right")
            body.line(f"bool is_ahead = !{before(right, left, self.keys.dtype, body.uses)};")
            body.line("least = is_ahead ? centre + 1 : least;")
            body.line("most = is_ahead ? most : centre;")
        body.line("int left = low + least, right = middle + ahead - least;")

    def _merge(self) -> None:
        body, kind = self.body, type_name(self.keys.dtype, 1)
        for side in ("left", "right"):
            position, key = self._key(side, side)
            body.line(f"int {side}_position = {position};")
            body.line(f"{kind} {side}_key = {key};")
        body.line(f"int target = {body.index(flatten((*self.row, ZERO), self.keys.shape))};")
        goes_right = before("right_key", "left_key", self.keys.dtype, body.uses)
        with body.block(f"for (int k = first; k < min(first + {self.share}, high); ++k)"):
            body.line(f"bool from_left = right >= high || (left < middle && !{goes_right});")
            body.line(f"{self.routine.element('target + k')} = from_left ? left_position : right_position;")
            body.line("left += int(from_left);")
            body.line("right += int(!from_left);")
            position, key = self._key("(from_left ? left : right)", "next")
            body.line(f"left_position = from_left ? {position} : left_position;")
            body.line(f"right_position = from_left ? right_position : {position};")
            body.line(f"left_key = from_left ? {key} : left_key;")
            body.line(f"right_key = from_left ? right_key : {key};")


def emit_merge_runs(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of merge_runs."""
    share = MERGED_ELEMENTS.gpu if profile.kind == "gpu" else MERGED_ELEMENTS.cpu
    return MergeEmitter(open_routine(kernel, profile, lifted), share).emit()
