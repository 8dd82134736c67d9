"""The verifier finds each broken rule, and names the node."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from lavax.base.errors import VerificationError
from lavax.ir import Graph, Node, TensorType, float32, int32, parse, verify
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.types import tuple_of

VECTOR = TensorType((3,), float32)
X = input_node("x", VECTOR)
SIN = make_node("sin", (X,))


def node(op: str, *operands: Node, type: TensorType = VECTOR, location: str | None = None, **attrs: object) -> Node:
    """A node made past its type rule."""
    return Node(op, operands, attrs, type, "", location)


def graph(*nodes: Node, inputs: tuple[Node, ...] = (X,), outputs: tuple[Node, ...] | None = None) -> Graph:
    return Graph(inputs, nodes, nodes[-1:] if outputs is None else outputs)


BROKEN: dict[str, tuple[Callable[[], Graph], str]] = {
    "unknown operation": (lambda: graph(node("sine", X)), "%0 = sine(…) : f32[3]: unknown operation 'sine'"),
    "order": (
        lambda: graph(make_node("cos", (SIN,)), SIN),
        "%0 = cos(…) : f32[3]: an operand is not defined before its use",
    ),
    "foreign operand": (
        lambda: graph(make_node("cos", (input_node("y", VECTOR),))),
        "%0 = cos(…) : f32[3]: an operand is not defined before its use",
    ),
    "attributes": (lambda: graph(node("sin", X, axes=(0,))), "attributes must be [], got ['axes']"),
    "missing attribute": (lambda: graph(node("sum", X, type=VECTOR)), "attributes must be ['axes'], got []"),
    "type": (lambda: graph(node("sin", X, type=TensorType((4,), float32))), "the type must be f32[3]"),
    "dtype": (lambda: graph(node("sin", X, type=TensorType((3,), int32))), "the type must be f32[3]"),
    "domain": (
        lambda: graph(node("sum", X, type=TensorType((), float32), axes=(1,))),
        "sum: axes [1] must be distinct axes of f32[3], in rising order",
    ),
    "attribute of another kind": (
        lambda: graph(node("sum", X, type=TensorType((), float32), axes=None)),
        "sum: axes must be a list of integers of at least 0, got None",
    ),
    "number of operands": (lambda: graph(node("add", X)), "add takes 2 operands, got 1"),
    "twice": (lambda: graph(SIN, SIN), "%1: the node stands in the graph twice"),
    "output": (lambda: graph(SIN, outputs=(make_node("cos", (X,)),)), "output 0 is not a value of the graph"),
    "output of several results": (
        lambda: graph(node("checkpoint", X, type=tuple_of([VECTOR]), keep="dots", named=0, body=graph_of([X], [X]))),
        "output 0 is %0, a node with several results",
    ),
    "input of several results": (
        lambda: graph(SIN, inputs=(X, input_node("y", tuple_of([VECTOR])))),
        "input y: a node with several results is no input",
    ),
    "names": (
        lambda: graph(SIN, inputs=(X, input_node("x", VECTOR))),
        "inputs must have different names, got ['x', 'x']",
    ),
    "input": (lambda: graph(make_node("cos", (SIN,)), inputs=(SIN,)), "an input of the graph is not an input node"),
    "location": (
        lambda: graph(node("sine", X, location="model.py:3")),
        "%0 = sine(…) : f32[3] (from model.py:3): unknown operation 'sine'",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(name: str) -> None:
    make, message = BROKEN[name]
    with pytest.raises(VerificationError) as raised:
        verify(make())
    assert message in str(raised.value)


def test_a_sound_graph_passes() -> None:
    verify(parse("graph (x: f32[3]) {\n  %0 = sin(x) : f32[3]\n  return %0, x, %0\n}"))
    verify(graph_of([X], [SIN, SIN, X]))
    verify(graph_of([X], []))


def test_a_body_with_two_inputs_of_one_name_is_refused() -> None:
    body = graph_of([X, input_node("x", VECTOR)], [SIN])
    with pytest.raises(ValueError, match="scan: the body has inputs of one name"):
        make_node("scan", (X, X), {"carries": 1, "sequences": 0, "length": 2, "reverse": False, "body": body})
