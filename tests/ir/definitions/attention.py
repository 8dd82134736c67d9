"""Attention and its gradients."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lavax.ir import TensorType
from lavax.ir.ops.attention import names_of
from tests.ir.definitions.definition import Definition, Place


class Attention:
    """One element of the batch of an operation of attention: numbers for each pair of a query and a key."""

    def __init__(self, op: str, arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], batch: Place) -> None:
        self.attrs = attrs
        self.of = {name: array[batch] for name, array in zip(names_of(op, attrs), arrays, strict=True)}
        self.queries, self.keys = len(self.of["query"]), len(self.of["key"])

    def is_visible(self, i: int, j: int) -> bool:
        inside = self.attrs["lowest"] <= j - i <= self.attrs["highest"]
        return inside and bool(self.of["mask"][i, j] if self.attrs["masked"] else True)

    def score(self, i: int, j: int) -> float:
        if not self.is_visible(i, j):
            return float(self.attrs["fill"])
        bias = float(self.of["bias"][i, j]) if self.attrs["biased"] else 0.0
        return float(self.of["query"][i] @ self.of["key"][j]) * self.attrs["scale"] + bias

    def scores(self, i: int) -> list[float]:
        return [self.score(i, j) for j in range(self.keys)]

    def out(self, i: int, e: int) -> float:
        scores = self.scores(i)
        if max(scores) == -math.inf:
            return 0.0 if self.attrs["empty"] else math.nan
        grown = [math.exp(score - max(scores)) for score in scores]
        return math.fsum(w * v for w, v in zip(grown, self.of["value"][:, e].tolist(), strict=True)) / math.fsum(grown)

    def logsumexp(self, i: int) -> float:
        scores = self.scores(i)
        if max(scores) == -math.inf:
            return math.inf if self.attrs["empty"] else -math.inf
        return math.log(math.fsum(math.exp(score - max(scores)) for score in scores)) + max(scores)

    def weight(self, i: int, j: int) -> float:
        return math.exp(self.score(i, j) - float(self.of["logsumexp"][i]))

    def slope(self, i: int, j: int) -> float:
        """The cotangent of the product of query and key."""
        if not self.is_visible(i, j):
            return 0.0
        of_weight = float(self.of["cotangent"][i] @ self.of["value"][j]) - float(self.of["delta"][i])
        return float(self.attrs["scale"] * self.weight(i, j) * of_weight)


def attention(op: str, compute: Callable[..., float], own: int = 2) -> Definition:
    """`compute` takes the operands of one element of the batch and the last `own` indices."""

    def definition(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        count = len(place) - own
        return compute(Attention(op, arrays, attrs, place[:count]), *place[count:])

    return definition


def _projected(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The residual, and of each head the products of its one query's result and a column of its weight."""
    (n,) = place
    weight, residual = arrays[3], arrays[4]
    rest = [array for number, array in enumerate(arrays) if number not in (3, 4)]
    found = [float(residual[n])]
    for batch in np.ndindex(weight.shape[:-2]):
        head = Attention("attention", rest, attrs, batch)
        found += [head.out(0, e) * float(weight[(*batch, e, n)]) for e in range(weight.shape[-2])]
    return math.fsum(found)


def _head_products(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The products of a head's result and a column of its weight."""
    *batch, n = place
    head = Attention("attention", [*arrays[:3], *arrays[4:]], attrs, tuple(batch))
    weight = arrays[3][tuple(batch)]
    return math.fsum(head.out(0, e) * float(weight[e, n]) for e in range(weight.shape[0]))


ATTENTION: dict[str, Definition] = {
    "attention": attention("attention", Attention.out),
    "attention_logsumexp": attention("attention_logsumexp", Attention.logsumexp, 1),
    "attention_query_gradient": attention(
        "attention_query_gradient",
        lambda a, i, d: math.fsum(a.slope(i, j) * a.of["key"][j, d] for j in range(a.keys)),
    ),
    "attention_key_gradient": attention(
        "attention_key_gradient",
        lambda a, j, d: math.fsum(a.slope(i, j) * a.of["query"][i, d] for i in range(a.queries)),
    ),
    "attention_query_parts": attention(
        "attention_query_parts",
        lambda a, part, i, d: math.fsum(
            a.slope(i, j) * a.of["key"][j, d]
            for j in range(part * a.attrs["block"], min((part + 1) * a.attrs["block"], a.keys))
        ),
        3,
    ),
    "attention_projected": _projected,
    "attention_head_products": _head_products,
    "attention_value_gradient": attention(
        "attention_value_gradient",
        lambda a, j, e: math.fsum(a.weight(i, j) * a.of["cotangent"][i, e] for i in range(a.queries)),
    ),
}
