"""Maxima and sums of exponentials in one walk over long rows, as GPUs make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import Graph, interpret
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.emit.emission import assert_shader, dispatch_of, main_of, plan_of
from tests.backends.vulkan.run.execution import backend_with, run_as_gpu

RANDOM = np.random.default_rng(0)
UNIT = 2.0**-23


def _sum_relative_to_maximum(x: Any) -> Any:
    greatest = lnp.max(x, axis=-1, keepdims=True)
    return lnp.sum(lnp.exp(x - greatest), axis=-1), greatest


def _softmax(x: Any) -> Any:
    return lx.nn.softmax(x, axis=-1)


def _logsumexp(x: Any) -> Any:
    return lx.nn.logsumexp(x, axis=-1)


def _logsumexp_of_computed(x: Any) -> Any:
    return lx.nn.logsumexp(lnp.abs(x)[:, ::-1] - x, axis=-1)


def _graph(function: Callable[..., Any], x: np.ndarray) -> Graph:
    return lx.compile(function).lower(x).optimized


def _is_online(function: Callable[..., Any], x: np.ndarray, profile: Any = GENERIC_GPU) -> bool:
    steps = list(steps_of(schedule(prepare(_graph(function, x))).steps))
    return any(choose_schedule(step.kernel, profile, lifted=False).online for step in steps)


def _assert_agrees(function: Callable[..., Any], x: np.ndarray) -> None:
    """Terms, and factors that bring sums to another maximum, are good to 5 units each, and sums of positive terms as
    good as these."""
    assert _is_online(function, x, backend_with(kind="gpu").profile)
    graph = _graph(function, x)
    for got, want in zip(run_as_gpu(graph, [x]), interpret(graph, x, dtype=np.float64), strict=True):
        np.testing.assert_allclose(got, want, rtol=16 * UNIT, atol=1e-30)


# Multiples of the elements that a row group takes at a time, and others; elements and vectors; with and without
# rounding errors.
@pytest.mark.parametrize("length", [16_384, 6144, 5000, 1024, 16_383, 3001, 700])
@pytest.mark.parametrize("function", [_sum_relative_to_maximum, _logsumexp, _logsumexp_of_computed])
def test_long_rows(function: Callable[..., Any], length: int) -> None:
    x = (5 * RANDOM.standard_normal((3, length))).astype(np.float32)
    _assert_agrees(function, x)


def test_short_rows_of_many() -> None:
    """A few members of a subgroup have a row, and its vectors come to each of them one after the other."""
    x = np.tile((5 * RANDOM.standard_normal((100, 260))).astype(np.float32), (330, 1))
    (step,) = steps_of(schedule(prepare(_graph(_logsumexp, x))).steps)
    assert choose_schedule(step.kernel, GENERIC_GPU, lifted=False).members == 4
    _assert_agrees(_logsumexp, x)


def test_rows_that_are_written_as_well() -> None:
    x = RANDOM.standard_normal((3, 7001)).astype(np.float32)
    profile = backend_with(kind="gpu").profile
    if profile.subgroup_size >= 32 and not _is_online(_softmax, x, profile):
        pytest.skip("workgroups of this device keep such rows in registers")
    _assert_agrees(_softmax, x)


def test_rows_that_rise_or_fall_by_far_and_by_little() -> None:
    """The maximum so far is left behind in every turn, by more than exp can say or by less than is scaled for."""
    length = 12_000
    rising = [np.linspace(low, high, length) for low, high in ((-9e4, 9e4), (-50, 50), (0, 1e-3), (0, 15))]
    x = np.stack([*rising, *(row[::-1] for row in rising)]).astype(np.float32)
    for function in (_sum_relative_to_maximum, _logsumexp):
        _assert_agrees(function, x)


def _with(row: np.ndarray, **elements: float) -> np.ndarray:
    found = row.copy()
    for name, value in elements.items():
        found[int(name[1:])] = value
    return found


def test_special_elements() -> None:
    """NaN, infinities, the ends of the range, and rows and parts of rows of nothing but -inf."""
    length, lowest = 12_000, float(np.finfo(np.float32).min)
    row = RANDOM.standard_normal(length).astype(np.float32)
    masked = np.where(np.arange(length) < 8000, -np.inf, row)
    single = np.where(np.arange(length) == 4321, row, -np.inf)
    x = np.stack([
        _with(row, _7=np.nan), _with(row, _9=np.inf), _with(row, _9=np.inf, _11000=np.nan), masked, single,
        np.full(length, -np.inf), np.full(length, np.inf), np.full(length, lowest), _with(masked, _3=lowest),
        _with(row, _5=3e38, _6=-3e38), np.full(length, -0.0),
    ]).astype(np.float32)  # fmt: skip
    with np.errstate(all="ignore"):
        for function in (_sum_relative_to_maximum, _logsumexp):
            _assert_agrees(function, x)


def test_small_terms_are_not_lost() -> None:
    """A term of 1 and as many of 2^-24 as make nearly that: none of them could be added to it alone."""
    length = 15_000
    x = np.full((3, length), -24 * np.log(2), np.float32)
    x[:, 0] = 0
    (got,) = run_as_gpu(_graph(lambda x: _sum_relative_to_maximum(x)[0], x), [x])
    np.testing.assert_allclose(got, 1 + np.exp(x[:, 1:].astype(np.float64)).sum(axis=1), rtol=16 * UNIT)


def test_what_is_no_such_sum_has_a_walk_for_each_reduction() -> None:
    x = np.zeros((512, 30_000), np.float32)

    def weighted(x: Any) -> Any:
        return lnp.sum(lnp.exp(x - lnp.max(x, axis=-1, keepdims=True)) * x, axis=-1)

    def of_another_maximum(x: Any) -> Any:
        return lnp.sum(lnp.exp(x - lnp.max(x * x, axis=-1, keepdims=True)), axis=-1)

    def with_another_sum(x: Any) -> Any:
        return _logsumexp(x), lnp.sum(x, axis=-1)

    for function in (weighted, of_another_maximum, with_another_sum):
        assert not _is_online(function, x)
    assert not _is_online(_logsumexp, x[:, :64]), "what registers hold is read once anyway"
    assert not _is_online(_logsumexp, x, CPU_DRIVER)


def test_shader() -> None:
    text = """
        graph (x: f32[4096,1023]) {
          %0 = max(x) axes=[1] : f32[4096]
          %1 = broadcast(%0) axes=[0] : f32[4096,1023]
          %2 = subtract(x, %1) : f32[4096,1023]
          %3 = exp(%2) nonpositive=true : f32[4096,1023]
          %4 = sum(%3) axes=[1] : f32[4096]
          return %4
        }
    """
    assert_shader(
        dispatch_of(text, GENERIC_GPU),
        """
        layout(local_size_x = 128, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 128u + gl_SubgroupID * 32u + gl_SubgroupInvocationID);
            if (i >= 131072) return;
            int row = i / 32;
            int lane_of_row = i % 32;
            float v1 = float(float(0));
            float v2 = uintBitsToFloat(0xff800000u);
            float v3 = uintBitsToFloat(0xff7fffffu);
            for (int k = lane_of_row; k < 1023; k += 128) {
                float v4 = F32(p0).data[(k + row * 1023)];
                int k1 = min(k + 32, 1023 - 1);
                float v5 = F32(p0).data[(k1 + row * 1023)];
                float v6 = v5;
                if (!(k + 32 < 1023)) v6 = float(uintBitsToFloat(0xff800000u));
                int k2 = min(k + 64, 1023 - 1);
                float v7 = F32(p0).data[(k2 + row * 1023)];
                float v8 = v7;
                if (!(k + 64 < 1023)) v8 = float(uintBitsToFloat(0xff800000u));
                int k3 = min(k + 96, 1023 - 1);
                float v9 = F32(p0).data[(k3 + row * 1023)];
                float v10 = v9;
                if (!(k + 96 < 1023)) v10 = float(uintBitsToFloat(0xff800000u));
                float v11 = max(max(v4, v6), max(v8, v10));
                if (v11 > v3 + 16.0) {
                    float v11_factor = lx_exp_nonpositive(v3 - v11);
                    v1 *= v11_factor;
                    v3 = v11;
                }
                float v12 = lx_exp_term(v4 - v3) + lx_exp_term(v6 - v3) + lx_exp_term(v8 - v3) + lx_exp_term(v10 - v3);
                v1 += v12;
                if (lx_isnan(v12)) v11 = lx_maximum(lx_maximum(v4, v6), lx_maximum(v8, v10));
                v2 = lx_maximum(v2, v11);
            }
            v2 = lx_maximum(v2, subgroupShuffleXor(v2, 1u));
            v2 = lx_maximum(v2, subgroupShuffleXor(v2, 2u));
            v2 = lx_maximum(v2, subgroupShuffleXor(v2, 4u));
            v2 = lx_maximum(v2, subgroupShuffleXor(v2, 8u));
            v2 = lx_maximum(v2, subgroupShuffleXor(v2, 16u));
            v1 *= lx_exp(v3 - v2);
            v1 = (v1 + subgroupShuffleXor(v1, 1u));
            v1 = (v1 + subgroupShuffleXor(v1, 2u));
            v1 = (v1 + subgroupShuffleXor(v1, 4u));
            v1 = (v1 + subgroupShuffleXor(v1, 8u));
            v1 = (v1 + subgroupShuffleXor(v1, 16u));
            precise float v1_above = v2 - v2;
            v1 = mix(v1, lx_exp(v1_above), lx_isinf(v2));
            if (lane_of_row == 0) {
                F32(p1).data[row] = v1;
            }
        }
        """,  # noqa: E501
    )


def test_a_row_is_read_once() -> None:
    x = np.zeros((512, 32_768), np.float32)
    (dispatch,) = plan_of(_graph(_logsumexp, x), GENERIC_GPU).dispatches
    assert main_of(dispatch).count("for (int k") == 1
