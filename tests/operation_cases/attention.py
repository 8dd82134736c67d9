"""Attention and its gradients."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np

from lavax.ir import OPERATIONS, TensorType, float32
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.ops.attention import PROJECTED, names_of
from lavax.ir.types import DTYPES, DType
from tests.operation_cases.case import POSITIVE, Case, Shape, case_of, generator, sample

# batch, queries, keys, head, head of the values; bias, mask; what else differs from plain attention. Every query sees a
# key, also once the mask's places are moved on.
_ATTENTION: tuple[tuple[Shape, int, int, int, int, bool, bool, Mapping[str, Any]], ...] = (
    ((), 3, 4, 2, 3, False, False, {}),
    ((2,), 5, 3, 4, 4, True, False, dict(lowest=-2, highest=1)),
    ((2, 1), 4, 4, 3, 2, False, True, dict(empty=True)),
    ((), 4, 5, 1, 2, True, True, dict(fill=-2.0, lowest=-3)),
    ((2,), 37, 45, 8, 12, False, False, dict(highest=3, empty=True)),
)

_COLUMNS = 6  # columns of a weight


def _attention(op: str) -> Iterator[Case]:
    plain = dict(scale=0.6, fill=float("-inf"), empty=False)
    for dtype in (float32,) if op in PROJECTED else (float32, DTYPES["f16"]):
        for number, (_, _, keys, _, _, biased, masked, different) in enumerate(_ATTENTION):
            queries = _queries(op, number)
            random = generator(f"{op}{dtype}{number}")
            window = dict(lowest=1 - queries, highest=keys - 1, block=3)
            attrs = window | dict(biased=biased, masked=masked) | plain | different
            attrs = {name: attrs[name] for name in OPERATIONS[op].attributes if name in attrs}
            yield case_of(op, f"{dtype}-{number}", _of_attention(random, op, attrs, number, dtype), attrs)
    hidden = dict(lowest=0, highest=1, biased=False, masked=False, block=3) | plain
    hidden |= dict(lowest=-9, highest=-1) if op in PROJECTED else {}
    for empty in (False, True):
        every = hidden | dict(empty=empty)
        attrs = {name: every[name] for name in OPERATIONS[op].attributes if name in every}
        if "empty" in attrs:  # the last queries see no key
            arrays = _of_attention(generator(f"{op}special"), op, attrs, 1, float32)
            yield case_of(op, f"special-{empty}", arrays, attrs, special=True)


def _queries(op: str, number: int) -> int:
    return 1 if op in PROJECTED else _ATTENTION[number][1]


def _of_attention(
    random: np.random.Generator, op: str, attrs: Mapping[str, Any], number: int, dtype: DType
) -> list[np.ndarray]:
    batch, _, keys, head, values, *_ = _ATTENTION[number]
    queries = _queries(op, number)
    shapes: Mapping[str, Shape] = {
        "query": (queries, head),
        "key": (keys, head),
        "value": (keys, values),
        "cotangent": (queries, values),
        "delta": (queries,),
        "logsumexp": (queries,),
        "weight": (values, _COLUMNS),
        "bias": (queries, keys),
        "mask": (queries, keys),
    }
    arrays = []
    for name in names_of(op, attrs):
        shape = (_COLUMNS,) if name == "residual" else (*batch, *shapes[name])
        type = TensorType(shape, float32 if name in ("delta", "logsumexp") else dtype)
        if name == "mask":
            arrays.append(np.arange(prod(type.shape)).reshape(type.shape) % 3 != 1)
        else:
            arrays.append(sample(random, type, ((-1.0, 1.0),) if name != "logsumexp" else POSITIVE))
    return arrays


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    **{op: partial(_attention, op) for op in (*ATTENTION, *PROJECTED)},
}
