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
from lavax.ir import Graph
from lavax.passes.kernels.commands import steps_of
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
    return schedule(prepare(_graph(_layers)))


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


@pytest.mark.parametrize("layers", ["plain", "normed", "after a loop"])
def test_attention_is_written_before_the_graph_is_prepared(layers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shaders are those of the plan, also if values are computed again after the first fusion."""
    limits = replace(rematerialization.RematerializationLimits(), least_peak=0)
    monkeypatch.setattr(rematerialization, "_LIMITS", limits)
    graph = _graph({"plain": _layers, "normed": _normed_layers, "after a loop": _after_a_loop}[layers])
    early: list[Dispatch] = []
    written: list[Dispatch] = []
    plan = ForGpu().lower(graph).find_plan(early.append, written.append)
    kinds = {step.name: _kind(step.kernel) for step in steps_of(ForGpu().lower(graph).kernels.steps)}
    of_attention = {each.shader: kinds[each.name] for each in plan.dispatches if "attention" in kinds[each.name]}
    found = [of_attention[each.shader] for each in early]
    assert found == sorted(found, key=_ORDER.index) and set(found) == set(_ORDER[:2])
    assert len(early) == len({each.shader for each in early}) <= len(of_attention), "once for layers that are alike"
    assert plan == ForGpu().lower(graph).plan
    assert set(map(id, written)) == set(map(id, plan.dispatches)), "each dispatch that runs is told of as well"


def test_shaders_that_are_written_early_are_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, gpu = _graph(_layers), ForGpu()
    launches = program.emit_early(graph, gpu.target, gpu.profile, lambda dispatch: None)
    monkeypatch.setitem(dispatches.EMITTERS, "routine", None)  # type: ignore[arg-type]
    assert program.emit_program(gpu.lower(graph).kernels, gpu.profile, launches=launches)


def test_nothing_is_written_early_for_cpu_drivers() -> None:
    assert not program.emit_early(_graph(_layers), ForGpu().target, PROFILES["cpu"], lambda dispatch: None)


def _graph(layers: Any) -> Graph:
    kinds = lx.ShapeDtype((128, 64), "float32"), [lx.ShapeDtype((64, 64), "float32")] * 2
    return lx.compile(lx.grad(layers, 1)).lower(*kinds).optimized


def _normed_layers(x: Any, weights: Any) -> Any:
    for weight in weights:
        hidden = lnp.reshape(lx.nn.layer_norm(x @ weight), (1, 128, 2, 32))
        x = x + lnp.reshape(lx.nn.dot_product_attention(hidden, hidden, hidden), (128, 64))
    return lnp.sum(lnp.sin(x))


def _after_a_loop(x: Any, weights: Any) -> Any:
    found, sums = lx.scan(lambda x, weight: (lnp.tanh(x @ weight), lnp.sum(x)), x, lnp.stack(weights))
    heads = lnp.reshape(found, (1, 128, 2, 32)) * sums[0]
    return lnp.sum(lx.nn.dot_product_attention(heads, lnp.sin(heads), heads) ** 2)
