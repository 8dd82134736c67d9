"""What is nested too deep or too large is refused before work begins, by an error that names it."""
from __future__ import annotations

import time

import pytest

from lavax.base.errors import LavaxError, ParseError, VerificationError
from lavax.ir import OPERATIONS, Graph, TensorType, float32, parse, verify
from lavax.ir.attributes import DOMAINS, EXCEPTIONS
from lavax.ir.graph import Node, graph_of, input_node
from lavax.ir.limits import MOST_AXES, MOST_NESTED
from lavax.ir.types import tuple_of

IDENTITY = "graph (x: f32[2]) {\n  return x\n}"


def nested(depth: int) -> str:
    text = IDENTITY
    for _ in range(depth):
        text = (
            f'graph (x: f32[2]) {{\n  %0 = checkpoint(x) keep="nothing" body={text} : (f32[2])\n'
            "  %1 = item(%0) index=0 : f32[2]\n  return %1\n}"
        )
    return text


def test_graphs_as_deep_as_they_may_be_are_read() -> None:
    graph = parse(nested(MOST_NESTED))
    verify(graph)
    assert str(parse(str(graph))) == str(graph)


@pytest.mark.parametrize("depth", [MOST_NESTED + 1, 300, 3000])
def test_deeper_graphs_are_refused(depth: int) -> None:
    with pytest.raises(ParseError, match=f"nested more than {MOST_NESTED} deep"):
        parse(nested(depth))


def test_the_verifier_refuses_deeper_graphs() -> None:
    x = input_node("x", TensorType((2,), float32))
    graph = graph_of([x], [x])
    for _ in range(300):
        made = Node("checkpoint", (x,), {"keep": "nothing", "body": graph, "named": 0}, tuple_of([x.type]))
        graph = Graph((x,), (made, item := Node("item", (made,), {"index": 0}, x.type)), (item,))
    with pytest.raises(VerificationError, match=f"nested more than {MOST_NESTED} deep"):
        verify(graph)


TEXTS = {
    "unclosed": "graph (x: f32[2]) {\n" + " %0 = switch(x) branches=[" * 2000,
    "unclosed graphs": "graph (x: f32[2]) {\n" + " %0 = switch(x) branches=[graph (x: f32[2]) {\n" * 2000,
    "brackets": "graph (x: f32[2]) {\n  %0 = sum(x) axes=" + "[" * 100_000 + " : f32[]\n  return %0\n}",
    "closed brackets": "graph (x: f32[2]) {\n %0 = sum(x) axes=" + "[" * 9999 + "]" * 9999 + " : f32[]\n return %0\n}",
    "parentheses": "(" * 100_000,
    "axes": "graph (x: f32[" + ",".join(["9"] * 100_000) + "]) {\n  return x\n}",
    "axes of extent 1": "graph (x: f32[" + ",".join(["1"] * (MOST_AXES + 1)) + "]) {\n  return x\n}",
    "elements": "graph (x: f32[4294967296,4294967296]) {\n  return x\n}",
    "extent": "graph (x: f32[0,99999999999999999999]) {\n  return x\n}",
    "digits": "graph (x: f32[" + "9" * 1_000_000 + "]) {\n  return x\n}",
    "digits of an attribute": f"graph (x: f32[2]) {{\n  %0 = sum(x) axes=[{'9' * 5000}] : f32[]\n  return %0\n}}",
    "a part of a type": "graph (x: f32[2]) {\n  %0 = pad(x) low=[9223372036854775807] high=[9223372036854775807] "
    "interior=[0] value=0.0 : f32[18446744073709551616]\n  return %0\n}",
    "what is between inputs": "graph (x: f32[2]; y: f32[2]) {\n  return x\n}",
    "an attribute twice": "graph (x: f32[2]) {\n  %0 = sum(x) axes=[0] axes=[] : f32[]\n  return %0\n}",
    "other digits": "graph (x: f32[٢]) {\n  return x\n}",
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_too_large_or_ambiguous_is_refused_at_once(name: str) -> None:
    start = time.process_time()
    with pytest.raises(ParseError) as raised:
        parse(TEXTS[name])
    assert time.process_time() - start < 5
    assert len(str(raised.value)) < 5000


def test_long_graphs_are_read_in_linear_time() -> None:
    """Also inside another graph, where every line belongs to one statement."""
    lines = [f"  %{n} = sin({'x' if n == 0 else f'%{n - 1}'}) : f32[2]" for n in range(20_000)]
    inner = "\n".join(["graph (x: f32[2]) {", *lines, "  return %19999", "}"])
    text = (
        f'graph (x: f32[2]) {{\n  %0 = checkpoint(x) keep="nothing" body={inner} : (f32[2])\n'
        "  %1 = item(%0) index=0 : f32[2]\n  return %1\n}"
    )
    start = time.process_time()
    verify(parse(text))
    assert time.process_time() - start < 10


def test_every_attribute_has_a_domain() -> None:
    names = {name for operation in OPERATIONS.values() for name in operation.attributes}
    assert names == set(DOMAINS)
    assert all(name in OPERATIONS[op].attributes for op, name in EXCEPTIONS)


SCAN = """graph (x: f32[3], y: f32[4,3]) {
  %0 = scan(x, y) carries=CARRIES sequences=SEQUENCES length=LENGTH reverse=false body=graph (c: f32[3], s: f32[3]) {
    return c
  } : (f32[3])
  %1 = item(%0) index=0 : f32[3]
  return %1
}"""


@pytest.mark.parametrize(
    ("carries", "sequences", "length"),
    [("1", "7", "4"), ("-1", "1", "4"), ("1", "-1", "4"), ("1", "1", "-4"), ("true", "1", "4"), ("1.0", "1", "4"),
     ("1", "1", "[4]"), ("1", '"1"', "4"), ("2", "1", "4"), ("1", "1", "99999999999999999999")],
)  # fmt: skip
def test_a_scan_whose_numbers_do_not_fit_is_refused(carries: str, sequences: str, length: str) -> None:
    text = SCAN.replace("CARRIES", carries).replace("SEQUENCES", sequences).replace("LENGTH", length)
    with pytest.raises(LavaxError) as raised:
        verify(parse(text))
    assert "scan" in str(raised.value) or "64 bits" in str(raised.value)
    sound = SCAN.replace("CARRIES", "1").replace("SEQUENCES", "1").replace("LENGTH", "4")
    node = parse(sound).nodes[0]
    broken = Node(node.op, node.operands, {**node.attrs, "sequences": 7}, node.type)
    with pytest.raises(VerificationError):
        verify(Graph(node.operands, (broken,), ()))
