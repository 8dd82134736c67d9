"""Windows, convolutions by transforms and spectra of segments: against SciPy in float64, with gradients."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy import signal
from lavax.scipy.signal import windows
from tests.closeness import close

pytestmark = pytest.mark.usefixtures("reference_backend")

GENERATOR = np.random.default_rng(0)
LINE, SHORT = GENERATOR.normal(size=211).astype("f"), GENERATOR.normal(size=12).astype("f")
ROWS = GENERATOR.normal(size=(2, 90, 3)).astype("f")
COMPLEX = (GENERATOR.normal(size=(2, 64)) + 1j * GENERATOR.normal(size=(2, 64))).astype(np.complex64)

PARAMETERS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "exponential": ((), (None, 3.0)),
    "gaussian": ((2.5,),),
    "general_cosine": (((0.5, 0.3, 0.2),),),
    "general_gaussian": ((1.5, 2.5),),
    "general_hamming": ((0.6,),),
    "kaiser": ((8.6,),),
    "tukey": ((), (0.25,), (0.0,), (1.0,)),
}


@pytest.mark.parametrize("name", windows._SHAPES)
def test_windows(name: str) -> None:
    for count in (0, 1, 2, 7, 8, 33):
        for parameters in PARAMETERS.get(name, ((),)):
            for sym in (True, False):
                wanted = getattr(scipy.signal.windows, name)(count, *parameters, sym=sym)
                found = getattr(windows, name)(count, *parameters, sym=sym)
                np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("window", [*windows._OTHER_NAMES, ("tukey", 0.3), 6.0])
def test_windows_by_name(window: Any) -> None:
    name = windows._OTHER_NAMES.get(window, "")
    whole = (window, *PARAMETERS[name][0]) if PARAMETERS.get(name, ((),))[0] else window
    for fftbins in (True, False):
        wanted = scipy.signal.get_window(whole, 16, fftbins)
        np.testing.assert_allclose(np.asarray(signal.get_window(whole, 16, fftbins)), wanted, rtol=1e-6, atol=1e-7)


def scipys(name: str, *arguments: Any, **named: Any) -> Any:
    """SciPy's result in float64."""
    wide = [each.astype(np.result_type(each, np.float64)) if hasattr(each, "astype") else each for each in arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it takes shorter segments, or two sides
        return getattr(scipy.signal, name)(*wide, **named)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
def test_convolutions_by_transforms(name: str, mode: Any) -> None:
    function = getattr(signal, name)
    cases: list[tuple[np.ndarray, np.ndarray, Any]] = [
        (LINE, SHORT, None),
        (ROWS, ROWS[:, :5, :2], None),
        (ROWS, ROWS[:1, :5], 1),
        (COMPLEX, COMPLEX[:, :7], [1]),
        (LINE, SHORT[:1], None),
    ]
    for first, second, axes in cases:
        close(function(first, second, mode, axes), scipys(name, first, second, mode, axes))


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
def test_methods_of_convolutions(name: str, method: Any) -> None:
    function = getattr(signal, name)
    long = GENERATOR.normal(size=1400).astype("f")
    for first, second in ((LINE, SHORT), (long, long[:600]), (COMPLEX, COMPLEX[:, :5])):
        close(function(first, second, "full", method), scipys(name, first, second, "full", method))
    whole = np.arange(-20, 20), np.arange(7)
    found = np.asarray(function(*whole, "same", method))
    assert found.dtype.kind == "i"
    np.testing.assert_array_equal(found, getattr(scipy.signal, name)(*whole, "same"))


SPECTRA: dict[str, tuple[str, tuple[np.ndarray, ...], dict[str, Any]]] = {
    "welch": ("welch", (LINE,), {"fs": 10.0, "nperseg": 32}),
    "welch of a short signal": ("welch", (LINE,), {}),
    "welch along an axis": ("welch", (ROWS,), {"nperseg": 16, "noverlap": 5, "nfft": 25, "axis": 1}),
    "median": ("welch", (LINE,), {"nperseg": 32, "average": "median", "scaling": "spectrum"}),
    "linear trend": ("welch", (LINE,), {"nperseg": 40, "detrend": "linear", "window": ("kaiser", 5.0)}),
    "two sides": ("welch", (LINE,), {"nperseg": 32, "return_onesided": False}),
    "complex": ("welch", (COMPLEX,), {"nperseg": 16, "return_onesided": False}),
    "own window": ("welch", (LINE,), {"window": np.hanning(24).astype("f"), "detrend": False}),
    "csd": ("csd", (LINE, LINE[::-1].copy()), {"nperseg": 32, "fs": 3.0}),
    "csd of a shorter signal": ("csd", (LINE, LINE[5:150]), {"nperseg": 32}),
    "csd, median": ("csd", (LINE, LINE[::-1].copy()), {"nperseg": 30, "average": "median"}),
    "periodogram": ("periodogram", (LINE,), {"fs": 5.0}),
    "periodogram of a part": ("periodogram", (LINE,), {"nfft": 64, "window": "hann", "scaling": "spectrum"}),
    "periodogram of more points": ("periodogram", (ROWS,), {"nfft": 128, "axis": 1}),
    "spectrogram": ("spectrogram", (LINE,), {"nperseg": 32}),
    "complex spectrogram": ("spectrogram", (ROWS,), {"nperseg": 16, "mode": "complex", "axis": 1}),
    "magnitude": ("spectrogram", (LINE,), {"nperseg": 32, "mode": "magnitude", "fs": 4.0}),
    "stft": ("stft", (LINE,), {"nperseg": 32}),
    "stft, densities": ("stft", (LINE,), {"nperseg": 30, "noverlap": 20, "scaling": "psd", "fs": 2.0, "nfft": 64}),
    "stft of a mirrored signal": ("stft", (ROWS,), {"nperseg": 16, "boundary": "even", "axis": 1}),
    "stft of a turned signal": ("stft", (LINE,), {"nperseg": 16, "boundary": "odd", "detrend": "constant"}),
    "stft of a continued signal": ("stft", (LINE,), {"nperseg": 16, "boundary": "constant", "padded": False}),
    "stft of the signal alone": (
        "stft",
        (COMPLEX,),
        {"nperseg": 16, "boundary": None, "noverlap": 4, "return_onesided": False},
    ),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra(name: str) -> None:
    function, arguments, named = SPECTRA[name]
    found, wanted = getattr(signal, function)(*arguments, **named), scipys(function, *arguments, **named)
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        close(got, want)


@pytest.mark.parametrize("mode", ["angle", "phase"])
def test_phases(mode: str) -> None:
    """Of a tone, where they are well conditioned."""
    tone = np.sin(0.9 * np.arange(160)).astype("f")
    found = signal.spectrogram(tone, nperseg=32, mode=mode)[2]
    wanted = scipys("spectrogram", tone, nperseg=32, mode=mode)[2]
    strong = np.argmax(scipys("spectrogram", tone, nperseg=32)[2][:, 0])
    np.testing.assert_allclose(np.asarray(found)[strong], wanted[strong], atol=1e-4)


@pytest.mark.parametrize(
    "named",
    [
        {"nperseg": 32},
        {"nperseg": 31, "window": "hamming"},
        {"nperseg": 32, "noverlap": 24, "window": "blackman", "scaling": "psd", "fs": 7.0},
        {"nperseg": 16, "noverlap": 0, "window": "boxcar"},
    ],
    ids=str,
)
@pytest.mark.parametrize("array", ["line", "rows", "complex"])
def test_the_inverse_gives_the_signal_back(array: str, named: dict[str, Any]) -> None:
    x = {"line": LINE, "rows": np.moveaxis(ROWS, 1, -1), "complex": COMPLEX}[array]
    one = array != "complex"
    transform = signal.stft(x, return_onesided=one, **named)[2]
    inverse = {**named, "input_onesided": one}
    times, found = signal.istft(transform, **inverse)
    np.testing.assert_allclose(np.asarray(found)[..., : x.shape[-1]], x, atol=2e-5)
    wanted = scipys("istft", np.asarray(transform), **inverse)
    close(times, np.arange(found.shape[-1]) / named.get("fs", 1.0))  # SciPy's are as many as the first axis is long
    close(found, wanted[1])


def test_the_inverse_along_other_axes() -> None:
    transform = np.asarray(signal.stft(np.moveaxis(ROWS, 1, -1), nperseg=16)[2])  # [2, 3, 9, segments]
    moved = np.moveaxis(transform, (2, 3), (0, 1)).copy()
    for value, axes in ((moved, (1, 0)), (np.swapaxes(transform, 1, 3).copy(), (1, 2))):
        named = {"time_axis": axes[0], "freq_axis": axes[1]}
        close(signal.istft(value, nperseg=16, **named)[1], scipys("istft", value, nperseg=16, **named)[1])


def test_the_analytic_signal() -> None:
    for x, named in ((LINE, {}), (ROWS, {"axis": 1}), (LINE, {"N": 64}), (LINE[:10], {"N": 15})):
        close(signal.hilbert(x, **named), scipys("hilbert", x, **named))


DIFFERENTIABLE: dict[str, Callable[[Any], Any]] = {
    "fftconvolve": lambda x: signal.fftconvolve(x, lnp.cos(x[:5])),
    "oaconvolve": lambda x: signal.oaconvolve(x, lnp.cos(x[:3])),
    "correlate": lambda x: signal.correlate(x, lnp.sin(x[:5]), method="fft"),
    "welch": lambda x: signal.welch(x, nperseg=12)[1],
    "csd": lambda x: lnp.abs(signal.csd(x, lnp.cos(x), nperseg=12)[1]) ** 2,
    "spectrogram": lambda x: signal.spectrogram(x, nperseg=12)[2],
    "stft": lambda x: lnp.abs(signal.stft(x, nperseg=12)[2]) ** 2,
    "istft": lambda x: signal.istft(signal.stft(x, nperseg=12)[2] ** 2, nperseg=12)[1],
    "hilbert": lambda x: lnp.abs(signal.hilbert(x)) ** 2,
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_in_the_middle_of_a_graph(name: str) -> None:
    function, x = DIFFERENTIABLE[name], LINE[:40]
    weights = GENERATOR.normal(size=lx.eval_shape(function, x).shape).astype("f")

    def loss(x: Any) -> Any:
        return 0.7 * lnp.sum(weights * function(lnp.tanh(x)))

    direction = GENERATOR.normal(size=x.shape).astype("f")
    along = float(np.sum(np.asarray(lx.grad(loss)(x)) * direction))
    _, tangent = lx.jvp(loss, (x,), (direction,))
    step = 1e-2
    high, low = (float(loss(x + sign * step * direction)) for sign in (1, -1))
    size = np.linalg.norm(np.asarray(lx.grad(loss)(x))) * np.linalg.norm(direction)
    np.testing.assert_allclose(along, float(tangent), atol=1e-5 * size)
    np.testing.assert_allclose(along, (high - low) / (2 * step), atol=3e-3 * size)


def test_batches_and_programs() -> None:
    both = np.stack([LINE, LINE[::-1]])
    found = lx.vmap(lambda x: signal.stft(x, nperseg=32)[2])(both)
    close(found, scipys("stft", both, nperseg=32)[2])
    close(lx.compile(lambda x: signal.welch(x, nperseg=32)[1])(LINE), scipys("welch", LINE, nperseg=32)[1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: signal.get_window("hat", 8), ValueError, "there is no window 'hat'; there are barthann, "),
        (lambda: signal.get_window(("hann", 1), 8), TypeError, "the window 'hann' takes no parameters like \\(1,\\)"),
        (lambda: windows.hann(-1), lx.ShapeError, "-1 is not a number of points"),
        (lambda: signal.convolve(LINE, SHORT, method="fast"), ValueError, "method must be one of auto, direct, fft"),
        (lambda: signal.fftconvolve(LINE, SHORT, "none"), ValueError, "mode must be one of full, same, valid"),
        (lambda: signal.fftconvolve(ROWS, ROWS[:, :5, :2], axes=1), lx.ShapeError, "do not broadcast along axis 2"),
        (lambda: signal.welch(LINE, nperseg=8, noverlap=8), ValueError, "noverlap must be at least 0 and less than"),
        (lambda: signal.welch(LINE, nperseg=8, nfft=7), ValueError, "nfft must be at least nperseg 8, got 7"),
        (lambda: signal.welch(LINE, nperseg=0), ValueError, "nperseg must be at least 1, got 0"),
        (lambda: signal.welch(LINE, window=np.ones(8), nperseg=9), ValueError, "is not the length of the window, 8"),
        (lambda: signal.welch(LINE, window=np.ones(800)), lx.ShapeError, "no longer than the signal"),
        (lambda: signal.welch(LINE, scaling="power"), ValueError, "scaling must be one of density, spectrum"),
        (lambda: signal.welch(LINE, fs=0.0), ValueError, "fs must be positive, got 0.0"),
        (lambda: signal.istft(ROWS, fs=-1), ValueError, "fs must be positive, got -1"),
        (lambda: signal.spectrogram(LINE, mode="db"), ValueError, "mode must be one of psd, complex"),
        (lambda: signal.stft(LINE, nperseg=32, boundary="wrap"), ValueError, "boundary must be one of even, odd"),
        (lambda: signal.stft(np.zeros(0, "f")), lx.ShapeError, "takes signals with elements"),
        (lambda: signal.istft(LINE), lx.ShapeError, "takes arrays of two axes and more"),
        (lambda: signal.istft(ROWS, time_axis=1, freq_axis=1), lx.ShapeError, "time_axis and freq_axis must differ"),
        (lambda: signal.hilbert(COMPLEX), lx.ShapeError, "takes real signals"),
        (lambda: signal.hilbert(LINE, N=0), lx.ShapeError, "N must be at least 1, got 0"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_what_a_signal_decides_for_an_argument_is_warned_of() -> None:
    for call in (signal.stft, signal.welch, signal.spectrogram, lambda x, **named: signal.csd(x, x, **named)):
        with pytest.warns(UserWarning, match="the signal is complex, so it has frequencies of both signs"):
            assert call(COMPLEX, nperseg=32)[0].size == 32
        with pytest.warns(UserWarning, match="nperseg 300 is more than the 211 elements"):
            assert call(LINE, nperseg=300)[0].size == 106
        call(COMPLEX, nperseg=32, return_onesided=False)
    signal.welch(LINE)
    with pytest.warns(UserWarning, match="nperseg 256 is more than the 211 elements"):
        signal.stft(LINE)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("is_turned", [False, True])
def test_correlations_of_complex_matrices_whatever_is_the_larger_one(mode: Any, is_turned: bool) -> None:
    """SciPy conjugates the smaller one in "valid", which is not the second one always."""
    large, small = COMPLEX[:, :12].reshape(4, 6), COMPLEX[:, 20:23].reshape(2, 3)
    first, second = (small, large) if is_turned else (large, small)
    close(signal.correlate2d(first, second, mode), scipy.signal.correlate2d(first, second, mode))
    close(signal.correlate(first, second, mode), scipy.signal.correlate(first, second, mode))


@pytest.mark.parametrize("name", ["convolve", "correlate", "convolve2d", "correlate2d"])
def test_truth_values_are_joined(name: str) -> None:
    shape = (3, 7) if name.endswith("2d") else (21,)
    mask, small = (LINE[:21] > 0.5).reshape(shape), np.ones((2,) * len(shape), bool)
    found = getattr(signal, name)(mask, small)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, getattr(scipy.signal, name)(mask.astype(int), small.astype(int)) > 0)
