"""Times attention with every shape of workgroups, to choose those in backends/vulkan/emit/attention/workgroup_shape.py.

Run as `python -m benchmarks.attention_tiles [CASE ...]`, with cases such as 4x16x1024x64 (batch, heads, positions,
head) and 2x16x2048x64:c (causal). Times are the device's own, in ms, of the kernels alone. If PyTorch and its device
are available, its strict float32 is timed by the clock over calls in flight. Needs a GPU.
"""
from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from math import inf
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.pytorch_calls import pytorch, seconds_a_call
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.emit.attention import choose
from lavax.backends.vulkan.emit.attention.workgroup_shape import WorkgroupShape, fitting_shapes
from lavax.backends.vulkan.measure.profiling import profile_program
from lavax.ir import Graph, Node, TensorType, float32
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.ops.attention import OPERANDS

CASES = ("4x16x1024x64", "2x16x2048x64:c", "2x16x2048x128", "1x8x512x256:c", "1x16x1000x80")
# The operations that one kernel computes.
KERNELS = {
    "forward": ("attention", "attention_logsumexp"),
    "of keys": ("attention_key_gradient", "attention_value_gradient"),
    "of queries": ("attention_query_gradient",),
}
# Whether derivatives store scores, and the bytes for keeping scores of the forward pass until then.
_STORED: dict[str, tuple[bool, int]] = {
    "no scores stored": (False, 0),
    "those of derivatives": (True, 0),
    "all scores": (True, 1 << 62),
}


@dataclass(frozen=True)
class Case:
    """Attention with as many queries as keys; `heads` per example of the batch."""

    batch: int
    heads: int
    positions: int
    head: int
    causal: bool

    def types(self) -> dict[str, TensorType]:
        rows = (self.batch, self.heads, self.positions)
        whole, statistic = TensorType((*rows, self.head), float32), TensorType(rows, float32)
        names = ("query", "key", "value", "cotangent", "delta", "logsumexp")
        return {name: statistic if name in names[-2:] else whole for name in names}

    def graph(self, ops: tuple[str, ...]) -> Graph:
        """The operations, over the operands as inputs."""
        inputs = {name: input_node(name, type) for name, type in self.types().items()}
        attrs = dict(scale=self.head**-0.5, fill=-inf, lowest=1 - self.positions, biased=False, masked=False)
        attrs["highest"] = 0 if self.causal else self.positions - 1
        forward = {"empty": False}
        nodes = [
            make_node(op, [inputs[name] for name in OPERANDS[op]], attrs if "gradient" in op else attrs | forward)
            for op in ops
        ]
        return graph_of(inputs.values(), nodes)


def case_of(text: str) -> Case:
    """The case of a text such as 2x16x2048x64:c. Raises ValueError."""
    sizes, _, kind = text.partition(":")
    return Case(*map(int, sizes.split("x")), causal=kind == "c")


def _forced(shape: WorkgroupShape | None) -> Any:
    """A context in which kernels are lowered with this shape, or with the chosen one."""
    if shape is None:
        return patch.object(choose, "choose_workgroup_shape", choose.choose_workgroup_shape)
    return patch.object(choose, "choose_workgroup_shape", lambda *_: shape)


def _storing(stored: tuple[bool, int], backend: VulkanBackend) -> Any:
    """A context in which graphs are lowered with those scores in memory."""
    stores, room = stored
    attention = replace(backend.target.attention, stores_scores=lambda node: stores, kept_bytes=room)
    target = replace(backend.target, attention=attention)
    return patch.dict(backend.__dict__, target=target)


def candidates(graph: Graph, backend: VulkanBackend) -> list[WorkgroupShape]:
    """Shapes that fit the kernel that computes the graph's outputs."""
    return fitting_shapes(backend.profile, choose.stages_of({node.op: node for node in graph.outputs}))


def _named(shape: WorkgroupShape) -> str:
    name = f"{shape.down}x{shape.across}:{shape.height}x{shape.groups * 4}"
    return f"{name}/{shape.depth},{shape.share},{shape.chunk}"


def compiled(case: Case, backend: VulkanBackend) -> tuple[dict[tuple[str, str], Any], Any]:
    """Programs by kernel and shape, and all their pipelines, created at once; keep these as long as the programs."""
    lowered: dict[tuple[str, str], Any] = {}
    for kernel, ops in KERNELS.items():
        graph = case.graph(ops)
        for shape in (None, *candidates(graph, backend)):
            with _forced(shape), _storing(_STORED["no scores stored"], backend):
                found = backend.lower(graph)
                found.plan  # noqa: B018  # emitted while the shape is forced
            lowered[kernel, "chosen" if shape is None else _named(shape)] = found
    lowered["all", "as chosen"] = backend.lower(_whole(case))
    for name, stored in _STORED.items():
        with _storing(stored, backend):
            lowered["all", name] = backend.lower(_whole(case))
    shaders = [dispatch.shader for one in lowered.values() for dispatch in one.plan.dispatches]
    return lowered, backend.device.pipelines.get(shaders)


def _whole(case: Case) -> Graph:
    """The result and all three gradients, without delta, which has a separate kernel."""
    graph = case.graph(tuple(op for ops in KERNELS.values() for op in ops))
    statistic = next(node for node in graph.outputs if node.op == "attention_logsumexp")
    inputs = [node for node in graph.inputs if node.name != "logsumexp"]
    found: dict[Node, Node] = {}
    for node in graph.outputs:
        operands = [statistic if operand.name == "logsumexp" else operand for operand in node.operands]
        found[node] = make_node(node.op, operands, node.attrs) if node is not statistic else node
    return graph_of(inputs, list(found.values()))


def operands(case: Case, backend: VulkanBackend) -> dict[str, Any]:
    """Buffers of random numbers, by name."""
    random = np.random.default_rng(0)
    arrays = {name: random.standard_normal(type.shape, np.float32) for name, type in case.types().items()}
    return {name: backend.upload(array) for name, array in arrays.items()}


def seconds(program: Any, buffers: dict[str, Any]) -> float:
    """The time of the program's kernels on the device."""
    inputs = program.kernels.graph.inputs
    dispatches = profile_program(program.compile().program, [buffers[node.name] for node in inputs])
    return float(sum(dispatch.seconds for dispatch in dispatches))


def peer_seconds(case: Case) -> tuple[float, float] | None:
    """PyTorch's times for the result alone, and for it and its gradients; None if PyTorch has no device."""
    torch = pytorch()
    if torch is None:
        return None
    shape = (case.batch, case.heads, case.positions, case.head)
    q, k, v, w = (torch.randn(shape, device="cuda").requires_grad_(number < 3) for number in range(4))
    attention = torch.nn.functional.scaled_dot_product_attention

    def gradient() -> None:
        torch.autograd.grad(attention(q, k, v, is_causal=case.causal), (q, k, v), w)

    def forward() -> None:
        with torch.no_grad():
            attention(q, k, v, is_causal=case.causal)

    return seconds_a_call(forward, torch), seconds_a_call(gradient, torch)


def main(backend: VulkanBackend) -> None:
    print(backend.profile.name)
    for text in sys.argv[1:] or CASES:
        case = case_of(text)
        peer = peer_seconds(case)
        if peer is not None:
            print(f"{text} PyTorch: {peer[0] * 1e3:.3f} forward, {peer[1] * 1e3:.3f} with gradients")
        (programs, pipelines), buffers = compiled(case, backend), operands(case, backend)
        for kernel in (*KERNELS, "all"):
            found = [(seconds(program, buffers), name) for (of, name), program in programs.items() if of == kernel]
            row = ", ".join(f"{name} {1e3 * taken:.3f}" for taken, name in sorted(found))
            print(f"{text} {kernel}: {row}", flush=True)
        del pipelines


if __name__ == "__main__":
    main(VulkanBackend())
