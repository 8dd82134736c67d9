"""How attention is written: as products, a mask and a softmax, which runtimes recognise."""
from __future__ import annotations

import numpy as np

from lavax.ir.graph import Node
from lavax.ir.ops.attention import names_of, within
from lavax.onnx.writing.writer import Rule, Writer


def _scores(writer: Writer, node: Node) -> tuple[str, str | None]:
    """The scores, and which of them are visible; None if all are."""
    names = dict(zip(names_of(node.op, node.attrs), node.operands, strict=True))
    query, key = names["query"], names["key"]
    rank = len(key.shape)
    turned = writer.transpose(writer.full(key), [*range(rank - 2), rank - 1, rank - 2])
    scale = writer.number(node.attrs["scale"], query.dtype)
    scores = writer.add("MatMul", [writer.add("Mul", [writer.full(query), scale]), turned])
    if "bias" in names:
        scores = writer.add("Add", [scores, writer.held(names["bias"]).name])
    visible = None
    if within(node.attrs, query.shape[-2], key.shape[-2]):
        distance = np.arange(key.shape[-2]) - np.arange(query.shape[-2])[:, None]
        visible = writer.tensor((node.attrs["lowest"] <= distance) & (distance <= node.attrs["highest"]))
    if "mask" in names:
        mask = writer.held(names["mask"]).name
        visible = mask if visible is None else writer.add("And", [mask, visible])
    if visible is not None:
        scores = writer.add("Where", [visible, scores, writer.number(node.attrs["fill"], query.dtype)])
    return scores, visible


def _attention(writer: Writer, node: Node) -> str:
    scores, visible = _scores(writer, node)
    weights = writer.add("Softmax", [scores], axis=-1)
    if visible is not None and node.attrs["empty"] and node.attrs["fill"] == -np.inf:
        is_nan = writer.add("IsNaN", [weights])  # a query that sees no key
        weights = writer.add("Where", [is_nan, writer.number(0.0, node.dtype), weights])
    made: str = writer.add("MatMul", [weights, writer.full(node.operands[2])])
    return made


def _logsumexp(writer: Writer, node: Node) -> str:
    scores, _ = _scores(writer, node)
    made: str = writer.add("ReduceLogSumExp", [scores, writer.integers([-1])], keepdims=0)
    return made


RULES: dict[str, Rule] = {"attention": _attention, "attention_logsumexp": _logsumexp}
