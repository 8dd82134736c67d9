"""The ways in which a program is run: interpreters of its kernels, and the device, each with several profiles."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.base.errors import DtypeError
from lavax.ir import Graph, Node
from lavax.ir.graph import graph_of, input_node
from lavax.ir.types import TupleType
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import ANY_DEVICE, Target
from tests.backends.vulkan.emit.test_small_devices import _FEATURES, _LIMITS, PROFILES
from tests.backends.vulkan.run.execution import backend_with, run
from tests.passes.program_checks import check_program, check_sizes

Arrays = Sequence[np.ndarray]
Engine = Callable[[Graph, Arrays], list[np.ndarray]]

_MEMORY_BYTES = 4 << 30


@cache
def _target(profile: DeviceProfile | None) -> Target:
    return ANY_DEVICE if profile is None else target_of(profile, _MEMORY_BYTES, ANY_DEVICE.largest_allocation)


def _has_turns(program: KernelProgram) -> bool:
    """Whether its buffers may be written again: by a loop, whose turns may also be steps one after the other."""
    flat = all(isinstance(step, KernelStep) for step in program.steps)
    return not flat or any(".last" in step.name for step in steps_of(program.steps))


def _kernels(graph: Graph, arrays: Arrays, profile: DeviceProfile | None = None) -> list[np.ndarray]:
    """What the kernels for a device compute, in NumPy and float64. Asserts that their program is sound."""
    target = _target(profile)
    program = schedule(prepare(remove_stop_gradient(graph), target), (), target=target)
    (check_sizes if _has_turns(program) else check_program)(program)
    found = interpret_kernels(program, *map(_in_parts, arrays))
    return [
        _of_parts(value) if node.dtype.is_complex else value for node, value in zip(graph.outputs, found, strict=True)
    ]


def _in_parts(array: np.ndarray) -> np.ndarray:
    """An argument as kernels take it: both parts of complex numbers side by side."""
    return np.stack([array.real, array.imag], -1) if np.iscomplexobj(array) else array


def _of_parts(value: np.ndarray) -> np.ndarray:
    """Complex numbers of parts side by side. Products by 1j would lose signs of zeros, and turn infinities into NaN."""
    return np.ascontiguousarray(value, np.float64).view(np.complex128)[..., 0]


def _parts(graph: Graph) -> list[list[Node]]:
    """The nodes one by one, those with several results together with the items of them."""
    parts: list[list[Node]] = []
    items: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if isinstance(node.type, TupleType):
            items[node] = []
            parts.append(items[node])
        elif node.op == "item":
            items[node.operands[0]].append(node)
        else:
            parts.append([node])
    return [part for part in parts if part]


def one_by_one(execute: Engine, graph: Graph, arrays: Arrays) -> list[np.ndarray]:
    """Each operation as a program of its own: nothing is fused."""
    found: dict[Node, np.ndarray] = dict(zip(graph.inputs, arrays, strict=True))
    for part in _parts(graph):
        region = part[0].operands[0] if part[0].op == "item" else part[0]
        operands = list(dict.fromkeys(region.operands))
        inputs = {node: input_node(f"x{number}", node.type) for number, node in enumerate(operands)}
        results = _on(region, part, inputs)
        values = execute(graph_of(inputs.values(), results), [found[operand] for operand in operands])
        found.update(zip(part, values, strict=True))
    return [found[node] for node in graph.outputs]


def _on(region: Node, part: Sequence[Node], inputs: dict[Node, Node]) -> list[Node]:
    moved = replace(region, operands=tuple(inputs[operand] for operand in region.operands))
    return [moved] if part[0] is region else [replace(node, operands=(moved,)) for node in part]


def _device(graph: Graph, arrays: Arrays, **changes: Any) -> list[np.ndarray]:
    return run(remove_stop_gradient(graph), arrays, device=backend_with(**changes) if changes else None)


def _eager(graph: Graph, arrays: Arrays) -> list[np.ndarray]:
    return one_by_one(partial(run, eager=True), graph, arrays)


def _shaders(graph: Graph, arrays: Arrays, profile: DeviceProfile) -> list[np.ndarray]:
    """Only writes the shaders, for a device that is not there; gives nothing."""
    backend = VulkanBackend()
    backend.profile = profile
    assert backend.lower(graph).plan.dispatches is not None
    return []


# In float64, so that they are exact but for roundings of 2^-52.
INTERPRETERS: dict[str, Engine] = {
    "kernels": _kernels,
    "kernels of a CPU": partial(_kernels, profile=CPU_DRIVER),
    "kernels of a GPU": partial(_kernels, profile=GENERIC_GPU),
    "kernels of a small device": partial(_kernels, profile=PROFILES["nothing optional"]),
    "unfused kernels": partial(one_by_one, _kernels),
}
DEVICES: dict[str, Engine] = {
    "device": _device,
    "eager": _eager,
    "as a GPU": partial(_device, kind="gpu"),
    "as a small device": partial(_device, kind="gpu", **_LIMITS, **_FEATURES),
}
ENGINES = INTERPRETERS | DEVICES
_WITHOUT_64_BITS = frozenset(("kernels of a GPU", "kernels of a small device", "as a small device"))


def _has_64_bits(graph: Graph) -> bool:
    nodes = (*graph.inputs, *graph.nodes)
    if any(not isinstance(node.type, TupleType) and node.dtype.bits == 64 for node in nodes):
        return True
    held = (value for node in graph.nodes for value in node.attrs.values())
    graphs = (each for value in held for each in (value if isinstance(value, tuple) else (value,)))
    return any(_has_64_bits(each) for each in graphs if isinstance(each, Graph))


def applies(engine: str, graph: Graph) -> bool:
    """Whether the engine's device has what the program needs."""
    return engine not in _WITHOUT_64_BITS or not _has_64_bits(graph)


__all__ = ["DEVICES", "ENGINES", "INTERPRETERS", "DtypeError", "applies"]
