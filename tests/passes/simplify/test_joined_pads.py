"""The gradient of an array that is cut into pieces is their concatenation, to the sign of a zero."""
from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.ir import interpret, parse
from lavax.passes.simplify import remove_stop_gradient, simplify

PIECES = dedent("""\
    graph (x: f32[2], y: f32[1]) {
      %0 = pad(x) low=[1] high=[0] interior=[0] value=0.0 : f32[3]
      %1 = pad(y) low=[0] high=[2] interior=[0] value=0.0 : f32[3]
      %2 = add(%0, %1) : f32[3]
      return %2
    }
    """)


def test_negative_zeros_become_positive_as_in_the_sum() -> None:
    graph = parse(PIECES)
    arrays = np.array([-0.0, np.nan], np.float32), np.array([-0.0], np.float32)
    (want,), (got,) = interpret(graph, *arrays), interpret(simplify(graph), *arrays)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(want[:2]))


def test_the_gradient_of_a_projection_that_is_cut_is_written_at_once() -> None:
    def loss(x: Any, weights: Any) -> Any:
        query, key, value = lnp.split(x @ weights, 3, axis=-1)
        return lnp.sum(lnp.tanh(query) * lnp.sin(key) * value)

    kinds = [lx.ShapeDtype(shape, "float32") for shape in ((4, 8), (8, 24))]
    graph = remove_stop_gradient(lx.trace(lx.grad(loss, argnums=1))(*kinds))
    ops = [node.op for node in simplify(graph).nodes]
    assert "pad" not in ops and ops.count("concatenate") == 1
    random = np.random.default_rng(0)
    arrays = [random.normal(size=kind.shape).astype(np.float32) for kind in kinds]
    for got, want in zip(interpret(simplify(graph), *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_gradients_of_complex_arrays_that_are_cut_stay_sums() -> None:
    def loss(x: Any) -> Any:
        first, second = lnp.split(x, 2)
        return lnp.sum(lnp.abs(first * second))

    graph = remove_stop_gradient(lx.trace(lx.grad(loss))(lx.ShapeDtype((6,), "complex64")))
    assert [node.op for node in simplify(graph).nodes].count("pad") == 2
    array = np.arange(6).astype(np.complex64) + 1j
    np.testing.assert_allclose(interpret(simplify(graph), array), interpret(graph, array), rtol=1e-6)


@pytest.mark.parametrize("first", [True, False])
def test_long_sums_are_left(first: bool) -> None:
    """Few terms are looked at for each sum that they are in, whichever operand is the sum of those before."""
    count = 40
    ends = [f"low=[{n}] high=[{count - 1 - n}] interior=[0] value=0.0" for n in range(count)]
    pads = [f"%{n} = pad(x{n}) {end} : f32[{count}]" for n, end in enumerate(ends)]
    operands = [(count + n - 1 if n else 0, n + 1)[:: 1 if first else -1] for n in range(count - 1)]
    sums = [f"%{count + n} = add(%{one}, %{other}) : f32[{count}]" for n, (one, other) in enumerate(operands)]
    inputs = ", ".join(f"x{n}: f32[1]" for n in range(count))
    text = "\n  ".join([f"graph ({inputs}) {{", *pads, *sums, f"return %{2 * count - 2}"]) + "\n}"
    assert "concatenate" not in str(simplify(parse(text)))


def test_the_gradient_of_a_scan_that_cuts_its_gates_has_no_pads_and_is_right() -> None:
    def loss(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            gate, new = lnp.split(x @ w + h @ w, 2, axis=-1)
            h = lnp.tanh(gate) * lnp.sin(new) + 0.5 * h
            return h, h

        return lnp.sum(lax.scan(step, lnp.zeros((2, 4)), xs)[1] ** 2)

    draw = np.random.default_rng(0)
    w, xs = (0.3 * draw.normal(size=shape).astype(np.float32) for shape in ((4, 8), (5, 2, 4)))
    graph = remove_stop_gradient(lx.trace(lx.grad(loss))(w, xs))
    bodies = [node.attrs["body"] for node in graph.nodes if node.op == "scan"]
    ops = [[node.op for node in body.nodes] for body in bodies]
    assert len(ops) == 2
    assert not any("pad" in each for each in ops)
    assert "concatenate" in ops[1]
    assert str(remove_stop_gradient(graph)) == str(graph)
    (found,) = interpret(graph, w, xs)
    step = 1e-6
    for place in ((0, 0), (3, 7), (1, 5)):
        moved = [w.astype(np.float64) for _ in range(2)]
        moved[0][place] += step
        moved[1][place] -= step
        more, less = (interpret(lx.trace(loss)(w, xs), each, xs)[0] for each in moved)
        np.testing.assert_allclose(found[place], (more - less) / (2 * step), rtol=1e-4)
