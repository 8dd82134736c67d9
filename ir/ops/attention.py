"""Attention: softmax of scaled products of queries and keys, times values, and its first derivatives.

Shapes, with any batch axes B in front: query [B, Q, D], key [B, K, D], value [B, K, E], bias and mask [B, Q, K],
cotangent [B, Q, E], delta and logsumexp [B, Q]. The score of query i and key j is

    scale · query[i]·key[j] + bias[i, j]    if mask[i, j] and lowest <= j - i <= highest,
    fill                                    otherwise.

`biased` and `masked` say whether there is a bias and a mask, which are the last operands. The weights are the scores'
softmax over the keys. If all scores of a query are -inf, its weights are NaN, as in softmax, or, if `empty`, 0 with an
infinite logsumexp.

With w = exp(score - logsumexp) and delta[i] = Σ cotangent[i]·out[i], the derivatives of attention are

    of value  wᵀ·cotangent    of key  sᵀ·query    of query  s·key    with s = scale · w · (cotangent·valueᵀ - delta),

where s is 0 wherever the score is `fill` (Dao et al., FlashAttention, algorithm 4).

`precision` names the dtype, "f16" or "bf16", to which products may round the weights w and the scores' cotangents s,
where query, key, value and cotangent are exact in it; "" does not round. If `rounded`, the result has that dtype, but
for a logsumexp. The evaluation never rounds.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import DTYPES, DType, TensorType, float32

GRADIENTS = ("attention_query_gradient", "attention_key_gradient", "attention_value_gradient")
# Operands of each operation, without bias and mask. lowered/attention.py defines the last one.
OPERANDS: Mapping[str, tuple[str, ...]] = {
    "attention": ("query", "key", "value"),
    "attention_logsumexp": ("query", "key"),
    "attention_query_gradient": ("query", "key", "value", "cotangent", "delta", "logsumexp"),
    "attention_key_gradient": ("query", "key", "value", "cotangent", "delta", "logsumexp"),
    "attention_value_gradient": ("query", "key", "cotangent", "logsumexp"),
    "attention_query_parts": ("query", "key", "value", "cotangent", "delta", "logsumexp"),
}
# The same for heads of one query, whose results are multiplied by a weight: also of lowered/attention.py.
PROJECTED: Mapping[str, tuple[str, ...]] = {
    "attention_projected": ("query", "key", "value", "weight", "residual"),
    "attention_head_products": ("query", "key", "value", "weight"),
}
# The operand whose type the result has, and the extent that replaces its last axis.
_RESULTS: Mapping[str, str] = {
    "attention_query_gradient": "query",
    "attention_key_gradient": "key",
    "attention_value_gradient": "value",
}
ROUNDED = "rounded"
ATTRIBUTES = ("scale", "fill", "lowest", "highest", "biased", "masked", "precision", ROUNDED)
DEFAULTS = {"precision": "", ROUNDED: False}
OF_WEIGHTS = (*ATTRIBUTES, "empty")


def names_of(op: str, attrs: Attributes) -> tuple[str, ...]:
    """The names of the operands of an operation with these attributes."""
    more = (name for name, there in (("bias", attrs["biased"]), ("mask", attrs["masked"])) if there)
    return (*(OPERANDS.get(op) or PROJECTED[op]), *more)


def statistic_dtype(dtype: DType) -> DType:
    """The dtype of a query's logsumexp and delta: at least 32 bits."""
    return float32 if dtype.bits < 32 else dtype


@dataclass(frozen=True)
class Extents:
    """The extents that the operands share."""

    batch: tuple[int, ...]
    queries: int
    keys: int
    head: int
    values: int
    projected: int = 0


def _extents(op: str, types: Mapping[str, TensorType]) -> Extents:
    query, key = types["query"], types["key"]
    if query.rank < 2 or key.rank < 2:
        raise ShapeError(f"{op}: query and key need two axes at least, got {query} and {key}")
    of_values = types.get("value", types.get("cotangent"))
    values = of_values.shape[-1] if of_values is not None and of_values.rank else 0
    projected = types["weight"].shape[-1] if "weight" in types and types["weight"].rank else 0
    return Extents(query.shape[:-2], query.shape[-2], key.shape[-2], query.shape[-1], values, projected)


def _check(op: str, types: Mapping[str, TensorType]) -> Extents:
    sizes, dtype = _extents(op, types), types["query"].dtype
    if not dtype.is_float:
        raise DtypeError(f"{op}: the query must be floating, got {types['query']}")
    by_query = (*sizes.batch, sizes.queries)
    shapes = {
        "query": (*by_query, sizes.head),
        "key": (*sizes.batch, sizes.keys, sizes.head),
        "value": (*sizes.batch, sizes.keys, sizes.values),
        "cotangent": (*by_query, sizes.values),
        "delta": by_query,
        "logsumexp": by_query,
        "weight": (*sizes.batch, sizes.values, sizes.projected),
        "residual": (sizes.projected,),
        "bias": (*by_query, sizes.keys),
        "mask": (*by_query, sizes.keys),
    }
    for name, type in types.items():
        if type.shape != shapes[name]:
            raise ShapeError(f"{op}: the {name} is {type}, its shape must be {list(shapes[name])}")
        if name == "mask":
            if type.dtype.kind != "bool":
                raise DtypeError(f"{op}: the mask must be bool, got {type}")
        elif type.dtype != (statistic_dtype(dtype) if name in ("delta", "logsumexp") else dtype):
            raise DtypeError(f"{op}: the {name} is {type}, which does not fit a query of {dtype}")
    return sizes


def checked_types(
    op: str, operands: Sequence[TensorType], attrs: Attributes
) -> tuple[dict[str, TensorType], Extents]:
    """The operands' types by name, and the extents that they share. Raises ShapeError and DtypeError."""
    names = names_of(op, attrs)
    if len(operands) != len(names):
        raise ShapeError(f"{op} takes {', '.join(names)}, got {len(operands)} operands")
    types = dict(zip(names, operands, strict=True))
    return types, _check(op, types)


def rounded_dtype(op: str, attrs: Attributes) -> DType:
    """The dtype of a rounded result. Raises DtypeError without a precision."""
    if attrs["precision"] not in ("f16", "bf16"):
        raise DtypeError(f"{op}: a rounded result needs a precision, and it is {attrs['precision']!r}")
    return DTYPES[attrs["precision"]]


def _type_rule(op: str) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        types, sizes = checked_types(op, operands, attrs)
        if attrs.get(ROUNDED):
            types = {name: type.with_dtype(rounded_dtype(op, attrs)) for name, type in types.items()}
        query = types["query"]
        if op == "attention":
            return query.with_shape((*query.shape[:-1], sizes.values))
        if op == "attention_logsumexp":
            return TensorType(query.shape[:-1], statistic_dtype(query.dtype))
        of = _RESULTS[op]
        return types[of] if of in types else query.with_shape((*sizes.batch, sizes.keys, sizes.values))

    return infer


def within(attrs: Attributes, queries: int, keys: int) -> bool:
    """Whether `lowest` and `highest` exclude any pair."""
    return bool(attrs["lowest"] > 1 - queries or attrs["highest"] < keys - 1)


def _scores(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> tuple[np.ndarray, np.ndarray]:
    """The scores, and the mask of those that are not `fill`."""
    query, key = arrays["query"], arrays["key"]
    found = np.matmul(query, np.swapaxes(key, -1, -2)) * attrs["scale"]
    if "bias" in arrays:
        found = found + arrays["bias"]
    distance = np.arange(key.shape[-2]) - np.arange(query.shape[-2])[:, None]
    visible = np.broadcast_to((attrs["lowest"] <= distance) & (distance <= attrs["highest"]), found.shape)
    if "mask" in arrays:
        visible = visible & arrays["mask"]
    return np.where(visible, found, attrs["fill"]), visible


def _logsumexp(scores: np.ndarray, empty: bool) -> np.ndarray:
    peak = np.max(scores, axis=-1, keepdims=True)
    shift = np.where(np.isfinite(peak), peak, 0)
    found = (np.log(np.sum(np.exp(scores - shift), axis=-1, keepdims=True)) + shift)[..., 0]
    return np.where(peak[..., 0] == -np.inf, np.inf, found) if empty else found


def attention(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    scores, _ = _scores(arrays, attrs)
    peak = np.max(scores, axis=-1, keepdims=True)
    if attrs["empty"]:
        peak = np.where(peak == -np.inf, 0, peak)
    grown = np.exp(scores - peak)
    total = np.sum(grown, axis=-1, keepdims=True)
    weights = grown / (np.where(total == 0, 1, total) if attrs["empty"] else total)
    return np.asarray(np.matmul(weights, arrays["value"]))


def _attention_logsumexp(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    return _logsumexp(_scores(arrays, attrs)[0], attrs["empty"])


def _weights(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> tuple[np.ndarray, np.ndarray]:
    scores, visible = _scores(arrays, attrs)
    return np.exp(scores - arrays["logsumexp"][..., None]), visible


def score_gradient(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    weights, visible = _weights(arrays, attrs)
    of_weights = np.matmul(arrays["cotangent"], np.swapaxes(arrays["value"], -1, -2))
    return np.where(visible, attrs["scale"] * weights * (of_weights - arrays["delta"][..., None]), 0)


def _query_gradient(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    return np.asarray(np.matmul(score_gradient(arrays, attrs), arrays["key"]))


def _key_gradient(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    return np.asarray(np.matmul(np.swapaxes(score_gradient(arrays, attrs), -1, -2), arrays["query"]))


def _value_gradient(arrays: Mapping[str, np.ndarray], attrs: Attributes) -> np.ndarray:
    return np.asarray(np.matmul(np.swapaxes(_weights(arrays, attrs)[0], -1, -2), arrays["cotangent"]))


def evaluation_of(op: str, compute: Callable[[Mapping[str, np.ndarray], Attributes], np.ndarray]) -> Evaluation:
    """The evaluation that calls `compute` with the operands by name."""

    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        found = compute(dict(zip(names_of(op, attrs), arrays, strict=True)), attrs)
        return found.astype(dtype, copy=False)

    return evaluate


def _define(
    op: str, compute: Callable[[Mapping[str, np.ndarray], Attributes], np.ndarray], attributes: tuple[str, ...]
) -> None:
    define(Operation(op, "routine", _type_rule(op), evaluation_of(op, compute), attributes, defaults=DEFAULTS))


_define("attention", attention, OF_WEIGHTS)
_define("attention_logsumexp", _attention_logsumexp, OF_WEIGHTS)
_define("attention_query_gradient", _query_gradient, ATTRIBUTES)
_define("attention_key_gradient", _key_gradient, ATTRIBUTES)
_define("attention_value_gradient", _value_gradient, ATTRIBUTES)
