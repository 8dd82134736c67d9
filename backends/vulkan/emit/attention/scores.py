"""Whether attention and its derivatives are best computed by contractions, with scores in memory.

Costs are counted per pair of a query and a key, in multiplications and additions at the speed of a contraction. Kernels
of attention skip hidden pairs, but compute scores again for each derivative, and their tiles are smaller. Contractions
compute every pair, and write and read scores. docs/performance/products.md has the measurements.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.attention.cooperative_shape import LONGEST_HEAD, longest_head
from lavax.backends.vulkan.emit.attention.few_queries_shape import has_few_queries
from lavax.backends.vulkan.emit.attention.problem import BY_KEYS
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.ops.attention import GRADIENTS
from lavax.passes.build.attention import named_operands, pairs_in_blocks, visible_pairs


@dataclass(frozen=True)
class ScoreCosts:
    """The time of attention's derivatives, in operations of a contraction. Chosen by `python -m benchmarks comparison
    --only attention-backward --only gpt-step`; docs/performance/products.md."""

    # Products of all derivatives with the heads of queries, and with those of values.
    by_kernels: tuple[int, int] = (4, 3)
    by_contractions: tuple[int, int] = (3, 2)
    moved: int = 6  # times that contractions write or read a score
    move: int = 32  # operations in the time of writing or reading a score
    slower: float = 1.2  # operations of a contraction in the time of one in a kernel of attention
    long_head: int = 128  # tiles of longer heads are smaller
    slower_by_long_heads: float = 3.5  # the same with these
    gain: float = 1.1  # the least gain, because memory is worth a little time
    pairs: int = 1 << 20  # with fewer pairs, the launches of more kernels take longer than all else
    # The denominator of the greatest share of the device's memory that scores take. About four times as much is in use
    # at a time.
    part_of_memory: int = 32


@dataclass(frozen=True)
class FewKeys:
    """When workgroups of keys are too few for the queries that each goes over. Exercised by `python -m benchmarks
    architectures` (latent-denoiser)."""

    rows: int = 64  # keys of a workgroup
    busy: int = 2  # of so many processors have one at least
    queries: int = 1 << 11  # at least: 1.8 µs of an H200 for each 32 of them


@dataclass(frozen=True)
class ShortScores:
    """When scores are stored on CPU drivers, where products share a shader, but each kernel of attention takes a second
    to compile. Chosen by `python -m benchmarks first-calls comparison --only gpt-step`."""

    most: int = 4  # times the memory of the queries
    slower: float = 1.4  # times as long for a pair in kernels as in products
    compiling: int = 1 << 22  # operations that products may take more, for the compilation that they save


SCORE_COSTS = ScoreCosts()
_FEW_KEYS = FewKeys()
_SHORT_SCORES = ShortScores()
_SCORE_BYTES = 4


def stores_scores(node: Node, memory_bytes: int) -> bool:
    """Whether a node is a derivative of attention that products compute best, on a device with that much memory."""
    if node.op not in GRADIENTS:
        return False
    operands = named_operands(node)
    query, key, cotangent = (operands[name] for name in ("query", "key", "cotangent"))
    pairs = query.type.size // query.shape[-1] * key.shape[-2]
    if pairs < SCORE_COSTS.pairs or pairs * _SCORE_BYTES * SCORE_COSTS.part_of_memory > memory_bytes:
        return False
    heads = query.shape[-1], cotangent.shape[-1]
    slower = SCORE_COSTS.slower if max(heads) <= SCORE_COSTS.long_head else SCORE_COSTS.slower_by_long_heads
    by_kernels = visible_pairs(node) * _operations(SCORE_COSTS.by_kernels, heads) * slower
    moving = SCORE_COSTS.moved * SCORE_COSTS.move
    by_contractions = pairs * (_operations(SCORE_COSTS.by_contractions, heads) + moving)
    return by_kernels > SCORE_COSTS.gain * by_contractions


def has_few_keys(node: Node, processors: int, memory_bytes: int) -> bool:
    """Whether a gradient of keys or values leaves most processors idle, for long, in a kernel by matrices.

    So it is where an image's places read a few words. Products divide the sum over queries.
    """
    if node.op not in BY_KEYS:
        return False
    query, key = (named_operands(node)[name] for name in ("query", "key"))
    queries, keys = query.shape[-2], key.shape[-2]
    workgroups = key.type.size // (key.shape[-1] * keys) * -(-keys // _FEW_KEYS.rows)
    pairs = query.type.size // query.shape[-1] * keys
    is_long = queries >= _FEW_KEYS.queries and pairs >= SCORE_COSTS.pairs
    fits = pairs * _SCORE_BYTES * SCORE_COSTS.part_of_memory <= memory_bytes
    return is_long and fits and workgroups * _FEW_KEYS.busy < processors


def suits_products(node: Node, profile: DeviceProfile, memory_bytes: int) -> bool:
    """Whether attention is best computed by products of matrices: kernels of attention have none for heads as long."""
    precision = node.attrs["precision"]
    if profile.kind != "gpu" or not any(shape.dtype == precision for shape in profile.matrices):
        return False
    query, key = (named_operands(node)[name] for name in ("query", "key"))
    queries, keys = query.shape[-2], key.shape[-2]
    pairs = query.type.size // query.shape[-1] * keys
    if pairs < SCORE_COSTS.pairs or pairs * _SCORE_BYTES * SCORE_COSTS.part_of_memory > memory_bytes:
        return False
    return not has_few_queries(queries, keys) and longest_head({node.op: node}) > LONGEST_HEAD


def stores_short_scores(node: Node) -> bool:
    """Whether a node is a derivative of attention, over few keys, that products compute best on a CPU driver."""
    if node.op not in GRADIENTS:
        return False
    operands = named_operands(node)
    query, key, cotangent = (operands[name] for name in ("query", "key", "cotangent"))
    if key.shape[-2] > _SHORT_SCORES.most * query.shape[-1]:
        return False
    pairs = query.type.size // query.shape[-1] * key.shape[-2]
    operations = _operations(SCORE_COSTS.by_contractions, (query.shape[-1], cotangent.shape[-1]))
    return (pairs - _SHORT_SCORES.slower * pairs_in_blocks(node)) * operations <= _SHORT_SCORES.compiling


def pays_in_parts(node: Node, block: int, memory_bytes: int) -> bool:
    """Whether the gradient of queries is best computed by the kernel of keys' gradients, in parts of `block` keys.

    That saves two products of a kernel of its own, but the parts are written and read.
    """
    operands = named_operands(node)
    query, key, cotangent = (operands[name] for name in ("query", "key", "cotangent"))
    pairs, parts = query.type.size // query.shape[-1] * key.shape[-2], -(-key.shape[-2] // block)
    if parts == 1 or pairs < SCORE_COSTS.pairs or parts * query.type.nbytes * SCORE_COSTS.part_of_memory > memory_bytes:
        return False
    saved = visible_pairs(node) * 2 * (query.shape[-1] + cotangent.shape[-1]) * SCORE_COSTS.slower
    return saved > SCORE_COSTS.gain * 2 * SCORE_COSTS.move * parts * query.type.size


def _operations(products: tuple[int, int], heads: tuple[int, int]) -> int:
    return sum(2 * count * length for count, length in zip(products, heads, strict=True))
