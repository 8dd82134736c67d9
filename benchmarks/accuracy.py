"""The accuracy of the elementwise functions: `make accuracy`, or `python -m benchmarks.accuracy`.

Each function runs on the present device, on a million float32 arguments (random bits, and its usual range) and on all
special values, and is compared with NumPy or SciPy in float64. Errors are in units in the last place of the correctly
rounded result; a wrong infinity, NaN or sign of zero is an infinite error. A device may treat denormal arguments and
results as zero.
"""
from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from benchmarks.accuracy_functions import FUNCTIONS, SMALLEST_NORMAL, Function
from benchmarks.special_references import Doubles

Floats = np.ndarray[Any, np.dtype[np.float32]]

OVERFLOW = 2.0**128
SAMPLES = 1_000_000


def units(found: Floats, exact: Doubles, size: Doubles | None = None) -> Doubles:
    """Distance of `found` from `exact` in units in the last place of float32; infinite if a special value differs.

    2^128 stands for infinity beside finite numbers. Results below the normal numbers may be flushed to zero. Exact
    zeros must have the right sign. The unit is that of `exact`, or of `size` if this is given and greater.
    """
    with np.errstate(all="ignore"):
        value: Doubles = found.astype(np.float64)
        scale = np.abs(exact) if size is None else np.fmax(np.abs(exact), size)
        exponents = np.frexp(np.clip(scale, SMALLEST_NORMAL, OVERFLOW / 2))[1] - 1
        distance = np.abs(np.clip(value, -OVERFLOW, OVERFLOW) - np.clip(exact, -OVERFLOW, OVERFLOW))
        result: Doubles = np.ldexp(distance, 23 - exponents)
    result[(np.abs(exact) < SMALLEST_NORMAL) & (value == 0)] = 0
    special_value = np.isnan(exact) | np.isinf(exact)
    if size is None:
        special_value |= exact == 0
    same = (np.isnan(exact) & np.isnan(value)) | ((value == exact) & (np.signbit(value) == np.signbit(exact)))
    result[special_value] = np.where(same[special_value], 0, np.inf)
    result[np.isnan(value) & ~np.isnan(exact)] = np.inf
    return result


def flushed(values: Floats) -> Floats:
    """Denormal numbers replaced by zeros of their sign."""
    return np.where(np.abs(values) < np.float32(SMALLEST_NORMAL), np.copysign(np.float32(0), values), values)


def edges() -> Floats:
    """Special values, thresholds of the functions, and the neighbours of all of them."""
    values = [0.0, 1.0, 0.5, 2.0, 3.0, 0.25, 0.75, np.inf, 3.4028235e38, SMALLEST_NORMAL, 1e-45, 1e-40, 2.0**23 + 0.5]
    values += [2.0**24, 2.0**31, 88.72284, 87.33655, 103.97, 128.0, 149.0, 150.0, 89.41599, np.pi, np.pi / 2]
    values += [np.pi / 4, np.sqrt(0.5), np.sqrt(2), 1e10, 1e22, 2.0**126, 5e-39, 10.05, 5.0, 8.0]
    both = np.array(values + [-value for value in values], np.float32)
    with np.errstate(over="ignore"):
        near = [np.nextafter(both, np.float32(end)) for end in (-np.inf, np.inf)]
    return np.concatenate([both, *near, np.array([np.nan, -np.nan], np.float32)])


@dataclass(frozen=True)
class Worst:
    """The largest error found, and where."""

    units: float
    arguments: tuple[float, ...]


def arguments_of(function: Function, count: int) -> list[Floats]:
    """`count` arguments or pairs of them, and all special values."""
    random = np.random.default_rng(11)
    arity = len(function.ranges)
    special_values = [grid.ravel() for grid in np.meshgrid(*[edges()] * arity)]
    half = count // 2
    bits = [random.integers(0, 2**32, half, dtype=np.uint32).view(np.float32) for _ in range(arity)]
    inside = [random.uniform(low, high, count - half).astype(np.float32) for low, high in function.ranges]
    columns = [np.concatenate(parts) for parts in zip(special_values, bits, inside, strict=True)]
    low, high = function.within
    kept = np.logical_and.reduce([~((column < low) | (column > high)) for column in columns])
    return [column[kept] for column in columns]


def _errors(function: Function, arguments: Sequence[Floats], found: Floats, signs: bool = True) -> Doubles:
    """Units in the last place; without `signs`, zeros of both signs are equal."""
    with np.errstate(all="ignore"):
        doubles = [argument.astype(np.float64) for argument in arguments]
        exact = np.asarray(function.exact(*doubles), np.float64)
        size = None if function.size is None else np.asarray(function.size(*doubles), np.float64)
    return units(found, exact, size) if signs else units(found + np.float32(0), exact + 0.0, size)


def measure(function: Function, count: int = SAMPLES) -> Worst:
    """The largest error of the function on the device."""
    arguments = arguments_of(function, count)
    found = np.asarray(function.ours(*map(lnp.asarray, arguments))).astype(np.float32)
    best = _errors(function, arguments, found)
    denormal = np.logical_or.reduce([np.abs(argument) < np.float32(SMALLEST_NORMAL) for argument in arguments])
    for flush in product((False, True), repeat=len(arguments)):
        chosen = [argument[denormal] for argument in arguments]
        chosen = [flushed(one) if flushes else one for one, flushes in zip(chosen, flush, strict=True)]
        best[denormal] = np.minimum(best[denormal], _errors(function, chosen, found[denormal]))
    # Functions that compare denormal arguments as zeros may return either, or a zero of either sign.
    chosen = [flushed(argument[denormal]) for argument in arguments]
    best[denormal] = np.minimum(best[denormal], _errors(function, chosen, flushed(found[denormal]), signs=False))
    worst = int(np.argmax(best))
    return Worst(float(best[worst]), tuple(float(argument[worst]) for argument in arguments))


def rows(functions: Sequence[Function], count: int) -> Iterator[str]:
    """The lines of the Markdown table."""
    yield "| function | worst error found | where | bound | |"
    yield "|---|---|---|---|---|"
    for function in functions:
        worst = measure(function, count)
        where = ", ".join(f"{argument:.9g}" for argument in worst.arguments)
        met = "met" if worst.units <= function.bound else "missed"
        yield f"| {function.name} | {worst.units:.2f} | {where} | {function.bound:g} | {met} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions to measure; all if none is given")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="random arguments a function")
    options = parser.parse_args()
    chosen = [function for function in FUNCTIONS if not options.names or function.name in options.names]
    device = lx.default_device()
    print(f"{device.name}, {device.driver}; Python {platform.python_version()}; {options.samples} samples a function\n")
    for row in rows(chosen, options.samples):
        print(row, flush=True)


if __name__ == "__main__":
    main()
