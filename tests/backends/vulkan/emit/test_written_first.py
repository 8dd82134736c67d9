"""The order in which shaders are written, which is not that in which they run."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit import dispatches, program
from lavax.backends.vulkan.plan.plan import Dispatch, Plan
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule import rematerialization
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.emit.emission import PROFILES
from tests.backends.vulkan.emit.test_same_texts import ForGpu

_ORDER = ("gradient of attention", "attention", "contract", "another")


def _layers(x: Any, weights: Any) -> Any:
    """Softmax, attention and products, two layers and a last map."""
    for weight in weights:
        heads = lnp.reshape(lx.nn.softmax(x) @ weight, (1, 128, 2, 32))
        x = lnp.reshape(lx.nn.dot_product_attention(heads, heads, heads), (128, 64)) @ weight.T
    return lnp.sum(lnp.tanh(x))


def _program() -> KernelProgram:
    kinds = lx.ShapeDtype((128, 64), "float32"), [lx.ShapeDtype((64, 64), "float32")] * 2
    return schedule(prepare(lx.compile(lx.grad(_layers, 1)).lower(*kinds).optimized))


def _written(kernels: KernelProgram, profile: DeviceProfile) -> tuple[Plan, list[Dispatch]]:
    order: list[Dispatch] = []
    return program.emit_program(kernels, profile, written=order.append), order


def test_attention_is_written_before_products_and_products_before_the_rest() -> None:
    kernels = _program()
    _, order = _written(kernels, PROFILES["gpu"])
    firsts = dict.fromkeys(dispatch.shader for dispatch in order)
    steps = {step.name: step.kernel for step in kernels.steps}  # type: ignore[union-attr]
    kinds = [_kind(steps[next(each for each in order if each.shader is shader).name]) for shader in firsts]
    assert kinds == sorted(kinds, key=_ORDER.index) and set(kinds) == set(_ORDER)


def _kind(kernel: Any) -> str:
    ops = {node.op for node in kernel.graph.nodes}
    if any(op.startswith("attention") for op in ops):
        return "gradient of attention" if any(op.endswith("gradient") for op in ops) else "attention"
    return "contract" if kernel.kind == "contract" else "another"


@pytest.mark.parametrize("device", PROFILES)
def test_the_plan_is_the_one_written_in_order(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, profile = _program(), PROFILES[device]
    plan, order = _written(kernels, profile)
    monkeypatch.setattr(program, "written_first", lambda steps, profile: ())
    in_order, dispatches = _written(kernels, profile)
    assert plan == in_order
    assert dispatches == in_order.dispatches, "each is told of as it is written"
    assert (order == dispatches) == (device == "cpu"), "CPU drivers compile when kernels first run"
    assert len(order) == len(dispatches) == len(set(map(id, order))), "each is told of once"


def test_shaders_of_likely_kernels_are_those_of_the_plan() -> None:
    kernels, profile = _program(), PROFILES["gpu"]
    told: list[Dispatch] = []
    each = [step.kernel for step in kernels.steps]  # type: ignore[union-attr]
    launches = program.emit_likely(each, profile, told.append)
    plan = program.emit_program(kernels, profile)
    assert {dispatch.shader for dispatch in told} <= {dispatch.shader for dispatch in plan.dispatches}
    assert len(told) == len(launches) >= 2, "attention and its gradient, once for two layers"
    assert program.emit_program(kernels, profile, launches=launches) == plan
    assert not program.emit_likely(each, PROFILES["cpu"], told.append)


def test_launches_that_are_given_are_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, profile = _program(), PROFILES["gpu"]
    each = [step.kernel for step in kernels.steps]  # type: ignore[union-attr]
    launches = program.emit_likely(each, profile, lambda dispatch: None)
    monkeypatch.setitem(dispatches.EMITTERS, "routine", None)  # type: ignore[arg-type]
    assert program.emit_program(kernels, profile, launches=launches)


def test_a_graph_that_is_fused_twice_has_attention_written_between(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(rematerialization.RematerializationLimits(), least_peak=0)
    monkeypatch.setattr(rematerialization, "_LIMITS", limits)
    kinds = lx.ShapeDtype((128, 64), "float32"), [lx.ShapeDtype((64, 64), "float32")] * 2
    graph = lx.compile(lx.grad(_normed_layers, 1)).lower(*kinds).optimized
    told: list[Dispatch] = []
    plan = ForGpu().lower(graph).find_plan(told.append)
    early = [dispatch for dispatch in told if not dispatch.slots]
    assert early and told[: len(early)] == early
    assert {dispatch.shader for dispatch in early} <= {dispatch.shader for dispatch in plan.dispatches}
    assert plan == ForGpu().lower(graph).plan


def _normed_layers(x: Any, weights: Any) -> Any:
    for weight in weights:
        hidden = lnp.reshape(lx.nn.layer_norm(x @ weight), (1, 128, 2, 32))
        x = x + lnp.reshape(lx.nn.dot_product_attention(hidden, hidden, hidden), (128, 64))
    return lnp.sum(lnp.sin(x))
