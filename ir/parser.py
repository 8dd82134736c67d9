"""Text -> graph: the inverse of the printer."""
from __future__ import annotations

import re
from typing import Any

from lavax.base.errors import CustomRuleError, LavaxError, ParseError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.attributes import FUNCTION, RULE, domain_of
from lavax.ir.graph import Graph, LaterGraph, Node, input_node
from lavax.ir.host_function import HostFunction, routine_named
from lavax.ir.limits import MOST_NESTED, fault_of_type
from lavax.ir.node_rules import broken_rule
from lavax.ir.operation import OPERATIONS
from lavax.ir.printer import structural_key
from lavax.ir.types import DTYPES, TensorType, tuple_of

# Of a graph's texts within texts.
_BRACES = re.compile(r"[{}]")
_NAME = r"[A-Za-z_][\w.]*"
_ANY_TYPE = r"\w+\[[0-9,]*\]"
_HEADER = re.compile(r"graph \((?P<inputs>.*)\) \{")
_INPUT = re.compile(rf"(?P<name>{_NAME}): (?P<type>{_ANY_TYPE})(?:, |$)")
_NODE = re.compile(
    rf"(?P<name>%[0-9]+) = (?P<op>\w+)\((?P<operands>[^)]*)\)(?P<attributes>.*) : (?P<type>{_ANY_TYPE}|\([^()]*\))",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"\s*(?P<key>\w+)=")
_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[0-9,]*)\]")
_INTEGER = re.compile(r"-?[0-9]+")
_SPACE = re.compile(r"\s")
_QUOTE = re.compile(r'(?<=")(?=\s|$)')  # the place behind it
_MOST_DIGITS = 20  # of 64 bits and a sign: Python takes long over thousands
_DEEPEST_LIST = 3  # lists within lists
_LATER = {f'"{text}"': text for text in (LaterGraph.ITSELF, LaterGraph.LATER)}


@dataclass(frozen=True)
class _Call:
    """A call of a function with rules of its own, in which they are being read: its attributes as far as they are."""

    op: str
    attributes: dict[str, Any]

    def rule(self, name: str) -> Graph:
        rule = self.attributes[name]
        return rule.graph if isinstance(rule, LaterGraph) else rule


_Around = tuple[_Call, ...]  # the calls in whose rules a text stands, from the outermost


def parse_type(text: str) -> TensorType:
    """`f32[2,3]` -> TensorType, `(f32[2], i32[])` -> TupleType."""
    if text.startswith("("):
        return tuple_of(parse_type(part) for part in text[1:-1].split(", ") if part)
    found = _TYPE.fullmatch(text)
    if found is None or found["dtype"] not in DTYPES:
        raise ParseError(f"{text!r:.80} is not a type such as f32[2,3] (dtypes: {', '.join(DTYPES)})")
    shape = tuple(_integer(extent) for extent in found["shape"].split(",") if extent)
    type = TensorType(shape, DTYPES[found["dtype"]])
    fault = fault_of_type(type)
    if fault is not None:
        raise ParseError(fault)
    return type


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ParseError(f"{text:.40}… is no integer of 64 bits")
    return int(text)


def parse_attribute(text: str) -> Any:
    """The inverse of the printer's `format_attribute`."""
    return _parsed_attribute(text, 0, 0, ())


def _parsed_attribute(text: str, graphs: int, lists: int, around: _Around) -> Any:
    """An attribute inside so many graphs and lists, and the rules of such calls."""
    if text.startswith("graph "):
        return _parse(text, graphs + 1, around)
    if text.startswith("[graph "):
        return tuple(_parse(part, graphs + 1, around) for part in _split_graphs(text[1:-1]))
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            raise ParseError(f"{text:.80} is a text without its end")
        return text[1:-1]
    if "]x[" in text:
        return tuple(_list(part, lists) for part in text.split("]x["))
    if text.startswith("["):
        if not text.endswith("]"):
            raise ParseError(f"{text:.80} is a list without its end")
        return _list(text, lists)
    if text in ("true", "false"):
        return text == "true"
    if text.endswith(("j", "j)")):
        return complex(text)
    return _integer(text) if _INTEGER.fullmatch(text) else float(text)


def _list(text: str, lists: int) -> tuple[Any, ...]:
    if lists == _DEEPEST_LIST:
        raise ParseError(f"{text:.80}: lists are nested more than {_DEEPEST_LIST} deep")
    inner = text.removeprefix("[").removesuffix("]")
    return tuple(_parsed_attribute(part, 0, lists + 1, ()) for part in inner.split(",") if part)


def _end_of_graph(text: str, start: int) -> int:
    """The end of the graph that begins at `start`: the position after its closing brace."""
    depth = 0
    for found in _BRACES.finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if depth <= 0:
            return found.end()
    raise ParseError("a graph is not closed by '}'")


def _split_graphs(text: str) -> list[str]:
    graphs, position = [], 0
    while position < len(text):
        end = _end_of_graph(text, position)
        graphs.append(text[position:end])
        position = end + 1  # a comma
    return graphs


def _split_attributes(text: str) -> dict[str, str]:
    """` key=value key=value` as a dict; values end at a space, texts at their quote, graphs at their closing brace."""
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _ATTRIBUTE.match(text, position)
        if match is None:
            raise ParseError(f"not an attribute: {text[position:]!r:.80}")
        start = end = match.end()
        if text.startswith(("graph ", "[graph "), start):
            end = _end_of_graph(text, start)
            while text.startswith(",", end):
                end = _end_of_graph(text, end)
            end += text.startswith("]", end)
        else:
            ending = (_QUOTE if text.startswith('"', start) else _SPACE).search(text, start)
            end = len(text) if ending is None else ending.start()
        if match["key"] in found:
            raise ParseError(f"the attribute {match['key']} is given twice")
        found[match["key"]] = text[start:end]
        position = end
    return found


def _later_rule(name: str, call: _Call, text: str, around: _Around) -> LaterGraph:
    """The rule of a call that stands in a rule of the same function: that of the innermost call with the same body."""
    body = structural_key(call.attributes["body"])
    own = (each for each in reversed(around) if each.op == call.op and structural_key(each.attributes["body"]) == body)
    found = next(own, None) if text == LaterGraph.ITSELF else None

    def make() -> Graph:
        if found is None:
            raise CustomRuleError(
                f'{call.op}: the graph was read from a text, which does not hold this call\'s {name}, only "{text}": '
                "print the graph of the derivative in its place"
            )
        return found.rule(name)

    return LaterGraph(make, text)


def _routine(text: str) -> HostFunction:
    """The function on the host that a text names."""
    found = routine_named(text[1:-1])
    if found is None:
        raise ParseError(
            f"{text:.80} is a Python function, which a text does not hold: only lavax's own routines can be read"
        )
    return found


def _parse_node(line: str, values: dict[str, Node], depth: int, around: _Around) -> tuple[str, Node]:
    found = _NODE.fullmatch(line)
    if found is None:
        raise ParseError("not of the form '%0 = op(operands) attribute=value : type'")
    if found["op"] not in OPERATIONS:
        raise ParseError(f"unknown operation {found['op']!r:.80}")
    operation = OPERATIONS[found["op"]]
    given = _split_attributes(found["attributes"])
    if {*given, *operation.defaults} != set(operation.attributes):
        raise ParseError(f"{operation.name} takes the attributes {list(operation.attributes)}, got {list(given)}")
    attributes = dict(operation.defaults)
    call = _Call(operation.name, attributes)
    for key, text in given.items():
        domain = domain_of(operation.name, key)
        if domain is FUNCTION:
            attributes[key] = _routine(text)
        elif domain is not RULE:
            attributes[key] = _parsed_attribute(text, depth, 0, around)
        elif text in _LATER and isinstance(attributes.get("body"), Graph):
            attributes[key] = _later_rule(key, call, _LATER[text], around)
        else:
            attributes[key] = _parsed_attribute(text, depth, 0, (*around, call))
    operands = [_lookup(name, values) for name in found["operands"].split(", ") if name]
    declared = parse_type(found["type"])
    broken = broken_rule(operation.name, [operand.type for operand in operands], attributes, declared)
    if broken is not None:
        raise ParseError(broken)
    return found["name"], Node(operation.name, tuple(operands), attributes, declared)


def _lookup(name: str, values: dict[str, Node]) -> Node:
    if name not in values:
        raise ParseError(f"{name:.80} is not defined before its use")
    return values[name]


def _statements(text: str) -> list[tuple[int, str]]:
    """The statements with their line numbers; a node that holds graphs is one statement of several lines."""
    statements: list[tuple[int, list[str]]] = []
    depth = 0
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.partition("  # ")[0].strip()  # what follows names a scope
        if not line:
            continue
        if depth > 1:
            statements[-1][1].append(line)
        else:
            statements.append((number, [line]))
        depth += line.count("{") - line.count("}")
    return [(number, "\n".join(lines)) for number, lines in statements]


def _inputs(text: str) -> list[Node]:
    """`x: f32[2], y: i32[]` as input nodes."""
    inputs, position = [], 0
    while position < len(text):
        found = _INPUT.match(text, position)
        if found is None:
            raise ParseError(f"not an input such as 'x: f32[2,3]': {text[position:]!r:.80}")
        inputs.append(input_node(found["name"], parse_type(found["type"])))
        position = found.end()
    return inputs


def parse(text: str) -> Graph:
    """Reads the text of a graph. Raises ParseError, which names the line, if it is malformed."""
    if not isinstance(text, str):
        raise TypeError(f"parse takes the text of a graph, got {text!r:.80}")
    return _parse(text, 0, ())


def _parse(text: str, depth: int, around: _Around) -> Graph:
    """A graph inside so many others, and the rules of such calls."""
    lines = _statements(text)
    values: dict[str, Node] = {}
    number, line = lines[0] if lines else (1, "")
    try:
        if depth > MOST_NESTED:
            raise ParseError(f"graphs are nested more than {MOST_NESTED} deep")
        header = _HEADER.fullmatch(line)
        if header is None or len(lines) < 3 or lines[-1][1] != "}":
            raise ParseError("a graph begins with 'graph (name: type, …) {' and ends with '}'")
        inputs = _inputs(header["inputs"])
        values.update((node.name, node) for node in inputs)
        nodes = []
        for number, line in lines[1:-2]:  # noqa: B007  # the error tells the number
            name, node = _parse_node(line, values, depth, around)
            values[name] = node
            nodes.append(node)
        number, line = lines[-2]
        if line.partition(" ")[0] != "return":
            raise ParseError("the last line but one is 'return …'")
        outputs = [_lookup(name, values) for name in line.removeprefix("return").strip().split(", ") if name]
    except (LavaxError, ValueError) as error:
        raise ParseError(f"line {number}: {error}\n  {line:.500}") from None
    return Graph(tuple(inputs), tuple(nodes), tuple(outputs))
