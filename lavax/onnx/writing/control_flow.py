"""How branches and loops are written: their graphs read values of the graphs around them by name."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Graph, Node
from lavax.ir.ops.control_flow import output_types
from lavax.ir.types import DTYPES, TensorType
from lavax.onnx.writing.writer import Result, Rule, Writer, subgraph

_I32, _TRUTH = DTYPES["i32"], TensorType((), DTYPES["bool"])


def _item(writer: Writer, node: Node) -> str:
    part: int = node.attrs["index"]
    return writer.parts(node.operands[0])[part]


def _as_tuple(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _switch(writer: Writer, node: Node) -> Result:
    index, *arguments = node.operands
    names = [writer.full(argument) for argument in arguments]
    return _branches(writer, writer.full(index), node.attrs["branches"], 0, names)


def _branches(writer: Writer, index: str, branches: Sequence[Graph], first: int, names: list[str]) -> tuple[str, ...]:
    """The branches from `first` on: the first of them, or the others."""
    types = output_types(branches[first])
    if first == len(branches) - 1:
        inner, made = writer.within(branches[first], names)
        writer.nodes += inner.nodes
        return tuple(made)
    is_first = writer.add("LessOrEqual", [index, writer.number(first, _I32)])
    inner, made = writer.within(branches[first], names)
    other = Writer(writer.file)
    rest = _branches(other, index, branches, first + 1, names)
    chosen, otherwise = (
        subgraph(each, [], list(zip(outputs, types, strict=True))) for each, outputs in ((inner, made), (other, rest))
    )
    return _as_tuple(writer.add("If", [is_first], len(types), then_branch=chosen, else_branch=otherwise))


def _fresh(writer: Writer, types: Sequence[TensorType], name: str) -> list[tuple[str, TensorType]]:
    return [(writer.file.fresh(name), type) for type in types]


def _while(writer: Writer, node: Node) -> Result:
    condition, body = node.attrs["condition"], node.attrs["body"]
    names, count = [writer.full(operand) for operand in node.operands], len(body.outputs)
    types, fixed = output_types(body), names[count:]
    first, (goes_on,) = writer.within(condition, names)
    writer.nodes += first.nodes
    step = _fresh(writer, [TensorType((), DTYPES["i64"]), _TRUTH], "step")
    carried = _fresh(writer, types, "carried")
    inner, made = writer.within(body, [*(name for name, _ in carried), *fixed])
    test, (next_goes_on,) = inner.within(condition, [*made, *fixed])
    inner.nodes += test.nodes
    outputs = [(next_goes_on, _TRUTH), *zip(made, types, strict=True)]
    graph = subgraph(inner, [*step, *carried], outputs)
    return _as_tuple(writer.add("Loop", ["", goes_on, *names[:count]], count, body=graph))


def _scan(writer: Writer, node: Node) -> Result:
    body, carries, sequences = node.attrs["body"], node.attrs["carries"], node.attrs["sequences"]
    names = [writer.full(operand) for operand in node.operands]
    types = output_types(body)
    inputs = [inner.type for inner in body.inputs[: carries + sequences]]
    given = _fresh(writer, inputs, "row")
    through = names[: carries + sequences]
    inner, made = writer.within(body, [*(name for name, _ in given), *names[carries + sequences :]])
    if not sequences:  # the operator goes through one at least
        given += _fresh(writer, [TensorType((), _I32)], "row")
        through = [*through, writer.tensor([0] * node.attrs["length"], "int32")]
    graph = subgraph(inner, given, list(zip(made, types, strict=True)))
    turned = {
        f"scan_{side}_directions": [1] * count
        for side, count in (("input", max(sequences, 1)), ("output", len(types) - carries))
        if node.attrs["reverse"] and count
    }
    made = writer.add("Scan", through, len(types), body=graph, num_scan_inputs=max(sequences, 1), **turned)
    return _as_tuple(made)


RULES: dict[str, Rule] = {"item": _item, "scan": _scan, "switch": _switch, "while": _while}
