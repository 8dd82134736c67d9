"""Calls of Fourier transforms drawn by number: functions, shapes, axes, lengths, norms and dtypes; NumPy is the oracle.

`check` compares the value, the change along a direction, the gradient in the middle of a graph, and a batch along
drawn axes: by itself, under `scan` or under `checkpoint`.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax import lax

OF_ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OF_AXES = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
_OF_REAL, _TO_REAL = ("rfft", "ihfft", "rfft2", "rfftn"), ("irfft", "hfft", "irfft2", "irfftn")
_REAL = ("float16", "float32", "float64", "int8", "uint8", "int32", "uint32", "int64", "bool")
_COMPLEX = ("complex64", "complex128")
_NORMS = (None, "backward", "ortho", "forward")
# One step, several, odd ones, primes as products, as convolutions, and as convolutions of one number fewer.
_EXTENTS = (1, 2, 3, 5, 6, 7, 8, 12, 13, 16, 17, 31, 32, 37, 41, 64, 74, 97, 100, 127, 128, 131, 257, 262, 384)
_MOST = 20_000  # elements


@dataclass(frozen=True)
class Call:
    """A transform of `x`. `double`: in 64 bits. `batch`: axes of batches before and after."""

    number: int
    name: str
    settings: dict[str, Any]
    x: np.ndarray
    double: bool
    points: int  # of a transform
    batch: tuple[int, int]
    under: str

    def __str__(self) -> str:
        return f"{self.number}: {self.name} of {self.x.dtype}{list(self.x.shape)}, {self.settings}, {self.under}"

    def apply(self, x: Any) -> Any:
        return getattr(lnp.fft, self.name)(x, **self.settings)

    def expected(self, x: np.ndarray) -> np.ndarray:
        """By NumPy, in float64 and complex128."""
        wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
        return np.asarray(getattr(np.fft, self.name)(wide, **self.settings))


def _numbers(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype in _COMPLEX:
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    if dtype.startswith("float"):
        return random.normal(size=shape).astype(dtype)
    return random.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype)


def _shape(random: np.random.Generator, rank: int, axes: int) -> tuple[int, ...]:
    large = random.choice(rank, min(axes, rank), replace=False)
    extents = [int(random.choice(_EXTENTS if axis in large else (1, 2, 3, 5))) for axis in range(rank)]
    while np.prod(extents) > _MOST:
        extents[int(np.argmax(extents))] //= 8
    return tuple(extents)


def _length(random: np.random.Generator, extent: int) -> int:
    """The extent, or one to which it is cut or padded."""
    return int(max(1, random.choice([extent, extent + 1, extent - 1, extent // 2, extent + 7, 1])))


def _axes(random: np.random.Generator, name: str, rank: int) -> tuple[int, ...]:
    count = 2 if name.endswith("2") else int(random.integers(1, min(rank, 3) + 1))
    chosen = random.permutation(rank)[:count]
    return tuple(int(axis) - rank * int(random.integers(2)) for axis in chosen)


def drawn(number: int) -> Call:
    """The call of this number, the same on every run."""
    random = np.random.default_rng(number)
    name = str(random.choice(OF_ONE_AXIS + OF_AXES))
    single = name in OF_ONE_AXIS
    rank = int(random.integers(1, 4) if single else random.integers(2, 5))
    shape = _shape(random, rank, 1 if single else 2)
    axes = (int(random.integers(-rank, rank)),) if single else _axes(random, name, rank)
    lengths = [_length(random, shape[axis]) for axis in axes]
    given = bool(random.integers(2)) or (name in _TO_REAL and shape[axes[-1]] == 1)
    if not given:
        lengths = [shape[axis] for axis in axes]
        lengths[-1] = 2 * (lengths[-1] - 1) if name in _TO_REAL else lengths[-1]
    settings: dict[str, Any] = {"axis": axes[0]} if single else {"axes": axes}
    if given:
        settings |= {"n": lengths[0]} if single else {"s": tuple(lengths)}
    norm = _NORMS[random.integers(4)]
    dtype = str(random.choice(_REAL if name in _OF_REAL else _REAL[:4] + _COMPLEX))
    x = _numbers(random, dtype, shape)
    result = len(shape)
    batch = int(random.integers(-result - 1, result + 1)), int(random.integers(-result - 1, result + 1))
    under = str(random.choice(["vmap", "scan", "checkpoint", "compile"]))
    double = dtype in ("float64", "complex128")
    return Call(number, name, settings | {"norm": norm}, x, double, int(np.prod(lengths)), batch, under)


def _close(call: Call, what: str, found: Any, wanted: np.ndarray, factor: float = 1.0) -> None:
    """Below 2⁻²³·log₂ n of the norm, as docs/complex.md promises; 2⁻⁵² in 64 bits."""
    got, real = np.asarray(found), not np.iscomplexobj(wanted)
    wide, narrow = (np.float64, np.float32) if real else (np.complex128, np.complex64)
    assert got.shape == wanted.shape and got.dtype == (wide if call.double else narrow), f"{call}: {what}: {got.dtype}"
    unit = factor * (2.0**-52 if call.double else 2.0**-23) * np.log2(max(call.points, 4))
    error, size = np.linalg.norm((got - wanted).ravel()), np.linalg.norm(wanted.ravel())
    assert error <= unit * size + 1e-300, f"{call}: {what}: {error / (unit * size):.2f} of what is allowed"


def _batched(call: Call, rows: list[np.ndarray]) -> Any:
    first, last = call.batch
    if call.under == "scan":
        return lax.scan(lambda count, row: (count + 1, call.apply(row)), 0, np.stack(rows))[1]
    functions: dict[str, Callable[[Any], Any]] = {
        "vmap": lx.vmap(call.apply, in_axes=first, out_axes=last),
        "checkpoint": lx.vmap(lx.checkpoint(call.apply), in_axes=first, out_axes=last),
        "compile": lx.compile(lx.vmap(call.apply, in_axes=first, out_axes=last)),
    }
    return functions[call.under](np.stack(rows, first))


def _check_derivatives(call: Call, x: np.ndarray, wanted: np.ndarray) -> None:
    """Of 3·Re Σ v ⊙ F(2x), a linear function: its change along t is itself at t."""
    random = np.random.default_rng(call.number + 1)
    direction = _numbers(random, str(x.dtype), x.shape)
    weights = _numbers(random, "complex128" if call.double else "complex64", wanted.shape)
    _close(call, "jvp", lx.jvp(call.apply, (x,), (direction,))[1], call.expected(direction))
    gradient = np.asarray(lx.grad(lambda x: 3 * lnp.sum((weights * call.apply(2 * x)).real))(x))
    along = float(np.sum(gradient.astype(np.complex128) * direction).real)
    change = 6 * float(np.sum(weights * call.expected(direction)).real)
    size = float(np.linalg.norm(gradient.ravel()) * np.linalg.norm(direction.ravel()))
    assert gradient.dtype == x.dtype and abs(along - change) <= (1e-13 if call.double else 1e-5) * size, f"{call}: grad"
    second = lx.jvp(lx.grad(lambda x: lnp.sum(lnp.abs(call.apply(x)) ** 2)), (x,), (direction,))[1]
    twice = float(np.sum(np.asarray(second).astype(np.complex128) * direction).real)
    power = 2 * float(np.sum(np.abs(call.expected(direction)) ** 2))
    assert abs(twice - power) <= (1e-12 if call.double else 1e-5) * max(power, 1e-30), f"{call}: second derivative"


def check(call: Call) -> None:
    """Raises AssertionError, which names the call and what differs."""
    wanted = call.expected(call.x)
    with lx.enable_x64(call.double):
        _close(call, "value", call.apply(call.x), wanted)
        if call.x.dtype.kind not in "fc":
            return
        x = call.x.astype(np.float32) if call.x.dtype == np.float16 else call.x
        rows = [x, x[::-1] * 2]
        stack = partial(np.stack, axis=0 if call.under == "scan" else call.batch[1])
        _close(call, call.under, _batched(call, rows), stack([call.expected(row) for row in rows]))
        _check_derivatives(call, x, wanted)
