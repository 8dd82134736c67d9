"""Heads that are multiplied by a weight and added up by the products that read the norm of the sum."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import Graph, Node, interpret
from lavax.ir.ops.attention import PROJECTED
from lavax.passes.build.inline import inline_calls
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Attention, Products, Target

HEADS, KEYS, HEAD, WIDTH, MIDDLE = 4, 40, 8, 12, 20
ATTENTION = Attention(
    in_one_kernel=lambda node: True, rounds_results=lambda node: True, leaves_heads=lambda node, rows: True
)
TARGET = Target(products=Products(vectors_as_sums=True), attention=ATTENTION)
rng = np.random.default_rng(5)

# Values of a layer by their names: query, key, value, weight, residual, gate, up, down, scale.
Values = dict[str, Any]


def _arrays(dtype: Any = np.float32) -> Values:
    shapes = dict(
        query=(1, 1, HEADS, HEAD), key=(1, KEYS, HEADS, HEAD), value=(1, KEYS, HEADS, HEAD), residual=(WIDTH,),
        weight=(WIDTH, HEADS * HEAD), gate=(MIDDLE, WIDTH), up=(MIDDLE, WIDTH), down=(WIDTH, MIDDLE), scale=(WIDTH,),
    )
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def _hidden(of: Values) -> Any:
    mixed = lx.nn.dot_product_attention(of["query"], of["key"], of["value"])
    return of["residual"] + lnp.reshape(mixed, (-1,)) @ of["weight"].T


def _rms(x: Any, scale: Any) -> Any:
    wide = x.astype("float32")
    return (wide / lnp.sqrt(lnp.mean(wide * wide) + 1e-5)).astype(x.dtype) * scale


def _reshaped(x: Any, scale: Any) -> Any:
    wide = x.astype("float32")
    scaled = lnp.reshape(x, (1, 1, -1)).astype("float32") / lnp.sqrt(lnp.mean(wide * wide) + 1e-5)
    return lnp.reshape(scaled.astype(x.dtype), (-1,)) * scale


def _centred(x: Any, scale: Any) -> Any:
    wide = x.astype("float32")
    wide = wide - lnp.mean(wide)
    return (wide / lnp.sqrt(lnp.mean(wide * wide) + 1e-5)).astype(x.dtype) * scale


def _layer(of: Values, norm: Callable[..., Any] = _rms, changed: Callable[[Any], Any] = lambda x: x) -> Any:
    hidden = changed(_hidden(of))
    return hidden + _fed_forward(of, norm(hidden, of["scale"]))


def _fed_forward(of: Values, normed: Any) -> Any:
    return of["down"] @ (lnp.maximum(of["gate"] @ normed, 0) * (of["up"] @ normed))


def _graph(function: Callable[[Values], Any], arrays: Values) -> Graph:
    return remove_stop_gradient(inline_calls(lx.trace(function)(arrays)))


def _inputs(arrays: Values) -> list[Any]:
    return lx.tree.leaves(arrays)


def _ops(graph: Graph, target: Target = TARGET) -> list[str]:
    return [node.op for node in prepare(graph, target).nodes if node.op.startswith("attention")]


@pytest.mark.parametrize("norm", [_rms, _centred])
@pytest.mark.parametrize("dtype", [lnp.float32, lnp.bfloat16], ids=["float32", "bfloat16"])
def test_readers_of_a_normed_sum_add_up_the_heads(norm: Callable[..., Any], dtype: Any) -> None:
    arrays = _arrays(dtype)
    graph = _graph(lambda of: _layer(of, norm), arrays)
    prepared = prepare(graph, TARGET)
    (products,) = (node for node in prepared.nodes if node.op.startswith("attention"))
    assert products.op == "attention_head_products" and products.type.size == HEADS * WIDTH
    assert products.dtype.name == "f32"
    (found,), (expected,) = (interpret(each, *_inputs(arrays), dtype=np.float64) for each in (prepared, graph))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def _repeated(graph: Graph) -> list[Node]:
    """The vectors that are repeated for the rows of products, as memory holds them."""
    repeated = {node.operands[0] for node in graph.nodes if node.op == "broadcast" and node.type.rank == 2}
    return [_stored(node) for node in repeated if node.shape == (WIDTH,)]


def _stored(node: Node) -> Node:
    while node.op == "reshape" or (node.op == "cast" and node.dtype.bits > node.operands[0].dtype.bits):
        (node,) = node.operands
    return node


def test_rows_of_products_compute_all_that_is_made_of_the_heads() -> None:
    """No vector that is made of their sum is repeated for rows, only lines of the heads' products, and the residual,
    whatever shape the norm has it in."""
    for norm in (_rms, _reshaped):
        graph = _graph(partial(_layer, norm=norm), _arrays(lnp.bfloat16))
        ops = [node.op for node in _repeated(prepare(graph, TARGET))]
        assert ops.count("slice") == HEADS and {*ops} == {"slice", "input"}


def test_a_residual_is_read_in_the_bits_that_its_kernel_writes() -> None:
    two = _graph(lambda of: _layer({**of, "residual": _layer(of), "query": -of["query"]}), _arrays(lnp.bfloat16))
    prepared = prepare(two, TARGET)
    assert [node.op for node in prepared.nodes if node.op in PROJECTED] == 2 * ["attention_head_products"]
    assert {node.op for node in _repeated(prepared) if node.dtype.bits == 32} == {"slice"}


def test_sums_and_roundings_come_in_the_order_of_one_kernel() -> None:
    """Heads in turn, rounded, then the residual, rounded."""
    graph = _graph(_layer, _arrays(lnp.bfloat16))
    nodes = prepare(graph, TARGET).nodes
    sums = [node for node in nodes if node.op == "add" and node.shape == (WIDTH,)]
    of_heads, (with_residual, _) = sums[: HEADS - 1], sums[HEADS - 1 :]
    assert all(later.operands[0] is earlier for earlier, later in pairwise(of_heads))

    def narrow(node: Node) -> bool:
        return node.op == "cast" and node.dtype.name == "bf16"

    assert any(narrow(each) and each.operands[0] is of_heads[-1] for each in nodes)
    assert any(narrow(each) and each.operands[0] is with_residual for each in nodes)


def test_a_bias_behind_the_product_is_added_by_readers_too() -> None:
    arrays = _arrays()
    graph = _graph(lambda of: _layer(of, changed=lambda x: x + of["scale"]), arrays)
    assert _ops(graph) == ["attention_head_products"]
    (found,) = interpret(prepare(graph, TARGET), *_inputs(arrays), dtype=np.float64)
    (expected,) = interpret(graph, *_inputs(arrays), dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


OTHERS: dict[str, Callable[[Values], Any]] = {
    "the sum is a result": lambda of: (_layer(of), _hidden(of)),
    "no norm": lambda of: of["gate"] @ _hidden(of),
    "the sum is all": _hidden,
    "the norm is a result": lambda of: (_layer(of), _rms(_hidden(of), of["scale"])),
    "read in another order": lambda of: _layer(of) + _hidden(of)[::-1],
    "turned in a kernel's rows": lambda of: _fed_forward(of, _rms(_hidden(of), of["scale"])) + _hidden(of)[::-1],
    "joined": lambda of: (_layer(of), lnp.concatenate([_hidden(of), of["residual"]])),
    "a product without a norm, too": lambda of: (_layer(of), of["gate"] @ _hidden(of)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_sum_that_something_else_reads_is_written(name: str) -> None:
    arrays = _arrays()
    graph = _graph(OTHERS[name], arrays)
    assert _ops(graph) == ["attention_projected"]
    found, expected = (interpret(each, *_inputs(arrays), dtype=np.float64) for each in (prepare(graph, TARGET), graph))
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_devices_say_whether_readers_add_up_heads() -> None:
    graph = _graph(_layer, _arrays())
    asked: list[tuple[str, int]] = []

    def leaves(node: Node, rows: int) -> bool:
        asked.append((node.op, rows))
        return False

    assert _ops(graph, replace(TARGET, attention=replace(ATTENTION, leaves_heads=leaves))) == ["attention_projected"]
    assert asked == [("attention_projected", 2 * MIDDLE)]
