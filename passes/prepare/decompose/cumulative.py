"""Splits long cumulative operations into chunks: folds each chunk, then the totals, then continues from each total.

The array is read twice and written once.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.ir.graph import Node
from lavax.ir.ops.cumulative import CUMULATIVE
from lavax.passes.build.builder import build, pad, slice_along
from lavax.passes.target.target import Target


def _cumulative(node: Node, target: Target) -> Node:
    chunk = target.rows.chunk(node)
    if chunk is None:
        return node
    (x,) = node.operands
    axis = node.attrs["axis"]
    attrs: dict[str, Any] = dict(fold=node.op, axis=axis, chunk=chunk, reverse=node.attrs["reverse"])
    totals = build("chunk_totals", x, **attrs)
    ends = _cumulative(build(node.op, totals, axis=axis), target)
    low = [int(d == axis) for d in range(x.type.rank)]
    nowhere = [0] * x.type.rank
    earlier = slice_along(ends, axis, 0, totals.shape[axis] - 1)
    _, fold = CUMULATIVE[node.op]
    starts = pad(earlier, low, nowhere, nowhere, fold.identity(x.dtype))
    return build("cumulative_chunks", x, starts, **attrs)


RULES: dict[str, Callable[[Node, Target], Node]] = dict.fromkeys(CUMULATIVE, _cumulative)
