"""The table of all operators, and which entry a node has."""
from __future__ import annotations

from lavax.onnx.operators import (
    activations,
    attention,
    chance,
    control_flow,
    convolution,
    detection,
    elementwise,
    indexing,
    losses,
    normalization,
    pooling,
    products,
    quantized,
    recurrent,
    reductions,
    regions,
    resize,
    sampling,
    sequences,
    shaping,
    signal,
)
from lavax.onnx.operators.microsoft import arrays, fused, grouped
from lavax.onnx.operators.microsoft import attention as microsoft_attention
from lavax.onnx.operators.microsoft import quantized as microsoft_quantized
from lavax.onnx.operators.operator import Operator
from lavax.onnx.reading.graph import Node

FAMILIES = {
    "Elementwise": elementwise.OPERATORS,
    "Activations": activations.OPERATORS,
    "Reductions and cumulative operators": reductions.OPERATORS,
    "Shapes": shaping.OPERATORS,
    "Indexing": indexing.OPERATORS,
    "Products": products.OPERATORS,
    "Convolution": convolution.OPERATORS,
    "Pooling": pooling.OPERATORS,
    "Normalisation": normalization.OPERATORS,
    "Resizing and sampling": resize.OPERATORS + sampling.OPERATORS,
    "Attention": attention.OPERATORS,
    "Recurrent": recurrent.OPERATORS,
    "Control flow": control_flow.OPERATORS,
    "Sequences and optional values": sequences.OPERATORS,
    "Quantised": quantized.OPERATORS,
    "Signals": signal.OPERATORS,
    "Losses": losses.OPERATORS,
    "Chance": chance.OPERATORS,
    "Detection": detection.OPERATORS + regions.OPERATORS,
    "com.microsoft": (
        fused.OPERATORS + microsoft_attention.OPERATORS + grouped.OPERATORS + arrays.OPERATORS
        + microsoft_quantized.OPERATORS
    ),
}

TABLE: dict[tuple[str, str], list[Operator]] = {}
for _family in FAMILIES.values():
    for _entry in _family:
        TABLE.setdefault((_entry.domain, _entry.name), []).append(_entry)

PADDED: dict[tuple[str, str], Operator] = {
    (entry.domain, entry.name): entry for entry in detection.PADDED + indexing.PADDED
}


def entry_of(node: Node, padded: bool = False) -> Operator | None:
    """The entry for a node's operator in its version; with `padded` one of a fixed shape, where there is one."""
    if padded and (node.domain, node.operator) in PADDED:
        return PADDED[node.domain, node.operator]
    found = TABLE.get((node.domain, node.operator), [])
    return next((entry for entry in found if entry.since <= node.version <= entry.through), None)
