"""Windows that taper a signal, under the names of scipy.signal.windows.

They are constants of a program: computed in float64 from plain numbers, kept in the dtype of Python's floats. Formulas:
F. J. Harris, "On the Use of Windows for Harmonic Analysis with the Discrete Fourier Transform" (1978).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import lavax.numpy as lnp
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.tracer.values.value import Value

Window: TypeAlias = str | float | tuple[Any, ...]
Points: TypeAlias = npt.NDArray[np.floating[Any]]

# The weights of cosines of 0, 1, 2, … times the angle.
_COSINES = {
    "blackman": (0.42, 0.50, 0.08),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "hamming": (0.54, 0.46),
    "hann": (0.5, 0.5),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
}


def _places(count: int) -> Points:
    """From -1 to 1 at equal distances; 0 for one point."""
    return (2.0 * np.arange(count) - (count - 1)) / max(count - 1, 1)


def _from_middle(count: int) -> Points:
    return np.arange(count) - (count - 1) / 2


def _general_cosine(count: int, a: Sequence[float]) -> Points:
    turns = np.multiply.outer(np.arange(len(a)), np.pi * _places(count))
    return np.asarray(np.asarray(a) @ np.cos(turns))


def _named_cosine(name: str, count: int) -> Points:
    return _general_cosine(count, _COSINES[name])


def _barthann(count: int) -> Points:
    x = np.abs(_places(count)) / 2
    return 0.62 - 0.48 * x + 0.38 * np.cos(2 * np.pi * x)


def _bohman(count: int) -> Points:
    x = np.abs(_places(count))
    inner = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    return np.where(x < 1, inner, 0.0)


def _exponential(count: int, center: float | None = None, tau: float = 1.0) -> Points:
    middle = (count - 1) / 2 if center is None else center
    points: Points = np.exp(-np.abs(np.arange(count) - middle) / tau)
    return points


def _parzen(count: int) -> Points:
    x = 2 * np.abs(_from_middle(count)) / count
    return np.where(x <= 0.5, 1 - 6 * x**2 * (1 - x), 2 * (1 - x) ** 3)


def _triang(count: int) -> Points:
    return 1 - np.abs(_from_middle(count)) / ((count + count % 2) / 2)


def _tukey(count: int, alpha: float = 0.5) -> Points:
    if alpha <= 0:
        return np.ones(count)
    slope = (np.abs(_places(count)) - 1 + min(alpha, 1.0)) / min(alpha, 1.0)
    return 0.5 * (1 + np.cos(np.pi * np.maximum(slope, 0)))


def _kaiser(count: int, beta: float) -> Points:
    return np.asarray(np.i0(beta * np.sqrt(np.maximum(1 - _places(count) ** 2, 0))) / np.i0(beta))


# What a name computes: the number of points, then the parameters of the window.
_SHAPES: dict[str, Callable[..., Points]] = {
    **{name: partial(_named_cosine, name) for name in _COSINES},
    "barthann": _barthann,
    "bartlett": lambda count: 1 - np.abs(_places(count)),
    "bohman": _bohman,
    "boxcar": np.ones,
    "cosine": lambda count: np.sin(np.pi / count * (np.arange(count) + 0.5)),
    "exponential": _exponential,
    "gaussian": lambda count, std: np.exp(-((_from_middle(count) / std) ** 2) / 2),
    "general_cosine": _general_cosine,
    "general_gaussian": lambda count, p, sig: np.exp(-0.5 * np.abs(_from_middle(count) / sig) ** (2 * p)),
    "general_hamming": lambda count, alpha: _general_cosine(count, (alpha, 1 - alpha)),
    "kaiser": _kaiser,
    "lanczos": lambda count: np.sinc(_places(count)),
    "parzen": _parzen,
    "triang": _triang,
    "tukey": _tukey,
}
# Other names that SciPy knows the same windows by.
_OTHER_NAMES = {
    **dict.fromkeys(("box", "ones", "rect", "rectangular"), "boxcar"),
    **dict.fromkeys(("blk", "black"), "blackman"),
    **dict.fromkeys(("blackharr", "bkh"), "blackmanharris"),
    **dict.fromkeys(("bart", "brt"), "bartlett"),
    **dict.fromkeys(("hamm", "ham"), "hamming"),
    **dict.fromkeys(("gauss", "gss"), "gaussian"),
    **dict.fromkeys(("tri", "triangle"), "triang"),
    **dict.fromkeys(("flat", "flt"), "flattop"),
    "han": "hann",
    "ksr": "kaiser",
    "tuk": "tukey",
    "bth": "barthann",
    "bman": "bohman",
    "par": "parzen",
    "halfcosine": "cosine",
    "poisson": "exponential",
    "sinc": "lanczos",
}


def window_points(name: str, count: int, *parameters: Any, sym: bool = True, **named: Any) -> Points:
    """A window in float64; without `sym` the first `count` of `count` + 1 points, as a periodic signal wants it.

    Raises ValueError for an unknown name, ShapeError for a negative number of points, TypeError for parameters that the
    window does not have.
    """
    shape = _SHAPES.get(_OTHER_NAMES.get(name, name))
    if shape is None:
        raise ValueError(f"there is no window {name!r}; there are {', '.join(sorted(_SHAPES))}")
    number = whole_number("the number of points", count)
    if number < 0:
        raise shape_error(f"{name}: {number} is not a number of points")
    if number <= 1:
        return np.ones(number)
    try:
        points = shape(number + (not sym), *parameters, **named)
    except TypeError:
        given = parameters if not named else (*parameters, named)
        raise TypeError(f"the window {name!r} takes no parameters like {given}") from None
    return points[:number]


def _named(name: str, about: str) -> Callable[..., Value]:
    def window(M: int, *parameters: Any, sym: bool = True, **named: Any) -> Value:
        return lnp.asarray(window_points(name, M, *parameters, sym=sym, **named), dtype=float)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = (
        f"`M` points of {about}. `sym`: ends alike, for filters; else one period, for spectra.\n\n"
        "    Raises ShapeError for a negative number of points, TypeError for other parameters.\n    "
    )
    return window


barthann = _named("barthann", "the sum of Bartlett's and Hann's windows")
bartlett = _named("bartlett", "a triangle with zeros at its ends")
blackman = _named("blackman", "0.42 + 0.5 cos(pi t) + 0.08 cos(2 pi t), t from -1 to 1")
blackmanharris = _named("blackmanharris", "the sum of four cosines with the lowest side lobes")
bohman = _named("bohman", "the convolution of a cosine's half wave with itself")
boxcar = _named("boxcar", "ones")
cosine = _named("cosine", "half a wave of a sine")
exponential = _named("exponential", "exp(-|n - center| / tau), `center` None (the middle) and `tau` 1 by default")
flattop = _named("flattop", "the sum of five cosines that measures heights")
gaussian = _named("gaussian", "exp(-(n / std)^2 / 2), n from the middle; takes `std`")
general_cosine = _named("general_cosine", "a sum of cosines; takes their weights")
general_gaussian = _named("general_gaussian", "exp(-|n / sig|^(2 p) / 2), n from the middle; takes `p` and `sig`")
general_hamming = _named("general_hamming", "alpha + (1 - alpha) cos(pi t); takes `alpha`")
hamming = _named("hamming", "0.54 + 0.46 cos(pi t), t from -1 to 1")
hann = _named("hann", "0.5 + 0.5 cos(pi t), t from -1 to 1")
kaiser = _named("kaiser", "i0(beta sqrt(1 - t^2)) / i0(beta), t from -1 to 1; takes `beta`")
lanczos = _named("lanczos", "sin(pi t) / (pi t), t from -1 to 1")
nuttall = _named("nuttall", "the sum of four cosines after Nuttall")
parzen = _named("parzen", "the convolution of four boxes")
triang = _named("triang", "a triangle without zeros at its ends")
tukey = _named("tukey", "ones with ends like Hann's window; takes their share `alpha`, 0.5 by default")


def named_window(window: Window, Nx: int, fftbins: bool = True) -> Points:
    """The points of `get_window` in float64."""
    if isinstance(window, (int, float)) and not isinstance(window, bool):
        return window_points("kaiser", Nx, float(window), sym=not fftbins)
    if isinstance(window, str):
        return window_points(window, Nx, sym=not fftbins)
    if not isinstance(window, tuple) or not window or not isinstance(window[0], str):
        raise ValueError(f"a window is a name, a tuple of a name and parameters, or Kaiser's beta, got {window!r}")
    return window_points(window[0], Nx, *window[1:], sym=not fftbins)


def get_window(window: Window, Nx: int, fftbins: bool = True) -> Value:
    """`Nx` points of a window: of a name, of (name, parameters …), or Kaiser's of a number `beta`.

    `fftbins`: one period, for spectra; else with ends alike, for filters. Raises ValueError for an unknown window,
    TypeError for parameters that it does not have.
    """
    return lnp.asarray(named_window(window, Nx, fftbins), dtype=float)
