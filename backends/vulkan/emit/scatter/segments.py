"""Scatters of updates in the order of their places: one invocation joins a segment, the updates of one place.

Invocations belong either to updates, and those at which a segment begins join it; or to places, and each bisects for
its place's segment. Updates of a segment behind its first chunk were folded before, by one invocation per chunk, and
chunks of these results were folded again, so that no invocation joins more than a chunk of each level.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.emit.scatter.lines import JOINS
from lavax.backends.vulkan.glsl.expressions import VECTOR, literal, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, flatten, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class UpdateLimits:
    """How many updates an invocation takes. docs/rejected/sorting_and_scatters.md, "Several updates of a run under
    way at once, on a GPU"; `python -m benchmarks comparison --only embedding-backward`."""

    # Neighbouring updates in which an invocation looks for beginnings of segments. Lanes of a CPU driver's subgroup
    # wait for each other, and most of them would find no beginning among long segments. Divides every chunk.
    share_on_cpu: int = 64
    share_on_gpu: int = 1
    together: int = 4  # loaded at once by a GPU's invocations that walk through a whole segment


UPDATE_LIMITS = UpdateLimits()
_TOGETHER = UPDATE_LIMITS.together


def _width(kernel: Kernel, profile: DeviceProfile, lifted: bool, extents: tuple[int, ...]) -> int:
    """How many neighbours an invocation joins; `extents` are those of the axes without places.

    A GPU spends most of its time looking for the beginnings of segments, so few invocations should do so.
    """
    dtype = kernel.graph.outputs[0].dtype
    words = dtype.storage.itemsize == 4 and dtype.kind != "bool"
    wide = profile.kind == "gpu" and not lifted and words and bool(extents) and extents[-1] % VECTOR == 0
    return VECTOR if wide else 1


def _open_elements(routine: RoutineShader, shape: tuple[int, ...], width: int) -> Coordinates:
    """One invocation per element of `shape`, or per four of its last axis; its coordinates."""
    if width == 1:
        return routine.open_elements(shape)
    *at, last = routine.open_elements((*shape[:-1], shape[-1] // width))
    return (*at, linear([(last, width), (LANE, 1)]))


class _Segments:
    """Updates[n,w…] in the order of their places, in a shader that walks over them, `width` neighbours at once."""

    def __init__(self, routine: RoutineShader, operands: tuple[Node, ...], width: int) -> None:
        self.routine, self.body, self.width = routine, routine.body, width
        self.updates, self.order, self.places = operands
        self.count = self.updates.shape[0]
        self.join = JOINS[routine.node.attrs["join"]]
        self.kind = type_name(routine.node.dtype, width)
        routine.integer("count", self.count)
        routine.integer("chunk", routine.node.attrs["chunk"])

    def place(self, at: str) -> str:
        """The place of the update with rank `at` in the order."""
        return self.routine.read(self.places, (variable(at, self.count),))

    def update(self, at: str, window: Coordinates) -> str:
        number = self.routine.read(self.order, (variable(at, self.count),))
        return self.read(self.updates, (self.routine.position(f"number_{at}", number, self.count), *window))

    def read(self, operand: Node, at: Coordinates) -> str:
        """An element, or a vector of neighbours, at coordinates that include the window's."""
        return widened(self.body.value(operand, at), self.width, operand.dtype)

    def store(self, at: Coordinates) -> None:
        node = self.routine.node
        self.body.store(node, at, GlslValue("total", self.width), self.routine.target)

    def joined(self, update: str) -> str:
        return f"total = {self.join('total', update, self.routine.node.dtype, self.routine.body.uses)};"

    def join_segment(self, start: str, window: Coordinates) -> None:
        """Joins the updates from rank `start` up to `end`, as long as they go to `place`.

        The loads of a few updates are in flight at once; in place of updates of other places the first is read again.
        """
        body, routine, numbers = self.body, self.routine, range(_TOGETHER)
        with body.block(f"for (int k = {start}; k < end; k += {_TOGETHER})", frozenset(("k",))):
            for number in numbers:
                routine.position(f"k{number}", f"min(k + {number}, end - 1)", self.count)
            for number in numbers:
                body.line(f"bool own{number} = k + {number} < end && {self.place(f'k{number}')} == place;")
            body.line("if (!own0) break;")
            for number in numbers:
                routine.position(f"one{number}", f"own{number} ? k{number} : k0", self.count)
            found = [self.update(f"one{number}", window) for number in numbers]
            for number in numbers:
                body.line(f"if (own{number}) {self.joined(found[number])}")
            body.line(f"if (!own{_TOGETHER - 1}) break;")


def emit_fold_runs(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of fold_runs: one invocation per element of the result."""
    routine = open_routine(kernel, profile, lifted)
    shape = routine.node.shape
    width = _width(kernel, profile, lifted, shape[1:])
    chunk, *window = _open_elements(routine, shape, width)
    segments, body = _Segments(routine, routine.operands, width), routine.body
    routine.position("first", f"{body.index(chunk)} * chunk", segments.count)
    body.line(f"int place = {segments.place('first')};")
    body.line(f"{segments.kind} total = {segments.update('first', tuple(window))};")
    if profile.kind == "gpu":
        body.line("int end = min(first + chunk, count);")
        segments.join_segment("first + 1", tuple(window))
    else:
        with body.block("for (int k = first + 1; k < min(first + chunk, count); ++k)", frozenset(("k",))):
            body.line(f"if ({segments.place('k')} != place) break;")
            body.line(segments.joined(segments.update("k", tuple(window))))
    segments.store((chunk, *window))
    return routine.close(routine.node.type.size // width)


class _SegmentJoiner:
    """Joins segments into the array; `window` has an element's coordinates along the axes without places."""

    window: Coordinates

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.routine = routine = open_routine(kernel, profile, lifted)
        self.body = routine.body
        self.array, *segments = routine.operands
        self.axes = routine.node.attrs["axes"]
        self.before, self.after = self.array.shape[: self.axes[0]], self.array.shape[self.axes[-1] + 1 :]
        self.extents = tuple(self.array.shape[axis] for axis in self.axes)
        self.length = prod(self.extents)
        self.width = _width(kernel, profile, lifted, self.after)
        self.operands, self.levels = (segments[0], segments[1], segments[2]), segments[3:]

    def _store(self, at: Coordinates) -> None:
        self.body.store(self.routine.node, at, GlslValue("total", self.width), self.routine.target)

    def _join_levels(self, segments: _Segments) -> None:
        """Joins the segment's folded chunks: those up to the next chunk of chunks, then likewise level by level."""
        body = self.body
        if self.levels:
            body.line("bool goes_on = true;")
            body.line("int c = first / chunk + 1, size = chunk;")
        for number, level in enumerate(self.levels):
            count = body.parameters.integer(level.shape[0])
            is_last = number == len(self.levels) - 1
            body.line(f"int end{number} = {count if is_last else f'min((c + chunk - 1) / chunk * chunk, {count})'};")
            with body.block(f"for (; goes_on && c < end{number}; ++c)"):
                start = self.routine.position(f"start{number}", "c * size", segments.count)
                body.line(f"goes_on = {self.routine.read(segments.places, (start,))} == place;")
                with body.block("if (goes_on)"):
                    at = self.routine.position(f"chunk{number}", "c", level.shape[0])
                    body.line(segments.joined(segments.read(level, (at, *self.window))))
            if not is_last:
                body.line(f"goes_on = goes_on && c < {count};")
                body.line("c /= chunk;")
                body.line("size *= chunk;")


class _JoinerByUpdates(_SegmentJoiner):
    """One invocation per share of updates, in which it looks for the beginnings of segments."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        super().__init__(kernel, profile, lifted)
        routine, body = self.routine, self.body
        share = UPDATE_LIMITS.share_on_gpu if profile.kind == "gpu" else UPDATE_LIMITS.share_on_cpu
        self.share = share = min(share, routine.node.attrs["chunk"])
        self.shares = (-(-self.operands[0].shape[0] // share), *self.before, *self.after)
        part, *window = _open_elements(routine, self.shares, self.width)
        self.window = tuple(window)
        self.segments = _Segments(routine, self.operands, self.width)
        routine.integer("places", self.length)
        body.line(f"int first = {body.index(part)} * {share};")
        body.line(f"int stop = min(first + {share}, count), end = min((first / chunk + 1) * chunk, count);")

    def emit(self) -> Launch:
        self.routine.position("before", "max(first - 1, 0)", self.segments.count)
        if self.share == 1:
            self._join_one_segment()
        else:
            self._join_segments()
        return self.routine.close(prod(self.shares) // self.width)

    def _join_one_segment(self) -> None:
        """Finds the segment's end first, so that loads of updates wait for nothing."""
        body, segments = self.body, self.segments
        body.scopes[0].variables |= {"first"}
        body.line(f"int place = {segments.place('first')};")
        body.line(f"if (place >= places || (first > 0 && {segments.place('before')} == place)) return;")
        body.line("int last = first;")
        with body.block("for (int k = first + 1; k < end; ++k)", frozenset(("k",))):
            body.line(f"if ({segments.place('k')} != place) break;")
            body.line("last = k;")
        held = self.routine.position("held", "place", self.length)
        body.line(f"{segments.kind} total = {segments.read(self.array, self._at(held))};")
        with body.block("for (int k = first; k <= last; ++k)", frozenset(("k",))):
            self.routine.position("one", "k", segments.count)
            body.line(segments.joined(segments.update("one", self.window)))
        self._join_levels(segments)
        self._store(self._at(variable("place", self.length)))

    def _join_segments(self) -> None:
        """Joins all segments that begin in the share; `place` is that of the current one, -1 if there is none."""
        body, segments = self.body, self.segments
        at = self._at(variable("place", self.length))
        body.line(f"int place = -1, last = first == 0 ? -1 : {segments.place('before')};")
        zero = widened(GlslValue(literal(0, self.array.dtype), 1), self.width, self.array.dtype)
        body.line(f"{segments.kind} total = {zero};")
        with body.block("for (int k = first; k < end && (k < stop || place >= 0); ++k)", frozenset(("k",))):
            body.line(f"int found = {segments.place('k')};")
            with body.block("if (found != last)"):
                with body.block("if (place >= 0)"):
                    self._store(at)
                body.line("place = k < stop && found < places ? found : -1;")
                held = self.routine.position("held", "max(place, 0)", self.length)
                body.line(f"total = {segments.read(self.array, self._at(held))};")
            body.line(segments.joined(segments.update("k", self.window)))
            body.line("last = found;")
        with body.block("if (place >= 0)"):
            self._join_levels(segments)
            self._store(at)

    def _at(self, place: Index) -> Coordinates:
        """The coordinates of a place's element in the array."""
        split = len(self.before)
        return (*self.window[:split], *unflatten(place, self.extents), *self.window[split:])


class _JoinerByPlaces(_SegmentJoiner):
    """One invocation per element of the array, or per four neighbours, all of which are written."""

    def emit(self) -> Launch:
        routine, body = self.routine, self.body
        at = _open_elements(routine, self.array.shape, self.width)
        self.window = tuple(index for axis, index in enumerate(at) if axis not in self.axes)
        segments = _Segments(routine, self.operands, self.width)
        body.line(f"int place = {body.index(flatten(tuple(at[axis] for axis in self.axes), self.extents))};")
        self._find(segments)
        body.line(f"{segments.kind} total = {segments.read(self.array, at)};")
        body.line("int end = min((first / chunk + 1) * chunk, count);")
        segments.join_segment("first", self.window)
        self._join_levels(segments)
        self._store(at)
        return routine.close(self.array.type.size // self.width)

    def _find(self, segments: _Segments) -> None:
        """Bisects for `first`, the rank of the first update that goes to the place or to a later one."""
        body = self.body
        body.line("int first = 0, high = count;")
        with body.block("while (first < high)"):
            self.routine.position("centre", "(first + high) / 2", segments.count)
            body.line(f"bool behind = {segments.place('centre')} < place;")
            body.line("first = behind ? centre + 1 : first;")
            body.line("high = behind ? high : centre;")


def emit_join_runs(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of join_runs.

    One has an invocation per place, if there are no more places than updates, because most invocations of a GPU would
    find no beginning of a segment among the updates. The other copies the array first, then joins segments into it.
    """
    (node,) = kernel.graph.outputs
    array, updates, *_ = node.operands
    places = prod(array.shape[axis] for axis in node.attrs["axes"])
    if profile.kind == "gpu" and not lifted and places <= updates.shape[0]:
        return _JoinerByPlaces(kernel, profile, lifted).emit()
    return replace(_JoinerByUpdates(kernel, profile, lifted).emit(), before=emit_copy(kernel, array, profile, lifted))
