"""Attention of one query and the product of its result as one operation: where there is one, and what it must be."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import Graph, interpret
from lavax.nn.modules.quantized import QuantizedMatrix
from lavax.passes.build.inline import inline_calls
from lavax.passes.prepare.attention_projections import with_projected_attention
from lavax.passes.prepare.pipeline import PASSES, prepare
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Attention, Products, Target

HEADS, KEYS, HEAD, WIDTH = 4, 40, 8, 12
TARGET = Target(
    products=Products(vectors_as_sums=True),
    attention=Attention(in_one_kernel=lambda node: True, rounds_results=lambda node: True),
)
rng = np.random.default_rng(3)


def _drawn(*shape: int, dtype: Any = np.float32) -> Any:
    return rng.normal(size=shape).astype(dtype)


def _attend(query: Any, key: Any, value: Any) -> Any:
    return lx.nn.dot_product_attention(query, key, value)


def _projected(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
    return residual + lnp.reshape(_attend(query, key, value), (-1,)) @ weight.T


def _arrays(queries: int = 1, dtype: Any = np.float32) -> list[Any]:
    shapes = (1, queries, HEADS, HEAD), (1, KEYS, HEADS, HEAD), (1, KEYS, HEADS, HEAD)
    arrays = [_drawn(*shape, dtype=dtype) for shape in shapes]
    return [*arrays, _drawn(WIDTH, queries * HEADS * HEAD, dtype=dtype), _drawn(WIDTH, dtype=dtype)]


def _graph(function: Callable[..., Any], *arrays: Any) -> Graph:
    return remove_stop_gradient(inline_calls(lx.trace(function)(*arrays)))


def _ops(graph: Graph, target: Target = TARGET) -> list[str]:
    return [node.op for node in prepare(graph, target).nodes if node.op.startswith("attention")]


def test_the_product_of_the_result_and_the_residual_are_one_operation() -> None:
    arrays = _arrays()
    graph = _graph(_projected, *arrays)
    prepared = prepare(graph, TARGET)
    assert prepared.outputs[0].op == "attention_projected"
    assert not any(node.op in ("attention", "sum") for node in prepared.nodes)
    (found,), (expected,) = (interpret(each, *arrays, dtype=np.float64) for each in (prepared, graph))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_roundings_to_16_bits_are_part_of_it() -> None:
    arrays = _arrays(dtype=lx.dtypes.bfloat16)
    (node,) = (each for each in prepare(_graph(_projected, *arrays), TARGET).nodes if each.op.startswith("attention"))
    assert node.op == "attention_projected" and node.attrs["rounded"] and node.dtype.name == "bf16"


def test_what_is_read_elsewhere_stays() -> None:
    def result_too(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
        found = lnp.reshape(_attend(query, key, value), (-1,))
        return residual + found @ weight.T, found

    def product_too(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
        found = lnp.reshape(_attend(query, key, value), (-1,)) @ weight.T
        return residual + found, found

    for function in (result_too, product_too):
        assert _ops(_graph(function, *_arrays())) == ["attention"]


@pytest.mark.parametrize("queries", [1, 2])
def test_it_is_of_one_query(queries: int) -> None:
    expected = "attention_projected" if queries == 1 else "attention"
    assert _ops(_graph(_projected, *_arrays(queries))) == [expected]


def test_a_weight_whose_summed_elements_are_no_neighbours_is_multiplied_apart() -> None:
    def across(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
        return residual + lnp.reshape(_attend(query, key, value), (-1,)) @ weight

    def computed(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
        return residual + lnp.reshape(_attend(query, key, value), (-1,)) @ lnp.sin(weight).T

    *arrays, weight, residual = _arrays()
    assert _ops(_graph(across, *arrays, weight.T.copy(), residual)) == ["attention"]
    assert _ops(_graph(computed, *arrays, weight, residual)) == ["attention"]


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_a_weight_of_integers_in_words_is_multiplied_in_it(kind: str) -> None:
    *arrays, weight, residual = _arrays()
    matrix = QuantizedMatrix.of(weight, kind, HEAD)

    def function(query: Any, key: Any, value: Any, residual: Any, matrix: QuantizedMatrix) -> Any:
        return residual + matrix.product(lnp.reshape(_attend(query, key, value), (1, 1, -1)))

    graph = _graph(function, *arrays, residual, matrix)
    prepared = prepare(graph, TARGET)
    assert _ops(graph) == ["attention_projected"] and prepared.outputs[0].shape == (1, 1, WIDTH)
    given = [*arrays, residual, *map(np.asarray, lx.tree.leaves(matrix))]
    (found,), (expected,) = (interpret(each, *given, dtype=np.float64) for each in (prepared, graph))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_weight_that_is_computed_of_other_numbers_than_its_rows_is_multiplied_apart() -> None:
    def function(query: Any, key: Any, value: Any, rows: Any, columns: Any, residual: Any) -> Any:
        weight = rows[:, None] * columns[None]
        return residual + lnp.reshape(_attend(query, key, value), (-1,)) @ weight.T

    *arrays, _, residual = _arrays()
    graph = _graph(function, *arrays, _drawn(WIDTH), _drawn(HEADS * HEAD), residual)
    assert "attention_projected" not in _ops(graph)


def test_a_sum_without_such_a_product_stays() -> None:
    def functions() -> list[Callable[..., Any]]:
        return [
            lambda q, k, v, w, r: r + lnp.reshape(_attend(q, k, v), (-1,))[:WIDTH] + w[:, 0],
            lambda q, k, v, w, r: r * (lnp.reshape(_attend(q, k, v), (-1,)) @ w.T),
            lambda q, k, v, w, r: lnp.reshape(_attend(q, k, v), (-1,)) @ w.T,
        ]

    for function in functions():
        assert _ops(_graph(function, *_arrays())) == ["attention"]


OTHER_CASTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "integers": ("float32", lambda x: x.astype("int32").astype("float32")),
    "truth": ("float32", lambda x: x.astype("bool").astype("float32")),
    "rounded": ("float32", lambda x: (3 * x).astype("bfloat16").astype("float32")),
    "rounded by itself": ("float32", lambda x: x.astype("bfloat16").astype("float32")),
    "of 16 bits": ("bfloat16", lambda x: x.astype("int32").astype("bfloat16")),
}


@pytest.mark.parametrize("name", OTHER_CASTS)
def test_a_result_that_is_cast_to_what_has_not_all_of_its_values_is_multiplied_apart(name: str) -> None:
    dtype, changed = OTHER_CASTS[name]

    def function(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
        return residual + changed(lnp.reshape(_attend(query, key, value), (-1,))) @ weight.T

    arrays = _arrays(dtype=lx.dtypes.bfloat16 if dtype == "bfloat16" else np.float32)
    graph = _graph(function, *arrays)
    assert _ops(graph) == ["attention"]
    (found,), (expected,) = (interpret(each, *arrays, dtype=np.float64) for each in (prepare(graph, TARGET), graph))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_sum_of_another_dtype_than_the_result_is_apart() -> None:
    def halves(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
        product = lnp.reshape(_attend(query, key, value), (-1,)).astype("float32") @ weight.T.astype("float32")
        return residual.astype("float16") + product.astype("float16")

    assert _ops(_graph(halves, *_arrays(dtype=lx.dtypes.bfloat16))) == ["attention"]


@pytest.mark.parametrize("repeated", [lambda x: lnp.repeat(x, 2, axis=2), lambda x: lnp.stack((x, x), axis=-1)])
def test_a_result_that_is_repeated_is_multiplied_apart(repeated: Callable[..., Any]) -> None:
    def function(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
        return residual + lnp.reshape(repeated(_attend(query, key, value)), (-1,)) @ weight.T

    query, key, value, _, residual = _arrays()
    arrays = [query, key, value, _drawn(WIDTH, 2 * HEADS * HEAD), residual]
    graph = _graph(function, *arrays)
    assert _ops(graph) == ["attention"]
    (found,), (expected,) = (interpret(each, *arrays, dtype=np.float64) for each in (prepare(graph, TARGET), graph))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_devices_without_such_a_kernel_keep_both() -> None:
    graph = _graph(_projected, *_arrays())
    assert _ops(graph, Target(products=Products(vectors_as_sums=True), attention=Attention(lambda node: False))) != [
        "attention_projected"
    ]
    assert with_projected_attention(graph, Target()) is graph
    assert "projections" in [each.name for each in PASSES]
