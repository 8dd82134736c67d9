"""Scatter kernels: each invocation owns a line of the result and joins the updates that fall on it, in order.

A line runs along the indexed axes; the other axes, and indexed axes whose index only counts along an axis of the
updates (as in taking along an axis), distinguish the lines. So no two invocations touch one element, no atomics are
needed, and sums are added in the same order on every run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.glsl.launch import Launch, grid, local_invocations, open_body, open_invocations
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.types import DType
from lavax.passes.kernels.accesses import updated_in_place
from lavax.passes.kernels.index import ZERO, Index, clamp, strides_of, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates
from lavax.passes.kernels.scatter_lines import lines_of


def _by_kind(number: str, real: str, truth: str) -> Callable[[str, str, DType, Uses], str]:
    """`real` may name one of lavax's functions, which depends on the dtype."""
    forms = {"float": real, "bool": truth}

    def join(held: str, update: str, dtype: DType, uses: Uses) -> str:
        form = forms.get(dtype.kind, number)
        if form.startswith("lx_"):
            form = f"{uses.function(form, dtype)}({{0}}, {{1}})"
        return form.format(held, update)

    return join


# The new value of an element from its old one and an update, by the name of the elementwise operation.
JOINS: dict[str, Callable[[str, str, DType, Uses], str]] = {
    "add": _by_kind("({0} + {1})", "({0} + {1})", ""),
    "multiply": _by_kind("({0} * {1})", "({0} * {1})", ""),
    "minimum": _by_kind("min({0}, {1})", "lx_minimum", "({0} && {1})"),
    "maximum": _by_kind("max({0}, {1})", "lx_maximum", "({0} || {1})"),
    "set": _by_kind("{1}", "{1}", "{1}"),
}

# Longer lines are copied by an earlier launch with an invocation per element.
SHORT_LINE = 1 << 7


class ScatterEmitter:
    """The state of writing one scatter kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        (self.scatter,) = kernel.graph.outputs
        self.array, self.updates, *self.indices = self.scatter.operands
        self.lines = lines_of(self.scatter)
        self.body, outputs = open_body(kernel, lifted)
        self.target = outputs[self.scatter]
        self.updated = updated_in_place(kernel)
        self.local = local_invocations(profile)
        self.integer = self.body.parameters.integer
        self.is_short = prod(self.array.shape[axis] for axis in self.lines.along) <= SHORT_LINE

    def emit(self) -> Launch:
        shape = self.array.shape
        across = tuple(axis for axis in range(len(shape)) if axis not in self.lines.along)
        extents = tuple(shape[axis] for axis in across)
        count = prod(extents)
        open_invocations(self.body, count, self.local, "i")
        self.fixed = dict(zip(across, unflatten(variable("i", count), extents), strict=True))
        if self.is_short:
            self._write_line()
        self._join_updates()
        text = ShaderText(self.body.uses, self.body.scopes[0].lines, (self.local, 1))
        return Launch(assemble(text), tuple(self.body.parameters.words), grid(-(-count // self.local)), text=text)

    def _write_line(self) -> None:
        """Copies the line's values from the array, unless the array lies in the result's memory already."""
        if self.updated is None:
            self._copy_line()
            return
        with self.body.block(f"if ({self.body.addresses[self.updated]} != {self.target})"):
            self._copy_line()

    def _copy_line(self) -> None:
        extents = tuple(self.array.shape[axis] for axis in self.lines.along)
        length = prod(extents)
        with self.body.block(f"for (int k = 0; k < {self.integer(length)}; ++k)", frozenset(("k",))):
            along = dict(zip(self.lines.along, unflatten(variable("k", length), extents), strict=True))
            at = _placed(len(self.array.shape), self.fixed | along)
            self.body.store(self.scatter, at, self.body.value(self.array, at), self.target)

    def _join_updates(self) -> None:
        body, shape = self.body, self.indices[0].shape
        extents = tuple(shape[place] for place in self.lines.serial)
        steps = prod(extents)
        tests = [f"s < {self.integer(steps)}"]
        for axis, place in self.lines.aligned.items():
            tests.append(f"{body.index(self.fixed[axis])} < {self.integer(shape[place])}")
        with body.block(f"for (int s = 0; {' && '.join(tests)}; ++s)", frozenset(("s",))):
            places = dict(zip(self.lines.serial, unflatten(variable("s", steps), extents), strict=True))
            for axis, place in self.lines.aligned.items():
                places[place] = clamp(self.fixed[axis], 0, shape[place] - 1)
            self._join_update(_placed(len(shape), places))

    def _join_update(self, source: Coordinates) -> None:
        body, axes, shape = self.body, self.scatter.attrs["axes"], self.array.shape
        window = tuple(index for axis, index in sorted(self.fixed.items()) if axis not in axes)
        position = {axis: body.index(index) for axis, index in self.fixed.items()}
        for index, axis in zip(self.indices, axes, strict=True):
            if axis in self.lines.along:
                position[axis] = body.value(index, source).text
        update = body.value(self.updates, (*source, *window)).text
        strides = strides_of(shape)
        parts = [f"({position[axis]}) * {self.integer(strides[axis])}" for axis in range(len(shape))]
        body.line(f"int target = {' + '.join(parts) or '0'};")
        inside = [
            f"{position[axis]} >= 0 && {position[axis]} < {self.integer(shape[axis])}" for axis in self.lines.along
        ]
        dtype, join = self.scatter.dtype, JOINS[self.scatter.op.removeprefix("scatter_")]
        joined = join(body.memory.loaded(dtype, self.target, "target"), update, dtype, body.uses)
        place = "target"
        if body.memory.paired:  # these drivers read and write faster by an index each (glsl/accesses.py says why)
            body.line(f"int place = target + {body.uses.access('low_bits')}({self.target});")
            place = "place"
        body.line(f"if ({' && '.join(inside) or 'true'}) {body.memory.stored(dtype, self.target, place, joined)}")


def _placed(rank: int, values: dict[int, Index]) -> Coordinates:
    return tuple(values.get(axis, ZERO) for axis in range(rank))


def emit_scatter(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a scatter."""
    emitter = ScatterEmitter(kernel, profile, lifted)
    if emitter.is_short:
        return emitter.emit()
    return replace(emitter.emit(), before=emit_copy(kernel, emitter.array, profile, lifted))
