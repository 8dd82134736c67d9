"""Scatters of updates in the order of their places: each run of updates of one place is joined by one invocation.

What a run has behind its first chunk of updates was folded before, an invocation a chunk, and chunks of what is folded
were folded again, so that no invocation takes more than a chunk of each.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lavax.backends.vulkan.emit.expressions import literal, type_name
from lavax.backends.vulkan.emit.launch import Launch
from lavax.backends.vulkan.emit.map import emit_copy
from lavax.backends.vulkan.emit.routine import Routine, open_routine
from lavax.backends.vulkan.emit.scatter import JOINS
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, flatten, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# In how many neighbouring updates one invocation looks for beginnings of runs, by kind of device: lanes of a CPU
# driver's subgroup wait for each other, and where runs are long most of them would have none. Divides every chunk.
_SHARES = {"cpu": 64, "gpu": 1}


class _Runs:
    """Updates[n,w…] in the order of their places, in a shader that goes along them."""

    def __init__(self, routine: Routine, operands: tuple[Node, ...]) -> None:
        self.routine, self.body = routine, routine.body
        self.updates, self.order, self.places = operands
        self.count = self.updates.shape[0]
        self.join = JOINS[routine.node.attrs["join"]]
        self.kind = type_name(routine.node.dtype, 1)
        routine.integer("count", self.count)
        routine.integer("chunk", routine.node.attrs["chunk"])

    def place(self, at: str) -> str:
        """The place of the update that is `at` in the order."""
        return self.routine.read(self.places, (variable(at, self.count),))

    def update(self, at: str, window: Coordinates) -> str:
        number = self.routine.read(self.order, (variable(at, self.count),))
        return self.routine.read(self.updates, (self.routine.position(f"number_{at}", number, self.count), *window))

    def joined(self, update: str) -> str:
        return f"total = {self.join('total', update, self.routine.node.dtype)};"


def emit_fold_runs(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of fold_runs: one invocation an element of the result."""
    routine = open_routine(kernel, profile, lifted)
    chunk, *window = routine.open_elements(routine.node.shape)
    runs, body = _Runs(routine, routine.operands), routine.body
    routine.position("first", f"{body.index(chunk)} * chunk", runs.count)
    body.line(f"int place = {runs.place('first')};")
    body.line(f"{runs.kind} total = {runs.update('first', tuple(window))};")
    with body.block("for (int k = first + 1; k < min(first + chunk, count); ++k)", frozenset(("k",))):
        body.line(f"if ({runs.place('k')} != place) break;")
        body.line(runs.joined(runs.update("k", tuple(window))))
    body.line(body.stored(routine.node.dtype, routine.target, "i", "total"))
    return routine.close(routine.node.type.size)


class _Joining:
    """The kernel of join_runs while it is being written."""

    def __init__(self, routine: Routine, share: int) -> None:
        self.routine, self.body, self.share = routine, routine.body, share
        self.array, *runs = routine.operands
        axes = routine.node.attrs["axes"]
        self.before, self.after = self.array.shape[: axes[0]], self.array.shape[axes[-1] + 1 :]
        self.extents = tuple(self.array.shape[axis] for axis in axes)
        self.length = prod(self.extents)
        self.shares = (-(-runs[0].shape[0] // share), *self.before, *self.after)
        part, *window = routine.open_elements(self.shares)
        self.window: Coordinates = tuple(window)
        self.runs = _Runs(routine, (runs[0], runs[1], runs[2]))
        self.levels = runs[3:]
        routine.integer("places", self.length)
        body = self.body
        body.line(f"int first = {body.index(part)} * {share};")
        body.line(f"int stop = min(first + {share}, count), end = min((first / chunk + 1) * chunk, count);")

    def emit(self) -> Launch:
        """`place` is that of the run being joined, -1 where there is none."""
        body, runs = self.body, self.runs
        self.routine.position("before", "max(first - 1, 0)", runs.count)
        body.line(f"int place = -1, last = first == 0 ? -1 : {runs.place('before')};")
        body.line(f"{runs.kind} total = {literal(0, self.array.dtype)};")
        with body.block("for (int k = first; k < end && (k < stop || place >= 0); ++k)", frozenset(("k",))):
            body.line(f"int found = {runs.place('k')};")
            with body.block("if (found != last)"):
                with body.block("if (place >= 0)"):
                    self._store()
                body.line("place = k < stop && found < places ? found : -1;")
                held = self.routine.position("held", "max(place, 0)", self.length)
                body.line(f"total = {self.routine.read(self.array, self._at(held))};")
            body.line(runs.joined(runs.update("k", self.window)))
            body.line("last = found;")
        with body.block("if (place >= 0)"):
            self._join_levels()
            self._store()
        return self.routine.close(prod(self.shares))

    def _at(self, place: Index) -> Coordinates:
        """Where in the array a place's own element is."""
        split = len(self.before)
        return (*self.window[:split], *unflatten(place, self.extents), *self.window[split:])

    def _target(self) -> str:
        return self.body.index(flatten(self._at(variable("place", self.length)), self.array.shape))

    def _store(self) -> None:
        self.body.line(self.body.stored(self.array.dtype, self.routine.target, self._target(), "total"))

    def _join_levels(self) -> None:
        """What the run has behind its first chunk: up to the next chunk of folded chunks, then up to that of those."""
        body, runs = self.body, self.runs
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
                    body.line(runs.joined(self.routine.read(level, (at, *self.window))))
            if not is_last:
                body.line(f"goes_on = goes_on && c < {count};")
                body.line("c /= chunk;")
                body.line("size *= chunk;")


def emit_join_runs(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of join_runs: a copy of the array, in which the runs are then joined to their places."""
    array = kernel.graph.outputs[0].operands[0]
    share = min(_SHARES[profile.kind], kernel.graph.outputs[0].attrs["chunk"])
    joining = _Joining(open_routine(kernel, profile, lifted), share)
    return replace(joining.emit(), before=emit_copy(kernel, array, profile, lifted))
