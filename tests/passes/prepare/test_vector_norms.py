"""Norms of a vector in the products that read the normed vector: one kernel, and the same numbers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.ir import interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare import vector_norms
from lavax.passes.prepare.vector_norms import VectorNorms
from lavax.passes.simplify import remove_stop_gradient
from tests.passes.lowering import program_of

WIDTH, ROWS = 24, 40
rng = np.random.default_rng(3)
X, SCALE, SHIFT = (rng.normal(size=WIDTH).astype("f") for _ in range(3))
W, V = rng.normal(size=(WIDTH, ROWS)).astype("f"), rng.normal(size=(ROWS, WIDTH)).astype("f")


ARGUMENTS = (X, W, V, SCALE, SHIFT)


def rms(x: Any, scale: Any) -> Any:
    return nn.rms_norm(x, scale)


# Each with the number of its kernels.
NORMED: dict[str, tuple[Callable[..., Any], int]] = {
    "root mean square": (lambda x, w, v, a, b: rms(x, a) @ w, 1),
    "by hand, with a division": (lambda x, w, v, a, b: (x / lnp.sqrt(lnp.mean(x * x) + 1e-5) * a) @ w, 1),
    "divided by the normed vector": (lambda x, w, v, a, b: (a / rms(x, a)) @ w, 1),
    "layer norm": (lambda x, w, v, a, b: nn.layer_norm(x, a, b) @ w, 1),
    "both layouts of weights": (lambda x, w, v, a, b: rms(x, a) @ w + v @ rms(x, a), 2),
    "a product with two of them": (lambda x, w, v, a, b: nn.silu(rms(x, a) @ w) * (rms(x, a) @ lnp.sin(w)), 1),
    "of a sum with a product": (lambda x, w, v, a, b: rms(x + lnp.sin(x) @ w[:, :WIDTH], a) @ w, 2),
    "of a product alone": (lambda x, w, v, a, b: rms(x @ w[:, :WIDTH], a) @ w, 2),
    "of a softmax": (lambda x, w, v, a, b: nn.softmax(x) @ w, 2),
    "with a row for itself": (lambda x, w, v, a, b: rms(x[None], a) @ w, 1),
    "read elsewhere, too": (lambda x, w, v, a, b: (rms(x, a) @ w, rms(x, a)), 2),
    "of no product": (lambda x, w, v, a, b: rms(x, a), 1),
    "read by a matrix": (lambda x, w, v, a, b: rms(x, a)[:, None] * w, 2),
}


@pytest.mark.parametrize("name", NORMED)
def test_norms_are_computed_in_the_rows_of_products(name: str) -> None:
    function, kernels = NORMED[name]
    graph = remove_stop_gradient(lx.trace(function)(*ARGUMENTS))
    program = program_of(graph)
    assert len(program.steps) == kernels
    found, expected = interpret_kernels(program, *ARGUMENTS), interpret(graph, *ARGUMENTS, dtype=np.float64)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * np.abs(want).max())


@pytest.mark.parametrize("few_rows, kernels", [(ROWS, 1), (ROWS - 1, 2)])
def test_more_is_repeated_in_few_rows(few_rows: int, kernels: int) -> None:
    limits = VectorNorms(repeated=WIDTH * ROWS - 1, few_rows=few_rows, repeated_in_few=WIDTH * ROWS)
    with patch.object(vector_norms, "VECTOR_NORMS", limits):
        program = program_of(remove_stop_gradient(lx.trace(lambda x, w, a: rms(x, a) @ w)(X, W, SCALE)))
    assert len(program.steps) == kernels


def test_a_factor_of_all_elements_is_applied_to_the_product() -> None:
    """So one walk over the row is enough: neither sum waits for the other."""
    text = str(program_of(remove_stop_gradient(lx.trace(lambda x, w, a: rms(x, a) @ w)(X, W, SCALE))))
    first, last = text.index("= sum("), text.rindex("= sum(")
    assert "rsqrt" not in text[first:last] and "rsqrt" in text[last:]


def test_low_precision_rounds_where_it_did() -> None:
    x, w = (value.astype(lnp.bfloat16) for value in (X, W))
    graph = remove_stop_gradient(lx.trace(lambda x, w: nn.rms_norm(x) @ w)(x, w))
    program = program_of(graph)
    assert len(program.steps) == 1
    (found,), (expected,) = interpret_kernels(program, x, w), interpret(graph, x, w)
    np.testing.assert_allclose(found.astype("f"), expected.astype("f"), rtol=1 / 64, atol=1 / 64)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_stack_of_layers_reads_one_stream(dtype: str) -> None:
    """The sum of all products so far is stored once; rows do not add it up again."""
    kind = lnp.bfloat16 if dtype == "bfloat16" else np.float32
    x, w = X[None, None].astype(kind), (V[:WIDTH] / 8).astype(kind)

    def stack(x: Any, w: Any, a: Any) -> Any:
        for _ in range(4):
            x = x + nn.rms_norm(x, a) @ w.T
        return x

    graph = remove_stop_gradient(lx.trace(stack)(x, w, SCALE.astype(kind)))
    program = program_of(graph)
    assert len(program.steps) == 4 and max(len(step.reads[0]) for step in program.steps) == 3
    (found,), (expected,) = interpret_kernels(program, x, w, SCALE), interpret(graph, x, w, SCALE)
    tolerance = 2e-5 if dtype == "float32" else 1 / 16
    np.testing.assert_allclose(found.astype("f"), expected.astype("f"), rtol=tolerance, atol=tolerance)


def test_long_vectors_keep_their_kernel() -> None:
    x, w = np.zeros(1 << 15, "f"), np.zeros((1 << 15, 2), "f")
    assert len(program_of(remove_stop_gradient(lx.trace(lambda x, w: (x / lnp.sum(x)) @ w)(x, w))).steps) > 1
