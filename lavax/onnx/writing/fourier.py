"""How Fourier transforms are written: the parts of numbers lie side by side along the last axis, as for the DFT."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.onnx.writing.writer import Rule, Writer


def _fourier_step(writer: Writer, node: Node) -> str:
    """A whole transform: a step among several is made for a device, which a file has none of."""
    (x,) = node.operands
    lines, points, rest, behind, parts = x.shape
    assert rest == 1
    form = writer.reshape(writer.full(x), (lines, points, behind, parts))
    reverse = int(node.attrs["reverse"])
    made: str = writer.add("DFT", [form, "", writer.tensor(1, "int64")], inverse=reverse)
    if reverse:  # the operator's inverse is divided by the number of points
        made = writer.add("Mul", [made, writer.number(points, node.dtype)])
    return writer.reshape(made, node.shape)


RULES: dict[str, Rule] = {"fourier_step": _fourier_step}
