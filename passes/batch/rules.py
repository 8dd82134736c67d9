"""The table of batching rules: one per operation."""
from __future__ import annotations

from lavax.ir.operation import OPERATIONS, names_of_family
from lavax.passes.batch import calls, contraction, control_flow, indexing, named_axes, shifting
from lavax.passes.batch.batch_rule import BatchRule, batched_by
from lavax.passes.batch.elementwise import elementwise

RULES: dict[str, BatchRule] = {
    **{name: batched_by(elementwise) for name, operation in OPERATIONS.items() if operation.family == "elementwise"},
    **shifting.RULES,
    **indexing.RULES,
    **contraction.RULES,
    **named_axes.RULES,
    **calls.RULES,
    **control_flow.RULES,
}

# Operations without operands are the same for all elements of a batch; those of lowering are made after batching.
NEVER_BATCHED = names_of_family("source") | names_of_family("lowered")
