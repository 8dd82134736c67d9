"""`lx.matmul_precision`: the precision of operands is recorded with the products."""
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.ir import interpret, parse, verify
from lavax.ir.types import bfloat16, float16
from lavax.profiler import counters

RANDOM = np.random.default_rng(0)
X, W = RANDOM.standard_normal((5, 7), np.float32), RANDOM.standard_normal((7, 3), np.float32)


def product(x: Any, w: Any) -> Any:
    return x @ w


def of_rounded(dtype: Any) -> np.ndarray:
    """The product of rounded operands, added up in float64."""
    return np.asarray(dtype.rounded(X), np.float64) @ np.asarray(dtype.rounded(W), np.float64)


def assert_is(found: Any, expected: np.ndarray) -> None:
    """Up to float32's rounding of seven products and their sum."""
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=8 * 2.0**-24 * np.abs(expected).max() * 4)


def dots(function: Callable[..., Any], *arrays: np.ndarray) -> list[tuple[str, str]]:
    graph = lx.trace(function)(*arrays)
    verify(graph)
    assert str(parse(str(graph))) == str(graph)
    return [(n.attrs["precision"], n.attrs["backward"]) for n in graph.nodes if n.op in ("dot", "conv")]


def test_the_graph_says_what_operands_are_rounded_to() -> None:
    with lx.matmul_precision("bfloat16"):
        assert str(lx.trace(product)(X, W)) == (
            "graph (x: f32[5,7], w: f32[7,3]) {\n"
            '  %0 = dot(x, w) contract=[1]x[0] precision="bf16" : f32[5,3]\n'
            "  return %0\n}"
        )
    assert "precision" not in str(lx.trace(product)(X, W))


def test_gradients_are_of_float32_unless_chosen() -> None:
    loss = lx.grad(lambda x, w: lnp.tanh(x @ w).sum(), argnums=(0, 1))
    with lx.matmul_precision("bfloat16"):
        assert dots(loss, X, W) == [("bf16", ""), ("", ""), ("", "")]
    with lx.matmul_precision("float16", backward="bfloat16"):
        assert dots(loss, X, W) == [("f16", "bf16"), ("bf16", "bf16"), ("bf16", "bf16")]
    with lx.matmul_precision("float32", backward="bfloat16"):
        assert dots(loss, X, W) == [("", "bf16"), ("bf16", "bf16"), ("bf16", "bf16")]
    tangents = lambda x, w: lx.jvp(product, (x, w), (x, w))  # noqa: E731
    with lx.matmul_precision("bfloat16"):
        assert sorted(dots(tangents, X, W)) == [("", ""), ("", ""), ("bf16", "")]


def test_it_ends_with_its_block_and_nests() -> None:
    with lx.matmul_precision("bfloat16"):
        with lx.matmul_precision("float32"):
            assert dots(product, X, W) == [("", "")]
        with pytest.raises(RuntimeError), lx.matmul_precision("float16"):
            raise RuntimeError
        assert dots(product, X, W) == [("bf16", "")]
    assert dots(product, X, W) == [("", "")]
    assert dots(lx.matmul_precision("float16")(product), X, W) == [("f16", "")]


def test_one_product_may_be_given_its_own() -> None:
    assert dots(lambda x, w: lnp.matmul(x, w, precision="bfloat16"), X, W) == [("bf16", "")]
    assert dots(lambda x, w: lnp.dot(x, w, precision="float16"), X, W) == [("f16", "")]
    with lx.matmul_precision("bfloat16", backward="float16"):
        assert dots(lambda x, w: lnp.matmul(x, w, precision="float32"), X, W) == [("", "f16")]


def test_every_product_of_float32_records_it() -> None:
    image, kernel = np.zeros((1, 2, 6, 6), np.float32), np.zeros((4, 2, 3, 3), np.float32)
    convolved = lambda x, w: nn.conv(x, w, (1, 1), "SAME")  # noqa: E731
    with lx.matmul_precision("bfloat16"):
        assert dots(convolved, image, kernel) == [("bf16", "")]
        assert dots(lambda x, w: lnp.einsum("ij,jk->ki", x, w), X, W) == [("bf16", "")]
        assert dots(lambda x, w: lnp.tensordot(x, w, 1), X, W) == [("bf16", "")]
        assert dots(product, X.astype(np.float16), W.astype(np.float16)) == [("", "")]
        assert dots(product, X.astype(np.int32), W.astype(np.int32)) == [("", "")]


def test_batched_products_keep_it() -> None:
    stacked = np.stack([X, 2 * X])
    with lx.matmul_precision("bfloat16", backward="float16"):
        assert dots(lx.vmap(product, in_axes=(0, None)), stacked, W) == [("bf16", "f16")]
        assert dots(lx.vmap(product), stacked, np.stack([W, W])) == [("bf16", "f16")]
        per_example = lx.vmap(lx.grad(lambda x, w: (x @ w).sum()), in_axes=(0, None))
        assert dots(per_example, stacked, W)[-1] == ("f16", "f16")


@pytest.mark.parametrize("name, bad", [("precision", "bf16"), ("precision", None), ("backward", "tensorfloat32")])
def test_an_unknown_precision_is_refused_by_name(name: str, bad: Any) -> None:
    given: dict[str, Any] = {"precision": "float32", name: bad}
    message = rf"matmul_precision: {name} must be one of 'float32', .*, got {bad!r}"
    with pytest.raises(ValueError, match=message), lx.matmul_precision(**given):
        pass
    assert dots(product, X, W) == [("", "")]


def test_a_product_refuses_an_unknown_precision() -> None:
    with pytest.raises(ValueError, match="precision must be one of 'float32', 'bfloat16', 'float16', got 'half'"):
        lnp.matmul(X, W, precision="half")


@pytest.mark.parametrize(
    "line, message",
    [
        ('dot(x, w) contract=[1]x[0] precision="f8" : f32[2,2]', "precision must be one of 'bf16', 'f16', got 'f8'"),
        ('dot(x, w) contract=[1]x[0] backward="f32" : f32[2,2]', "backward must be one of"),
        ('dot(h, h) contract=[1]x[0] precision="bf16" : f16[2,2]', "a choice for operands of float32"),
    ],
)
def test_the_type_rule_knows_which_there_are(line: str, message: str) -> None:
    with pytest.raises(lx.ParseError, match=message):
        parse(f"graph (x: f32[2,2], w: f32[2,2], h: f16[2,2]) {{\n  %0 = {line}\n  return %0\n}}")


@pytest.mark.parametrize("name, dtype", [("bfloat16", bfloat16), ("float16", float16)])
def test_operands_are_rounded_and_sums_are_not(name: str, dtype: Any) -> None:
    with lx.matmul_precision(name):
        graph = lx.trace(product)(X, W)
        np.testing.assert_allclose(interpret(graph, X, W)[0], of_rounded(dtype), rtol=1e-13)
        assert_is(lx.compile(product)(X, W), of_rounded(dtype))
        assert_is(lnp.matmul(X, W), of_rounded(dtype))  # computed at once
    assert np.abs(of_rounded(dtype) - X.astype(np.float64) @ W).max() > 1e-4


def test_gradients_do_not_see_the_rounding() -> None:
    """The cotangent is not rounded, nor are the operands, unless `backward` says so."""
    seed = RANDOM.standard_normal((5, 3), np.float32)

    def pulled(x: Any, w: Any) -> Any:
        return lx.vjp(product, x, w)[1](seed)[0]

    exact = seed.astype(np.float64) @ W.T
    with lx.matmul_precision("bfloat16"):
        assert_is(lx.compile(pulled)(X, W), exact)
    rounded = np.asarray(bfloat16.rounded(seed), np.float64) @ np.asarray(bfloat16.rounded(W), np.float64).T
    with lx.matmul_precision("bfloat16", backward="bfloat16"):
        assert_is(lx.compile(pulled)(X, W), rounded)
    assert np.abs(rounded - exact).max() > 1e-3


def test_a_compiled_function_is_traced_for_each_precision() -> None:
    compiled = lx.compile(product)
    plain = compiled(X, W)
    with lx.matmul_precision("bfloat16"):
        assert_is(compiled(X, W), of_rounded(bfloat16))
        traces = counters()["traces"]
        assert_is(compiled(X, W), of_rounded(bfloat16))
    np.testing.assert_array_equal(np.asarray(compiled(X, W)), np.asarray(plain))
    assert counters()["traces"] == traces


def test_exported_functions_keep_it(tmp_path: Path) -> None:
    with lx.matmul_precision("bfloat16", backward="float16"):
        exported = lx.export(product, X, W)
    exported.save(tmp_path / "product.lavax")
    loaded = lx.load_exported(tmp_path / "product.lavax")
    assert loaded.as_text() == exported.as_text()
    assert 'precision="bf16" backward="f16"' in loaded.as_text()
    assert_is(loaded(X, W), of_rounded(bfloat16))


@pytest.mark.parametrize(
    "shapes", [((7,), (7,)), ((5, 7), (7,)), ((4, 1), (1, 6)), ((5, 0), (0, 3)), ((2, 3, 4), (2, 4, 5))]
)
def test_products_that_become_something_else_are_rounded_too(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Vectors, outer products and sums over nothing have kernels that are no contractions."""
    x, w = (RANDOM.standard_normal(shape, np.float32) for shape in shapes)
    with lx.matmul_precision("bfloat16"):
        found = lx.compile(lnp.matmul)(x, w)
    expected = np.matmul(bfloat16.rounded(x).astype(np.float64), bfloat16.rounded(w).astype(np.float64))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-6, atol=2e-6)


def test_what_its_page_shows_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "precision.md").read_text(encoding="utf-8")
    block, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "precision.md", "exec"), names)
    assert names["gradient"].shape == (3, 2) and 0 < names["value"] < 1


def test_plain_attention_is_left_as_it_was_written() -> None:
    """Its kernels multiply in float32; products that ask for less stay products."""
    q, k, v = (RANDOM.standard_normal((64, 16), np.float32) for _ in range(3))

    def attend(q: Any, k: Any, v: Any) -> Any:
        return nn.softmax(q @ k.T) @ v

    assert "attention(" in lx.compile(attend).lower(q, k, v).as_text("optimized")
    with lx.matmul_precision("bfloat16"):
        text = lx.compile(attend).lower(q, k, v).as_text("optimized")
    assert "attention(" not in text and text.count('precision="bf16"') == 2
