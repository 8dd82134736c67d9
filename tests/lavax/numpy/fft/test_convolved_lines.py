"""Transforms of lines with large prime factors as convolutions with a chirp: their steps, values and derivatives."""
from __future__ import annotations

from math import prod

import numpy as np
import pytest
import scipy.fft

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier.choose import FEW_NUMBERS
from lavax.backends.vulkan.emit.fourier.steps.convolutions import CONVOLVED_STEPS, convolved_steps_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.passes.program_checks import check_program

RANDOM = np.random.default_rng(19)
TARGET = target_of(CPU_DRIVER, 1 << 34, 1 << 32)


def _complex(*shape: int) -> np.ndarray:
    return np.asarray(RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape))


def test_steps() -> None:
    """Both ends have an even number of points, so that pairs of neighbours are in one column each."""
    for least in (257, 1041, 4005, 20013, 40021, 200_005):
        for lines in (1, 1000):
            first, *_, last = found = convolved_steps_of(least, lines, CPU_DRIVER)
            assert least <= prod(found) <= 1.1 * least and first % 2 == last % 2 == 0
            assert min(first, last) >= CONVOLVED_STEPS.narrowest and max(first, last) <= CONVOLVED_STEPS.widest
            assert lines * least > FEW_NUMBERS.numbers or max(found) <= FEW_NUMBERS.widest
    assert [len(convolved_steps_of(least, 1000, CPU_DRIVER)) for least in (261, 1024, 4005, 20013)] == [2, 2, 3, 3]
    assert not convolved_steps_of(261, 1000, GENERIC_GPU)


# The chirp's spectrum has one step more than what comes before the lines need it, or not.
@pytest.mark.parametrize("length", [263, 2003])
@pytest.mark.parametrize("function", ["fft", "rfft", "irfft"])
def test_all_steps_share_a_dispatch(function: str, length: int) -> None:
    """Where there are many lines; tables are made before, of the chirp's spectrum too."""
    is_real = function == "rfft"
    points = length // 2 + 1 if function == "irfft" else length
    type = lx.ShapeDtype((64, points), "float32" if is_real else "complex64")
    graph = lx.trace(lambda x: getattr(lnp.fft, function)(x, length))(type)
    program = schedule(prepare(graph, TARGET), target=TARGET)
    check_program(program)
    *tables, last = steps_of(program.steps)
    names = [kernel.graph.outputs[0].op for kernel in last.kernels]
    assert last.in_turn and names[0] == "fourier_padded" and names[-1] == "fourier_cut"
    assert names.count("fourier_filtered") == 1
    sizes = [kernel.graph.outputs[0].type.size for step in tables for kernel in step.kernels]
    assert max(sizes) < 64 * 2 * length  # of one line each
    assert not any(node.op == "dot" for step in tables for kernel in step.kernels for node in kernel.graph.nodes)


# Two steps and three, odd and even lines, a factor beside the prime, two large primes, few numbers and one line.
@pytest.mark.parametrize(
    ("lines", "length"), [(70, 262), (3, 262), (63, 263), (1, 383), (5, 766), (20, 1021), (9, 2003), (2, 137 * 131)]
)
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.long)])
def test_values(lines: int, length: int, dtype: type) -> None:
    _check_values(lines, length, dtype)


@pytest.mark.parametrize(("lines", "length"), [(70, 262), (1, 383), (2, 137 * 131)])
def test_values_in_double_precision(lines: int, length: int) -> None:
    _check_values(lines, length, np.float64)


def _check_values(lines: int, length: int, dtype: type) -> None:
    z, x = _complex(lines, length), RANDOM.normal(size=(lines, length)).astype(dtype)
    z = z.astype(np.complex64 if dtype == np.float32 else np.complex128)
    wide = z.astype(np.clongdouble)
    limit = (2**-24 if dtype == np.float32 else 2**-53) * np.log2(length)  # half of what is promised
    with lx.enable_x64():
        pairs = [
            (lx.compile(lambda z: lnp.fft.fft(z * 2))(z), scipy.fft.fft(wide * 2)),
            (lnp.fft.ifft(z), scipy.fft.ifft(wide)),
            (lnp.fft.rfft(x), scipy.fft.rfft(x.astype(np.longdouble))),
            (lnp.fft.irfft(z[:, : length // 2 + 1], length), scipy.fft.irfft(wide[:, : length // 2 + 1], length)),
            (lx.compile(lambda z: lnp.fft.fft(z, axis=0))(z.T.copy()), scipy.fft.fft(wide.T, axis=0)),
        ]
    for found, expected in pairs:
        assert np.linalg.norm((np.asarray(found) - expected).astype(complex)) <= limit * np.linalg.norm(expected)


def test_no_line_enters_another() -> None:
    """Not even one that is not a number: what is behind a line's end is the next one."""
    for function, x in ((lnp.fft.fft, _complex(40, 263)), (lnp.fft.rfft, RANDOM.normal(size=(40, 521)))):
        x[1::2] = np.nan
        found = np.asarray(function(x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)))
        assert np.isfinite(found[::2]).all() and np.isnan(found[1::2]).all()


def test_gradients_in_the_middle_of_a_graph() -> None:
    """Of 3·Σ Re(v ⊙ F(2z)): the transpose of F is F."""
    z, v = (_complex(20, 262).astype(np.complex64) for _ in range(2))
    found = lx.grad(lambda z: 3 * lnp.sum((v * lnp.fft.fft(2 * z)).real))(z)
    expected = 6 * np.fft.fft(v.astype(np.complex128))
    assert np.linalg.norm(np.asarray(found) - expected) <= 2**-22 * np.linalg.norm(expected)
