"""Float32 values that kernels compute from 16-bit arrays, in place of reading them."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.ir import interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule import rematerialization, wide_values
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import FusionLimits, Products, Target
from tests.passes.program_checks import check_program

GPU = Target(Products(stages_operands=True), fusion=FusionLimits(operations_per_byte=2.0))
RANDOM = np.random.default_rng(8)
ROWS, CHANNELS = 96, 16


@pytest.fixture(autouse=True)
def small_arrays_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """All arrays that are as large as a layer's values, and nothing is recomputed for the sake of memory alone."""
    monkeypatch.setattr(wide_values, "_WIDE_VALUES", wide_values.WideValues(elements=ROWS * CHANNELS))
    limits = replace(rematerialization.RematerializationLimits(), least_peak=0)
    monkeypatch.setattr(rematerialization, "_LIMITS", limits)
    monkeypatch.setattr(rematerialization, "_formulas", lambda *known: {})


def normalized(x: Any, weight: Any, scale: Any, slope: Callable[[Any], Any] = lambda d: d) -> Any:
    """A batch norm of a product in bfloat16; what its deviations are multiplied by may depend on them."""
    wide = (x.astype("bfloat16") @ weight.astype("bfloat16")).astype("float32")
    deviation = slope(wide - lnp.mean(wide, 0))
    return (deviation * lax.rsqrt(lnp.mean(deviation * deviation, 0) + 1e-3) * scale).astype("bfloat16")


def loss(x: Any, weights: Any, scale: Any, weighing: Any) -> Any:
    for weight in weights:
        x = lnp.maximum(normalized(x, weight, scale), 0)
    return 3 * lnp.sum(weighing * lnp.sin(x.astype("float32")))


def program_of(function: Callable[..., Any], *arrays: Any, target: Target = GPU) -> KernelProgram:
    graph = prepare(remove_stop_gradient(lx.compile(function).lower(*arrays).optimized), target)
    return schedule(graph, target=target)


def written(program: KernelProgram) -> list[str]:
    """The operations whose results kernels write for others, of the size of a layer's values and in float32."""
    steps = [step for step in program.steps if isinstance(step, KernelStep)]
    outputs = [
        output
        for step in steps
        for kernel, names in zip(step.kernels, step.writes, strict=True)
        for output, name in zip(kernel.graph.outputs, names, strict=True)
        if name not in program.results
    ]
    return [node.op for node in outputs if node.type.size >= ROWS * CHANNELS and node.dtype.name == "f32"]


def arrays_of(layers: int) -> list[Any]:
    weights = [RANDOM.normal(size=(CHANNELS, CHANNELS)).astype("f") for _ in range(layers)]
    x, weighing = (RANDOM.normal(size=(ROWS, CHANNELS)).astype("f") for _ in range(2))
    return [x, weights, RANDOM.normal(size=CHANNELS).astype("f"), weighing]


def test_gradients_of_batch_norms_keep_no_deviations(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of(3)
    step = lx.value_and_grad(loss, argnums=(0, 1, 2))
    program = program_of(step, *arrays)
    check_program(program)
    assert "subtract" not in written(program)
    flat = lx.tree.leaves(arrays)
    exact = interpret(program.graph, *flat, dtype=np.float64)
    for got, want in zip(interpret_kernels(program, *flat), exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    monkeypatch.setattr(rematerialization, "wide_values", lambda *known: {})
    before = program_of(step, *arrays)
    assert written(before).count("subtract") == 2, "the last layer's has one kernel with its gradient"
    for got, want in zip(interpret(before.graph, *flat, dtype=np.float64), exact, strict=True):
        np.testing.assert_array_equal(got, want)


def test_no_kernel_is_made_of_what_is_fused_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(pieces: Any, *known: Any) -> Any:
        found = wide_values.wide_values(pieces, *known)
        asked.append((len(pieces), sum("kernel" in vars(piece) for piece in pieces)))
        return found

    monkeypatch.setattr(rematerialization, "wide_values", counted)
    program_of(lx.value_and_grad(loss, argnums=(0, 1, 2)), *arrays_of(3))
    ((pieces, kernels),) = asked
    assert (pieces > 3, kernels) == (True, 0)


def test_costly_values_are_written() -> None:
    """More operations than the bytes are worth."""

    def costly(x: Any, weights: Any, scale: Any, weighing: Any) -> Any:
        for weight in weights:
            x = normalized(x, weight, scale, lambda deviation: lnp.tanh(lnp.exp(lnp.sin(deviation))))
        return lnp.sum(weighing * lnp.sin(x.astype("float32")))

    step, arrays = lx.grad(costly, argnums=(0, 1)), arrays_of(2)
    assert "cos" in written(program_of(step, *arrays))
    eager = replace(GPU, fusion=FusionLimits(operations_per_byte=1000.0))
    assert "cos" not in written(program_of(step, *arrays, target=eager))
