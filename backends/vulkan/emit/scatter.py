"""Scatter kernels: each invocation owns a line of the result and adds the updates that fall on it, in order.

A line runs along the indexed axes; the other axes, and indexed axes whose index merely counts along an axis of
the updates (as in taking along an axis), tell the lines apart. So no two invocations touch one element, no atomics
are needed, and sums are added in the same order on every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from lavax.backends.vulkan.emit.launch import Launch, grid, local_invocations, open_body, open_invocations
from lavax.backends.vulkan.emit.shader import ShaderText, assemble, reference
from lavax.backends.vulkan.plan import Shader
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import ZERO, Index, clamp, strides_of, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates, counted


@dataclass(frozen=True)
class Lines:
    """How a scatter falls apart into lines.

    `aligned` maps an axis of the array to the axis of the indices that it counts along; `along` are the array's
    axes a line runs along; `serial` the axes of the indices that are gone through in order.
    """

    aligned: dict[int, int]
    along: tuple[int, ...]
    serial: tuple[int, ...]


def lines_of(scatter: Node) -> Lines:
    """The lines of a scatter_add."""
    array, _, *indices = scatter.operands
    shape = indices[0].shape
    names = tuple(variable(f"s{place}", extent) for place, extent in enumerate(shape))
    aligned: dict[int, int] = {}
    for index, axis in zip(indices, scatter.attrs["axes"], strict=True):
        counts = counted(index, names)
        for place, name in enumerate(names):
            fits = not name.is_constant and place not in aligned.values() and shape[place] <= array.shape[axis]
            if fits and counts == name:
                aligned[axis] = place
    along = tuple(axis for axis in scatter.attrs["axes"] if axis not in aligned)
    serial = tuple(place for place in range(len(shape)) if place not in aligned.values())
    return Lines(aligned, along, serial)


class ScatterEmitter:
    """The state of writing one scatter kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        (self.scatter,) = kernel.graph.outputs
        self.array, self.updates, *self.indices = self.scatter.operands
        self.lines = lines_of(self.scatter)
        self.body, outputs = open_body(kernel, lifted)
        self.target = outputs[self.scatter]
        self.local = local_invocations(profile)
        self.integer = self.body.parameters.integer

    def emit(self) -> Launch:
        shape = self.array.shape
        across = tuple(axis for axis in range(len(shape)) if axis not in self.lines.along)
        extents = tuple(shape[axis] for axis in across)
        count = prod(extents)
        open_invocations(self.body, count, self.local, "i")
        self.fixed = dict(zip(across, unflatten(variable("i", count), extents), strict=True))
        self._write_line()
        self._add_updates()
        text = ShaderText(self.body.scopes[0].lines, (self.local, 1))
        return Launch(Shader(assemble(text)), tuple(self.body.parameters.words), grid(-(-count // self.local)))

    def _write_line(self) -> None:
        """The line's own values."""
        extents = tuple(self.array.shape[axis] for axis in self.lines.along)
        length = prod(extents)
        with self.body.block(f"for (int k = 0; k < {self.integer(length)}; ++k)", frozenset(("k",))):
            along = dict(zip(self.lines.along, unflatten(variable("k", length), extents), strict=True))
            at = _placed(len(self.array.shape), self.fixed | along)
            self.body.store(self.scatter, at, self.body.value(self.array, at), self.target)

    def _add_updates(self) -> None:
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
            self._add_update(_placed(len(shape), places))

    def _add_update(self, source: Coordinates) -> None:
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
        element = f"{reference(self.scatter.dtype.name)}({self.target}).data[target]"
        body.line(f"if ({' && '.join(inside) or 'true'}) {element} += {update};")


def _placed(rank: int, values: dict[int, Index]) -> Coordinates:
    return tuple(values.get(axis, ZERO) for axis in range(rank))


def emit_scatter(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a scatter_add."""
    return ScatterEmitter(kernel, profile, lifted).emit()
