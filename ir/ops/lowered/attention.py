"""What kernels of attention compute besides: the gradient of queries in parts, and a projection of the result.

`attention_query_parts` is the gradient of queries as sums over `block` keys each, along an axis before the queries'.

`attention_projected` is residual + Σ attention(query, key, value)[b]·weight[b], summed over all elements b of the
batch, which are heads of one query: residual [N], weight [B, E, N]. If `rounded`, a kernel rounds the attention, and
the sum before it adds the residual. `attention_head_products` are the terms of the sum, [B, N], of at least 32 bits.
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
    Extents,
    attention,
    checked_types,
    evaluation_of,
    rounded_dtype,
    score_gradient,
    statistic_dtype,
)
from lavax.ir.types import TensorType

_PARTS, _PROJECTED, _PRODUCTS = "attention_query_parts", "attention_projected", "attention_head_products"


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


def _types_of_one_query(
    op: str, operands: Sequence[TensorType], attrs: Attributes
) -> tuple[dict[str, TensorType], Extents]:
    types, sizes = checked_types(op, operands, attrs)
    if sizes.queries != 1:
        raise ShapeError(f"{op} is of one query, got {sizes.queries}")
    return types, sizes


def _infer_projected(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    residual = _types_of_one_query(_PROJECTED, operands, attrs)[0]["residual"]
    return residual.with_dtype(rounded_dtype(_PROJECTED, attrs)) if attrs[ROUNDED] else residual


def _infer_products(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    types, sizes = _types_of_one_query(_PRODUCTS, operands, attrs)
    return TensorType((*sizes.batch, sizes.projected), statistic_dtype(types["query"].dtype))


def _products(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    return np.asarray(np.matmul(attention(arrays, attrs), arrays["weight"])[..., 0, :])


def _projected(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    products = _products(arrays, attrs)
    return np.asarray(arrays["residual"] + products.reshape(-1, products.shape[-1]).sum(axis=0))


def _define(
    op: str,
    infer: TypeRule,
    compute: Callable[[Mapping[str, np.ndarray], Attributes], np.ndarray],
    attributes: tuple[str, ...],
) -> None:
    define(Operation(op, "lowered", infer, evaluation_of(op, compute), attributes, defaults=DEFAULTS))


_define(_PARTS, _infer_parts, _query_parts, (*ATTRIBUTES, "block"))
_define(_PROJECTED, _infer_projected, _projected, OF_WEIGHTS)
_define(_PRODUCTS, _infer_products, _products, OF_WEIGHTS)
