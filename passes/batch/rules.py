"""The table of batching rules: one an operation."""
from __future__ import annotations

from lavax.ir.operation import OPERATIONS
from lavax.passes.batch import calls, contraction, indexing, named_axes, regions, shifting
from lavax.passes.batch.elementwise import elementwise
from lavax.passes.batch.rule import Rule, batched_by

RULES: dict[str, Rule] = {
    **{name: batched_by(elementwise) for name, operation in OPERATIONS.items() if operation.family == "elementwise"},
    **shifting.RULES,
    **indexing.RULES,
    **contraction.RULES,
    **named_axes.RULES,
    **calls.RULES,
    **regions.RULES,
}

# Operations without operands, which are the same for all elements, and those that only lowering makes, which is later.
NEVER_BATCHED = frozenset(
    {
        *("constant", "iota", "householder", "jacobi", "sort_runs", "merge_runs", "count_digits", "move_by_digit"),
        *("fold_runs", "join_runs", "chunk_totals", "cumulative_chunks"),
    }
)
