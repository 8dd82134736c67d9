"""Invocations that transform several lines, one after the other: when they do, and every form with lines left over."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier import turns
from lavax.backends.vulkan.emit.fourier.turns import LineLoop, turns_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from tests.backends.vulkan.emit.emission import dispatch_of

RANDOM = np.random.default_rng(8)


def test_enough_invocations_are_left() -> None:
    assert [turns_of(n, CPU_DRIVER, False) for n in (1, 2047, 2048, 5000, 1 << 14, 1 << 20)] == [1, 1, 2, 4, 16, 16]
    assert turns_of(1 << 20, GENERIC_GPU, False) == turns_of(1 << 20, CPU_DRIVER, True) == 1


def test_workgroups_are_fewer() -> None:
    graph = """
        graph (x: f32[4100,15,1,1,2]) {
          %0 = fourier_step(x) reverse=false : f32[4100,15,2]
          return %0
        }
    """
    assert dispatch_of(graph, CPU_DRIVER).groups == (-(-4100 // (4 * 8)), 1, 1)


def _real(shape: tuple[int, ...]) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def _complex(shape: tuple[int, ...]) -> np.ndarray:
    z = RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)
    z[..., [0, -1]] = z[..., [0, -1]].real  # as the spectrum of a real line is
    return z.astype(np.complex64)


# Lines and pairs of lines in registers, lines and pairs by lanes, real lines by lanes and by mirrored columns.
@pytest.mark.parametrize(
    ("name", "shape", "operand"),
    [
        *(("fft", shape, _complex) for shape in ((37, 15), (37, 32), (13, 72), (9, 128, 2), (5, 16384))),
        *(("rfft", shape, _real) for shape in ((13, 144), (37, 36), (5, 2000))),
        *(("irfft", shape, _complex) for shape in ((37, 19), (5, 1001))),
    ],
)
def test_lines_one_after_the_other(
    name: str,
    shape: tuple[int, ...],
    operand: Callable[[tuple[int, ...]], np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "LINE_LOOP", LineLoop(turns=(3,), busy=1))
    lx.clear_caches()
    x = operand(shape)
    axis = 1
    expected = getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)), axis=axis)
    found = np.asarray(lx.compile(lambda x: getattr(lnp.fft, name)(x, axis=axis))(x))
    limit = 2**-24 * np.log2(expected.shape[axis] + 1)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)
    lx.clear_caches()
