"""Whether attention on a GPU is best computed by contractions, with its scores in memory.

Counted for each pair of a query and a key, in the multiplications and additions that a contraction makes meanwhile.
Kernels of attention leave out pairs that nobody sees, but compute scores anew for each derivative, and their tiles are
smaller; contractions compute every pair, and write and read scores. Measured: docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lavax.ir.graph import Node
from lavax.passes.attention import named_operands, visible_pairs


@dataclass(frozen=True)
class _Ways:
    """Products with the head of queries and with that of values, by either way; how often a score is moved."""

    of_kernels: tuple[int, int]
    of_contractions: tuple[int, int]
    moved: int


# Derivatives share what contractions compute: these are a third of all three each, or two for two.
_GRADIENTS = _Ways(of_kernels=(4, 3), of_contractions=(3, 2), moved=9)
_WAYS: Mapping[str, _Ways] = dict.fromkeys(
    ("attention_query_gradient", "attention_key_gradient", "attention_value_gradient"), _GRADIENTS
)
# What a contraction computes while a kernel of attention does one operation, by the head's length: the longer, the
# smaller are tiles. Up to the length.
_SLOWER = ((64, 1.3), (128, 1.4), (256, 2.0))
# Operations in the time in which a score is written or read.
_MOVE = 40
# Fewer pairs take no longer than the launches of more kernels.
_WORTH = 1 << 22
# Of the device's memory all scores of a node may take this part; about four times as much is in use at a time.
_PART_OF_MEMORY = 32
_SCORE_BYTES = 4


def stores_scores(node: Node, memory_bytes: int) -> bool:
    """Whether a node of ir/ops/attention.py is to become products, on a device with so much memory."""
    ways = _WAYS.get(node.op)
    if ways is None:
        return False
    operands = named_operands(node)
    query, key, cotangent = (operands[name] for name in ("query", "key", "cotangent"))
    pairs = query.type.size // query.shape[-1] * key.shape[-2]
    if pairs < _WORTH or pairs * _SCORE_BYTES * _PART_OF_MEMORY > memory_bytes:
        return False
    heads = query.shape[-1], cotangent.shape[-1]
    slower = next((factor for length, factor in _SLOWER if max(heads) <= length), None)
    if slower is None:
        return True
    by_kernels = visible_pairs(node) * _operations(ways.of_kernels, heads) * slower
    return by_kernels > pairs * (_operations(ways.of_contractions, heads) + ways.moved * _MOVE)


def _operations(products: tuple[int, int], heads: tuple[int, int]) -> int:
    return sum(2 * count * length for count, length in zip(products, heads, strict=True))
