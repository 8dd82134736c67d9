"""Transforms of real lines: which steps they take, their values, derivatives and batches on the device."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier.choose import REGISTER_LIMITS, lanes_of, mirrored_steps_of
from lavax.backends.vulkan.emit.fourier.real_steps import joined_steps_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir.types import float32, float64
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.target.target import Target, Transforms
from tests.backends.vulkan.emit.emission import dispatch_of

RANDOM = np.random.default_rng(6)


def _lines(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def _spectra(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)


def _operations(function: str, shape: tuple[int, ...], dtype: str, transforms: Transforms) -> list[str]:
    graph = lx.trace(getattr(lnp.fft, function))(lx.ShapeDtype(shape, dtype))
    nodes = prepare(graph, Target(transforms=transforms)).nodes
    return [node.op for node in nodes if node.op.startswith("fourier")]


def test_steps_of_each_device() -> None:
    cpu = Transforms(
        mirrored_steps=lambda points, inverse, part: mirrored_steps_of(points, inverse, part, CPU_DRIVER),
        joined_steps=lambda points, part: joined_steps_of(points, part, CPU_DRIVER),
    )
    assert _operations("rfft", (4, 8192), "float32", cpu) == ["fourier_step", "fourier_spectrum"]
    assert _operations("rfft", (4, 2048), "float32", cpu) == ["fourier_spectrum"]
    assert _operations("irfft", (4, 1025), "complex64", cpu) == ["fourier_join", "fourier_step"]
    assert _operations("irfft", (4, 65), "complex64", cpu) == ["fourier_join"]
    assert _operations("rfft", (4, 8192), "float32", Transforms()) == ["fourier_step"]
    assert _operations("irfft", (4, 65), "complex64", Transforms()) == ["fourier_step"]


def test_the_last_step_of_an_inverse_writes_the_result() -> None:
    target = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
    for length in (64, 1024, 4096):
        graph = lx.trace(lnp.fft.irfft)(lx.ShapeDtype((5, 2, length // 2 + 1), "complex64"))
        assert "kind=map" not in str(schedule(prepare(graph, target), target=target))


def test_two_columns_have_few_points() -> None:
    for points in (1, 6, 31, 64, 500, 4096, 31**2, 3**8):
        steps = mirrored_steps_of(points, True, float32, CPU_DRIVER)
        by_lanes = steps == (points,) and lanes_of(points, 1, 1, CPU_DRIVER) > 0
        assert np.prod(steps) == points and (by_lanes or steps[-1] <= REGISTER_LIMITS.mirrored)
    assert mirrored_steps_of(64, False, float32, GENERIC_GPU) == ()
    # Short ones have two, if one step would hold too many.
    short = {51: [17, 3], 54: [9, 6], 63: [9, 7], 75: [15, 5], 81: [9, 9]}
    assert {points: list(mirrored_steps_of(points, False, float32, CPU_DRIVER)) for points in short} == short
    forward = {2304: [72, 32], 2500: [10, 25, 10], 5000: [10, 25, 20], 1225: [35, 35], 6000: [10, 40, 15]}
    assert {points: list(mirrored_steps_of(points, False, float32, CPU_DRIVER)) for points in forward} == forward
    assert list(mirrored_steps_of(5000, True, float32, CPU_DRIVER)) == [100, 50]
    inverse = {64: [64], 500: [25, 20], 512: [512], 720: [36, 20], 1000: [50, 20], 75: [15, 5], 2187: [27, 9, 9]}
    assert {points: list(mirrored_steps_of(points, True, float32, CPU_DRIVER)) for points in inverse} == inverse
    # Long lines in double precision have three steps of at most 32 points, if these take them.
    double = {8192: [16, 32, 16], 16000: [10, 100, 16], 25000: [10, 100, 25], 24576: [32, 32, 24], 32768: [32, 32, 32]}
    assert {points: list(mirrored_steps_of(points, False, float64, CPU_DRIVER)) for points in double} == double


def test_a_step_that_joins_has_few_points_and_lanes_share_the_last_one() -> None:
    found = {1024: [32, 32], 2048: [8, 64, 4], 3000: [10, 50, 6], 3600: [10, 60, 6], 8192: [16, 128, 4]}
    found[2187] = [27, 9, 9]
    assert {points: list(joined_steps_of(points, float32, CPU_DRIVER)) for points in found} == found
    assert list(joined_steps_of(3000, float64, CPU_DRIVER)) == [100, 30]
    assert joined_steps_of(3000, float32, GENERIC_GPU) == ()


# Whole in one step, of an even and an odd number of pairs; in two and three, with an even and an odd number of columns;
# by products; by a convolution; in one step by lanes.
_BY_LANES = [128, 144, 160, 180, 200, 256, 528, 2048]
_IN_STEPS = [2, 4, 6, 50, 62, 64, 90, 210, 1000, 4096, 5000, 2 * 33**3]


@pytest.mark.parametrize("length", [*_BY_LANES, *_IN_STEPS, 2 * 37, 2 * 131])
def test_values(length: int) -> None:
    limit = 2**-24 * max(np.log2(length), 2)  # half of what is promised
    lines = 3 if length <= 512 else 20  # few numbers have other steps
    x, s = _lines(lines, length), _spectra(lines, length // 2 + 1)
    expected = np.fft.rfft(x.astype(np.float64))
    assert np.linalg.norm(np.asarray(lnp.fft.rfft(x)) - expected) <= limit * np.linalg.norm(expected)
    back = np.fft.irfft(s.astype(np.complex128), length)  # which ignores the imaginary parts of both ends
    assert np.linalg.norm(np.asarray(lnp.fft.irfft(s, length)) - back) <= limit * np.linalg.norm(back)


@pytest.mark.parametrize("length", [12, 13, 96])
def test_gradients_in_the_middle(length: int) -> None:
    """Of 3·Σ v·(F(2x) ⊙ w): F's matrix, by NumPy in float64, times 6·v·w."""
    x, w = _lines(2, length), _spectra(2, length // 2 + 1)
    found = lx.grad(lambda x: 3 * lnp.sum(lnp.real(lnp.fft.rfft(2 * x) * w)))(x)
    rows = np.fft.rfft(np.eye(length))
    np.testing.assert_allclose(np.asarray(found), 6 * (w @ rows.T).real, rtol=1e-4, atol=1e-4)
    v = _lines(2, length)
    found = lx.grad(lambda s: 3 * lnp.sum(lnp.fft.irfft(2 * s, length) * v))(w)
    basis = np.eye(length // 2 + 1)
    real, imaginary = (np.fft.irfft(unit * basis, length) for unit in (1, 1j))
    expected = 6 * (v @ real.T - 1j * (v @ imaginary.T))  # ∂/∂x − i·∂/∂y
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4)


def test_tangents() -> None:
    x, t = _lines(60), _lines(60)
    _, found = lx.jvp(lambda x: lnp.fft.irfft(lnp.fft.rfft(x) ** 2), (x,), (t,))
    expected = np.fft.irfft(2 * np.fft.rfft(x) * np.fft.rfft(t))
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-4)


def test_batches_and_loops() -> None:
    x = _lines(4, 30, 5)
    expected = np.fft.rfft(x, axis=1)
    batched = lx.vmap(lambda line: lnp.fft.rfft(line, axis=0), in_axes=2, out_axes=2)(x)
    np.testing.assert_allclose(np.asarray(batched), np.fft.rfft(x, axis=0), atol=2e-5)

    def body(carry: lx.Array, line: lx.Array) -> tuple[lx.Array, lx.Array]:
        spectrum = lnp.fft.rfft(line, axis=0)
        return carry + lnp.fft.irfft(spectrum, axis=0), spectrum

    total, spectra = lx.scan(body, lnp.zeros((30, 5)), x)
    np.testing.assert_allclose(np.asarray(spectra), expected, atol=2e-5)
    np.testing.assert_allclose(np.asarray(total), x.sum(0), atol=2e-5)


def test_steps_read_through_what_is_computed_before() -> None:
    x = _lines(200, 64)
    found = lx.compile(lambda x: lnp.fft.irfft(lnp.fft.rfft(lnp.sin(x) + 1, norm="ortho") * 2j, norm="ortho"))(x)
    expected = np.fft.irfft(np.fft.rfft(np.sin(x) + 1) * 2j)
    np.testing.assert_allclose(np.asarray(found), expected, atol=2e-6)


def test_double_precision_has_the_same_functions() -> None:
    with lx.enable_x64():
        long = RANDOM.normal(size=(3, 256))
        np.testing.assert_allclose(np.asarray(lnp.fft.rfft(long)), np.fft.rfft(long), atol=1e-13)
        x = RANDOM.normal(size=(2, 24))
        spectrum = lnp.fft.rfft(x)
        np.testing.assert_allclose(np.asarray(spectrum), np.fft.rfft(x), atol=1e-13)
        np.testing.assert_allclose(np.asarray(lnp.fft.irfft(spectrum)), x, atol=1e-14)


@pytest.mark.parametrize("length", [48, 1024, 5000])
def test_the_last_step_writes_conjugates(length: int) -> None:
    """As `ihfft` has them, in one dispatch; the ends are real."""
    x = _lines(30, length)
    inverse = lx.compile(lambda x: lnp.fft.ihfft(x, norm="forward"))
    text = inverse.lower(x).as_text("kernels")
    assert text.count("kernel ") == 1 and "only=3" in text
    expected = np.fft.ihfft(x.astype(np.float64), norm="forward")
    np.testing.assert_allclose(np.asarray(inverse(x)), expected, atol=1e-6 * np.abs(expected).max())


def test_conjugates_of_a_spectrum_with_another_reader() -> None:
    def both(x: lx.Array) -> tuple[lx.Array, lx.Array]:
        spectrum = lnp.fft.rfft(x)
        return spectrum, lnp.conj(spectrum)

    x = _lines(30, 64)
    compiled = lx.compile(both)
    assert "only" not in compiled.lower(x).as_text("kernels")
    expected = np.fft.rfft(x.astype(np.float64))
    for found, wanted in zip(compiled(x), (expected, expected.conj()), strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, atol=2e-5)
    across = lx.compile(lambda x: lnp.conj(lnp.fft.rfft(x.T))).lower(_lines(64, 32))
    assert "only" not in across.as_text("kernels")  # these lines have steps of their own


@pytest.mark.parametrize("dtype, form", [("float32", "couples"), ("float64", "vectors")])
def test_both_parts_of_a_number_that_is_computed_are_read_at_once(dtype: str, form: str) -> None:
    """Of conjugates, as in `hfft`, one part is negated; of a part of a spectrum each is cut by itself."""
    part = "f32" if dtype == "float32" else "f64"
    graph = f"""
        graph (x: {part}[64,65,2]) {{
          %0 = slice(x) start=[0,0,0] limit=[64,65,1] stride=[1,1,1] : {part}[64,65,1]
          %1 = slice(x) start=[0,0,1] limit=[64,65,2] stride=[1,1,1] : {part}[64,65,1]
          %2 = negate(%1) : {part}[64,65,1]
          %3 = concatenate(%0, %2) axis=2 : {part}[64,65,2]
          %4 = fourier_join(%3) rest=8 : {part}[64,8,1,8,2]
          return %4
        }}
    """
    assert [name for name, number in dispatch_of(graph, CPU_DRIVER).shader.bindings if number == 0] == [form]
    with lx.enable_x64(dtype == "float64"):
        spectrum = _spectra(300, 65).astype(np.result_type(dtype, np.complex64))
        found = lx.compile(lambda s: (lnp.fft.hfft(s), lnp.fft.irfft(s, n=96)))(spectrum)
    for ours, wanted in zip(found, (np.fft.hfft(spectrum), np.fft.irfft(spectrum, n=96)), strict=True):
        np.testing.assert_allclose(np.asarray(ours), wanted, atol=2e-5 if dtype == "float32" else 2e-14)
