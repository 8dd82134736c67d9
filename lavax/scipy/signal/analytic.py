"""The analytic signal."""
from __future__ import annotations

import numpy as np

import lavax.numpy as lnp
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.scipy.signal.spectra import line_of
from lavax.tracer.values.value import Value


def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Value:
    """x + i · (Hilbert transform of x) along `axis`: the signal without its negative frequencies.

    `N`: the points of the transform, by default all. Raises ShapeError for complex signals, signals without elements
    and fewer than one point.
    """
    line, place = line_of("hilbert", x, axis)
    if line.type.dtype.is_complex:
        raise shape_error(f"scipy.signal.hilbert takes real signals, got {line.type}")
    points = line.shape[-1] if N is None else N
    if points < 1:
        raise shape_error(f"scipy.signal.hilbert: N must be at least 1, got {N}")
    weights = np.zeros(points, np.float32)
    weights[: (points + 1) // 2] = 2.0
    weights[0] = 1.0
    if points % 2 == 0:
        weights[points // 2] = 1.0
    return lnp.moveaxis(lnp.fft.ifft(lnp.fft.fft(line, points) * weights), -1, place)
