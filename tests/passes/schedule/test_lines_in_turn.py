"""Steps of Fourier transforms that share a dispatch, some lines at a time: which do, their memory, and their text."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier.choose import mirrored_steps_of, steps_of
from lavax.backends.vulkan.emit.lines_in_turn import LINES_IN_TURN, lines_at_a_time
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir.types import float32
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.passes.program_checks import check_program


def _program(
    function: Callable[..., Any], *shape: int, dtype: str = "complex64", profile: DeviceProfile = CPU_DRIVER
) -> KernelProgram:
    target = target_of(profile, 1 << 34, 1 << 32)
    graph = lx.trace(function)(lx.ShapeDtype(shape, dtype))
    program = schedule(prepare(graph, target), target=target)
    check_program(program)
    return program


def _steps(program: KernelProgram) -> list[KernelStep]:
    return [step for step in program.steps if isinstance(step, KernelStep)]


@pytest.mark.parametrize(("length", "count"), [(4096, 2), (15625, 3), (32768, 3)])
def test_steps_of_many_lines_share_a_dispatch(length: int, count: int) -> None:
    (step,) = _steps(_program(lnp.fft.fft, 40, length))
    assert step.in_turn and not step.abreast and len(step.kernels) == count
    assert all(read == written for read, written in zip(step.reads[1:], step.writes, strict=False))


@pytest.mark.parametrize(
    ("function", "shape", "dtype", "kernels"),
    [
        (lnp.fft.rfft, (40, 8192), "float32", 2),
        (lnp.fft.irfft, (40, 4097), "complex64", 3),
        (lnp.fft.rfft, (40, 3125), "float32", 2),
        (lnp.fft.rfft, (8, 1 << 18), "float32", 4),
        (lnp.fft.irfft, (40, 1563), "complex64", 2),
        (lambda x: lnp.fft.ifft(3 * lnp.fft.fft(x)), (40, 4096), "complex64", 2),
    ],
)
def test_every_kind_of_lines(function: Callable[..., Any], shape: tuple[int, ...], dtype: str, kernels: int) -> None:
    steps = _steps(_program(function, *shape, dtype=dtype))
    assert all(step.in_turn and len(step.kernels) == kernels for step in steps)


def test_each_step_has_a_dispatch_elsewhere() -> None:
    few = LINES_IN_TURN.parts - 1
    for profile, lines in ((GENERIC_GPU, 64), (CPU_DRIVER, few)):
        assert not any(step.in_turn for step in _steps(_program(lnp.fft.fft, lines, 8192, profile=profile)))
    across = _program(lambda x: lnp.fft.fft(x, axis=0), 4096, 64)  # one line of 64 columns
    assert not any(step.in_turn for step in _steps(across))


@pytest.mark.parametrize(("lines", "length"), [(1, 512), (1, 1000), (1, 4096), (3, 1000)])
def test_few_numbers_are_a_workgroups(lines: int, length: int) -> None:
    (step,) = _steps(_program(lnp.fft.fft, lines, length))
    assert step.in_turn and lines_at_a_time(step.kernels, CPU_DRIVER) >= lines
    assert len(_steps(_program(lnp.fft.fft, 2, 8192))) > 1


def test_lines_at_a_time_fill_part_of_a_cache() -> None:
    for length, lines in ((512 * 3, 2), (4096, 1), (32768, 1)):
        (step,) = _steps(_program(lnp.fft.fft, 64, length))
        assert lines_at_a_time(step.kernels, CPU_DRIVER) == lines


@pytest.mark.parametrize(
    ("function", "shape", "dtype", "lines"),
    [
        (lnp.fft.rfft, (64, 5000, 3), "float32", 3),  # in place of 1
        (lnp.fft.rfft, (64, 2400, 3), "float32", 3),
        (lnp.fft.rfft, (64, 1700, 3), "float32", 6),  # in place of 4
        (lnp.fft.rfft, (64, 2400, 5), "float32", 5),  # in place of 3
        (lnp.fft.irfft, (64, 2501, 7), "complex64", 7),  # in place of 1
        (lnp.fft.rfft, (64, 3125, 5), "float32", 5),  # in place of 2
    ],
)
def test_lines_beside_each_other_are_taken_together(
    function: Callable[..., Any], shape: tuple[int, ...], dtype: str, lines: int
) -> None:
    """Lines at a time are whole groups of neighbours: what one of them writes of a cache line, the others do soon."""
    *_, step = _steps(_program(lambda x: function(x, axis=1), *shape, dtype=dtype))
    assert step.in_turn and step.kernels[-1].graph.outputs[0].attrs["beside"] == shape[-1]
    assert lines_at_a_time(step.kernels, CPU_DRIVER) == lines


def test_what_they_do_is_printed() -> None:
    text = str(_program(lnp.fft.fft, 16, 4096))
    assert text.count("fourier_step") == 2 and "then, line by line, kind=routine" in text and "barrier" not in text


def test_the_widest_of_three_steps_is_the_last() -> None:
    """And the first one has about twelve points, an even number if it can."""
    expected = {
        3125: [5, 25, 25], 7007: [11, 13, 49], 16807: [7, 49, 49], 2187: [81, 27], 44100: [12, 49, 75],
        20000: [10, 20, 100], 59049: [9, 81, 81], 65536: [16, 32, 128], 1 << 18: [16, 128, 128], 37**3: [37] * 3,
        1 << 20: [32] * 4,
    }  # fmt: skip
    assert {points: list(steps_of(points, 1, float32, CPU_DRIVER)) for points in expected} == expected
    assert list(steps_of(16807, 8, float32, CPU_DRIVER)) == [7, 49, 49]
    assert list(steps_of(3125, 8, float32, CPU_DRIVER)) == [5, 25, 25]


def test_real_lines_have_narrow_steps_at_both_ends_or_a_wide_last_one() -> None:
    for inverse, expected in (
        (False, {8192: [16, 32, 16], 25000: [10, 100, 25], 1 << 16: [16] * 4, 2048: [64, 32]}),
        (True, {8192: [16, 128, 4], 25000: [25, 100, 10], 1 << 16: [128, 128, 4], 2048: [64, 32]}),
    ):
        found = {points: list(mirrored_steps_of(points, inverse, float32, CPU_DRIVER)) for points in expected}
        assert found == expected
