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


def _fourier_spectrum(writer: Writer, node: Node) -> str:
    """The whole transform of real lines, of which neighbours stand side by side."""
    (x,) = node.operands
    lines, points, behind, _ = x.shape
    assert behind == 1
    form = writer.reshape(writer.full(x), (lines, 2 * points, 1))
    made: str = writer.add("DFT", [form, "", writer.tensor(1, "int64")], onesided=1)
    return writer.reshape(made, node.shape)


def _fourier_join(writer: Writer, node: Node) -> str:
    """Its inverse: the real part of the transform of the whole spectrum, whose second half mirrors the first."""
    (x,) = node.operands
    half = x.shape[1] - 1
    assert node.attrs["rest"] == 1
    whole = writer.full(x)
    if half > 1:
        backwards: str = writer.add("Slice", [whole, *map(writer.integers, ([half - 1], [0], [1], [-1]))])
        mirrored: str = writer.add("Mul", [backwards, writer.tensor([1.0, -1.0], node.dtype.user)])
        whole = writer.add("Concat", [whole, mirrored], axis=1)
    made: str = writer.add("DFT", [whole, "", writer.tensor(1, "int64")], inverse=1)
    made = writer.add("Mul", [made, writer.number(2 * half, node.dtype)])
    real: str = writer.add("Slice", [made, *map(writer.integers, ([0], [1], [2]))])
    return writer.reshape(real, node.shape)


RULES: dict[str, Rule] = {
    "fourier_join": _fourier_join,
    "fourier_spectrum": _fourier_spectrum,
    "fourier_step": _fourier_step,
}
