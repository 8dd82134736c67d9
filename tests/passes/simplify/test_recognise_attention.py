"""Attention found in plain code: in which spellings, what it becomes, and where it is left alone."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.ir import Graph, Node, interpret, verify
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import remove_stop_gradient, rewriting, rules, simplify
from tests.passes.lowering import f32

T, S, D = 20, 24, 4


def recognised(function: Callable[..., Any], *arguments: Any) -> list[Node]:
    """The nodes of attention in the simplified graph; which means what the graph without any did."""
    traced = lx.trace(function)(*arguments)
    found = remove_stop_gradient(traced)
    verify(found)
    assert str(remove_stop_gradient(found)) == str(found)
    plain = rewriting.rewrite(traced, rules.RULES_WITHOUT_GRADIENTS, rules.MERGING)
    random = np.random.default_rng(0)
    arrays = [_sample(random, node) for node in traced.inputs]
    for got, want in zip(interpret(found, *arrays), interpret(plain, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    return [node for node in found.nodes if node.op == "attention"]


def _sample(random: np.random.Generator, node: Node) -> np.ndarray:
    if node.dtype.kind == "bool":
        return np.asarray(random.random(node.shape) < 0.7)
    return random.normal(size=node.shape)


def causal(queries: int, keys: int) -> Any:
    return lnp.arange(queries)[:, None] >= lnp.arange(keys)[None, :]


def by_hand(s: Any) -> Any:
    e = lnp.exp(s - lnp.max(s, axis=-1, keepdims=True))
    return e / lnp.sum(e, axis=-1, keepdims=True)


Q, K = f32(2, 3, T, D), f32(2, 3, S, D)
SPELLINGS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul": (lambda q, k, v: nn.softmax(q @ k.mT * 0.5) @ v, (Q, K, K)),
    "divided": (lambda q, k, v: nn.softmax(q @ k.mT / 2.0) @ v, (Q, K, K)),
    "scaled query": (lambda q, k, v: nn.softmax((q * 0.5) @ k.mT) @ v, (Q, K, K)),
    "scaled both": (lambda q, k, v: nn.softmax((q * 0.5) @ (k / 4.0).mT) @ v, (Q, K, K)),
    "by hand": (lambda q, k, v: by_hand(q @ k.mT) @ v, (Q, K, K)),
    "einsum": (
        lambda q, k, v: lnp.einsum("bhqk,bhkd->bhqd", nn.softmax(lnp.einsum("bhqd,bhkd->bhqk", q, k)), v),
        (Q, K, K),
    ),
    "heads behind": (
        lambda q, k, v: lnp.einsum("bhqk,bkhd->bqhd", nn.softmax(lnp.einsum("bqhd,bkhd->bhqk", q, k)), v),
        (f32(2, T, 3, D), f32(2, S, 3, D), f32(2, S, 3, 5)),
    ),
    "batch last": (
        lambda q, k, v: lnp.einsum("qkb,kdb->qdb", nn.softmax(lnp.einsum("qdb,kdb->qkb", q, k), axis=1), v),
        (f32(T, D, 2), f32(S, D, 2), f32(S, D, 2)),
    ),
    "keys first": (
        lambda q, k, v: lnp.einsum("kq,kd->qd", nn.softmax(k @ q.T, axis=0), v),
        (f32(T, D), f32(S, D), f32(S, D)),
    ),
    "grouped": (
        lambda q, k, v: lnp.einsum("bhgqk,bkhd->bqhgd", nn.softmax(lnp.einsum("bqhgd,bkhd->bhgqk", q, k)), v),
        (f32(2, T, 2, 3, D), f32(2, S, 2, D), f32(2, S, 2, D)),
    ),
    "one batch": (lambda q, k, v: nn.softmax(q @ k.mT) @ v, (f32(1, 1, T, D), f32(1, 1, S, D), f32(1, 1, S, D))),
    "bias": (lambda q, k, v, b: nn.softmax(q @ k.mT * 0.5 + b) @ v, (Q, K, K, f32(3, T, S))),
    "biases": (lambda q, k, v, b, c: nn.softmax((q @ k.mT - b) * 0.5 + c) @ v, (Q, K, K, f32(T, 1), f32(S))),
    "mask": (lambda q, k, v, m: nn.softmax(lnp.where(m, q @ k.mT, -1e9)) @ v, (Q, K, K, np.ones((T, S), np.bool_))),
    "hidden": (
        lambda q, k, v, m: nn.softmax(lnp.where(m, -lnp.inf, q @ k.mT)) @ v,
        (Q, K, K, np.zeros((2, 1, T, S), np.bool_)),
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name: str) -> None:
    function, arguments = SPELLINGS[name]
    assert len(recognised(function, *arguments)) == 1


def test_constants_become_one_scale() -> None:
    (node,) = recognised(*(lambda f, a: (f, *a))(*SPELLINGS["scaled both"]))
    assert node.attrs["scale"] == 0.125
    assert [operand.op for operand in node.operands] == ["input"] * 3


MASKS: dict[str, tuple[Callable[[], Any], int, int]] = {
    "causal": (lambda: causal(T, S), 1 - T, 0),
    "tril": (lambda: lnp.tril(lnp.ones((T, S), bool)), 1 - T, 0),
    "strict": (lambda: lnp.arange(S)[None] < lnp.arange(T)[:, None], 1 - T, -1),
    "not after": (lambda: lnp.logical_not(lnp.arange(S)[None] > lnp.arange(T)[:, None]), 1 - T, 0),
    "behind the past": (lambda: lnp.arange(T)[:, None] + 4 >= lnp.arange(S)[None], 1 - T, 4),
    "window": (lambda: causal(T, S) & (lnp.arange(T)[:, None] - lnp.arange(S) < 5), -4, 0),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_positions_become_windows(name: str) -> None:
    make, lowest, highest = MASKS[name]
    (node,) = recognised(lambda q, k, v: nn.softmax(lnp.where(make(), q @ k.mT, -lnp.inf)) @ v, Q, K, K)
    assert (node.attrs["lowest"], node.attrs["highest"], node.attrs["masked"]) == (lowest, highest, False)


def test_what_is_no_position_stays_a_mask() -> None:
    def attention(q: Any, k: Any, v: Any, m: Any) -> Any:
        return nn.softmax(lnp.where(causal(T, S) & m, q @ k.mT, -lnp.inf)) @ v

    mask = np.ones((2, 1, 1, S), np.bool_)
    graph = remove_stop_gradient(lx.trace(attention)(Q, K, K, mask))
    (node,) = (node for node in graph.nodes if node.op == "attention")
    assert (node.attrs["highest"], node.attrs["masked"]) == (0, True)
    assert not any(node.op in ("greater_equal", "iota") for node in graph.nodes)


def test_a_finite_fill_hides_nothing() -> None:
    """A query whose scores are all hidden looks at all keys alike, so none is left out."""
    (node,) = recognised(lambda q, k, v: nn.softmax(lnp.where(causal(T, S), q @ k.mT, -1e9)) @ v, Q, K, K)
    assert (node.attrs["fill"], node.attrs["highest"], node.attrs["masked"]) == (-1e9, S - 1, True)


def test_a_row_that_sees_nothing_is_nan() -> None:
    def attention(q: Any, k: Any, v: Any, m: Any) -> Any:
        return nn.softmax(lnp.where(m, q @ k.mT, -lnp.inf)) @ v

    mask = np.arange(T)[:, None] + np.zeros(S) > 3
    graph = remove_stop_gradient(lx.trace(attention)(f32(T, D), f32(S, D), f32(S, D), mask))
    assert any(node.op == "attention" for node in graph.nodes)
    (out,) = interpret(graph, np.ones((T, D)), np.ones((S, D)), np.ones((S, D)), mask)
    np.testing.assert_array_equal(np.isnan(out), np.broadcast_to(np.arange(T)[:, None] <= 3, out.shape))


def test_the_optimized_graph_shows_it() -> None:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return lnp.sum(nn.softmax(lnp.where(causal(16, 16), q @ k.mT * 0.5, -lnp.inf)) @ v)

    x = f32(3, 16, 4)
    shown = lx.compile(lx.grad(loss, argnums=2)).lower(x, x, x).as_text("optimized")
    window = "scale=0.5 fill=-inf lowest=-15 highest=0 biased=false masked=false"
    assert shown == f"""graph (q: f32[3,16,4], k: f32[3,16,4], v: f32[3,16,4]) {{
  %0 = constant() value=1.0 : f32[3,16,4]
  %1 = attention_logsumexp(q, k) {window} empty=false : f32[3,16]
  %2 = attention_value_gradient(q, k, %0, %1) {window} : f32[3,16,4]
  return %2
}}"""


def test_the_result_is_written_in_the_shape_it_is_read_in() -> None:
    x = f32(1, 2, 16, 4)
    prepared = prepare(remove_stop_gradient(lx.trace(lambda q, k, v: nn.softmax(q @ k.mT) @ v)(x, x, x)))
    (output,) = prepared.outputs
    assert (output.op, output.shape) == ("attention", x.shape)


def test_gradients_of_what_was_found_are_operations() -> None:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return lnp.sum(lnp.sin(nn.softmax(q @ k.mT) @ v))

    graph = remove_stop_gradient(lx.trace(lx.grad(loss, argnums=(0, 1, 2)))(Q, K, K))
    found = sorted(node.op for node in graph.nodes if node.op.startswith("attention"))
    kinds = ["attention", *(f"attention_{name}" for name in ("key_gradient", "logsumexp", "query_gradient"))]
    assert found == [*kinds, "attention_value_gradient"]
    assert not any(node.op in ("dot", "exp") for node in graph.nodes)


Refused = tuple[Callable[..., Any], tuple[Any, ...]]
LEFT_ALONE: dict[str, Refused] = {
    "masked after softmax": (
        lambda q, k, v: lnp.where(causal(T, S), nn.softmax(q @ k.mT), 0.0) @ v,
        (Q, K, K),
    ),
    "softmax over the queries": (lambda q, k, v: nn.softmax(q @ k.mT, axis=-2) @ v, (Q, K, K)),
    "softmax over both": (lambda q, k, v: nn.softmax(q @ k.mT, axis=(-2, -1)) @ v, (Q, K, K)),
    "the weights are returned": (lambda q, k, v: ((p := nn.softmax(q @ k.mT)) @ v, p), (Q, K, K)),
    "the scores are returned": (lambda q, k, v: (nn.softmax(s := q @ k.mT) @ v, s), (Q, K, K)),
    "no shift": (lambda q, k, v: ((e := lnp.exp(q @ k.mT)) / lnp.sum(e, axis=-1, keepdims=True)) @ v, (Q, K, K)),
    "another row's sum": (
        lambda q, k, v: ((e := lnp.exp((s := q @ k.mT) - s.max(-1, keepdims=True))) / lnp.sum(e, -2)[..., None, :]) @ v,
        (Q, K, K),
    ),
    "a negative scale": (lambda q, k, v: nn.softmax(q @ k.mT * -1.0) @ v, (Q, K, K)),
    "a finite fill under a bias": (
        lambda q, k, v, b: nn.softmax(lnp.where(causal(T, S), q @ k.mT, -1.0) + b) @ v,
        (Q, K, K, f32(T, S)),
    ),
    "no product of queries and keys": (lambda s, v: nn.softmax(s) @ v, (f32(2, 3, T, S), K)),
    "long heads, short sequences": (lambda q, k, v: nn.softmax(q @ k.mT) @ v, (f32(2, 8, 64),) * 3),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name: str) -> None:
    function, arguments = LEFT_ALONE[name]
    assert recognised(function, *arguments) == []


def test_a_bias_that_is_a_product_itself() -> None:
    (node,) = recognised(
        lambda q, k, v, r: nn.softmax(q @ k.mT + lnp.einsum("bhqd,qkd->bhqk", q, r)) @ v, Q, K, K, f32(T, S, D)
    )
    assert node.attrs["biased"]


def test_many_layers() -> None:
    """One after the other, each made of the one before."""

    def layers(x: Any) -> Any:
        for _ in range(50):
            x = nn.softmax(x @ x.mT) @ x
        return x

    graph: Graph = simplify(lx.trace(layers)(f32(2, 32, 4)))
    assert [node.op for node in graph.nodes] == ["attention"] * 50


@pytest.mark.parametrize("biased, dtype", [(False, "bf16"), (True, "f32")])
def test_a_softmax_in_float32_between_narrow_products_is_attention_of_their_dtype(biased: bool, dtype: str) -> None:
    """It computes its softmax in float32 anyway; a bias in float32 would lose digits."""

    def attend(query: Any, key: Any, value: Any, bias: Any) -> Any:
        scores = lnp.einsum("btd,bsd->bts", query, key).astype("float32")
        weights = nn.softmax(scores + bias if biased else scores).astype(lnp.bfloat16)
        return lnp.einsum("bts,bsd->btd", weights, value)

    rows, scores = lx.ShapeDtype((2, 64, 16), lnp.bfloat16), lx.ShapeDtype((64, 64), "float32")
    graph = lx.compile(attend).lower(rows, rows, rows, scores).optimized
    assert [node.dtype.name for node in graph.nodes if node.op == "attention"] == [dtype]
