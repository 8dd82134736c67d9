"""The gradient of attention's queries in parts: sums over `block` keys each, along an axis before the queries'."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.attention import ATTRIBUTES, DEFAULTS, checked_types, evaluation_of, score_gradient
from lavax.ir.types import TensorType

_OP = "attention_query_parts"


def _infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    types, sizes = checked_types(_OP, operands, attrs)
    if attrs["block"] < 1:
        raise ShapeError(f"{_OP}: a part has at least one key, got {attrs['block']}")
    query = types["query"]
    return query.with_shape((*sizes.batch, -(-sizes.keys // attrs["block"]), *query.shape[-2:]))


def _query_parts(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    scores, key = score_gradient(arrays, attrs), arrays["key"]
    block = attrs["block"]
    parts = [
        np.matmul(scores[..., start : start + block], key[..., start : start + block, :])
        for start in range(0, key.shape[-2], block)
    ]
    return np.stack(parts, axis=-3)


define(Operation(_OP, "lowered", _infer, evaluation_of(_OP, _query_parts), (*ATTRIBUTES, "block"), defaults=DEFAULTS))
