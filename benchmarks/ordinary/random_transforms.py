"""Transforms that nobody has listed, beside SciPy's: random functions, lengths, axes, dtypes and batches.

Run as `python -m benchmarks.ordinary.random_transforms SEED [COUNT] [--only PATTERN ...]` on a CPU driver. It prints
processor milliseconds and times SciPy's, as soon as each is measured, and at the end those above the bound, largest
first. A name that it prints, such as `rfft:float32:64x128:-1`, is a pattern that measures it alone, with the same seed
and count.
"""
from __future__ import annotations

import math
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

import numpy as np
import scipy.fft

import lavax as lx
import lavax.numpy as lnp
import lavax.scipy.fft

BOUND = 3.0  # times SciPy's
_LEAST, _MOST = 1 << 18, 1 << 20  # numbers of all lines
_LONGEST = 1_000_000
_ROUNDS, _SECONDS = 6, 0.012  # batches of calls, and how long one takes, at least
_SMALL_PRIMES = (2, 2, 2, 2, 3, 3, 5, 5, 7)
_LARGE_PRIMES = (11, 13, 17, 19, 37, 61, 113, 257, 1009)

# Functions, how often each is drawn, and whether they take real numbers (None: either).
_FUNCTIONS: dict[str, tuple[int, bool | None]] = {
    "fft": (4, None), "ifft": (3, None), "rfft": (5, True), "irfft": (5, False), "hfft": (1, False),
    "ihfft": (1, True), "fft2": (1, None), "ifft2": (1, None), "rfft2": (2, True), "irfft2": (2, False),
    "fftn": (1, None), "ifftn": (1, None),
    "rfftn": (2, True), "irfftn": (2, False), "dct2": (3, True), "dct3": (3, True), "dct4": (2, True),
    "dct1": (1, True), "dst2": (1, True), "dst3": (1, True), "dst4": (1, True), "dctn2": (1, True), "dctn3": (1, True),
}  # fmt: skip
# Those along several axes, of which they have so many.
_SEVERAL: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("fft2", "ifft2", "rfft2", "irfft2", "dctn2", "dctn3"), (2,)),
    **dict.fromkeys(("fftn", "ifftn", "rfftn", "irfftn"), (2, 3)),
}


@dataclass(frozen=True)
class RandomTransform:
    function: str
    dtype: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    length: int | None  # of the last axis, if it is not the array's own

    @property
    def name(self) -> str:
        tail = "" if self.length is None else f":n={self.length}"
        shape, axes = "x".join(map(str, self.shape)), ",".join(map(str, self.axes))
        return f"{self.function}:{self.dtype}:{shape}:{axes}{tail}"

    def of(self, fft: Any, cosines: Any) -> Callable[[Any], Any]:
        """The function of two modules, which may be one."""
        settings: dict[str, Any] = {}
        if self.function[:3] in ("dct", "dst"):
            function, settings["type"] = getattr(cosines, self.function[:-1]), int(self.function[-1])
        else:
            function = getattr(fft, self.function)
        if self.function in _SEVERAL:
            settings["axes"] = self.axes
            if self.length is not None:
                settings["s"] = [*(self.shape[axis] for axis in self.axes[:-1]), self.length]
        else:
            settings |= {"axis": self.axes[0], "n": self.length}
        return lambda x: function(x, **settings)

    def operand(self) -> np.ndarray:
        random = np.random.default_rng(5)
        x = random.standard_normal(self.shape)
        if self.dtype.startswith("c"):
            x = x + 1j * random.standard_normal(self.shape)
        return x.astype(self.dtype)


def random_transforms(seed: int, count: int) -> Iterator[RandomTransform]:
    """So many different transforms of 2¹⁸ to 2²⁰ numbers."""
    random = np.random.default_rng(seed)
    names = [name for name, (often, _) in _FUNCTIONS.items() for _ in range(often)]
    seen: set[str] = set()
    while len(seen) < count:
        found = _random_transform(random, str(random.choice(names)))
        if found.name not in seen:
            seen.add(found.name)
            yield found


def _random_transform(random: np.random.Generator, function: str) -> RandomTransform:
    wide = bool(random.random() < 0.35)
    is_real = _FUNCTIONS[function][1]
    real = bool(random.random() < 0.3) if is_real is None else is_real
    dtype = ("float64" if wide else "float32") if real else ("complex128" if wide else "complex64")
    numbers = 2 ** random.uniform(math.log2(_LEAST), math.log2(_MOST))
    several = function in _SEVERAL
    count = int(random.choice(_SEVERAL.get(function, (1,))))
    lengths = [_length(random, numbers ** (1 / count) if several else None, numbers) for _ in range(count)]
    batch = max(1, round(numbers / math.prod(lengths)))
    shape, axes = _placed(random, lengths, batch)
    if is_real is False:  # half a spectrum of that length
        place = axes[-1]
        shape = tuple(extent // 2 + 1 if axis == place else extent for axis, extent in enumerate(shape))
    length = lengths[-1] if is_real is False else None
    if not several and length is None and random.random() < 0.1:
        length = max(2, int(lengths[0] * random.uniform(0.6, 1.5)))
    return RandomTransform(function, dtype, shape, axes, length)


def _placed(
    random: np.random.Generator, lengths: Sequence[int], batch: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A shape that has the lengths among its extents, and their axes."""
    behind = 1
    if batch > 1 and random.random() < 0.4:
        behind = int(random.choice([2, 3, 4, 5, 7, 8, 16, 60, batch]))
        behind = min(behind, batch)
    ahead = max(1, batch // behind)
    shape = [*([ahead] if ahead > 1 else []), *lengths, *([behind] if behind > 1 else [])]
    first = int(ahead > 1)
    return tuple(shape), tuple(range(first, first + len(lengths)))


def _length(random: np.random.Generator, about: float | None, most: float) -> int:
    """A length of small primes, of a few large ones as well, or any."""
    most = min(most, _LONGEST)
    wanted = math.exp(random.uniform(math.log(2), math.log(most))) if about is None else about * random.uniform(0.4, 2)
    kind = random.random()
    if kind < 0.1:
        return max(2, int(wanted))
    if kind < 0.3:
        return max(2, 1 << round(math.log2(wanted)))
    found = int(random.choice(_LARGE_PRIMES)) if kind > 0.85 and wanted > 64 else 1
    found = found if found <= wanted else 1
    while True:
        prime = int(random.choice(_SMALL_PRIMES))
        if found * prime > wanted:
            return max(2, found)
        found *= prime


def measured(transform: RandomTransform) -> tuple[float, float, float]:
    """Processor seconds of a call and of SciPy's, in the least of several batches in turn, and of the first call."""
    x = transform.operand()
    on_device = lnp.asarray(x) + 0
    ours, scipys = lx.compile(transform.of(lnp.fft, lavax.scipy.fft)), transform.of(scipy.fft, scipy.fft)
    start = time.process_time()
    ours(on_device).block_until_ready()
    first = time.process_time() - start

    def batch_of_ours(count: int) -> None:
        for _ in range(count):
            result = ours(on_device)
        result.block_until_ready()

    def batch_of_scipys(count: int) -> None:
        for _ in range(count):
            scipys(x)

    batches, counts = (batch_of_ours, batch_of_scipys), []
    for batch in batches:
        batch(1)
        start = time.perf_counter()
        batch(1)
        counts.append(max(1, int(_SECONDS / (time.perf_counter() - start))))
    least = [math.inf, math.inf]
    for _ in range(_ROUNDS):
        for number, (batch, count) in enumerate(zip(batches, counts, strict=True)):
            start = time.process_time()
            batch(count)
            least[number] = min(least[number], (time.process_time() - start) / count)
    return least[0], least[1], first


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=121)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    above = []
    for transform in random_transforms(options.seed, options.count):
        if options.only and not any(fnmatch(transform.name, pattern) for pattern in options.only):
            continue
        ours, scipys, first = measured(transform)
        row = f"{ours / scipys:5.2f} {1e3 * ours:8.2f} ms, first call {first:5.2f} s  {transform.name}"
        print(row, flush=True)
        if ours > BOUND * scipys:
            above.append((ours / scipys, row))
    print(f"\nabove {BOUND}: {len(above)}", *(row for _, row in sorted(above, reverse=True)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
