"""Gathers and scatters."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from lavax.ir import TensorType
from lavax.ir.ops.indexing import SCATTERS
from tests.operation_cases.case import SAMPLED_DTYPES, Case, Shape, case_of, generator, sample

# Shape of the array, indexed axes, shape of the positions.
_INDEXED: tuple[tuple[Shape, tuple[int, ...], Shape], ...] = (
    ((5,), (0,), ()),
    ((5,), (0,), (3,)),
    ((41,), (0,), (17,)),
    ((1,), (0,), (3, 2)),
    ((3, 17), (0,), (4,)),
    ((3, 17), (1,), (2, 3)),
    ((3, 17), (0, 1), (5,)),
    ((2, 3, 5), (1,), ()),
    ((2, 3, 5), (0, 2), (4, 1)),
    ((2, 3, 5), (0, 1, 2), (7,)),
    ((3, 4), (0,), (0,)),
)


def _positions(
    random: np.random.Generator, shape: Shape, axes: Sequence[int], of: Shape, beyond: int
) -> list[np.ndarray]:
    return [np.asarray(random.integers(-beyond, shape[axis] + beyond, of)).astype(np.int32) for axis in axes]


def _gather() -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        for shape, axes, of in _INDEXED:
            type, random = TensorType(shape, dtype), generator(f"gather{dtype}{shape}{axes}{of}")
            for beyond, label in ((0, "inside"), (4, "special-outside")):
                arrays = [sample(random, type), *_positions(random, shape, axes, of, beyond)]
                yield case_of("gather", f"{type}-{axes}-{of}-{label}", arrays, dict(axes=axes), special=beyond > 0)
    nothing = [np.zeros((0, 3), np.float32), np.zeros((0,), np.int32)]
    yield case_of("gather", "empty", nothing, dict(axes=(0,)))


def _scatter(op: str) -> Iterator[Case]:
    for dtype in SAMPLED_DTYPES:
        if dtype.kind not in SCATTERS[op][0]:
            continue
        for shape, axes, of in _INDEXED:
            random = generator(f"{op}{dtype}{shape}{axes}{of}")
            type = TensorType(shape, dtype)
            window = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
            for beyond, label in ((0, "inside"), (4, "special-outside")):
                updates = sample(random, TensorType(of + window, dtype))
                arrays = [sample(random, type), updates, *_positions(random, shape, axes, of, beyond)]
                yield case_of(op, f"{type}-{axes}-{of}-{label}", arrays, dict(axes=axes), special=beyond > 0)
    nothing = [np.zeros((0, 3), np.float32), np.zeros((2, 3), np.float32), np.zeros((2,), np.int32)]
    yield case_of(op, "empty", nothing, dict(axes=(0,)))


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    "gather": _gather,
    **{op: partial(_scatter, op) for op in SCATTERS},
}
