"""Cosine and sine transforms of types 2 and 3, and 4 of odd lines, by steps of transforms of real lines."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import lavax as lx
import lavax.numpy as lnp
import lavax.scipy.fft as lsf
from lavax.backends.vulkan.emit.fourier.choose import folded_order_of
from lavax.backends.vulkan.emit.fourier.real_steps import cosine_steps_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.base import config
from lavax.base.errors import ShapeError
from lavax.ir.types import DType, TensorType, float32, float64
from lavax.passes.build.builder import build
from lavax.passes.prepare.pipeline import prepare
from tests.backends.vulkan.run.execution import backend
from tests.sweeps import all_pairs

RANDOM = np.random.default_rng(12)


def _operations(function: Callable[..., Any], *shape: int, profile: DeviceProfile = CPU_DRIVER) -> list[str]:
    graph = lx.compile(function).lower(lx.ShapeDtype(shape, "float32"))._parts.graph
    nodes = prepare(graph, target_of(profile, 1 << 34, 1 << 32)).nodes
    return [node.op for node in nodes if node.op.startswith("fourier")]


def test_what_is_one_step_with_the_spectrum() -> None:
    for transform in (lsf.dct, lsf.dst):
        assert _operations(transform, 40, 1024) == ["fourier_cosines"]
        assert _operations(transform, 3, 5, 8192) == ["fourier_step", "fourier_cosines"]
        assert _operations(transform, 512) == ["fourier_cosines"]
        assert _operations(lambda x, transform=transform: transform(x, axis=0), 96, 41) == ["fourier_cosines"]
    assert _operations(lambda x: 3 * lsf.dct(2 * x, norm="ortho"), 40, 96) == ["fourier_cosines"]


def test_what_is_one_step_that_makes_the_spectrum() -> None:
    """Its lines are read as they are, and no table is."""
    for transform in (lsf.dct, lsf.dst):
        def back(x: lx.Array, transform: Callable[..., Any] = transform) -> Any:
            return transform(x, type=3)

        assert _operations(back, 40, 1024) == ["fourier_from_cosines"]
        assert _operations(back, 3, 5, 8192) == ["fourier_from_cosines", "fourier_step"]
        assert _operations(back, 512) == ["fourier_from_cosines"]
        assert _operations(back, 1, 6) == ["fourier_from_cosines"]
        assert _operations(lambda x, transform=transform: transform(x, 3, axis=0), 96, 41) == ["fourier_from_cosines"]
        assert "captured" not in _kernels(back, 40, 4096)
        assert _operations(back, 40, 96, profile=GENERIC_GPU) == ["fourier_step"]
        assert "fourier_from_cosines" not in _operations(back, 4, 2 * 131)  # a convolution
    assert _operations(lambda s: lnp.fft.irfft(s * (1 + 1j)), 40, 33) == ["fourier_join"]


@pytest.mark.parametrize(
    ("shape", "attrs", "message"),
    [
        ((1, 4, 2, 1, 2), {"folded": 2}, "folded is -1, 0 or 1, not 2"),
        ((1, 3, 1, 1, 2), {"folded": 1}, "no whole lines of an even number"),
        ((1, 4, 1, 2, 2), {"folded": -1}, "no whole lines to fold"),  # a later step
        ((1, 4, 2, 1, 2), {"folded": 1, "reverse": True}, "no whole lines to fold"),  # not the last one
    ],
)
def test_what_cannot_be_folded(shape: tuple[int, ...], attrs: dict[str, Any], message: str) -> None:
    x = build("constant", type=TensorType(shape, float32), value=0.0)
    with pytest.raises(ShapeError, match=message):
        build("fourier_step", x, type=x.type, **{"reverse": False, **attrs})


def test_what_is_not() -> None:
    assert _operations(lsf.dct, 40, 1024, profile=GENERIC_GPU) == ["fourier_step"]
    assert _operations(lsf.dct, 40, 75, profile=GENERIC_GPU) == ["fourier_step"]  # 15 · 5, of complex numbers
    assert "fourier_cosines" not in _operations(lsf.dct, 4, 2 * 131)  # a convolution
    assert "fourier_cosines" not in _operations(lambda x: lsf.dct(x, type=3), 40, 96)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_types_1_are_one_dispatch() -> None:
    """Of the spectrum of the line that is continued, the last step writes one part alone."""
    for transform, only, odd in ((lsf.dct, 1, 1), (lsf.dst, 2, -1)):
        for length in (8 + odd, 48 + odd, 64, 100 + odd, 1024 + odd, 4096 + odd):
            text = _kernels(lambda x, transform=transform: transform(x, 1), 40, length)
            assert text.count("kernel ") == 1 and "kind=map" not in text and f"only={only}" in text, length
    assert _operations(lambda x: lnp.fft.rfft(x).imag, 40, 64) == ["fourier_spectrum"]
    assert "only" not in _kernels(lambda x: lnp.fft.rfft(x).imag, 40, 64)
    assert "only" not in _kernels(lambda x: -lnp.fft.rfft(x).imag[..., 1:], 40, 64)
    assert "only" not in _kernels(lambda x: -lnp.fft.rfft(x).imag[..., 2:-1], 40, 64)
    assert "only=1" in _kernels(lambda x: lnp.fft.rfft(x).real + 1, 40, 64)


def test_a_spectrum_with_another_reader_is_whole() -> None:
    def both(x: lx.Array) -> tuple[Any, Any]:
        spectrum = lnp.fft.rfft(x)
        return spectrum.real, -spectrum.imag[..., 1:-1]

    assert "only" not in _kernels(both, 40, 64)
    x = RANDOM.normal(size=(3, 64))
    found, expected = lx.compile(both)(x.astype(np.float32)), np.fft.rfft(x)
    np.testing.assert_allclose(np.asarray(found[0]), expected.real, atol=1e-4)
    np.testing.assert_allclose(np.asarray(found[1]), -expected.imag[:, 1:-1], atol=1e-4)


@all_pairs(length=[3, 4, 9, 33, 64, 99, 101, 513, 1023, 1025, 4095, 4097], name=["dct", "dst"], wide=[False, True])
def test_type_1(name: str, length: int, wide: bool) -> None:
    x = RANDOM.normal(size=(5, length)).astype(np.float64 if wide else np.float32)
    expected = getattr(scipy.fft, name)(x.astype(np.float64), 1)
    with config.enable_x64(wide):
        found = np.asarray(lx.compile(lambda x: getattr(lsf, name)(x, 1))(x))
    limit = 2.0 ** (-53 if wide else -24) * max(np.log2(2 * length), 4)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


def _kernels(function: Callable[..., Any], *shape: int) -> str:
    return lx.compile(function).lower(lx.ShapeDtype(shape, "float32")).as_text("kernels")


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_lines_are_moved_by_the_steps_that_read_or_write_them() -> None:
    """No kernel moves them, and no step reads a number here or there."""
    for transform, fold in ((lsf.dct, 1), (lsf.dst, -1)):
        forward, back = (lambda x, kind=kind, transform=transform: transform(x, type=kind) for kind in (2, 3))
        text = _kernels(forward, 40, 4096)
        assert f"reverse=false folded={fold}" in text and "concatenate" not in text and text.count("kernel ") == 1
        text = _kernels(back, 40, 4096)
        assert f"reverse=true folded={fold}" in text and "kind=map" not in text and text.count("kernel ") == 1
        for length in (16, 100, 256, 1000):
            text = _kernels(back, 40, length)
            assert f"folded={fold}" in text and "kind=map" not in text
            text = _kernels(forward, 40, length)
            assert f"folded={fold}" in text and "concatenate" not in text and "kind=map" not in text


# One step, two, and three, of which one more would have more points than a step that writes so.
_OF_ODD_PAIRS = [2, 6, 50, 66, 110, 150, 1350, 3750]


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("length", _OF_ODD_PAIRS[1:])
def test_steps_write_an_odd_number_of_pairs_where_they_belong(length: int) -> None:
    for transform, fold in ((lsf.dct, 1), (lsf.dst, -1)):
        text = _kernels(lambda x, transform=transform: transform(x, 3), 40, length)
        assert f"folded={fold}" in text and text.count("kernel ") == 1 and "concatenate" not in text


@all_pairs(length=_OF_ODD_PAIRS, lines=[1, 6, 45], name=["dct", "dst"], wide=[False, True])
def test_values_of_an_odd_number_of_pairs(name: str, lines: int, length: int, wide: bool) -> None:
    """Every number by itself: the middle one has a place of its own, and lines begin in the middle of a vector."""
    x = RANDOM.normal(size=(lines, length)).astype(np.float64 if wide else np.float32)
    expected = getattr(scipy.fft, name)(x.astype(np.float64), 3)
    with config.enable_x64(wide):
        found = np.asarray(lx.compile(lambda x: getattr(lsf, name)(x, 3))(x))
    np.testing.assert_allclose(found, expected, rtol=0, atol=(6e-15 if wide else 3e-6) * np.abs(expected).max())


@pytest.mark.parametrize(("shape", "axis"), [((96, 40), 0), ((1024, 12), 0), ((3, 64, 5), 1), ((8, 4, 6, 5), 0)])
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_lines_along_another_axis(name: str, shape: tuple[int, ...], axis: int) -> None:
    x = RANDOM.normal(size=shape).astype(np.float32)
    transform = lx.compile(lambda x: getattr(lsf, name)(x, axis=axis))
    if backend().profile.kind == "cpu":
        assert "folded" in transform.lower(x).as_text("kernels")
    expected = getattr(scipy.fft, name)(x.astype(np.float64), axis=axis)
    assert np.linalg.norm(np.asarray(transform(x)) - expected) <= 10 * 2**-24 * np.linalg.norm(expected)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_what_moves_lines_otherwise() -> None:
    def two_readers(x: lx.Array) -> lx.Array:
        return lsf.dct(x, type=3) + lnp.cumsum(x, -1)

    assert "fold" in _kernels(two_readers, 40, 64)
    assert "fold" not in _kernels(lsf.dct, 40, 66)  # 33 pairs
    assert "fold" not in _kernels(_spectra_in_another_order, 40, 64)


def _spectra_in_another_order(s: lx.Array) -> tuple[lx.Array, lx.Array]:
    """An inverse transform whose numbers are moved, and read elsewhere."""
    x = lnp.fft.irfft(s[..., :33] * (1 + 1j))
    return lnp.reshape(lnp.stack([x[..., :32], lnp.flip(x[..., 32:], -1)], -1), x.shape), lnp.sum(x)


def _reader_of_spectra(x: lx.Array) -> tuple[lx.Array, lx.Array]:
    """A cosine transform by its definition, and the spectrum that it is made of."""
    cosine, sine = (lnp.asarray(f(np.pi * np.arange(17) / 64).astype(np.float32)) for f in (np.cos, np.sin))
    half = lnp.fft.rfft(lnp.concatenate([x[..., ::2], lnp.flip(x[..., 1::2], -1)], -1))
    first, last = half.real * cosine + half.imag * sine, half.real * sine - half.imag * cosine
    return lnp.concatenate([2 * first, lnp.flip((2 * last)[..., 1:16], -1)], -1), half


def test_lines_beside_a_reshape_to_a_scalar() -> None:
    x = np.random.default_rng(0).normal(size=(4, 32)).astype(np.float32)
    scaled = lx.compile(lambda w, x: lnp.reshape(w, ()) * lsf.dct(x, type=3))
    want = 2 * scipy.fft.dct(x.astype(np.float64), type=3)
    np.testing.assert_allclose(scaled(np.full(1, 2, np.float32), x), want, atol=1e-5 * np.abs(want).max())


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_odd_lines_are_one_dispatch() -> None:
    """Steps of real lines read the order of types 2 and 4, leave real numbers, and write the order of type 3."""
    for length in (5, 7, 9, 15, 75, 127, 375, 1001):
        for name, kind in ((name, kind) for name in ("dct", "dst") for kind in (2, 3, 4)):
            text = _kernels(lambda x, name=name, kind=kind: getattr(lsf, name)(x, kind), 400, length)
            assert text.count("kernel ") == 1 and "kind=map" not in text, (length, name, kind)
            assert ("folded" if kind == 3 else "cosines") in text


def _of_other_places(x: lx.Array) -> lx.Array:
    """The parts of a type 4 in another order."""
    half = lnp.fft.rfft(x)
    table = lnp.asarray(np.arange(8.0, dtype=np.float32))
    first, last = 2 * (half.real * table + half.imag * table), -2 * (half.real * table - half.imag * table)
    parts = [first[..., ::2], lnp.flip(last[..., 2::2], -1), first[..., 1::2], lnp.flip(last[..., 1::2], -1)]
    return lnp.concatenate(parts, -1)


def test_other_sums_of_odd_lines_are_not() -> None:
    assert "cosines" not in _kernels(_of_other_places, 40, 15)
    x = RANDOM.normal(size=(3, 15)).astype(np.float32)
    half, table = np.fft.rfft(x), np.arange(8)
    first, last = 2 * (half.real + half.imag) * table, -2 * (half.real - half.imag) * table
    expected = [first[:, ::2], last[:, 2::2][:, ::-1], first[:, 1::2], last[:, 1::2][:, ::-1]]
    np.testing.assert_allclose(np.asarray(_of_other_places(x)), np.concatenate(expected, 1), atol=1e-3)


def test_a_spectrum_that_is_read_elsewhere_is_written() -> None:
    assert _operations(lambda x: _reader_of_spectra(x)[0], 40, 32) == ["fourier_cosines"]
    assert _operations(_reader_of_spectra, 40, 32) == ["fourier_spectrum"]


def _last_step(transform: Callable[..., Any], length: int, dtype: str = "float32") -> str:
    """The shader of the steps of an even length."""
    with config.enable_x64():
        return lx.compile(transform).lower(lx.ShapeDtype((40, length), dtype)).as_text("glsl")


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_lanes_write_four_neighbours_of_two_steps() -> None:
    """Where columns are a multiple of four, fours begin at one, and one behind those of cosines or three of sines. Of
    another even number every second point's begin two further on, and of an odd number they begin anywhere."""
    lengths = {4096: "1", 16384: "1", 36000: "1", 8820: "123", 570: "123", 1750: "123"}
    for length, shifts in lengths.items():
        for transform, found in ((lsf.dct, shifts), (lsf.dst, shifts if "3" in shifts else "3")):
            text = _last_step(transform, length)
            forms = {form for form in "123" if re.search(rf"shifted{form}_\d+\.data", text)}
            assert forms == {*found}, (transform, length)
    for length, dtype in ((256, "float32"), (4096, "float64"), (40, "float32")):  # a step, no words, few columns
        assert "shifted" not in _last_step(lsf.dct, length, dtype)


@all_pairs(
    shape=[(2, 4096), (9, 16384), (1, 65536), (70, 3072), (7, 8820), (3, 36000), (33, 570), (9, 1750), (12, 1100)],
    name=["dct", "dst"],
    norm=["backward", "ortho", "forward"],
)
def test_values_of_lanes_that_write_four_neighbours(name: str, shape: tuple[int, int], norm: str) -> None:
    """Every number by itself: the ends of a line and of columns have places of their own."""
    x = RANDOM.normal(size=shape).astype(np.float32)
    expected = getattr(scipy.fft, name)(x.astype(np.float64), 2, norm=norm)
    found = np.asarray(lx.compile(lambda x: getattr(lsf, name)(x, 2, norm=norm))(x))
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 * np.abs(expected).max())


@all_pairs(
    kind=[2, 3, 4],
    length=[3, 5, 7, 9, 15, 27, 37, 75, 125, 387, 441, 1001, 3125, 3375],
    name=["dct", "dst"],
    wide=[False, True],
)
def test_odd_lengths(name: str, kind: int, length: int, wide: bool) -> None:
    x = RANDOM.normal(size=(max((1 << 14) // length + 1, 3), length)).astype(np.float64 if wide else np.float32)
    expected = getattr(scipy.fft, name)(x.astype(np.float64), kind)
    with config.enable_x64(wide):
        found = np.asarray(lx.compile(lambda x: getattr(lsf, name)(x, kind))(x))
    limit = 2.0 ** (-53 if wide else -24) * max(np.log2(length), 4)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


@all_pairs(
    length=[4, 6, 16, 30, 64, 150, 200, 256, 1000, 4096, 8192],
    lines=[1, 3, 21],
    kind=[2, 3],
    name=["dct", "dst"],
    wide=[False, True],
)
def test_values(name: str, kind: int, lines: int, length: int, wide: bool) -> None:
    x = RANDOM.normal(size=(lines, length)).astype(np.float64 if wide else np.float32)
    expected = getattr(scipy.fft, name)(x.astype(np.float64), kind)
    with config.enable_x64(wide):
        transform = lx.compile(lambda x: getattr(lsf, name)(x, kind))
        if length > 4 and backend().profile.kind == "cpu":
            assert ("fourier_cosines" if kind == 2 else "fourier_from_cosines") in transform.lower(x).as_text("kernels")
        found = np.asarray(transform(x))
    limit = 2.0 ** (-53 if wide else -24) * max(np.log2(length), 4)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


# Two steps, of which one has an odd number of points, or lanes have; and three.
_ORDERED = [900, 2000, 2200, 4500, 5000, 8100]


@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize("name", ["dct", "dst"])
@pytest.mark.parametrize("length", _ORDERED)
def test_steps_are_in_an_order_that_reads_and_writes_lines_as_they_are(name: str, length: int) -> None:
    for kind in (2, 3):
        text = _kernels(lambda x, kind=kind: getattr(lsf, name)(x, kind), 40, length)
        assert text.count("kernel ") == 1 and "kind=map" not in text and "concatenate" not in text and "fold" in text


@all_pairs(length=_ORDERED, kind=[2, 3], name=["dct", "dst"], wide=[False, True])
def test_values_of_steps_in_another_order(name: str, kind: int, length: int, wide: bool) -> None:
    """Every number by itself, since each lane's middle one has a place of its own."""
    x = RANDOM.normal(size=(11, length)).astype(np.float64 if wide else np.float32)
    expected = getattr(scipy.fft, name)(x.astype(np.float64), kind)
    with config.enable_x64(wide):
        found = np.asarray(lx.compile(lambda x: getattr(lsf, name)(x, kind))(x))
    np.testing.assert_allclose(found, expected, rtol=0, atol=(6e-15 if wide else 3e-6) * np.abs(expected).max())


def test_an_order_of_steps() -> None:
    """The one that holds mirrored numbers is at the end, and has at most 50 points."""
    assert folded_order_of((128, 32), False, CPU_DRIVER) == (128, 32)
    assert folded_order_of((30, 15), False, CPU_DRIVER) == (15, 30)
    assert folded_order_of((30, 15), True, CPU_DRIVER) == (15, 30)
    assert folded_order_of((50, 50), True, CPU_DRIVER) == (50, 50)
    assert folded_order_of((75, 50), True, CPU_DRIVER) == ()
    assert folded_order_of((9, 75, 6), True, CPU_DRIVER) == (75, 9, 6)
    assert folded_order_of((1000,), False, CPU_DRIVER) == (1000,)
    assert folded_order_of((), False, CPU_DRIVER) == ()


def test_steps_that_leave_cosines() -> None:
    """The last one has four words for each number: it has fewer points, where lanes share those of the one before."""

    def steps(points: int, part: DType = float32) -> tuple[int, ...]:
        return (*cosine_steps_of(points, part, CPU_DRIVER),)

    assert steps(512) == (512,)
    assert steps(1000) == (100, 10)  # of 125 points in each of eight lanes a driver compiles for seconds
    assert steps(2048) == (128, 16)
    assert steps(2048, float64) == (64, 32)
    assert steps(900) == (30, 30)
    assert steps(4410) == (10, 63, 7)
    assert steps(8192) == (8, 128, 8)
    assert steps(10000) == (10, 50, 20)  # lanes share 50 points
    assert cosine_steps_of(512, float32, GENERIC_GPU) == ()


@pytest.mark.parametrize(
    ("length", "kind"),
    [(48, 1), (49, 1), (48, 2), (48, 3), (4096, 2), (45, 2), (45, 3), (45, 4), (145, 4)],
)
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_gradients_and_batches_in_the_middle(name: str, length: int, kind: int) -> None:
    """Of 3·Σ v·F(2x)²: the transform is linear, and its matrix SciPy's."""
    x, v = (RANDOM.normal(size=(5, 3, length)).astype(np.float32) for _ in range(2))
    matrix = getattr(scipy.fft, name)(np.eye(length), kind)

    def loss(x: lx.Array, v: lx.Array) -> lx.Array:
        return 3 * lnp.sum(getattr(lsf, name)(2 * x, kind) ** 2 * v)

    found = np.asarray(lx.compile(lx.vmap(lx.grad(loss)))(x, v))
    expected = 24 * ((x.astype(np.float64) @ matrix) * v) @ matrix.T
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 * np.abs(expected).max())
