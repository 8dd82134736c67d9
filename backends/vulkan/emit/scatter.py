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
    array, _, *indices = scatter.operands
    shape = indices[0].shape
    names = tuple(variable(f"s{axis}", extent) for axis, extent in enumerate(shape))
    aligned: dict[int, int] = {}
    for index, axis in zip(indices, scatter.attrs["axes"], strict=True):
        counts = counted(index, names)
        for place, name in enumerate(names):
            if counts == name and not name.is_constant and place not in aligned.values() and shape[place] <= array.shape[axis]:
                aligned[axis] = place
    along = tuple(axis for axis in scatter.attrs["axes"] if axis not in aligned)
    serial = tuple(place for place in range(len(shape)) if place not in aligned.values())
    return Lines(aligned, along, serial)


def emit_scatter(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a scatter_add: first the line's own values, then update after update."""
    (scatter,) = kernel.graph.outputs
    array, updates, *indices = scatter.operands
    lines, axes = lines_of(scatter), scatter.attrs["axes"]
    across = tuple(axis for axis in range(len(array.shape)) if axis not in lines.along)
    body, outputs = open_body(kernel, lifted)
    count, local = prod(array.shape[axis] for axis in across), local_invocations(profile)
    open_invocations(body, count, local, "i")
    fixed = dict(zip(across, unflatten(variable("i", count), tuple(array.shape[axis] for axis in across)), strict=True))

    length = prod(array.shape[axis] for axis in lines.along)
    with body.block(f"for (int k = 0; k < {body.parameters.integer(length)}; ++k)", frozenset(("k",))):
        along = unflatten(variable("k", length), tuple(array.shape[axis] for axis in lines.along))
        at = _placed(len(array.shape), fixed | dict(zip(lines.along, along, strict=True)))
        body.store(scatter, at, body.value(array, at), outputs[scatter])

    shape = indices[0].shape
    steps = prod(shape[place] for place in lines.serial)
    inside = [f"{body.index(fixed[axis])} < {body.parameters.integer(shape[place])}" for axis, place in lines.aligned.items()]
    head = f"for (int s = 0; s < {body.parameters.integer(steps)}{''.join(f' && {test}' for test in inside)}; ++s)"
    with body.block(head, frozenset(("s",))):
        serial = unflatten(variable("s", steps), tuple(shape[place] for place in lines.serial))
        places = dict(zip(lines.serial, serial, strict=True)) | {
            place: clamp(fixed[axis], 0, shape[place] - 1) for axis, place in lines.aligned.items()
        }
        source = _placed(len(shape), places)
        window = tuple(fixed[axis] for axis in range(len(array.shape)) if axis not in axes)
        targets = {}
        for index, axis in zip(indices, axes, strict=True):
            targets[axis] = body.index(fixed[axis]) if axis in lines.aligned else body.value(index, source).text
        update = body.value(updates, (*source, *window)).text
        strides = strides_of(array.shape)
        position = " + ".join(
            f"({targets[axis] if axis in targets else body.index(fixed[axis])}) * {body.parameters.integer(strides[axis])}"
            for axis in range(len(array.shape))
        )
        tests = [f"{targets[axis]} >= 0 && {targets[axis]} < {body.parameters.integer(array.shape[axis])}" for axis in lines.along]
        target = f"{reference(scatter.dtype.name)}({outputs[scatter]}).data[{position}]"
        body.line(f"if ({' && '.join(tests) or 'true'}) {target} += {update};")
    text = ShaderText(body.scopes[0].lines, (local, 1))
    return Launch(Shader(assemble(text)), tuple(body.parameters.words), grid(-(-count // local)))


def _placed(rank: int, values: dict[int, Index]) -> Coordinates:
    return tuple(values.get(axis, ZERO) for axis in range(rank))
