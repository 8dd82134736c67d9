"""The special values of complex functions on the device, by the tables of the standard and its symmetries."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.lavax.array_api.complex_special_cases import TABLES

INF, NAN = math.inf, math.nan
ENDS = [0.0, -0.0, 0.25, -0.25, 1.0, -1.0, 2.5, -2.5, 100.0, -100.0, INF, -INF, NAN]
TOLERANCES = {"complex64": 1e-6, "complex128": 1e-13}

SETS: dict[str, Callable[[float], bool]] = {
    "+0": lambda v: v == 0 and math.copysign(1, v) > 0,
    "-0": lambda v: v == 0 and math.copysign(1, v) < 0,
    "0": lambda v: v == 0,
    "1": lambda v: v == 1,
    "-1": lambda v: v == -1,
    "inf": lambda v: v == INF,
    "-inf": lambda v: v == -INF,
    "±inf": lambda v: abs(v) == INF,
    "nan": math.isnan,
    "finite": math.isfinite,
    "positive": lambda v: 0 < v < INF,
    "nonzero": lambda v: math.isfinite(v) and v != 0,
    "any": lambda v: True,
}
SIZES = {"π": math.pi, "π/2": math.pi / 2, "π/4": math.pi / 4, "3π/4": 3 * math.pi / 4, "inf": INF, "nan": NAN}
BY_THE_IMAGINARY_PART: dict[str, Callable[[float], float]] = {
    "0*cos": lambda b: math.copysign(0, math.cos(b)),
    "0*sin": lambda b: math.copysign(0, math.sin(b)) if b else b,
    "0*sin2": lambda b: math.copysign(0, math.sin(2 * b)),
    "inf*cos": lambda b: math.copysign(INF, math.cos(b)),
    "inf*sin": lambda b: math.copysign(INF, math.sin(b)),
}
# Functions of iz: f(z) = -i·g(iz), by the standard.
TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}
ODD = ["asin", "asinh", "atan", "atanh", "sin", "sinh", "tan", "tanh"]
CONJUGATE = [*TABLES, *TURNED, "cos"]


@pytest.fixture(autouse=True)
def with_64_bits() -> Iterator[None]:
    with lx.enable_x64():
        yield


def numbers(pairs: list[tuple[float, float]], dtype: str) -> np.ndarray:
    made = np.empty(len(pairs), dtype)
    made.real, made.imag = zip(*pairs, strict=True)
    return made


def all_points(dtype: str) -> np.ndarray:
    return numbers(list(itertools.product(ENDS, ENDS)), dtype)


def values(name: str, points: np.ndarray) -> np.ndarray:
    return np.asarray(getattr(lnp, name)(lnp.asarray(points)))


def wanted(text: str, imaginary: float) -> float:
    if text in BY_THE_IMAGINARY_PART:
        return BY_THE_IMAGINARY_PART[text](imaginary)
    size = text.lstrip("+-±")
    return (-1 if text.startswith("-") else 1) * (SIZES[size] if size in SIZES else float(size))


def is_close(found: float, expected: float, tolerance: float, any_sign: bool = False) -> bool:
    """Equal up to rounding; the sign of a zero counts, that of a NaN does not."""
    if any_sign:
        found, expected = abs(found), abs(expected)
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    if expected == 0 or math.isinf(expected):
        return found == expected and math.copysign(1, found) == math.copysign(1, expected)
    return abs(found - expected) <= tolerance * abs(expected)


CASES = [(name, line.strip()) for name, table in TABLES.items() for line in table.split("\n") if line.strip()]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str, dtype: str) -> None:
    for case in (line for function, line in CASES if function == name):
        sets, results = case.split(": ")
        in_real, in_imaginary = (SETS[word] for word in sets.split(", "))
        pairs = [(a, b) for a, b in itertools.product(ENDS, ENDS) if in_real(a) and in_imaginary(b)]
        for pair, found in zip(pairs, values(name, numbers(pairs, dtype)), strict=True):
            for text, part in zip(results.split(), (float(found.real), float(found.imag)), strict=True):
                good = is_close(part, wanted(text, pair[1]), TOLERANCES[dtype], text.startswith("±"))
                assert good, f"{name}, {case}: {found} at {pair}"


def test_the_tables_are_whole() -> None:
    """As many cases as the standard has for functions of one complex number that have a table."""
    assert len(CASES) == 137


def assert_alike(found: np.ndarray, expected: np.ndarray, points: np.ndarray) -> None:
    """Both parts equal, where neither is one whose sign C99 leaves open: those of infinite or NaN points."""
    for part in ("real", "imag"):
        open_sign = ~np.isfinite(points)
        for point, one, other, any_sign in zip(
            points, getattr(found, part), getattr(expected, part), open_sign, strict=True
        ):
            assert is_close(float(one), float(other), 1e-6, bool(any_sign)), (point, one, other)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", CONJUGATE)
def test_conjugate_points_have_conjugate_values(name: str, dtype: str) -> None:
    points = all_points(dtype)
    assert_alike(values(name, points.conj()), values(name, points).conj(), points)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", ODD)
def test_opposite_points_have_opposite_values(name: str, dtype: str) -> None:
    points = all_points(dtype)
    assert_alike(values(name, -points), -values(name, points), points)


def turned(points: np.ndarray) -> np.ndarray:
    """i·z by parts, without the products with zero that make NaN of infinities."""
    return numbers(list(zip(-points.imag, points.real, strict=True)), points.dtype.name)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", TURNED)
def test_circular_functions_are_hyperbolic_ones_turned(name: str, dtype: str) -> None:
    points = all_points(dtype)
    assert_alike(turned(values(name, points)), values(TURNED[name], turned(points)), points)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_the_cosine_is_the_hyperbolic_one_turned(dtype: str) -> None:
    points = all_points(dtype)
    assert_alike(values("cos", points), values("cosh", turned(points)), points)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_logarithms_to_other_bases(dtype: str) -> None:
    """log z divided by the logarithm of the base, part by part."""
    points = all_points(dtype)
    natural = values("log", points)
    for name, base in (("log2", math.log(2)), ("log10", math.log(10))):
        parts = list(zip(natural.real / base, natural.imag / base, strict=True))
        assert_alike(values(name, points), numbers(parts, dtype), points)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_lengths_signs_rounding_and_truths(dtype: str) -> None:
    points = all_points(dtype)
    a, b = points.real, points.imag
    np.testing.assert_array_equal(values("isnan", points), np.isnan(a) | np.isnan(b))
    np.testing.assert_array_equal(values("isinf", points), np.isinf(a) | np.isinf(b))
    np.testing.assert_array_equal(values("isfinite", points), np.isfinite(a) & np.isfinite(b))
    np.testing.assert_allclose(values("abs", points), np.hypot(a, b), rtol=TOLERANCES[dtype])
    rounded = numbers(list(zip(np.round(a), np.round(b), strict=True)), dtype)
    found = values("round", points)
    for part in ("real", "imag"):
        np.testing.assert_array_equal(getattr(found, part), getattr(rounded, part))
        np.testing.assert_array_equal(np.signbit(getattr(found, part)), np.signbit(getattr(rounded, part)))
    signs = values("sign", points)
    assert (signs[points == 0] == 0).all() and np.isnan(signs[np.isnan(points)]).all()
    finite = points[np.isfinite(points) & (points != 0)]
    np.testing.assert_allclose(values("sign", finite), finite / np.abs(finite), rtol=TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_sums_apply_to_each_part(dtype: str) -> None:
    points = all_points(dtype)
    left, right = points.repeat(len(points)), np.tile(points, len(points))
    with np.errstate(invalid="ignore"):
        for name in ("add", "subtract"):
            function = getattr(np, name)
            found = np.asarray(getattr(lnp, name)(lnp.asarray(left), lnp.asarray(right)))
            for part in ("real", "imag"):
                expected, got = function(getattr(left, part), getattr(right, part)), getattr(found, part)
                np.testing.assert_array_equal(got, expected)
                same_sign = (np.signbit(got) == np.signbit(expected)) | np.isnan(expected)
                assert same_sign.all()


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", ["multiply", "divide"])
def test_products_and_quotients_of_nan(name: str, dtype: str) -> None:
    nan = lnp.asarray(numbers([(NAN, NAN)], dtype))
    found = np.asarray(getattr(lnp, name)(nan, nan))
    assert np.isnan(found.real).all() and np.isnan(found.imag).all()
