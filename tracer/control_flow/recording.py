"""Operations that hold graphs, recorded or run."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.location import user_location
from lavax.ir.types import TensorType, tuple_of
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.values.value import Value


def apply_control_flow(
    op: str, operands: Sequence[Value], parts: Sequence[TensorType], weak: Sequence[bool], **attrs: Any
) -> list[Value]:
    """The results of a control flow operation on `operands`: recorded in the active trace, or run at once."""
    inputs = [input_node(f"x{number}", operand.type) for number, operand in enumerate(operands)]
    node = make_node(op, inputs, attrs, tuple_of(parts), user_location())
    results = [make_node("item", (node,), {"index": number}) for number in range(len(parts))]
    return apply_graph(graph_of(inputs, results), operands, weak)
