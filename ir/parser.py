"""Text -> graph: the inverse of the printer."""
from __future__ import annotations

import re
from typing import Any

from lavax.base.errors import DtypeError, ParseError, ShapeError
from lavax.ir.graph import Graph, Node, input_node, make_node
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import DTYPES, TensorType, tuple_of

_NAME = r"[A-Za-z_][\w.]*"
_HEADER = re.compile(r"graph \((?P<inputs>.*)\) \{")
_INPUT = re.compile(rf"(?P<name>{_NAME}): (?P<type>\w+\[[\d,]*\])")
_NODE = re.compile(
    r"(?P<name>%\d+) = (?P<op>\w+)\((?P<operands>[^)]*)\)(?P<attributes>.*) : (?P<type>\w+\[[\d,]*\]|\([^()]*\))",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"\s*(?P<key>\w+)=")
_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")


def parse_type(text: str) -> TensorType:
    """`f32[2,3]` -> TensorType, `(f32[2], i32[])` -> TupleType."""
    if text.startswith("("):
        return tuple_of(parse_type(part) for part in text[1:-1].split(", ") if part)
    found = _TYPE.fullmatch(text)
    if found is None or found["dtype"] not in DTYPES:
        raise ParseError(f"{text!r} is not a type such as f32[2,3] (dtypes: {', '.join(DTYPES)})")
    shape = tuple(int(extent) for extent in found["shape"].split(",") if extent)
    return TensorType(shape, DTYPES[found["dtype"]])


def parse_attribute(text: str) -> Any:
    """The inverse of the printer's `format_attribute`."""
    if text.startswith("graph "):
        return parse(text)
    if text.startswith("[graph "):
        return tuple(parse(part) for part in _split_graphs(text[1:-1]))
    if text.startswith('"'):
        return text[1:-1]
    if "]x[" in text:
        return tuple(parse_attribute(part) for part in text.split("x"))
    if text.startswith("["):
        return tuple(parse_attribute(part) for part in text[1:-1].split(",") if part)
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _end_of_graph(text: str, start: int) -> int:
    """The end of the graph that begins at `start`: the position after its closing brace."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0 and text[position] == "}":
            return position + 1
    raise ParseError("a graph is not closed by '}'")


def _split_graphs(text: str) -> list[str]:
    graphs, position = [], 0
    while position < len(text):
        end = _end_of_graph(text, position)
        graphs.append(text[position:end])
        position = end + 1  # a comma
    return graphs


def _split_attributes(text: str) -> dict[str, str]:
    """` key=value key=value` as a dict; values end at a space, graphs at their closing brace."""
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _ATTRIBUTE.match(text, position)
        if match is None:
            raise ParseError(f"not an attribute: {text[position:]!r}")
        start = end = match.end()
        if text.startswith(("graph ", "[graph "), start):
            end = _end_of_graph(text, start)
            while text.startswith(",", end):
                end = _end_of_graph(text, end)
            end += text.startswith("]", end)
        else:
            end = next((at for at in range(start, len(text)) if text[at].isspace()), len(text))
        found[match["key"]] = text[start:end]
        position = end
    return found


def _parse_node(line: str, values: dict[str, Node]) -> tuple[str, Node]:
    found = _NODE.fullmatch(line)
    if found is None:
        raise ParseError("not of the form '%0 = op(operands) attribute=value : type'")
    if found["op"] not in OPERATIONS:
        raise ParseError(f"unknown operation {found['op']!r}")
    operation = OPERATIONS[found["op"]]
    given = _split_attributes(found["attributes"])
    if {*given, *operation.defaults} != set(operation.attributes):
        raise ParseError(f"{operation.name} takes the attributes {list(operation.attributes)}, got {list(given)}")
    attributes = {**operation.defaults, **{key: parse_attribute(text) for key, text in given.items()}}
    names = [name for name in found["operands"].split(", ") if name]
    declared = parse_type(found["type"])
    node = make_node(operation.name, [_lookup(name, values) for name in names], attributes, declared)
    if node.type != declared:
        raise ParseError(f"{operation.name} gives {node.type}, the text says {declared}")
    return found["name"], node


def _lookup(name: str, values: dict[str, Node]) -> Node:
    if name not in values:
        raise ParseError(f"{name} is not defined before its use")
    return values[name]


def _statements(text: str) -> list[tuple[int, str]]:
    """The statements with their line numbers; a node that holds graphs is one statement of several lines."""
    statements: list[tuple[int, str]] = []
    depth = 0
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.partition("  # ")[0]  # what follows names a scope
        if not line.strip():
            continue
        if depth > 1:
            statements[-1] = (statements[-1][0], f"{statements[-1][1]}\n{line.strip()}")
        else:
            statements.append((number, line.strip()))
        depth += line.count("{") - line.count("}")
    return statements


def parse(text: str) -> Graph:
    """Reads the text of a graph. Raises ParseError, which names the line, if it is malformed."""
    if not isinstance(text, str):
        raise TypeError(f"parse takes the text of a graph, got {text!r:.80}")
    lines = _statements(text)
    values: dict[str, Node] = {}
    number, line = lines[0] if lines else (1, "")
    try:
        header = _HEADER.fullmatch(line)
        if header is None or len(lines) < 3 or lines[-1][1] != "}":
            raise ParseError("a graph begins with 'graph (name: type, …) {' and ends with '}'")
        inputs = [input_node(found["name"], parse_type(found["type"])) for found in _INPUT.finditer(header["inputs"])]
        values.update((node.name, node) for node in inputs)
        nodes = []
        for number, line in lines[1:-2]:  # noqa: B007  # the error tells the number
            name, node = _parse_node(line, values)
            values[name] = node
            nodes.append(node)
        number, line = lines[-2]
        if not line.startswith("return"):
            raise ParseError("the last line but one is 'return …'")
        outputs = [_lookup(name, values) for name in line.removeprefix("return").strip().split(", ") if name]
    except (ParseError, ShapeError, DtypeError, ValueError) as error:
        raise ParseError(f"line {number}: {error}\n  {line}") from None
    return Graph(tuple(inputs), tuple(nodes), tuple(outputs))
