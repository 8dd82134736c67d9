"""What kernels of attention compute besides: the gradient of queries in parts, and a projection of the result.

`attention_query_parts` is the gradient of queries as sums over `block` keys each, along an axis before the queries'.

`attention_projected` is residual + Σ attention(query, key, value)[b]·weight[b], summed over all elements b of the
batch, which are heads of one query: residual [N], weight [B, E, N]. If `rounded`, a kernel rounds the attention, and
the sum before it adds the residual.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, TypeRule, define
from lavax.ir.ops.attention import (
    ATTRIBUTES,
    DEFAULTS,
    OF_WEIGHTS,
    ROUNDED,
    attention,
    checked_types,
    evaluation_of,
    rounded_dtype,
    score_gradient,
)
from lavax.ir.types import TensorType

_PARTS, _PROJECTED = "attention_query_parts", "attention_projected"


def _infer_parts(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    types, sizes = checked_types(_PARTS, operands, attrs)
    if attrs["block"] < 1:
        raise ShapeError(f"{_PARTS}: a part has at least one key, got {attrs['block']}")
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


def _infer_projected(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    types, sizes = checked_types(_PROJECTED, operands, attrs)
    if sizes.queries != 1:
        raise ShapeError(f"{_PROJECTED} is of one query, got {sizes.queries}")
    residual = types["residual"]
    return residual.with_dtype(rounded_dtype(_PROJECTED, attrs)) if attrs[ROUNDED] else residual


def _projected(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    product = np.matmul(attention(arrays, attrs), arrays["weight"])
    return np.asarray(arrays["residual"] + product.reshape(-1, product.shape[-1]).sum(axis=0))


def _define(
    op: str,
    infer: TypeRule,
    compute: Callable[[Mapping[str, np.ndarray], Attributes], np.ndarray],
    attributes: tuple[str, ...],
) -> None:
    define(Operation(op, "lowered", infer, evaluation_of(op, compute), attributes, defaults=DEFAULTS))


_define(_PARTS, _infer_parts, _query_parts, (*ATTRIBUTES, "block"))
_define(_PROJECTED, _infer_projected, _projected, OF_WEIGHTS)
