"""Scatters of updates in the order of their places: each run of updates of one place is joined by one invocation.

Invocations stand at the updates, and those join a run where one begins; or at the places, and bisect for the run that
each place has. What a run has behind its first chunk of updates was folded before, an invocation a chunk, and chunks of
what is folded were folded again, so that no invocation takes more than a chunk of each.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.emit.scatter.lines import JOINS
from lavax.backends.vulkan.glsl.body import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.expressions import VECTOR, literal, type_name
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import Routine, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, flatten, linear, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# In how many neighbouring updates one invocation looks for beginnings of runs, by kind of device: lanes of a CPU
# driver's subgroup wait for each other, and where runs are long most of them would have none. Divides every chunk.
_SHARES = {"cpu": 64, "gpu": 1}
# So many updates of a run are loaded at once by a GPU's invocations that go through all of it.
_TOGETHER = 4


def _width(kernel: Kernel, profile: DeviceProfile, lifted: bool, extents: tuple[int, ...]) -> int:
    """How many neighbours an invocation has, `extents` being those of what runs are joined element by element for.

    A GPU spends most of its time on looking for the beginnings of runs, so that there should be few that do.
    """
    dtype = kernel.graph.outputs[0].dtype
    words = dtype.storage.itemsize == 4 and dtype.kind != "bool"
    wide = profile.kind == "gpu" and not lifted and words and bool(extents) and extents[-1] % VECTOR == 0
    return VECTOR if wide else 1


def _open_elements(routine: Routine, shape: tuple[int, ...], width: int) -> Coordinates:
    """One invocation an element of `shape`, or four of its last axis; its coordinates."""
    if width == 1:
        return routine.open_elements(shape)
    *at, last = routine.open_elements((*shape[:-1], shape[-1] // width))
    return (*at, linear([(last, width), (LANE, 1)]))


class _Runs:
    """Updates[n,w…] in the order of their places, in a shader that goes along them, `width` neighbours at once."""

    def __init__(self, routine: Routine, operands: tuple[Node, ...], width: int) -> None:
        self.routine, self.body, self.width = routine, routine.body, width
        self.updates, self.order, self.places = operands
        self.count = self.updates.shape[0]
        self.join = JOINS[routine.node.attrs["join"]]
        self.kind = type_name(routine.node.dtype, width)
        routine.integer("count", self.count)
        routine.integer("chunk", routine.node.attrs["chunk"])

    def place(self, at: str) -> str:
        """The place of the update that is `at` in the order."""
        return self.routine.read(self.places, (variable(at, self.count),))

    def update(self, at: str, window: Coordinates) -> str:
        number = self.routine.read(self.order, (variable(at, self.count),))
        return self.read(self.updates, (self.routine.position(f"number_{at}", number, self.count), *window))

    def read(self, operand: Node, at: Coordinates) -> str:
        """An element at coordinates in which the window's are, or its neighbours."""
        return widened(self.body.value(operand, at), self.width, operand.dtype)

    def store(self, at: Coordinates) -> None:
        node = self.routine.node
        self.body.store(node, at, GlslValue("total", self.width), self.routine.target)

    def joined(self, update: str) -> str:
        return f"total = {self.join('total', update, self.routine.node.dtype, self.routine.body.uses)};"

    def join_run(self, start: str, window: Coordinates) -> None:
        """Joins the updates from a place in the order up to `end`, as long as they go to `place`.

        The loads of a few of them are under way at once; instead of others' updates the first one is read again.
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
    """The shader of fold_runs: one invocation an element of the result."""
    routine = open_routine(kernel, profile, lifted)
    shape = routine.node.shape
    width = _width(kernel, profile, lifted, shape[1:])
    chunk, *window = _open_elements(routine, shape, width)
    runs, body = _Runs(routine, routine.operands, width), routine.body
    routine.position("first", f"{body.index(chunk)} * chunk", runs.count)
    body.line(f"int place = {runs.place('first')};")
    body.line(f"{runs.kind} total = {runs.update('first', tuple(window))};")
    if profile.kind == "gpu":
        body.line("int end = min(first + chunk, count);")
        runs.join_run("first + 1", tuple(window))
    else:
        with body.block("for (int k = first + 1; k < min(first + chunk, count); ++k)", frozenset(("k",))):
            body.line(f"if ({runs.place('k')} != place) break;")
            body.line(runs.joined(runs.update("k", tuple(window))))
    runs.store((chunk, *window))
    return routine.close(routine.node.type.size // width)


class _Joining:
    """What both ways of joining have in common; `window` is where an element stands along the axes without places."""

    window: Coordinates

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.routine = routine = open_routine(kernel, profile, lifted)
        self.body = routine.body
        self.array, *runs = routine.operands
        self.axes = routine.node.attrs["axes"]
        self.before, self.after = self.array.shape[: self.axes[0]], self.array.shape[self.axes[-1] + 1 :]
        self.extents = tuple(self.array.shape[axis] for axis in self.axes)
        self.length = prod(self.extents)
        self.width = _width(kernel, profile, lifted, self.after)
        self.operands, self.levels = (runs[0], runs[1], runs[2]), runs[3:]

    def _store(self, at: Coordinates) -> None:
        self.body.store(self.routine.node, at, GlslValue("total", self.width), self.routine.target)

    def _join_levels(self, runs: _Runs) -> None:
        """What the run has behind its first chunk: up to the next chunk of folded chunks, then up to that of those."""
        body = self.body
        if self.levels:
            body.line("bool goes_on = true;")
            body.line("int c = first / chunk + 1, size = chunk;")
        for number, level in enumerate(self.levels):
            count = body.parameters.integer(level.shape[0])
            is_last = number == len(self.levels) - 1
            body.line(f"int end{number} = {count if is_last else f'min((c + chunk - 1) / chunk * chunk, {count})'};")
            with body.block(f"for (; goes_on && c < end{number}; ++c)"):
                start = self.routine.position(f"start{number}", "c * size", runs.count)
                body.line(f"goes_on = {self.routine.read(runs.places, (start,))} == place;")
                with body.block("if (goes_on)"):
                    at = self.routine.position(f"chunk{number}", "c", level.shape[0])
                    body.line(runs.joined(runs.read(level, (at, *self.window))))
            if not is_last:
                body.line(f"goes_on = goes_on && c < {count};")
                body.line("c /= chunk;")
                body.line("size *= chunk;")


class _JoiningUpdates(_Joining):
    """One invocation some updates, in which it looks for the beginnings of runs."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        super().__init__(kernel, profile, lifted)
        routine, body = self.routine, self.body
        self.share = share = min(_SHARES[profile.kind], routine.node.attrs["chunk"])
        self.shares = (-(-self.operands[0].shape[0] // share), *self.before, *self.after)
        part, *window = _open_elements(routine, self.shares, self.width)
        self.window = tuple(window)
        self.runs = _Runs(routine, self.operands, self.width)
        routine.integer("places", self.length)
        body.line(f"int first = {body.index(part)} * {share};")
        body.line(f"int stop = min(first + {share}, count), end = min((first / chunk + 1) * chunk, count);")

    def emit(self) -> Launch:
        self.routine.position("before", "max(first - 1, 0)", self.runs.count)
        if self.share == 1:
            self._join_one_run()
        else:
            self._join_runs()
        return self.routine.close(prod(self.shares) // self.width)

    def _join_one_run(self) -> None:
        """Finds the run's end first, so that loads of updates wait for nothing."""
        body, runs = self.body, self.runs
        body.scopes[0].variables |= {"first"}
        body.line(f"int place = {runs.place('first')};")
        body.line(f"if (place >= places || (first > 0 && {runs.place('before')} == place)) return;")
        body.line("int last = first;")
        with body.block("for (int k = first + 1; k < end; ++k)", frozenset(("k",))):
            body.line(f"if ({runs.place('k')} != place) break;")
            body.line("last = k;")
        held = self.routine.position("held", "place", self.length)
        body.line(f"{runs.kind} total = {runs.read(self.array, self._at(held))};")
        with body.block("for (int k = first; k <= last; ++k)", frozenset(("k",))):
            self.routine.position("one", "k", runs.count)
            body.line(runs.joined(runs.update("one", self.window)))
        self._join_levels(runs)
        self._store(self._at(variable("place", self.length)))

    def _join_runs(self) -> None:
        """`place` is that of the run being joined, -1 where there is none."""
        body, runs = self.body, self.runs
        at = self._at(variable("place", self.length))
        body.line(f"int place = -1, last = first == 0 ? -1 : {runs.place('before')};")
        zero = widened(GlslValue(literal(0, self.array.dtype), 1), self.width, self.array.dtype)
        body.line(f"{runs.kind} total = {zero};")
        with body.block("for (int k = first; k < end && (k < stop || place >= 0); ++k)", frozenset(("k",))):
            body.line(f"int found = {runs.place('k')};")
            with body.block("if (found != last)"):
                with body.block("if (place >= 0)"):
                    self._store(at)
                body.line("place = k < stop && found < places ? found : -1;")
                held = self.routine.position("held", "max(place, 0)", self.length)
                body.line(f"total = {runs.read(self.array, self._at(held))};")
            body.line(runs.joined(runs.update("k", self.window)))
            body.line("last = found;")
        with body.block("if (place >= 0)"):
            self._join_levels(runs)
            self._store(at)

    def _at(self, place: Index) -> Coordinates:
        """Where in the array a place's own element is."""
        split = len(self.before)
        return (*self.window[:split], *unflatten(place, self.extents), *self.window[split:])


class _JoiningAtPlaces(_Joining):
    """One invocation an element of the array, or four neighbours, all of which are written."""

    def emit(self) -> Launch:
        routine, body = self.routine, self.body
        at = _open_elements(routine, self.array.shape, self.width)
        self.window = tuple(index for axis, index in enumerate(at) if axis not in self.axes)
        runs = _Runs(routine, self.operands, self.width)
        body.line(f"int place = {body.index(flatten(tuple(at[axis] for axis in self.axes), self.extents))};")
        self._find(runs)
        body.line(f"{runs.kind} total = {runs.read(self.array, at)};")
        body.line("int end = min((first / chunk + 1) * chunk, count);")
        runs.join_run("first", self.window)
        self._join_levels(runs)
        self._store(at)
        return routine.close(self.array.type.size // self.width)

    def _find(self, runs: _Runs) -> None:
        """`first` is the first update that goes to the place, or to one behind it."""
        body = self.body
        body.line("int first = 0, high = count;")
        with body.block("while (first < high)"):
            self.routine.position("centre", "(first + high) / 2", runs.count)
            body.line(f"bool behind = {runs.place('centre')} < place;")
            body.line("first = behind ? centre + 1 : first;")
            body.line("high = behind ? high : centre;")


def emit_join_runs(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of join_runs: one that goes over the places, where they are no more than updates and a GPU's many
    invocations would mostly find no run; or a copy of the array, in which the runs are then joined to their places."""
    (node,) = kernel.graph.outputs
    array, updates, *_ = node.operands
    places = prod(array.shape[axis] for axis in node.attrs["axes"])
    if profile.kind == "gpu" and not lifted and places <= updates.shape[0]:
        return _JoiningAtPlaces(kernel, profile, lifted).emit()
    return replace(_JoiningUpdates(kernel, profile, lifted).emit(), before=emit_copy(kernel, array, profile, lifted))
