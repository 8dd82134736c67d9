"""Reductions, and positions of extrema."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from lavax.ir import TensorType
from lavax.ir.types import DType
from tests.operation_cases.case import AWAY_FROM_ZERO, SAMPLED_DTYPES, Case, Shape, case_of, generator, sample

_REDUCED: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((), ()),
    ((1,), (0,)),
    ((3,), (0,)),
    ((41,), (0,)),
    ((3, 17), (0,)),
    ((3, 17), (1,)),
    ((17, 3), (0, 1)),
    ((3, 17), ()),
    ((1, 17), (0,)),
    ((2, 3, 5), (0, 2)),
    ((2, 3, 5), (1,)),
    ((2, 1, 3, 2), (1, 3)),
    ((0, 3), (1,)),
)


def _distinct(random: np.random.Generator, type: TensorType) -> np.ndarray:
    """Floats of which no two are near each other; whole numbers of a small range."""
    if not type.dtype.is_float:
        return sample(random, type)
    order = random.permutation(type.size).reshape(type.shape)
    return ((order - type.size / 2) * (4 / max(type.size, 1))).astype(type.dtype.numpy)


def _reduction(op: str) -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape, axes in _REDUCED:
            type, random = TensorType(shape, dtype), generator(f"{op}{dtype}{shape}{axes}")
            if not _accepts_reduction(op, dtype):
                continue
            array = _distinct(random, type) if op in ("max", "min") else sample(random, type, AWAY_FROM_ZERO)
            yield case_of(op, f"{type}-{axes}", [array], dict(axes=axes))
    if op in ("sum", "prod"):
        yield case_of(op, "empty", [np.zeros((3, 0), np.float32)], dict(axes=(1,)))
    rows = np.array([[1, 2, 2], [np.nan, 1, 5], [0, 0, 3], [np.inf, -np.inf, 0], [2, 0, 4]], np.float32)
    yield case_of(op, "special", [rows], dict(axes=(1,)), special=True)


def _accepts_reduction(op: str, dtype: DType) -> bool:
    return dtype.kind != "bool" or op in ("max", "min")


def _position(op: str) -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape, axes in _REDUCED:
            if len(axes) == 1:
                type = TensorType(shape, dtype)
                array = _distinct(generator(f"{op}{dtype}{shape}{axes}"), type)
                yield case_of(op, f"{type}-{axes[0]}", [array], dict(axis=axes[0]))
    rows = np.array([[1, 2, 2], [2, np.nan, 5], [0, 0, 3], [np.inf, -np.inf, 0], [5, 5, 5]], np.float32)
    yield case_of(op, "special", [rows], dict(axis=1), special=True)


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    **{op: partial(_reduction, op) for op in ("sum", "prod", "max", "min")},
    **{op: partial(_position, op) for op in ("argmax", "argmin")},
}
