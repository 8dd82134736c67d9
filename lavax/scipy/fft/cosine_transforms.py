"""Discrete cosine and sine transforms of types 1 to 4 and their inverses, as in scipy.fft."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, cast, own
from lavax.numpy.elementwise.arithmetic import multiply
from lavax.numpy.fft.arguments import Axes, fitted, lengths_and_axes, one_length
from lavax.scipy.fft.trigonometric import COSINES, INVERSE, SINES, Transform, cosine_2, sine_2
from lavax.tracer import bind
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

_SETTINGS = ("type", "n", "s", "axis", "axes", "norm", "orthogonalize")
_NORMS = (None, "backward", "ortho", "forward")
_ROOT = math.sqrt(2)


@dataclass(frozen=True)
class Family:
    """Cosine or sine transforms: by type; that of type 2 with its result scaled, and an end of it once more; what n of
    type 1 is less than half the period; the ends that are scaled so that the transform is orthogonal, before types 1
    and 3 and after type 1."""

    transforms: Mapping[int, Transform]
    scaled: Callable[[Any, float, float], Any]
    period: int
    ends: Mapping[int, tuple[int, ...]]


_COSINE = Family(COSINES, cosine_2, -1, {1: (0, -1), 3: (0,), 4: ()})
_SINE = Family(SINES, sine_2, 1, {1: (), 3: (-1,), 4: ()})


def _scaled_ends(x: Any, ends: Sequence[int], by: float) -> Any:
    for end in ends:
        x = x.at[..., end].multiply(lnp.asarray(by, dtype=x.dtype))
    return x


@dataclass(frozen=True)
class _Call:
    """A transform as users ask for it."""

    name: str
    family: Family
    kind: int
    norm: str | None
    orthogonalize: bool | None
    back: bool  # whether it is an inverse

    @property
    def computed(self) -> int:
        """The type of the transform that is computed."""
        return INVERSE[self.kind] if self.back else self.kind

    def scale(self, x: Any, axis: int) -> float:
        """What the norm multiplies a transform along that axis by."""
        period = 2 * (x.shape[axis] + (self.family.period if self.computed == 1 else 0))
        if not period:
            raise shape_error(f"{self.name}: type 1 takes at least two numbers, and {x.type} has one along axis {axis}")
        power = {"ortho": -0.5, "forward": 0.0 if self.back else -1.0}.get(self.norm or "", -1.0 if self.back else 0.0)
        return math.pow(period, power)

    def along(self, x: Any, axis: int) -> Any:
        if self.computed == 4 and x.shape[axis] % 2 == 0:
            return bind("trigonometric_4", x, axis=axis, sines=self.family is _SINE)
        line, is_orthogonal = lnp.moveaxis(x, axis, -1), self.orthogonalize
        is_orthogonal = self.norm == "ortho" if is_orthogonal is None else is_orthogonal
        if self.computed == 2:
            found = self.family.scaled(line, self.scale(x, axis), 1 / _ROOT if is_orthogonal else 1.0)
        else:
            ends = self.family.ends[self.computed] if is_orthogonal else ()
            found = self.family.transforms[self.computed](_scaled_ends(line, ends, _ROOT))
            found = _scaled_ends(found, ends if self.computed == 1 else (), 1 / _ROOT)
        return lnp.moveaxis(found, -1, axis)

    def of(self, x: ArrayLike, s: Axes, axes: Axes) -> Value:
        if self.kind not in INVERSE or self.norm not in _NORMS:
            raise ValueError(
                f"{self.name}: type must be 1, 2, 3 or 4, and norm None, 'backward', 'ortho' or 'forward', got "
                f"{self.kind!r} and {self.norm!r}"
            )
        value = _as_wide(x)
        if value.type.dtype.is_complex:
            parts: Any = (self.of(bind(part, value), s, axes) for part in ("real", "imag"))
            return bind("complex", *parts)
        lengths, chosen = lengths_and_axes(self.name, value.type, s, axes)
        for axis, length in zip(chosen, lengths, strict=True):
            value = fitted(self.name, value, axis, length)
        if self.computed != 2:  # whose tables have the scale
            value = multiply(value, math.prod(self.scale(value, axis) for axis in chosen))
        for axis in chosen:
            value = self.along(value, axis)
        return value if chosen else own(value)


def _as_wide(x: ArrayLike) -> Value:
    """Numbers of 16 bits as float32, as Fourier transforms take them."""
    value = as_floating(x)
    return cast(value, float32) if value.type.dtype.bits < 32 else value


@one_program(*_SETTINGS)
def dct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    orthogonalize: bool | None = None,
) -> Value:
    """2·Σ x[j]·cos(πk(2j + 1)/2n) for k from 0 to n − 1 along `axis`, cut or padded with zeros to `n`.

    That is type 2; types 1, 3 and 4 are SciPy's. `norm` is as in lavax.numpy.fft, for a period of 2n numbers. Both
    parts of complex numbers are transformed. With `orthogonalize`, by default if `norm` is "ortho", the ends of the
    line are scaled so that the transform is orthogonal.

    Raises ValueError for another type or norm, ShapeError for a length below 1.
    """
    return _Call("dct", _COSINE, type, norm, orthogonalize, False).of(x, one_length("dct", n), (axis,))


@one_program(*_SETTINGS)
def idct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    orthogonalize: bool | None = None,
) -> Value:
    """The inverse of `dct`; arguments and errors as there."""
    return _Call("idct", _COSINE, type, norm, orthogonalize, True).of(x, one_length("idct", n), (axis,))


@one_program(*_SETTINGS)
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Axes = None,
    axes: Axes = None,
    norm: str | None = None,
    orthogonalize: bool | None = None,
) -> Value:
    """`dct` along several axes, by default all, each cut or padded to its length in `s`."""
    return _Call("dctn", _COSINE, type, norm, orthogonalize, False).of(x, s, axes)


@one_program(*_SETTINGS)
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Axes = None,
    axes: Axes = None,
    norm: str | None = None,
    orthogonalize: bool | None = None,
) -> Value:
    """The inverse of `dctn`."""
    return _Call("idctn", _COSINE, type, norm, orthogonalize, True).of(x, s, axes)


@one_program(*_SETTINGS)
def dst(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    orthogonalize: bool | None = None,
) -> Value:
    """2·Σ x[j]·sin(π(k + 1)(2j + 1)/2n) for k from 0 to n − 1 along `axis`, cut or padded with zeros to `n`.

    That is type 2; types 1, 3 and 4 are SciPy's. `norm` is as in lavax.numpy.fft, for a period of 2n numbers. Both
    parts of complex numbers are transformed. With `orthogonalize`, by default if `norm` is "ortho", the ends of the
    line are scaled so that the transform is orthogonal.

    Raises ValueError for another type or norm, ShapeError for a length below 1.
    """
    return _Call("dst", _SINE, type, norm, orthogonalize, False).of(x, one_length("dst", n), (axis,))


@one_program(*_SETTINGS)
def idst(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    orthogonalize: bool | None = None,
) -> Value:
    """The inverse of `dst`; arguments and errors as there."""
    return _Call("idst", _SINE, type, norm, orthogonalize, True).of(x, one_length("idst", n), (axis,))


@one_program(*_SETTINGS)
def dstn(
    x: ArrayLike,
    type: int = 2,
    s: Axes = None,
    axes: Axes = None,
    norm: str | None = None,
    orthogonalize: bool | None = None,
) -> Value:
    """`dst` along several axes, by default all, each cut or padded to its length in `s`."""
    return _Call("dstn", _SINE, type, norm, orthogonalize, False).of(x, s, axes)


@one_program(*_SETTINGS)
def idstn(
    x: ArrayLike,
    type: int = 2,
    s: Axes = None,
    axes: Axes = None,
    norm: str | None = None,
    orthogonalize: bool | None = None,
) -> Value:
    """The inverse of `dstn`."""
    return _Call("idstn", _SINE, type, norm, orthogonalize, True).of(x, s, axes)
