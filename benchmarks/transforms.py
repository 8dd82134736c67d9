"""Fourier transforms beside a copy, on CPU drivers SciPy's pocketfft, and where they can be imported JAX and cuFFT.

On a CPU driver times are those of all processors together, because other work on the machine does not change them, and
the bound is SciPy's. On a GPU it is the time of as many passes over memory as a transform of that length needs, at the
rate of a copy.
"""
from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from math import prod
from typing import Any

import numpy as np
import scipy.fft

import lavax as lx
import lavax.numpy as lnp
from benchmarks import figure
from benchmarks.figure import Figure, as_table

# The bounds: times SciPy's, and times the passes of a copy.
_OVER_SCIPY, _OVER_COPY = 3.0, 1 / 0.7
# Points of all lines of a transform together, on a CPU driver and on a GPU.
_POINTS = {"cpu": 1 << 20, "gpu": 1 << 24}
# The longest lines of one pass, and of two.
_ONE_PASS, _TWO_PASSES = 1 << 12, 1 << 22
_ROUNDS, _QUICK_ROUNDS, _IN_ROW, _FEW_IN_ROW = 5, 2, 3, 200
_CHECKED = 1 << 20  # points of the lines whose errors are measured
_FEW = 1 << 12  # numbers whose time is mostly that of a call


Call = Callable[..., Any]


@dataclass(frozen=True)
class Transform:
    """A function of numpy.fft, the shape that it takes, and whether this is real."""

    function: str
    shape: tuple[int, ...]
    is_real: bool = False
    axis: int | None = None  # None: the last one, or two

    @property
    def name(self) -> str:
        along = "" if self.axis is None else f", axis {self.axis}"
        return f"{self.function} of {' × '.join(map(str, self.shape))}{along}"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The extents that are transformed."""
        if self.axis is not None:
            return (self.shape[self.axis],)
        return self.shape if self.function.endswith("2") else self.shape[-1:]

    def of(self, module: Any) -> Call:
        """The function of a module."""
        function = getattr(module, self.function)
        return function if self.axis is None else partial(function, axis=self.axis)

    @property
    def passes(self) -> int:
        """Over memory, at least, on a GPU: one for each axis, two or three along a long one."""
        return sum(1 if n <= _ONE_PASS else 2 if n <= _TWO_PASSES else 3 for n in self.lengths)

    @property
    def nbytes(self) -> int:
        """Read and written in a pass: 8 bytes for a complex number, or for two real ones."""
        return 2 * prod(self.shape) * (4 if self.is_real else 8)

    def operand(self) -> np.ndarray:
        random = np.random.default_rng(5)
        if self.function == "irfft":
            half = (*self.shape[:-1], self.shape[-1] // 2 + 1)
            x = random.normal(size=half) + 1j * random.normal(size=half)
            x[..., [0, -1]] = x[..., [0, -1]].real  # as the spectrum of a real line is
            return x.astype(np.complex64)
        x = random.normal(size=self.shape).astype(np.float32)
        return x if self.is_real else (x + 1j * random.normal(size=self.shape)).astype(np.complex64)


def transforms(points: int) -> Sequence[Transform]:
    """Lengths that are powers of two, others of small factors, and primes: batches of `points` points."""

    def batched(function: str, length: int, is_real: bool = False) -> Transform:
        return Transform(function, (max(points // length, 1), length), is_real)

    side = 1 << (points.bit_length() - 1) // 2
    return (
        *(batched("fft", 1 << bits) for bits in (8, 10, 12, 14, 16, 18, 20)),
        *(batched("fft", length) for length in (360, 1000, 2187, 15625, 16807, 1000000)),
        *(batched("fft", length) for length in (127, 1009, 65537)),
        *(batched("rfft", length, True) for length in (1 << 8, 1 << 12, 1 << 16, 1000)),
        *(batched("irfft", length, True) for length in (1 << 12,)),
        Transform("fft2", (side, side)),
        *(Transform("fft", (n, points // n), axis=0) for n in (1000, 1024, 100000)),
        *(Transform("fft", (1, 1 << bits)) for bits in (8, 10, 12)),
    )


def report(only: Sequence[str] | None, quick: bool, show: Callable[[str], Any]) -> None:
    """Measures the transforms whose names match, and shows the figures of each as soon as it is done."""
    device = lx.default_device()
    kind = "cpu" if device.kind == "cpu" else "gpu"
    rate = _copy_rate()
    show(as_table([Figure("a copy", f"{rate / 1e9:.3g} GB/s")]))
    for transform in transforms(_POINTS[kind]):
        if not only or any(fnmatch(transform.name, pattern) for pattern in only):
            show(as_table(_figures(transform, kind, rate, quick)))


def _figures(transform: Transform, kind: str, rate: float, quick: bool) -> Sequence[Figure]:
    operand = transform.operand()
    calls = dict(_calls(transform, operand))
    if kind == "gpu":
        del calls["SciPy"]
    clock = time.process_time if kind == "cpu" else time.perf_counter
    in_row = _FEW_IN_ROW if prod(transform.shape) <= _FEW else _IN_ROW
    seconds = _timed(calls, _QUICK_ROUNDS if quick else _ROUNDS, in_row, clock)
    ours = seconds.pop("lavax")
    found = [Figure(transform.name, f"{1e3 * ours:.3g} ms, error {_error(transform, operand):.2g}")]
    if kind == "gpu":
        ratio = ours * rate / (transform.passes * transform.nbytes)
        found.append(figure.at_most(f"– over {transform.passes} passes of a copy", ratio, _OVER_COPY))
    else:
        found.append(figure.at_most("– over SciPy", ours / seconds["SciPy"], _OVER_SCIPY))
    return found + [Figure(f"– over {name}", f"{ours / theirs:.3g}") for name, theirs in seconds.items()]


def _error(transform: Transform, operand: np.ndarray) -> float:
    """The error over the norm of the result, in units of 2⁻²⁴·log₂ n: at most 2 are wanted.

    Of a transform along one axis it is that of the first lines.
    """
    if transform.lengths == transform.shape[-1:] and transform.axis is None:
        operand = operand[: max(_CHECKED // transform.shape[-1], 1)]
    wide = operand.astype(np.complex128 if np.iscomplexobj(operand) else np.float64)
    wanted = transform.of(np.fft)(wide)
    found = np.asarray(transform.of(lnp.fft)(operand))
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    return float(error * 2**24 / np.log2(max(transform.lengths)))


def _calls(transform: Transform, operand: np.ndarray) -> Mapping[str, tuple[Call, Callable[[Any], Any]]]:
    """For each library: a call, and how its result is waited for."""
    on_device = lnp.asarray(operand) + 0
    ours = lx.compile(transform.of(lnp.fft))
    scipys = transform.of(scipy.fft)
    found: dict[str, tuple[Call, Callable[[Any], Any]]] = {
        "lavax": (lambda: ours(on_device), lambda result: result.block_until_ready()),
        "SciPy": (lambda: scipys(operand), lambda result: result),
    }
    if prod(transform.shape) <= _FEW:
        found["lavax"] = (lambda: ours(on_device).block_until_ready(), lambda result: result)
        found["an empty command buffer"] = (_empty_call(), lambda result: result)
    for name, prepare in (("JAX", _of_jax), ("cuFFT", _of_torch)):
        try:
            found[name] = prepare(transform, operand)
        except ImportError:
            continue
    return found


def _empty_call() -> Call:
    """The least that any call takes: the driver's submission of nothing, waited for."""
    from benchmarks.bare_submit import bare_submit  # late: these open the device
    from lavax.backends.vulkan.device.device import get_device

    device = get_device()
    return bare_submit(device, device.queue.wait)


def _of_jax(transform: Transform, operand: np.ndarray) -> tuple[Call, Callable[[Any], Any]]:
    import jax
    import jax.numpy as jnp

    compiled, held = jax.jit(transform.of(jnp.fft)), jnp.asarray(operand)
    return lambda: compiled(held), lambda result: result.block_until_ready()


def _of_torch(transform: Transform, operand: np.ndarray) -> tuple[Call, Callable[[Any], Any]]:
    """PyTorch's on its GPU; ImportError without one."""
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch sees no GPU")
    function, held = getattr(torch.fft, transform.function), torch.from_numpy(operand).cuda()
    along = {} if transform.axis is None else {"dim": transform.axis}
    return lambda: function(held, **along), lambda result: torch.cuda.synchronize()


def _timed(
    calls: Mapping[str, tuple[Call, Callable[[Any], Any]]], rounds: int, in_row: int, clock: Callable[[], float]
) -> dict[str, float]:
    """The least seconds of a call among several in a row, in turn; first calls compile."""
    found = dict.fromkeys(calls, math.inf)
    for number in range(rounds + 1):
        for name, (call, wait) in calls.items():
            start = clock()
            for _ in range(in_row):
                result = call()
            wait(result)
            if number:
                found[name] = min(found[name], (clock() - start) / in_row)
    return found


def _copy_rate() -> float:
    from lavax.backends.vulkan.device.device import get_device  # late: these open the device
    from lavax.backends.vulkan.measure.limits import copy_rate

    return copy_rate(get_device())
