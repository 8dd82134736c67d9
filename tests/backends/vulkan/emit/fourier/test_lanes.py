"""Steps of Fourier transforms whose points lanes share: when they are taken, and every number of lines of all forms."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier.choose import lanes_of, mirrored_steps_of, steps_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir.types import float32
from tests.backends.vulkan.emit.emission import dispatch_of, main_of
from tests.sweeps import each_value

RANDOM = np.random.default_rng(6)
_NARROW = replace(CPU_DRIVER, subgroup_size=4, min_subgroup_size=4, max_subgroup_size=4)


def test_lanes_share_lines_along_memory_and_pairs_across() -> None:
    assert [lanes_of(n, 1, 1, CPU_DRIVER) for n in (32, 72, 144, 256, 1000, 1024, 1152, 2048, 37 * 16)] == [
        0, 2, 4, 8, 8, 8, 0, 0, 0,
    ]  # fmt: skip
    assert [lanes_of(n, 32, 1, CPU_DRIVER) for n in (32, 50, 64, 128, 256)] == [0, 2, 4, 8, 0]
    assert lanes_of(50, 1, 20, CPU_DRIVER) == 2 and lanes_of(64, 5, 5, CPU_DRIVER) == 0
    assert lanes_of(1024, 1, 1, _NARROW) == 0 and lanes_of(512, 1, 1, _NARROW) == 4
    assert not lanes_of(256, 1, 1, GENERIC_GPU)
    assert not lanes_of(256, 1, 1, replace(CPU_DRIVER, subgroup_shuffle=False))


def test_steps_with_lanes() -> None:
    expected = {
        64: [64], 1024: [1024], 1000: [1000], 2000: [100, 20], 5000: [100, 50], 4096: [128, 32], 16384: [128, 128],
        36: [36], 360: [360], 750: [30, 25], 1008: [36, 28],
    }  # fmt: skip
    assert {length: list(steps_of(length, 1, float32, CPU_DRIVER)) for length in expected} == expected
    assert list(mirrored_steps_of(1024, False, float32, CPU_DRIVER)) == [1024]
    assert list(mirrored_steps_of(1024, True, float32, CPU_DRIVER)) == [32, 32]


def test_lines_along_another_axis_have_steps_that_write_in_few_places() -> None:
    """Lanes share the last of two steps, with 15 or 16 points each, or there are two narrow ones; of three ones an
    invocation alone has no more than 16, and lanes share those of more than 32."""
    expected = {
        81: [81], 256: [16, 16], 360: [6, 60], 480: [8, 60], 504: [28, 18], 625: [25, 25], 900: [30, 30],
        1000: [10, 100], 1024: [16, 64], 1080: [10, 108],
        2048: [16, 128], 3000: [50, 60], 4096: [64, 64], 16384: [128, 128], 65536: [16, 64, 64],
        100000: [10, 100, 100], 250000: [25, 25, 20, 20], 32768: [8, 64, 64], 36000: [12, 50, 60],
        44100: [21, 21, 100], 24500: [5, 7, 7, 100],
    }  # fmt: skip
    assert {length: list(steps_of(length, 8, float32, CPU_DRIVER)) for length in expected} == expected
    assert list(steps_of(24500, 5, float32, CPU_DRIVER)) == [7, 7, 10, 50]  # pairs of neighbours are two lines
    assert [list(steps_of(600, behind, float32, CPU_DRIVER)) for behind in (400, 401)] == [[10, 60], [30, 20]]


def test_a_line_is_one_kernel_that_exchanges_by_shuffles() -> None:
    graph = """
        graph (x: f32[2,256,1,1,2]) {
          %0 = fourier_step(x) reverse=false : f32[2,256,2]
          return %0
        }
    """
    main = main_of(dispatch_of(graph, CPU_DRIVER))
    assert main.count("subgroupShuffleXor") == 2 * 3 * 16  # parts, halvings of eight lanes, numbers of each
    assert "barrier" not in main and "shared" not in main


# Two, four and eight lanes along memory, of pairs and of single numbers, odd and even ones; then pairs of lines
# across, and such as have an odd width behind.
@each_value(
    form=[
        *(((3, 72), 1), ((3, 144), 1), ((5, 256), 1), ((5, 1024), 1)),
        *(((3, 90), 1), ((3, 100), 1), ((16, 264), 1), ((6, 720), 1)),
        *(((2, 50, 20), 1), ((3, 64, 6), 1), ((2, 3072, 5), 1), ((96, 2), 0)),
        *(((1000, 3), 0), ((2, 480, 10), 1), ((4096, 3), 0), ((20000, 2), 0), ((1080, 2), 0)),
    ],
    inverse=[False, True],
)
def test_the_forms(form: tuple[tuple[int, ...], int], inverse: bool) -> None:
    shape, axis = form
    z = (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)
    ours, theirs = (lnp.fft.ifft, np.fft.ifft) if inverse else (lnp.fft.fft, np.fft.fft)
    expected = theirs(z.astype(np.complex128) * 2, axis=axis)
    found = lx.compile(lambda z: ours(z * 2, axis=axis))(z)
    limit = 2**-24 * np.log2(shape[axis])  # half of what is promised
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


@pytest.mark.parametrize("length", [2000, 2048, 5000, 8192, 16384])
@pytest.mark.parametrize("inverse", [False, True])
def test_two_steps(length: int, inverse: bool) -> None:
    z = (RANDOM.normal(size=(3, length)) + 1j * RANDOM.normal(size=(3, length))).astype(np.complex64)
    ours, theirs = (lnp.fft.ifft, np.fft.ifft) if inverse else (lnp.fft.fft, np.fft.fft)
    expected = theirs(z.astype(np.complex128))
    limit = 2**-24 * np.log2(length)
    assert np.linalg.norm(np.asarray(ours(z)) - expected) <= limit * np.linalg.norm(expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_one_wrong_root_shows(axis: int) -> None:
    """A tone in every place of the spectrum comes out there alone."""
    length = 128
    tones = np.exp(2j * np.pi * np.outer(np.arange(length), np.arange(length)) / length).astype(np.complex64)
    found = np.asarray(lnp.fft.fft(tones, axis=axis))
    np.testing.assert_allclose(found, length * np.eye(length), atol=1e-4)
