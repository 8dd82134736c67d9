"""Functions of arrays over all dtypes and pairs of them, for either library; recorded results are in JSON beside it."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

# NumPy's letters of dtypes, with E for bfloat16.
LETTERS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "uint8": "B", "uint16": "H", "uint32": "I", "float16": "e",
    "bfloat16": "E", "float32": "f", "int64": "q", "uint64": "Q", "float64": "d",
}  # fmt: skip
NARROW = [name for name in LETTERS if not name.endswith("64")]
NUMBERS = {"a bool": True, "an int": 3, "a float": 2.5}  # Python's
REFUSED = "."


def _words(text: str) -> list[str]:
    return text.split()


_BINARY = _words("""
add subtract multiply divide floor_divide remainder fmod power float_power maximum minimum fmax fmin arctan2 hypot
logaddexp logaddexp2 copysign nextafter heaviside bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm
equal less greater_equal logical_and logical_xor matmul dot inner outer vdot kron append polyval isclose
""")
_UNARY = _words("""
abs fabs negative positive sign sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin
arccos arctan sinh cosh tanh arcsinh arccosh arctanh ceil floor trunc rint round isnan isinf isfinite signbit degrees
invert logical_not sinc i0 frexp modf nan_to_num sum prod mean var std max min any cumulative_sum argmax median ptp sort
argsort count_nonzero nansum nanmean average diff trapezoid gradient angle bitwise_count zeros_like
""")
_STRICT = _words("""
add sub mul div rem max min pow atan2 nextafter bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical
shift_right_arithmetic eq lt ge
""")
_STRICT_UNARY = _words("""
neg sign exp exp2 expm1 log log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor ceil
round is_finite logistic erf erfc erf_inv lgamma square reciprocal bitwise_not population_count clz cumsum cummax
""")

Function = Callable[..., Any]


def binary(library: Any) -> dict[str, Function]:
    """Functions of two arrays of `library`, lavax or jax, by their names."""
    lnp = library.numpy
    return {name: getattr(lnp, name) for name in _BINARY} | {
        **{f"lax.{name}": getattr(library.lax, name) for name in _STRICT},
        "where": lambda x, y: lnp.where(np.arange(6) % 2 == 0, x, y),
        "concatenate": lambda x, y: lnp.concatenate([x, y]),
        "stack": lambda x, y: lnp.stack([x, y]),
        "divmod": lnp.divmod,
        "clip": lambda x, y: lnp.clip(x, y, y),
        "cross": lambda x, y: lnp.cross(x[:3], y[:3]),
        "interp": lambda x, y: lnp.interp(x, lnp.arange(6.0), y),
        "cov": lnp.cov,
    }


def unary(library: Any) -> dict[str, Function]:
    """Functions of one array."""
    return {name: getattr(library.numpy, name) for name in _UNARY} | {
        f"lax.{name}": getattr(library.lax, name) for name in _STRICT_UNARY
    }


def creation(library: Any) -> dict[str, Function]:
    """Arrays of a dtype."""
    lnp = library.numpy
    return {
        "arange": lambda d: lnp.arange(3, dtype=d),
        "full": lambda d: lnp.full(3, 2, d),
        "linspace": lambda d: lnp.linspace(0, 1, 3, dtype=d),
        "eye": lambda d: lnp.eye(2, dtype=d),
        "asarray": lambda d: lnp.asarray([1.5, 0.0], dtype=d),
        "array of a number": lambda d: lnp.array(1, dtype=d),
        "full_like": lambda d: lnp.full_like(array(d, 1), 1.5),
        "astype": lambda d: lnp.asarray(np.float32([1.7, 300.5, -2.2, np.nan, np.inf, 3e9])).astype(d),
        "astype of integers": lambda d: lnp.asarray(np.int32([1, -1, 300, 70000, 2**31 - 1])).astype(d),
        "tri": lambda d: lnp.tri(2, dtype=d),
        "sum": lambda d: lnp.sum(lnp.asarray([1, 0, 1]), dtype=d),
        "mean": lambda d: lnp.mean(lnp.asarray([1, 0, 1]), dtype=d),
    }


def array(dtype: str, seed: int) -> np.ndarray:
    """Six numbers of a dtype: extremes and small ones of integers, few bits of floats."""
    draw = np.random.default_rng(seed)
    if dtype == "bool":
        return draw.integers(0, 2, 6).astype(bool)
    if "int" in dtype:
        limits = np.iinfo(dtype)
        signs = np.where(draw.integers(0, 2, 6) & (limits.min < 0), -1, 1)
        numbers = (draw.integers(1, 100, 6) * signs).astype(dtype)
        numbers[:2] = limits.max, limits.min
        return numbers
    numbers = np.array([1.5, -2.25, 0.75, 3.0, -0.5, 2.0])[draw.permutation(6)]
    return numbers.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def pairs(name: str, dtypes: list[str]) -> Iterator[tuple[Any, Any]]:
    """The arguments of a binary function: all pairs of dtypes, then each with Python's numbers, on both sides."""
    yield from ((array(a, 1), array(b, 2)) for a, b in itertools.product(dtypes, dtypes))
    if name in _BINARY[: _BINARY.index("matmul")]:
        for dtype, number in itertools.product(dtypes, NUMBERS.values()):
            yield array(dtype, 1), number
            yield number, array(dtype, 1)


def letters(library: Any, function: Function, *arguments: Any) -> str:
    """The dtypes of the results, by letters; REFUSED if the call fails."""
    try:
        lifted = [library.numpy.asarray(each) if isinstance(each, np.ndarray) else each for each in arguments]
        found = library.tree.leaves(library.eval_shape(lambda: function(*lifted)))
    except Exception:
        return REFUSED
    return "".join(LETTERS.get(np.dtype(each.dtype).name, "c") for each in found)


def tables(library: Any, dtypes: list[str]) -> dict[str, dict[str, str]]:
    """Letters of all calls, in the order of `pairs` and of `dtypes`, for each function of each kind."""
    return {
        "binary": {
            name: " ".join(letters(library, function, *given) for given in pairs(name, dtypes))
            for name, function in binary(library).items()
        },
        "unary": {
            name: " ".join(
                letters(library, function, given)
                for given in (*(array(dtype, 1) for dtype in dtypes), *NUMBERS.values())
            )
            for name, function in unary(library).items()
        },
        "creation": {
            name: " ".join(letters(library, function, dtype) for dtype in dtypes)
            for name, function in creation(library).items()
        },
    }


def values(library: Any, name: str, dtypes: list[str]) -> dict[str, list[float]]:
    """For each dtype that the function takes, weighted sums of the results for arrays of that dtype."""
    functions = unary(library) | binary(library)
    function, count = functions[name], 1 if name in unary(library) else 2
    found = {}
    for dtype in dtypes:
        given = [library.numpy.asarray(array(dtype, seed)) for seed in range(1, count + 1)]
        try:
            results = library.tree.leaves(function(*given))
        except Exception:
            continue
        found[dtype] = [weighted(np.asarray(result)) for result in results]
    return found


def weighted(result: np.ndarray) -> float:
    """A number in which every element counts, and which NaNs and infinities change."""
    numbers = result.astype(np.float64).ravel()
    finite = np.where(np.isnan(numbers), 0.37, np.where(np.isinf(numbers), np.sign(numbers) * 0.59, numbers))
    return float(np.sum(finite * np.cos(np.arange(finite.size))))
