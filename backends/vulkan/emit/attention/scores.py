"""Whether derivatives of attention are best computed by contractions, with scores in memory.

Counted for each pair of a query and a key, in the multiplications and additions that a contraction makes meanwhile.
Kernels of attention leave out pairs that nobody sees, but compute scores anew for each derivative, and their tiles are
smaller; contractions compute every pair, and write and read scores. Measured: docs/benchmarks.md.
"""

from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.ops.attention import GRADIENTS
from lavax.passes.build.attention import named_operands, pairs_in_blocks, visible_pairs

# Products of all derivatives with the heads of queries and with those of values, by kernels and by contractions, and
# how often these write or read a score.
_BY_KERNELS, _BY_CONTRACTIONS, _MOVED = (4, 3), (3, 2), 6
# What a contraction computes while a kernel of attention does one operation: up to a length of heads, beyond which
# tiles are smaller, and above.
_SLOWER, _LONG_HEAD, _SLOWER_BY_LONG_HEADS = 1.2, 128, 3.5
# Memory is worth a little time.
_GAIN = 1.1
# Operations in the time in which a score is written or read.
_MOVE = 32
# Fewer pairs take no longer than the launches of more kernels.
_WORTH = 1 << 20
# Of the device's memory all scores of a node may take this part; about four times as much is in use at a time.
PART_OF_MEMORY = 32
_SCORE_BYTES = 4
# On CPU drivers, where products share a shader with others and each kernel of attention takes a second to compile:
# scores are stored where they take no more than so many times the memory of the queries. Kernels take so many times as
# long for a pair in blocks that are not hidden. For what compiling saves, products may take so many operations more.
_SHORT, _SLOWER_ON_CPU, _COMPILED = 4, 1.4, 1 << 22


def stores_scores(node: Node, memory_bytes: int) -> bool:
    """Whether a node is a derivative of attention that is to become products, on a device with so much memory."""
    if node.op not in GRADIENTS:
        return False
    operands = named_operands(node)
    query, key, cotangent = (operands[name] for name in ("query", "key", "cotangent"))
    pairs = query.type.size // query.shape[-1] * key.shape[-2]
    if pairs < _WORTH or pairs * _SCORE_BYTES * PART_OF_MEMORY > memory_bytes:
        return False
    heads = query.shape[-1], cotangent.shape[-1]
    slower = _SLOWER if max(heads) <= _LONG_HEAD else _SLOWER_BY_LONG_HEADS
    by_kernels = visible_pairs(node) * _operations(_BY_KERNELS, heads) * slower
    return by_kernels > _GAIN * pairs * (_operations(_BY_CONTRACTIONS, heads) + _MOVED * _MOVE)


def stores_short_scores(node: Node) -> bool:
    """Whether a node is a derivative of attention, over few keys, that is to become products on a CPU driver."""
    if node.op not in GRADIENTS:
        return False
    operands = named_operands(node)
    query, key, cotangent = (operands[name] for name in ("query", "key", "cotangent"))
    if key.shape[-2] > _SHORT * query.shape[-1]:
        return False
    pairs = query.type.size // query.shape[-1] * key.shape[-2]
    operations = _operations(_BY_CONTRACTIONS, (query.shape[-1], cotangent.shape[-1]))
    return (pairs - _SLOWER_ON_CPU * pairs_in_blocks(node)) * operations <= _COMPILED


def pays_in_parts(node: Node, block: int, memory_bytes: int) -> bool:
    """Whether the gradient of queries is best computed in parts for `block` keys each by the kernel of keys' gradients.

    That saves the two products of a kernel of its own, and writes and reads the parts.
    """
    operands = named_operands(node)
    query, key, cotangent = (operands[name] for name in ("query", "key", "cotangent"))
    pairs, parts = query.type.size // query.shape[-1] * key.shape[-2], -(-key.shape[-2] // block)
    if parts == 1 or pairs < _WORTH or parts * query.type.nbytes * PART_OF_MEMORY > memory_bytes:
        return False
    saved = visible_pairs(node) * 2 * (query.shape[-1] + cotangent.shape[-1]) * _SLOWER
    return saved > _GAIN * 2 * _MOVE * parts * query.type.size


def _operations(products: tuple[int, int], heads: tuple[int, int]) -> int:
    return sum(2 * count * length for count, length in zip(products, heads, strict=True))
