"""Slices of products of a vector that meet again: one kernel on a GPU, and the same numbers and gradients."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.nn import rotary
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient

WIDTH, HEADS, HEAD = 24, 3, 16
rng = np.random.default_rng(11)
X, W = rng.normal(size=WIDTH).astype("f"), rng.normal(size=(HEADS * HEAD, WIDTH)).astype("f")
ANGLES = rng.normal(size=(1, HEAD // 2))
COSINES, SINES = np.cos(ANGLES).astype("f"), np.sin(ANGLES).astype("f")
ARGUMENTS = (X, W, COSINES, SINES)


def _turned(x: Any, cosines: Any, sines: Any, layout: Any = "half") -> Any:
    return rotary.rotate(lnp.reshape(x, (1, HEADS, HEAD)), cosines, sines, layout)


def _cell(x: Any, w: Any, c: Any, s: Any) -> Any:
    """What the gates of an LSTM do with its state, here 1."""
    i, f, g, o = lnp.split(w @ x, 4)
    return nn.sigmoid(o) * lnp.tanh(nn.sigmoid(f) + nn.sigmoid(i) * lnp.tanh(g))


# Each with the sums of the kernel of the product, norms aside.
COMBINED: dict[str, tuple[Callable[..., Any], int]] = {
    "rotated by halves": (lambda x, w, c, s: _turned(w @ x, c, s), 2),
    "rotated by neighbours": (lambda x, w, c, s: _turned(w @ x, c, s, "interleaved"), 2),
    "a matrix in another order": (lambda x, w, c, s: _turned(x @ w.T, c, s), 2),
    "a weight that is computed": (lambda x, w, c, s: _turned(lnp.sin(w) @ x, c, s), 2),
    "the gates of a cell": (_cell, 4),
}
APART: dict[str, Callable[..., Any]] = {
    "a part that does not turn": lambda x, w, c, s: _turned(w @ x, c[:, :4], s[:, :4]),
    "slices that do not meet": lambda x, w, c, s: (lnp.sin((w @ x)[:24]), lnp.cos((w @ x)[24:])),
    "slices of two lengths": lambda x, w, c, s: (w @ x)[:24] * lnp.sum((w @ x)[24:40]),
    "read as a whole, too": lambda x, w, c, s: (_turned(w @ x, c, s), lnp.sin(w @ x)),
    "returned, too": lambda x, w, c, s: (_turned(w @ x, c, s), w @ x),
}


def _program(graph: Any, profile: DeviceProfile = GENERIC_GPU) -> KernelProgram:
    target = target_of(profile, 1 << 34, 1 << 32)
    return schedule(prepare(graph, target), target=target)


def _sums(program: KernelProgram) -> int:
    """The sums of the kernel of the product, which comes first."""
    return sum(node.op == "sum" for node in program.steps[0].kernel.graph.nodes)


def _check(program: KernelProgram, graph: Graph, *arrays: Any) -> None:
    found, expected = interpret_kernels(program, *arrays), interpret(graph, *arrays, dtype=np.float64)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * np.abs(want).max())


@pytest.mark.parametrize("name", COMBINED)
def test_what_combines_slices_is_in_the_kernel_of_the_product(name: str) -> None:
    function, slices = COMBINED[name]
    graph = remove_stop_gradient(lx.trace(function)(*ARGUMENTS))
    program = _program(graph)
    _check(program, graph, *ARGUMENTS)
    assert _sums(program) == slices and program.steps[0].kernel.domain.rows == HEADS * HEAD // slices
    later = [node.op for step in program.steps[1:] for node in step.kernel.graph.nodes]
    assert not {"multiply", "tanh", "sum"} & set(later)


@pytest.mark.parametrize("name", APART)
def test_other_products_are_whole(name: str) -> None:
    graph = remove_stop_gradient(lx.trace(APART[name])(*ARGUMENTS))
    program = _program(graph)
    _check(program, graph, *ARGUMENTS)
    assert _sums(program) == 1 and program.steps[0].kernel.domain.rows == HEADS * HEAD


def test_sixteen_bits_are_rounded_where_they_were() -> None:
    x, w = (value.astype(lnp.bfloat16) for value in (X, W))
    graph = remove_stop_gradient(lx.trace(lambda x, w, c, s: _turned(w @ nn.rms_norm(x), c, s))(x, w, COSINES, SINES))
    program = _program(graph)
    (found,), (expected,) = interpret_kernels(program, x, w, COSINES, SINES), interpret(graph, x, w, COSINES, SINES)
    np.testing.assert_allclose(found.astype("f"), expected.astype("f"), rtol=1 / 64, atol=1 / 64)
    assert [node.dtype.name for node in program.steps[0].kernel.graph.outputs] == ["bf16"] * 2


def test_gradients_in_the_middle_of_a_graph() -> None:
    weights = rng.normal(size=(1, HEADS, HEAD)).astype("f")

    def loss(x: Any, w: Any, c: Any, s: Any, weights: Any) -> Any:
        return 3 * lnp.sum(weights * lnp.tanh(_turned(w @ lnp.sin(x), c, s)))

    graph = remove_stop_gradient(lx.trace(lx.grad(loss, argnums=(0, 1, 2)))(*ARGUMENTS, weights))
    program = _program(graph)
    assert any(_sums_of_length(kernel) == 2 for step in program.steps for kernel in step.kernels)
    _check(program, graph, *ARGUMENTS, weights)


def _sums_of_length(kernel: Kernel) -> int:
    return sum(node.op == "sum" and kernel.domain.reduced == (WIDTH,) for node in kernel.graph.nodes)


def test_a_cpu_driver_keeps_the_product_whole() -> None:
    graph = remove_stop_gradient(lx.trace(COMBINED["rotated by halves"][0])(*ARGUMENTS))
    assert _program(graph, CPU_DRIVER).steps[0].kernel.domain.rows == HEADS * HEAD
