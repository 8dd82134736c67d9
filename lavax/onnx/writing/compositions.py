"""Operations that ONNX has no operator for, as functions of those that it has: a table, one entry per operation.

Each function takes arrays and the node's attributes. It is traced for the types of the node's operands.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import lax
from lavax.ir.graph import Node
from lavax.onnx.writing import matrix_compositions

Composition = Callable[..., Any]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry(k0: Any, k1: Any, first: Any, second: Any, word: int = 0) -> Any:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011)."""
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    first, second = first + k0, second + k1
    for injection in range(5):
        for rotation in _ROTATIONS[injection % 2]:
            first = first + second
            second = ((second << np.uint32(rotation)) | (second >> np.uint32(32 - rotation))) ^ first
        first = first + schedule[(injection + 1) % 3]
        second = second + schedule[(injection + 2) % 3] + np.uint32(injection + 1)
    return (first, second, first ^ second)[word]


# The bits of an exponent, and the shifts that each stands for: no float32 holds the power of two of the largest.
_SHIFTS = ((128, (64, 64)), *((bit, (bit,)) for bit in (64, 32, 16, 8, 4, 2, 1)))


def _float_of_bits(bits: Any) -> Any:
    """The float32 with these bits: the mantissa times powers of two, each of which is exact."""
    exponent, fraction = (bits >> np.uint32(23)) & np.uint32(255), bits & np.uint32(0x7FFFFF)
    is_normal = exponent > 0
    mantissa = fraction + is_normal.astype("uint32") * np.uint32(1 << 23)
    scale = (exponent - is_normal.astype("uint32")).astype("int32")
    value = mantissa.astype("float32") * np.float32(2.0**-75) * np.float32(2.0**-74)
    for bit, shifts in _SHIFTS:
        is_set = (scale & bit) != 0
        for shift in shifts:
            value = lnp.where(is_set, value * np.float32(2.0**shift), value)
    special = lnp.where(fraction == 0, np.float32(np.inf), np.float32(np.nan))
    value = lnp.where(exponent == 255, special, value)
    return lnp.where((bits >> np.uint32(31)) != 0, -value, value)


def _bits_of_float(x: Any) -> Any:
    """The bits of a float32: the number of times it can be halved, above what is left as an integer."""
    value, halved = abs(x), lnp.zeros(x.shape, "int32")
    for bit, shifts in _SHIFTS:
        fits = value >= np.float32(2.0 ** (bit - 126))
        for shift in shifts:
            value = lnp.where(fits, value * np.float32(2.0**-shift), value)
        halved = halved + fits.astype("int32") * bit
    whole = value * np.float32(2.0**75) * np.float32(2.0**74)
    finite = abs(x) < np.float32(np.inf)
    bits = halved * (1 << 23) + lnp.where(finite, whole, 0).astype("int32")
    bits = lnp.where(finite, bits, lnp.where(abs(x) == np.float32(np.inf), 0x7F800000, 0x7FC00000))
    is_negative = (x < 0) | ((x == 0) & (1 / x < 0))
    return bits.astype("uint32") + is_negative.astype("uint32") * np.uint32(1 << 31)


def _population_count(x: Any) -> Any:
    """The bits that are set, added in pairs, then in fours, then in bytes."""
    width = x.dtype.itemsize * 8
    if width == 64:
        halves = (x, x >> np.asarray(32, x.dtype))
        low, high = (_count_of_word(half.astype("uint32")) for half in halves)
        return (low + high).astype(x.dtype)
    return _count_of_word(x.astype("uint32") & np.uint32((1 << width) - 1)).astype(x.dtype)


def _count_of_word(x: Any) -> Any:
    word = np.uint32
    x = x - ((x >> word(1)) & word(0x55555555))
    x = (x & word(0x33333333)) + ((x >> word(2)) & word(0x33333333))
    x = (x + (x >> word(4))) & word(0x0F0F0F0F)
    return (x * word(0x01010101)) >> word(24)


# erfinv(x) = x · polynomial(w), w = -log(1 - x²) (Giles 2012, Approximating the erfinv function).
_NEAR = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
         0.246640727, 1.50140941)  # fmt: skip
_FAR = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
        1.00167406, 2.83297682)  # fmt: skip


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    value = lnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _erfinv(x: Any) -> Any:
    w = -lnp.log((1 - x) * (1 + x))
    scale = lnp.where(w < 5, _polynomial(w - 2.5, _NEAR), _polynomial(lnp.sqrt(lnp.maximum(w, 5)) - 3, _FAR))
    return lnp.where(abs(x) == 1, x * np.inf, scale * x)


_SERIES = 8  # from here on few terms of the asymptotic series are exact


def _lgamma(x: Any) -> Any:
    """Stirling's series behind 8 steps of Γ(x + 1) = x·Γ(x); left of 1/2 by reflection (DLMF 5.5.3, 5.11.1)."""
    is_left = x < 0.5
    right = lnp.where(is_left, 1 - x, x)
    product = right
    for step in range(1, _SERIES):
        product = product * lnp.where(right < _SERIES, right + step, 1)
    is_small = right < _SERIES
    z = lnp.where(is_small, right + _SERIES, right)
    inverse = 1 / z
    series = inverse * (1 / 12 + inverse * inverse * (-1 / 360 + inverse * inverse / 1260))
    value = (z - 0.5) * lnp.log(z) - z + 0.5 * math.log(2 * math.pi) + series
    value = value - lnp.where(is_small, lnp.log(product), 0)
    whole = lnp.floor(x)
    reflected = math.log(math.pi) - lnp.log(abs(lnp.sin(math.pi * (x - whole)))) - value
    value = lnp.where(is_left, lnp.where(x == whole, np.inf, reflected), value)
    return lnp.where(abs(x) == np.inf, np.inf, value)


def _digamma(x: Any) -> Any:
    """The derivative of the same formulas (DLMF 5.5.2, 5.5.4, 5.11.2)."""
    is_left = x < 0.5
    right = lnp.where(is_left, 1 - x, x)
    is_small = right < _SERIES
    fractions = sum(1 / lnp.where(is_small, right + step, 1) for step in range(_SERIES))
    z = lnp.where(is_small, right + _SERIES, right)
    square = 1 / (z * z)
    value = lnp.log(z) - 0.5 / z - square * (1 / 12 - square * (1 / 120 - square / 252))
    value = value - lnp.where(is_small, fractions, 0)
    angle = math.pi * (x - lnp.floor(x))
    reflected = value - math.pi / lnp.tan(lnp.where(is_left, angle, 1))
    return lnp.where(is_left, lnp.where((x == lnp.floor(x)) & (x < 0), np.nan, reflected), value)


def _ndtr(x: Any) -> Any:
    return 0.5 * lax.erfc(x * -math.sqrt(0.5))


def _cumulative_logsumexp(x: Any, axis: int, reverse: bool = False) -> Any:
    """A fold by doubling: after step k each element holds the fold of 2^k elements up to it."""
    step, extent = 1, x.shape[axis]
    while step < extent:
        widths = [(0, 0)] * x.ndim
        widths[axis] = (0, step) if reverse else (step, 0)
        wide = lnp.pad(x, widths, constant_values=-np.inf)
        first = step if reverse else 0
        x = lnp.logaddexp(x, lax.slice_in_dim(wide, first, first + extent, axis=axis))
        step *= 2
    return x


def bitcast(node: Node) -> Composition | None:
    """The function for a bitcast; None if there is none for its dtypes."""
    source, result = node.operands[0].dtype, node.dtype
    are_integers = {source.kind, result.kind} <= {"int", "uint"}
    if are_integers and source.bits == result.bits:
        return lambda x: x.astype(result.user)
    if result.name == "f32" and source.bits == 32:
        return lambda x: _float_of_bits(x.astype("uint32"))
    if source.name == "f32" and result.bits == 32:
        return lambda x: _bits_of_float(x).astype(result.user)
    return None


COMPOSITIONS: dict[str, Composition] = {
    **matrix_compositions.COMPOSITIONS,
    "cumulative_logsumexp": _cumulative_logsumexp,
    "digamma": _digamma,
    "erfinv": _erfinv,
    "lgamma": _lgamma,
    "ndtr": _ndtr,
    "population_count": _population_count,
    "threefry": _threefry,
}
