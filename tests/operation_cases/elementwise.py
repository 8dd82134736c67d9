"""Elementwise operations, casts, shifts and random bits."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from lavax.ir import TensorType, bool_, float32, int32, uint32
from lavax.ir.ops.elementwise import COMPARISONS
from lavax.ir.types import DTYPES
from tests.operation_cases.case import (
    ANYWHERE,
    DOMAINS,
    SAMPLED_DTYPES,
    SHAPES,
    THOROUGH,
    Case,
    accepts,
    case_of,
    generator,
    sample,
    special_values,
)


def _elementwise(op: str, arity: int) -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        if not accepts(op, [TensorType((), dtype)] * arity):
            continue
        domains = DOMAINS.get(op, [ANYWHERE] * arity)
        for shape in SHAPES:
            random = generator(f"{op}{dtype}{shape}")
            arrays = [sample(random, TensorType(shape, dtype), domain) for domain in domains]
            yield case_of(op, str(TensorType(shape, dtype)), arrays)
        values = special_values(dtype)
        pairs = [grid.ravel() for grid in np.meshgrid(*[values] * arity)]
        yield case_of(op, f"special-{dtype}", pairs, special=True)


def _where() -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape in SHAPES:
            random = generator(f"where{dtype}{shape}")
            types = (TensorType(shape, bool_), TensorType(shape, dtype), TensorType(shape, dtype))
            yield case_of("where", str(types[1]), [sample(random, type) for type in types])
    nan = np.array([np.nan, 1, np.nan, 2], np.float32)
    yield case_of("where", "special-nan", [np.array([0, 1, 1, 0], np.bool_), nan, nan[::-1]], special=True)


def _cast() -> Iterator[Case]:
    for source in SAMPLED_DTYPES:
        for target in SAMPLED_DTYPES:
            for shape in ((), (17,), (3, 5), (0,)):
                array = sample(generator(f"cast{source}{target}{shape}"), TensorType(shape, source))
                array = np.abs(array) if target.kind == "uint" and source.is_float else array
                yield case_of("cast", f"{source}-{target}-{shape}", [array], type=TensorType(shape, target))
            values = special_values(source)
            declared = TensorType(values.shape, target)
            yield case_of("cast", f"special-{source}-{target}", [values], type=declared, special=True)


def _shift(op: str) -> Iterator[Case]:
    for dtype in (int32, uint32, *(dtype for dtype in SAMPLED_DTYPES if dtype.is_integer and dtype not in THOROUGH)):
        values, width = special_values(dtype), dtype.bits
        around = [0, 1, 5, width - 1, width, width + 1, 2 ** (width - 1) - 1, -1, -(2 ** (width - 1))]
        distances = np.array(around, np.int64).astype(dtype.numpy)
        pairs = [grid.ravel() for grid in np.meshgrid(values, distances)]
        yield case_of(op, f"special-{dtype}", pairs, special=True)
        for shape in SHAPES:
            type, random = TensorType(shape, dtype), generator(f"{op}{dtype}{shape}")
            bits = np.asarray(random.integers(0, 2**32, shape, np.uint32)).astype(dtype.numpy)
            if width == 64:
                bits = bits << 31
            yield case_of(op, str(type), [bits, np.abs(sample(random, type))])


def _bitcast() -> Iterator[Case]:
    numbers = [dtype for dtype in SAMPLED_DTYPES if dtype != bool_]
    for source in numbers:
        for target in numbers:
            if source.bits != target.bits:
                continue
            for shape in ((), (17,), (3, 4), (0,)):
                random = generator(f"bitcast{source}{target}{shape}")
                floats = sample(random, TensorType(shape, DTYPES[f"f{max(source.bits, 16)}"]))
                bits = np.asarray(floats.view(f"u{floats.itemsize}"))
                array = floats if source.is_float else bits.astype(source.numpy)
                yield case_of("bitcast", f"{source}-{target}-{shape}", [array], type=TensorType(shape, target))
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1e30], np.float32)
    for source, target in ((float32, uint32), (int32, float32)):
        declared = TensorType(special.shape, target)
        values = special.view(source.numpy)
        yield case_of("bitcast", f"special-{source}-{target}", [values], type=declared, special=True)


def _known_value() -> Iterator[Case]:
    """Of whole numbers: it is no function of its operands where these have derivatives."""
    return (case for case in _elementwise("known_value", 2) if not case.node.dtype.is_float)


def _threefry() -> Iterator[Case]:
    for word in (0, 1, 2):
        for shape in SHAPES:
            random = generator(f"threefry{word}{shape}")
            arrays = [np.asarray(random.integers(0, 2**32, shape, np.uint32)) for _ in range(4)]
            yield case_of("threefry", f"{shape}-{word}", arrays, dict(word=word))
    ends = np.array([0, 2**32 - 1], np.uint32)
    words = [grid.ravel() for grid in np.meshgrid(*[ends] * 4)]
    yield case_of("threefry", "special", words, dict(word=2), special=True)


_UNARY = (
    "negate", "abs", "sign", "floor", "ceil", "round", "truncate", "exp", "exp2", "log", "log2", "expm1", "log1p",
    "sqrt", "rsqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "logistic", "erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri", "lgamma", "digamma",
    "bessel_i0", "bessel_i0e",
    "bessel_i1", "bessel_i1e", "expi", "gamma", "factorial", "population_count", "not", "stop_gradient",
)

_BINARY = (
    "add", "subtract", "multiply", "divide", "remainder", "modulo", "power", "atan2", "maximum", "minimum", "and", "or",
    "xor", "gammainc", "gammaincc", "expn", "zeta", "polygamma", "beta", "poch", "boxcox", "boxcox1p", "kl_div",
)

MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    **{op: partial(_elementwise, op, 1) for op in _UNARY},
    **{op: partial(_elementwise, op, 2) for op in (*_BINARY, *COMPARISONS)},
    "betainc": partial(_elementwise, "betainc", 3),
    "where": _where,
    "cast": _cast,
    **{op: partial(_shift, op) for op in ("shift_left", "shift_right_logical", "shift_right_arithmetic")},
    "bitcast": _bitcast,
    "threefry": _threefry,
    "barrier": partial(_elementwise, "barrier", 2),
    "known_value": _known_value,
}
