"""The reports of compiled functions, against the allocator and the clock."""
from __future__ import annotations

import gc
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.device.instance import choose_device
from lavax.backends.vulkan.measure.limits import copy_plan
from lavax.backends.vulkan.plan.memory_use import rounded_size
from lavax.backends.vulkan.run.program import Program
from lavax.base import config
from lavax.base.errors import ShapeError

draw = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return draw.normal(size=shape).astype(np.float32)


def in_use() -> int:
    gc.collect()
    device = get_device()
    return sum(pool.use().in_use for pool in {device.arrays, device.tables})


def layers(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = lnp.tanh(x @ w)
    return x


def halved_until_small(x: Any) -> Any:
    return lx.while_loop(lambda c: lnp.sum(c * c) > 1, lambda c: c / 2, x)


def update(state: Any, gradients: Any) -> Any:
    return [s - 0.1 * g for s, g in zip(state, gradients, strict=True)]


def step(weights: Any, velocity: Any, x: Any, y: Any) -> Any:
    def loss(weights: Any) -> Any:
        return lnp.mean((lnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2)

    value, gradients = lx.value_and_grad(loss)(weights)
    velocity = [0.9 * v + g for v, g in zip(velocity, gradients, strict=True)]
    return value, [w - 0.1 * v for w, v in zip(weights, velocity, strict=True)], velocity


def either(chosen: Any, x: Any) -> Any:
    return lx.cond(chosen, lambda x: lnp.tanh(x @ x.T) @ x, lambda x: x - lnp.mean(x), x)


def attended(q: Any, k: Any, v: Any) -> Any:
    return lnp.sum(nn.dot_product_attention(q, k, v, is_causal=True) ** 2)


def carried(x: Any, w: Any) -> Any:
    return lx.fori_loop(0, 5, lambda _, x: lnp.tanh(x @ w), x)


WEIGHTS = [normal(30, 50), normal(50, 20)]
CAPTURED = lx.device_put(normal(100, 7))
CAPTURED_BYTES = 4 * 100 * 7
PARAMETERS = [normal(33 + number, 5) for number in range(6)]
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]] = {
    "temporaries": (layers, (normal(300, 70), normal(70, 70)), ()),
    "captured": (lambda x: x @ CAPTURED, (normal(3, 100),), ()),
    "donated": (update, (PARAMETERS, PARAMETERS), (0,)),
    "several results": (lambda x: (x + 1, lnp.sum(x), x, lnp.zeros(3)), (normal(1000),), ()),
    "no elements": (lambda x, y: lnp.concatenate([x, y]) * 2, (normal(0, 3), normal(2, 3)), ()),
    "scan": (lambda x: lx.scan(lambda c, r: (c + r, c * r), x[0], x), (normal(50, 30),), ()),
    "loop": (halved_until_small, (normal(500),), ()),
    "random": (lambda k: lx.random.normal(k, (100,)), (lx.random.PRNGKey(3),), ()),
    "a donating step": (step, (WEIGHTS, WEIGHTS, normal(40, 30), normal(40, 20)), (0, 1)),
    "a branch": (either, (np.array(True), normal(60, 30)), ()),
    "attention": (lx.grad(attended), tuple(normal(2, 70, 2, 16) for _ in range(3)), (0,)),
    "a sort": (lambda x: (lnp.sort(x), lnp.argsort(x)), (normal(3, 5000),), ()),
    "a scatter in place": (lambda x, i: x.at[i].add(1.0), (normal(400, 9), np.arange(30)), (0,)),
    "a loop of products": (carried, (normal(64, 32), normal(32, 32)), ()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_peak_is_what_is_allocated(name: str) -> None:
    function, arguments, donated = PROGRAMS[name]
    lx.clear_caches()  # else a program of another test may make room for this one, and take its memory along
    before = in_use() - (rounded_size(CAPTURED_BYTES) if name == "captured" else 0)
    lowered = lx.compile(function, donate_argnums=donated).lower(*arguments)
    foretold = lowered.memory()
    compiled = lowered.compile()
    inputs = lx.tree.map(lambda leaf: lx.device_put(np.array(leaf)), arguments)
    results = compiled(*inputs)
    assert in_use() - before == compiled.memory().peak == foretold.peak
    assert (compiled.memory().donated > 0) == bool(donated)
    assert results is not None  # kept until here


def test_memory_is_told_before_anything_is_allocated() -> None:
    """Also if it is more than this machine has."""
    before, compiled = in_use(), lx.profiler.counters()["glsl_compiles"]
    gibibyte = [lx.ShapeDtype((1 << 14, 1 << 14), "float32")] * 50
    memory = lx.compile(lambda arrays: [layers(x, x) for x in arrays]).lower(gibibyte).memory()
    assert memory.arguments == memory.results == 50 << 30
    assert memory.peak > 100 << 30 and str(memory)
    assert (in_use(), lx.profiler.counters()["glsl_compiles"]) == (before, compiled)


def test_parts_of_memory_by_hand() -> None:
    x, w = normal(300, 70), normal(70, 70)
    memory = lx.compile(layers).lower(x, w).compile().memory()
    assert memory.arguments == x.nbytes + w.nbytes
    assert (memory.results, memory.donated, memory.constants) == (x.nbytes, 0, 0)
    assert 2 * x.nbytes <= memory.temporaries < 2 * x.nbytes + 2 * 256
    parts = memory.arguments + memory.results + memory.temporaries + memory.overhead
    assert memory.peak == parts
    donating = lx.compile(update, donate_argnums=0).lower(PARAMETERS, PARAMETERS).compile().memory()
    size = sum(p.nbytes for p in PARAMETERS)
    assert (donating.arguments, donating.results, donating.donated) == (2 * size, size, size)
    closing = lx.compile(lambda x: x @ CAPTURED).lower(normal(3, 100)).compile().memory()
    assert (closing.arguments, closing.constants) == (4 * 3 * 100, CAPTURED_BYTES)


def test_a_function_without_kernels_has_reports() -> None:
    x = normal(100)
    compiled = lx.compile(lambda x: (x, lnp.zeros(3))).lower(x).compile()
    assert compiled.memory().peak == x.nbytes and compiled.cost().operations == 0
    assert str(compiled.cost()) and str(compiled.memory())
    with pytest.raises(ValueError, match="nothing is computed"):
        compiled.profile(x)


def test_a_profile_times_every_kernel() -> None:
    a, b = normal(64, 96), normal(96, 32)
    compiled = lx.compile(lambda a, b: lnp.tanh(a @ b).sum()).lower(a, b).compile()
    profile, cost = compiled.profile(a, b), compiled.cost()
    assert list(profile.kernels) == list(cost.kernels)
    for name, kernel in profile.kernels.items():
        assert kernel.cost == cost.kernels[name]
        assert 0 < kernel.seconds < 10
        assert kernel.gigaflops == pytest.approx(kernel.cost.operations / kernel.seconds / 1e9)
        moved = kernel.cost.bytes_read + kernel.cost.bytes_written
        assert kernel.gigabytes_per_second == pytest.approx(moved / kernel.seconds / 1e9)
        by_bytes = kernel.gigabytes_per_second / profile.copy_gigabytes_per_second
        by_operations = kernel.gigaflops / profile.arithmetic_gigaflops
        assert profile.of_limit(kernel.cost, kernel.seconds) == pytest.approx(max(by_bytes, by_operations))
    assert profile.seconds == pytest.approx(sum(kernel.seconds for kernel in profile.kernels.values()))
    assert 0.1 < profile.copy_gigabytes_per_second < 100_000
    assert 0.1 < profile.arithmetic_gigaflops < 1_000_000
    text = str(profile)
    assert lx.default_device().name in text and all(f" {head} " in text for head in ("GB/s", "GFLOP/s", "of the limit"))
    assert all(name in text for name in cost.kernels) and "test_reports.py:" in text


def test_a_profile_gives_nothing_away_and_checks_its_arguments() -> None:
    x = lx.device_put(normal(50))
    before = np.asarray(x)
    compiled = lx.compile(lambda x: x * 2 + 1, donate_argnums=0).lower(x).compile()
    compiled.profile(x)
    np.testing.assert_array_equal(np.asarray(x), before)
    with pytest.raises(ShapeError, match="compiled for x"):
        compiled.profile(normal(51))
    np.testing.assert_array_equal(np.asarray(compiled(x)), before * 2 + 1)


@pytest.mark.usefixtures("no_register_loops")
def test_turns_of_a_loop_are_multiplied() -> None:
    x = normal(40, 8)
    scanned = lx.compile(lambda x: lx.scan(lambda c, r: (c[::-1] * 0.5 + r, None), x[0], x)[0])
    profile = scanned.lower(x).compile().profile(x)
    bodies = [kernel for kernel in profile.kernels.values() if kernel.cost.operations]
    # A device that records several turns at once has a kernel for each of those.
    assert sum(body.cost.times for body in bodies) == 40
    assert all(body.total_seconds == body.cost.times * body.seconds for body in bodies)
    assert profile.seconds >= sum(body.total_seconds for body in bodies)


def test_a_loop_in_one_kernel_is_profiled() -> None:
    x = normal(40, 8)
    scanned = lx.compile(lambda x: lx.scan(lambda c, r: (c * 0.5 + r, None), x[0], x)[0])
    (loop,) = (k for k in scanned.lower(x).compile().profile(x).kernels.values() if k.cost.kind == "loop")
    assert (loop.cost.times, loop.cost.operations) == (1, 40 * 8 * 2) and loop.seconds > 0


def test_a_loop_that_ends_by_its_data_is_profiled_and_runs_after() -> None:
    x = normal(500)
    compiled = lx.compile(halved_until_small).lower(x).compile()
    expected = np.asarray(compiled(x))
    profile = compiled.profile(x)
    assert any(kernel.cost.is_least for kernel in profile.kernels.values()) and "1+" in str(profile)
    np.testing.assert_array_equal(np.asarray(compiled(x)), expected)


def test_the_trace_holds_every_dispatch(tmp_path: Path) -> None:
    x = normal(300, 70)
    profile = lx.compile(layers).lower(x, normal(70, 70)).compile().profile(x, normal(70, 70))
    profile.to_perfetto(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    assert [bar["name"] for bar in bars] == [dispatch.name for dispatch in profile.dispatches]
    assert len(bars) == 3
    for bar, later in pairwise(bars):
        assert bar["dur"] > 0 and bar["ts"] + bar["dur"] <= later["ts"] + 1e-6
    assert all(line.rpartition(":")[0] == __file__ for bar in bars for line in bar["args"]["source lines"])
    assert all(bar["args"]["of the limit"] > 0 and bar["args"]["GFLOP/s"] > 0 for bar in bars)
    names = {event["name"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {"process_name": profile.device, "thread_name": "kernels"}


def test_the_default_device_is_the_one_in_use() -> None:
    device = lx.default_device()
    assert device in lx.devices()
    assert device.name == choose_device(config.device_selector()).name


@pytest.mark.parametrize("vectors", [1, 4])
def test_the_copy_that_is_a_limit_copies_everything(vectors: int) -> None:
    device = get_device()
    content = draw.integers(0, 256, 1 << 16).astype(np.uint8)
    program = Program(device, copy_plan(device.profile, content.nbytes, vectors))
    (copied,) = program(device.transfer.upload(content))
    np.testing.assert_array_equal(device.transfer.download(copied, content.nbytes), content)


def test_costs_have_names_of_jax() -> None:
    compiled = lx.jit(lambda x: lnp.sin(x @ x) + 1).lower(np.ones((8, 8), "f")).compile()
    cost, memory = compiled.cost(), compiled.memory_analysis()
    assert compiled.cost_analysis() == {
        "flops": cost.operations,
        "bytes accessed": cost.bytes_read + cost.bytes_written,
    }
    assert cost.operations >= 2 * 8**3
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (256, 256)
    assert (memory.temp_size_in_bytes, memory.alias_size_in_bytes) == (memory.temporaries, 0)
