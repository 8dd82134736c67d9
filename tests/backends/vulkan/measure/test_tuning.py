"""Choice by measurement: candidates compute the same, winners are kept and found again, and nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, profiler
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.compile.disk_cache import DiskCache
from lavax.backends.vulkan.emit.candidates import schedules_of
from lavax.backends.vulkan.emit.contract.choose import parts_candidates
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.measure import trials
from lavax.backends.vulkan.measure.tuner import Records, Tuner, by_itself, with_prologue
from lavax.backends.vulkan.plan.plan import Plan
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.run.estimate import Rates
from lavax.backends.vulkan.run.program import Program
from lavax.base.errors import DeviceError
from lavax.ir import Graph, interpret
from lavax.ir.types import DType
from lavax.passes.kernels.kernel import Kernel, KernelStep
from tests.backends.vulkan.run.execution import backend, backend_with

draw = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return draw.normal(size=shape).astype(np.float32)


FUNCTIONS = {
    "product": (lambda a, b: a @ b + 1, (normal(72, 48), normal(48, 68))),
    "product along sums": (lambda a, b: a @ b.T, (normal(3, 256), normal(70, 256))),
    "softmax": (nn.softmax, (normal(40, 520),)),
    "columns": (lambda a: lnp.sum(a * a, axis=0), (normal(600, 136),)),
    "transpose": (lambda a: a.T * 2, (normal(68, 132),)),
    "elements": (lambda a, b: a * 2 + b, (normal(64, 128), normal(64, 128))),
    "elements that repeat": (lambda a, b: a[:, ::-1] + b[:, None], (normal(64, 64), normal(64))),
}


def graph_of(name: str) -> tuple[Graph, Sequence[np.ndarray]]:
    function, arrays = FUNCTIONS[name]
    return lx.trace(function)(*arrays), arrays


def kernels_of(device: VulkanBackend, graph: Graph) -> list[Kernel]:
    return [step.kernel for step in device.lower(graph).kernels.steps if isinstance(step, KernelStep)]


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_candidates_compute_the_same(name: str, kind: str) -> None:
    graph, arrays = graph_of(name)
    device = backend_with(kind=kind)
    program = device.lower(graph).kernels
    (kernel,) = kernels_of(device, graph)
    schedules = schedules_of(kernel, device.profile)
    assert len(set(map(repr, schedules))) == len(schedules)
    assert len(schedules) > 1 or (kind == "cpu" and name.startswith("elements"))
    (expected,) = interpret(graph, *arrays)
    buffers = [device.upload(array) for array in arrays]
    for schedule in schedules:
        plan = emit_program(program, device.profile, choice=lambda _, chosen=schedule: chosen)
        found = device.download(run(plan, buffers), graph.outputs[0].type)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=repr(schedule))


class Clock:
    """Takes times from a list and keeps the plans they are given for; a fake of the device's own."""

    def __init__(self, *seconds: float) -> None:
        self.seconds, self.plans = seconds, []

    def __call__(self, plans: Sequence[Plan], dtypes: Sequence[DType]) -> list[float]:
        self.plans.append(list(plans))
        return [*self.seconds, *[9.0] * len(plans)][: len(plans)]


def refuse(plans: Sequence[Plan], dtypes: Sequence[DType]) -> list[float]:
    raise AssertionError("nothing is timed again")


def tuner_at(folder: Path, measure: object, place: str = "a device, its driver") -> Tuner:
    return Tuner(GENERIC_GPU, Records(DiskCache(folder, 1 << 20), place), measure)  # type: ignore[arg-type]


GPU = backend_with(kind="gpu", name=GENERIC_GPU.name, subgroup_size=32)


def gpu_kernel(name: str) -> Kernel:
    (kernel,) = kernels_of(GPU, graph_of(name)[0])
    return kernel


def test_what_takes_least_is_chosen_and_found_again(tmp_path: Path) -> None:
    kernel, clock = gpu_kernel("product"), Clock(1.0, 0.9, 0.5, 0.8)
    schedules = schedules_of(kernel, GENERIC_GPU)
    before = profiler.counters()["tunings"]
    assert tuner_at(tmp_path, clock).schedule_of(kernel) == schedules[2]
    assert profiler.counters()["tunings"] == before + 1
    assert [len(plans) for plans in clock.plans] == [len(schedules)]
    assert len({plan.dispatches[0].shader.source for plan in clock.plans[0]}) == len(schedules)
    assert tuner_at(tmp_path, refuse).schedule_of(kernel) == schedules[2]
    elsewhere = tuner_at(tmp_path, Clock(1.0, 0.5), "another driver")
    assert elsewhere.schedule_of(kernel) == schedules[1]
    assert profiler.counters()["tunings"] == before + 2


def test_what_the_rules_choose_stays_unless_another_is_clearly_faster(tmp_path: Path) -> None:
    kernel = gpu_kernel("softmax")
    tuner = tuner_at(tmp_path, Clock(1.0, 0.96))
    assert tuner.schedule_of(kernel) == schedules_of(kernel, GENERIC_GPU)[0]


@pytest.mark.parametrize(
    "content", [b"", b"no json", b"[]", b'{"winner": 3}', b'{"winner": "a schedule of long ago"}', None]
)
def test_a_record_that_makes_no_sense_is_none(tmp_path: Path, content: bytes | None) -> None:
    kernel = gpu_kernel("product")
    schedules = schedules_of(kernel, GENERIC_GPU)
    tuner_at(tmp_path, Clock(1.0, 0.5)).schedule_of(kernel)
    (file,) = tmp_path.iterdir()
    if content is None:
        file.write_bytes(file.read_bytes()[:-3])
    else:
        keys: list[str] = []

        class Spying(DiskCache):
            def load(self, key: str) -> bytes | None:
                keys.append(key)
                return None

        Tuner(GENERIC_GPU, Records(Spying(tmp_path, 1 << 20), "a device, its driver"), Clock()).schedule_of(kernel)
        DiskCache(tmp_path, 1 << 20).store(keys[0], content)
    assert tuner_at(tmp_path, Clock(1.0, 0.9, 0.1)).schedule_of(kernel) == schedules[2]
    assert tuner_at(tmp_path, refuse).schedule_of(kernel) == schedules[2]


def test_a_device_that_can_time_nothing_leaves_the_rules_their_choice(tmp_path: Path) -> None:
    def no_room(plans: Sequence[Plan], dtypes: Sequence[DType]) -> list[float]:
        raise DeviceError("no memory left")

    kernel = gpu_kernel("product")
    assert tuner_at(tmp_path, no_room).schedule_of(kernel) == schedules_of(kernel, GENERIC_GPU)[0]
    assert not list(tmp_path.iterdir())


def test_sums_are_split_into_as_many_parts_as_take_least(tmp_path: Path) -> None:
    graph = lx.trace(lambda a, b: -a @ b[:, ::-1])(normal(64, 8192), normal(8192, 64))
    (dot,) = [node for node in graph.nodes if node.op == "dot"]
    numbers = parts_candidates(dot, GENERIC_GPU)
    assert numbers[0] > 1 and 1 in numbers
    alone = with_prologue(dot)
    assert [node.op for node in alone.nodes] == [node.op for node in graph.nodes]
    clock = Clock(1.0, 0.2)
    assert tuner_at(tmp_path, clock).parts_of(dot) == numbers[1]
    kernels = [len(plan.dispatches) for plan in clock.plans[-1]]
    assert kernels == [1 if parts == 1 else 2 for parts in numbers]
    assert tuner_at(tmp_path, refuse).parts_of(dot) == numbers[1]


def test_a_trial_is_cut_only_where_a_program_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the rates of a slow device: a product that takes 14 µs was timed in 28 dispatches, one after the other."""
    steps: list[int] = []

    def recording(program: Program, *given: Any) -> Any:
        steps.append(len(program.steps))
        return record(program, *given)

    record = trials._recording
    monkeypatch.setattr(trials, "_recording", recording)
    (kernel,) = kernels_of(backend(), lx.trace(lambda a, b: a @ b)(normal(384, 384), normal(384, 384)))
    plan = emit_program(by_itself(kernel), backend().profile)
    dtypes = [node.dtype for node in kernel.graph.inputs]
    for rates, is_cut in ((Rates(1e12, 1e14, 1e-6), False), (Rates(1e6, 4e8, 1e-5), True)):
        steps.clear()
        (seconds,) = trials.seconds_of(backend().device, [plan], dtypes, lambda rates=rates: rates)
        assert 0 < seconds < 10 and (min(steps) > 1) == is_cut == (max(steps) > 1)


def test_the_tuner_knows_what_the_device_does(monkeypatch: pytest.MonkeyPatch) -> None:
    device, given = backend_with(kind="cpu"), []
    monkeypatch.setattr(trials, "seconds_of", lambda of, plans, dtypes, rates: given.append(rates()) or [1.0])
    rates = Rates(2e9, 3e9, 1e-5)
    monkeypatch.setattr(device, "_rates", rates)
    tuner = device.tuner
    assert tuner is not None and tuner._measure([], []) == [1.0] and given == [rates]


def test_a_tuned_program_computes_what_a_plain_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = normal(24, 32), normal(32, 24)

    def layer(x: object, w: object) -> object:
        return nn.softmax(lnp.tanh(x @ w))

    device = backend_with(kind="gpu")
    clock = Clock(1.0, 0.5)
    tuner = Tuner(device.profile, Records(DiskCache(tmp_path, 1 << 20), ""), clock)
    monkeypatch.setitem(device.__dict__, "tuner", tuner)
    graph = lx.trace(layer)(x, w)
    tuned, plain = device.lower(graph, tune=True), device.lower(graph)
    assert tuned.as_text("glsl") != plain.as_text("glsl") == device.lower(graph).as_text("glsl")
    buffers = [device.upload(array) for array in (x, w)]
    (expected,) = interpret(graph, x, w)
    for lowered in (tuned, plain):
        (result,) = lowered.compile()(*buffers)
        np.testing.assert_allclose(device.download(result, graph.outputs[0].type), expected, rtol=1e-5)


_SCRIPT = """
import numpy as np, lavax as lx, lavax.numpy as lnp
x = np.arange(24 * 64, dtype=np.float32).reshape(24, 64) / 500
step = lx.compile(lambda x: lnp.tanh(x - lnp.max(x, axis=1, keepdims=True)), donate_argnums=0, tune={tune})
given = lx.device_put(x)
step(given)
first = lx.profiler.counters()
try:
    np.asarray(given)
except lx.DonatedArrayError:
    pass
again = np.asarray(step(lx.device_put(x)))
np.testing.assert_allclose(again, np.tanh(x - x.max(axis=1, keepdims=True)), rtol=1e-6)
later = lx.profiler.counters()
assert later["tunings"] == first["tunings"] and later["pipelines"] == first["pipelines"]
print(first["tunings"], first["glsl_compiles"])
"""


def counts_of_a_process(cache: Path, tune: bool, **environment: str) -> list[int]:
    """How many kernels a new process tuned, and how many shaders it compiled."""
    settings = {**os.environ, "LAVAX_CACHE": str(cache), **environment}
    command = [sys.executable, "-c", _SCRIPT.format(tune=tune)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    return list(map(int, done.stdout.split()))


def test_another_process_finds_what_was_tuned(tmp_path: Path) -> None:
    assert counts_of_a_process(tmp_path / "plain", False) == [0, 1]
    tuned, compiled = counts_of_a_process(tmp_path / "tuned", True)
    assert tuned == 1 and compiled > 1
    assert counts_of_a_process(tmp_path / "tuned", False, LAVAX_TUNE="1") == [0, 0]


def run(plan: Plan, buffers: Sequence[object]) -> object:
    (result,) = Program(backend().device, plan)(*buffers)
    return result
