"""Kernels that one shader serves, in one dispatch: what is joined, what waits for it, and that numbers stay."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.glsl import launch
from lavax.backends.vulkan.plan.plan import Plan
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.run.long_dispatches import with_long_dispatches_cut
from lavax.backends.vulkan.target import target_of
from lavax.ir import interpret
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule import schedule as scheduling
from tests.passes.program_checks import check_program

PROFILES = {"cpu": CPU_DRIVER, "gpu": GENERIC_GPU}
rng = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return (rng.normal(size=shape) / shape[-1] ** 0.5).astype("f")


def gated(x: Any, layers: Any) -> Any:
    """Per layer, two products of the same sizes read the same array."""
    for gate, up, down in layers:
        x = x + (nn.silu(x @ gate) * (x @ up)) @ down
    return lnp.sum(x**2)


def step(x: Any, layers: Any) -> Any:
    return lx.tree.map(lambda w, g: w - 0.1 * g, layers, lx.grad(gated, 1)(x, layers))


LAYERS = [(normal(24, 40), normal(24, 40), normal(40, 24)) for _ in range(2)]
# Long enough to be read through descriptors, where a driver reads faster so.
LONG_LAYERS = [(normal(32, 96), normal(32, 96), normal(96, 32)) for _ in range(3)]


def program_of(function: Any, profile: DeviceProfile, *arguments: Any) -> KernelProgram:
    target = target_of(profile, 1 << 34, 1 << 32)
    return scheduling.schedule(prepare(inline_calls(lx.trace(function)(*arguments)), target), target=target)


def together(program: KernelProgram) -> list[KernelStep]:
    steps = [step for step in program.steps if isinstance(step, KernelStep)]
    return [step for step in steps if len(step.kernels) > 1 and step.kernel.kind == "contract"]


@pytest.mark.parametrize("name", PROFILES)
def test_equal_products_are_one_kernel_with_one_shader(name: str) -> None:
    x = normal(16, 24)
    program = program_of(lx.grad(gated), PROFILES[name], x, LAYERS)
    check_program(program)
    assert [len(step.kernels) for step in together(program)][:2] == [2, 2]
    plan = emit_program(program, PROFILES[name])
    assert len(plan.dispatches) == len(program.steps)
    assert all(compile_glsl(dispatch.shader.source) for dispatch in plan.dispatches)
    arrays = lx.tree.leaves((x, LAYERS))
    for got, want in zip(interpret_kernels(program, *arrays), interpret(program.graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_the_text_shows_the_code_once() -> None:
    program = program_of(lx.grad(gated), GENERIC_GPU, normal(16, 24), LAYERS)
    first, *_ = together(program)
    (text,) = [part for part in str(program).split("kernel ") if part.startswith(f"{first.name} ")]
    assert text.startswith(f"{first.name} kind=contract parts=2 outer=[16,40]")
    assert text.count("graph (") == 1 and text.count("layers.0.0") == text.count("layers.0.1") == 1


@pytest.mark.parametrize("name", PROFILES)
def test_small_gradients_of_parameters_wait_for_those_of_other_layers(name: str) -> None:
    x = normal(16, 24)
    program = program_of(step, PROFILES[name], x, LAYERS)
    check_program(program)
    counts = [len(step.kernels) for step in together(program)]
    assert counts[-2:] in ([4, 2], [2, 4]), counts  # those of `gate` and `up` of both layers, and of `down`
    arrays = lx.tree.leaves((x, LAYERS))
    for got, want in zip(interpret_kernels(program, *arrays), interpret(program.graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_large_ones_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    before = program_of(step, GENERIC_GPU, normal(16, 24), LAYERS).arena_bytes
    monkeypatch.setattr(scheduling, "WAITING_KERNELS", scheduling.WaitingKernels(all_kept_bytes=0))
    program = program_of(step, GENERIC_GPU, normal(16, 24), LAYERS)
    assert program.arena_bytes <= before
    assert all(len(step.kernels) == 2 for step in together(program))


def test_products_of_other_sizes_share_a_dispatch_on_cpu_drivers() -> None:
    def several(x: Any, weights: Any) -> Any:
        return [x @ weight for weight in weights]

    program = program_of(several, CPU_DRIVER, normal(128, 64), [normal(64, size) for size in (64, 96, 160)])
    (whole,) = together(program)
    assert len(whole.kernels) == 3 and whole.abreast
    (dispatch,) = emit_program(program, CPU_DRIVER).dispatches
    groups = [part.groups for part in dispatch.parts]
    assert dispatch.groups == (sum(groups), 1, 1) and len(set(groups)) == 3


@pytest.mark.parametrize("layers", [LAYERS, LONG_LAYERS], ids=["by address", "through descriptors"])
def test_the_device_computes_the_same(layers: Any) -> None:
    x = normal(64, layers[0][0].shape[0])
    found = lx.tree.leaves(lx.compile(step)(x, layers))
    exact = interpret(lx.trace(step)(x, layers), *lx.tree.leaves((x, layers)), dtype=np.float64)
    for got, want in zip(found, exact, strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


def test_arrays_in_other_descriptor_ranges_have_dispatches_of_their_own() -> None:
    """One part's arrays lie where no descriptor shows them beside the other's."""

    def two(x: Any, weights: Any) -> Any:
        return [x @ weight for weight in weights]

    x, weights = normal(64, 64), [normal(64, 96), normal(64, 96)]
    compiled = lx.compile(two)
    far = [lx.device_put(weights[0]), lx.device_put(np.zeros(3 << 24, "f")), lx.device_put(weights[1])]
    for given in (far[::2], weights, far[::2]):
        for got, weight in zip(compiled(x, given), weights, strict=True):
            np.testing.assert_allclose(np.asarray(got), x @ weight, rtol=1e-4, atol=1e-5)


def test_a_long_dispatch_is_cut_within_its_parts() -> None:
    plan = emit_program(program_of(step, CPU_DRIVER, normal(64, 32), LONG_LAYERS), CPU_DRIVER)
    parted = [dispatch for dispatch in plan.dispatches if dispatch.parts]
    cut = with_long_dispatches_cut(plan, lambda dispatch: 2)
    assert parted and not any(dispatch.parts for dispatch in cut.dispatches)
    assert _workgroups(cut) == _workgroups(plan)
    firsts = [[piece.words[-1] for piece in dispatch.apart()] for dispatch in parted]
    assert all(first[0] == 0 and first == sorted(set(first)) for first in firsts)


def _workgroups(plan: Plan) -> int:
    return sum(dispatch.groups[0] for dispatch in plan.dispatches)


def test_under_a_guard_each_part_has_its_own_number_of_workgroups() -> None:
    def branches(flag: Any, x: Any, gate: Any, up: Any) -> Any:
        return lx.cond(flag, lambda: (x @ gate) * (x @ up), lambda: x @ up)

    x, (gate, up, _) = normal(64, 32), LONG_LAYERS[0]
    compiled = lx.compile(branches)
    for flag in (True, False, True):
        want = (x @ gate) * (x @ up) if flag else x @ up
        np.testing.assert_allclose(np.asarray(compiled(flag, x, gate, up)), want, rtol=1e-4, atol=1e-5)


def test_workgroups_of_a_larger_grid_than_the_parts_need_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid of two dimensions has up to a row more, for which the push constants hold no slots."""
    monkeypatch.setattr(launch, "_MOST_GROUPS", 11)

    def sums(x: Any, y: Any) -> Any:
        return lnp.sum(x, axis=1), lnp.sum(y, axis=1)

    arrays = [normal(60, 24), normal(60, 24)]
    program = program_of(sums, CPU_DRIVER, *arrays)
    (dispatch,) = emit_program(program, CPU_DRIVER).dispatches
    groups = dispatch.groups[0] * dispatch.groups[1]
    (needed,) = re.findall(r"if \(\S.*gl_WorkGroupID.* >= (\d+)u\) return;", dispatch.shader.source)
    assert int(needed) < groups
    lx.clear_caches()
    for got, x in zip(lx.compile(sums)(*arrays), arrays, strict=True):
        np.testing.assert_allclose(got, x.sum(axis=1, dtype=np.float64), atol=6e-6)  # 24 · 2⁻²⁴ · Σ|x|


def write_tokens(caches: Any, tokens: Any, place: Any) -> Any:
    """What layers of a decoder do with their caches."""
    return [cache.at[:, place].set(token * 2) for cache, token in zip(caches, tokens, strict=True)]


CACHES, TOKENS = [normal(2, 900, 3) for _ in range(12)], [normal(2, 3) for _ in range(12)]


@pytest.mark.parametrize("name", PROFILES)
def test_tokens_are_written_into_all_caches_by_one_dispatch(name: str) -> None:
    profile, arguments = PROFILES[name], (CACHES, TOKENS, np.int32(4))
    target, graph = target_of(profile, 1 << 34, 1 << 32), inline_calls(lx.trace(write_tokens)(*arguments))
    donated = scheduling.schedule(prepare(graph, target), tuple(range(len(CACHES))), target=target)
    check_program(donated, tuple(range(len(CACHES))))
    (dispatch,) = emit_program(donated, profile).dispatches
    assert dispatch.groups == (len(CACHES), 1, 1) and compile_glsl(dispatch.shader.source)
    kept = scheduling.schedule(prepare(graph, target), target=target)
    assert len(emit_program(kept, profile).dispatches) == 2 * len(CACHES), "a copy, and a write, of each"


@pytest.mark.parametrize("donated", [(), 0])
def test_the_device_writes_into_all_caches(donated: Any) -> None:
    compiled = lx.compile(write_tokens, donate_argnums=donated)
    for got, cache, token in zip(compiled(lx.device_put(CACHES), TOKENS, np.int32(4)), CACHES, TOKENS, strict=True):
        want = cache.copy()
        want[:, 4] = token * 2
        np.testing.assert_array_equal(got, want)
