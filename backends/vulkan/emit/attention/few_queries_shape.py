"""The schedule of attention of few queries on GPUs: a workgroup for a query and all its keys, or a part of them.

Writes no GLSL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from lavax.backends.vulkan.emit.attention.problem import problem_of
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.attention import PROJECTED
from lavax.ir.types import float32
from lavax.passes.build.attention import named_operands

_FORWARD = frozenset(("attention", "attention_logsumexp", *PROJECTED))


@dataclass(frozen=True)
class FewQueries:
    """Limits of such kernels. Exercised by `python -m benchmarks models` (decoding)."""

    queries: int = 4  # of a head, at most: each reads all keys for itself
    keys: int = 32  # fewer take one kernel no time
    workgroups: int = 512  # at most, where fewer can have all keys
    part: int = 128  # keys of a part, at least
    steps: int = 8  # keys of a lane, at most: their elements are in registers
    few_steps: int = 4  # as many where a workgroup's invocations suffice
    local: int = 1024
    projected: int = 20  # columns of a weight that a lane has 16 bytes of while its keys are joined, at most
    projected_bytes: int = 144 << 10  # of a head's part of a weight, at most: all workgroups of the head read it
    narrow: int = 16  # bits: elements of fewer are several in a word, of which a lane has whole ones
    projected_rows: int = 128  # at most: the workgroup that ends last adds up what each of them gives
    added: int = 1 << 25  # products of heads, times rows of the next products, which read them in workgroups, at most
    skipped_bytes: int = 1 << 24  # of keys and values, from which a workgroup asks first whether it has a visible key


FEW_QUERIES = FewQueries()


@dataclass(frozen=True)
class FewQueriesShape:
    """A workgroup of `local` invocations for `keys` of a query's keys, of which it has one of `parts`.

    `lanes` share a key, and each has `run` vectors of it. `skips_hidden`: whether a workgroup without visible keys
    reads none. `projected`: how many columns of a weight lanes that share one have, one after the other.
    """

    local: int
    lanes: int
    run: int
    keys: int
    parts: int
    skips_hidden: bool
    projected: int = 0

    @property
    def together(self) -> int:
        """Keys of a step."""
        return self.local // self.lanes

    @property
    def steps(self) -> int:
        return -(-self.keys // self.together)


def has_few_queries(queries: int, keys: int) -> bool:
    """Whether a head's queries are too few to fill a GPU with a workgroup for some of them, and its keys are many."""
    return queries <= FEW_QUERIES.queries and keys >= FEW_QUERIES.keys


def suits_one_kernel(node: Node, profile: DeviceProfile) -> bool:
    """Whether such a kernel suits attention of few queries, and is best to multiply what is to be projected."""
    shape = few_queries_shape(profile, {node.op: node})
    return shape is not None and (node.op not in PROJECTED or _is_best_projected(shape, node))


def leaves_heads(node: Node, rows: int, profile: DeviceProfile) -> bool:
    """Whether heads that are projected are best added up by the products that compute the sum's norm in their rows:
    by each of their workgroups, which then read little in all."""
    weight = named_operands(node)["weight"]
    *_, head, columns = weight.shape
    is_common = columns >= VECTOR * profile.subgroup_size
    return is_common and weight.type.size // head * rows <= FEW_QUERIES.added


def few_queries_shape(profile: DeviceProfile, nodes: Mapping[str, Node]) -> FewQueriesShape | None:
    """The schedule of a kernel that computes these nodes; None if it suits another.

    What is projected suits no other. What memory holds of its operands may have other bits than when it was chosen to
    be one node, as what it reads is stored where others read it, too: then it has a schedule all the same.
    """
    node = next(iter(nodes.values()))
    if not nodes.keys() <= _FORWARD or not all(_suits(each, profile) for each in nodes.values()):
        return None
    problem, run = problem_of(nodes), _run(node)
    lanes, most = _lanes(node.operands[0].shape[-1], run), _most_local(profile)
    longest = FEW_QUERIES.steps * most // lanes
    rows, most_parts = problem.count * problem.rows, profile.subgroup_size  # each has a lane where they are joined
    wanted = min(problem.keys // FEW_QUERIES.part, FEW_QUERIES.workgroups // rows, most_parts)
    parts = max(wanted, -(-problem.keys // longest), 1)
    if parts > most_parts and node.op not in PROJECTED:
        return None
    parts = min(parts, most_parts)
    keys = -(-problem.keys // parts)
    local = profile.subgroup_size
    while local < most and local // lanes * FEW_QUERIES.few_steps < keys:
        local *= 2
    shape = FewQueriesShape(local, lanes, run, keys, parts, _skips_hidden(node))
    return _projecting(shape, node, most) if node.op in PROJECTED else shape


def _projecting(shape: FewQueriesShape, node: Node, most: int) -> FewQueriesShape | None:
    """The same with the columns of a weight that are multiplied; None if these are no vectors."""
    size = named_operands(node)["weight"].shape[-1]
    while -(-size // shape.together) > FEW_QUERIES.projected and shape.local < most:
        shape = replace(shape, local=2 * shape.local)
    return None if size % VECTOR else replace(shape, projected=-(-size // shape.together))


def _is_best_projected(shape: FewQueriesShape, node: Node) -> bool:
    """Whether workgroups are not best to leave a weight to others: they have it in registers, beside as many keys."""
    operands, limits = named_operands(node), FEW_QUERIES
    weight, key = operands["weight"], operands["key"]
    rows, nbytes = weight.type.size // (weight.shape[-2] * weight.shape[-1]), _stored_bytes(weight)
    is_small = nbytes // rows <= limits.projected_bytes and rows <= limits.projected_rows
    is_held = shape.projected <= limits.projected and shape.steps <= limits.steps
    bits = 8 * nbytes / weight.type.size
    return is_small and is_held and (bits == _stored_bits(key) or bits < limits.narrow)


def _skips_hidden(node: Node) -> bool:
    """Whether ending workgroups without visible keys gains more than it takes to wait for what says which keys are."""
    if node.attrs["fill"] != -inf or not node.attrs["masked"]:
        return False
    key = node.operands[1]
    return 2 * key.type.size * _stored_bits(key) // 8 >= FEW_QUERIES.skipped_bytes


def _suits(node: Node, profile: DeviceProfile) -> bool:
    if profile.kind != "gpu" or not (profile.subgroup_shuffle and profile.knows_subgroup_size):
        return False
    if node.op not in _FORWARD or node.operands[0].dtype != float32:
        return False
    operands, problem = named_operands(node), problem_of({node.op: node})
    head = operands["query"].shape[-1]
    is_shared = head % VECTOR == 0 and _is_power_of_two(head // VECTOR) and head // VECTOR <= profile.subgroup_size
    is_alike = "value" not in operands or operands["value"].shape[-1] == head
    return is_shared and is_alike and has_few_queries(problem.queries, problem.keys)


def _lanes(head: int, run: int) -> int:
    """Lanes that share a key."""
    return head // (VECTOR * run)


def _most_local(profile: DeviceProfile) -> int:
    """Subgroups of a workgroup exchange by one more shuffle, so there are no more of them than lanes."""
    return min(FEW_QUERIES.local, profile.max_workgroup_invocations, profile.subgroup_size**2)


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _run(node: Node) -> int:
    """Neighbouring vectors of a lane: two of 16 bits are one load."""
    key, head = node.operands[1], node.operands[0].shape[-1]
    return 2 if _stored_bits(key) == 16 and head % (2 * VECTOR) == 0 else 1


def _stored_bits(node: Node) -> int:
    """The bits of an element of the largest value in memory that a value is made of."""
    return max(_stored(node) or [node], key=lambda each: each.type.size).dtype.bits


def _stored_bytes(node: Node) -> int:
    """The bytes of the values in memory that a value is made of."""
    return sum(each.type.nbytes for each in _stored(node) or [node])


def _stored(node: Node) -> list[Node]:
    """The values in memory that a value is made of."""
    found, ahead, seen = [], [node], {node}
    while ahead:
        each = ahead.pop()
        if each.op in OPERATIONS and OPERATIONS[each.op].family in ("elementwise", "movement"):
            ahead += (operand for operand in each.operands if operand not in seen)
            seen.update(each.operands)
        elif each.op not in ("constant", "iota"):
            found.append(each)
    return found
