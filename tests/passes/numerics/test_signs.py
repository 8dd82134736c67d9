"""What is known of signs: that it holds, and that exponentials use it."""
from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from lavax.ir import Graph, interpret, parse
from lavax.passes.numerics.signs import Sign, signs_of
from lavax.passes.prepare.pipeline import prepare
from tests.backends.vulkan.run.execution import run

# Bodies over x and y, both f32[3,4], and what is known of their last line.
NOT_POSITIVE, NOT_NEGATIVE, UNKNOWN = Sign.NOT_POSITIVE, Sign.NOT_NEGATIVE, Sign.UNKNOWN
BODIES: dict[str, tuple[Sign, str]] = {
    "an argument": (UNKNOWN, "%0 = add(x, y) : f32[3,4]"),
    "a square": (NOT_NEGATIVE, "%0 = multiply(x, x) : f32[3,4]"),
    "a product": (UNKNOWN, "%0 = multiply(x, y) : f32[3,4]"),
    "less a square": (NOT_POSITIVE, "%0 = multiply(x, x) : f32[3,4]; %1 = negate(%0) : f32[3,4]"),
    "a square times a negative literal": (
        NOT_POSITIVE,
        "%0 = multiply(x, x) : f32[3,4]; %1 = constant() value=-0.5 : f32[3,4]; %2 = multiply(%0, %1) : f32[3,4]",
    ),
    "two negative factors": (
        NOT_NEGATIVE,
        "%0 = abs(x) : f32[3,4]; %1 = negate(%0) : f32[3,4]; %2 = constant() value=-0.5 : f32[3,4]; "
        "%3 = multiply(%1, %2) : f32[3,4]",
    ),
    "zero": (NOT_POSITIVE | NOT_NEGATIVE, "%0 = constant() value=0.0 : f32[3,4]"),
    "no number": (UNKNOWN, "%0 = constant() value=nan : f32[3,4]"),
    "what relu gives": (
        NOT_NEGATIVE, "%0 = constant() value=0.0 : f32[3,4]; %1 = maximum(x, %0) : f32[3,4]"
    ),
    "the smaller of one not positive": (
        NOT_POSITIVE, "%0 = constant() value=-1.0 : f32[3,4]; %1 = minimum(%0, x) : f32[3,4]"
    ),
    "the larger of one not positive": (
        UNKNOWN, "%0 = constant() value=-1.0 : f32[3,4]; %1 = maximum(%0, x) : f32[3,4]"
    ),
    "a difference of opposites": (
        NOT_POSITIVE,
        "%0 = exp(x) : f32[3,4]; %1 = negate(%0) : f32[3,4]; %2 = abs(y) : f32[3,4]; %3 = subtract(%1, %2) : f32[3,4]",
    ),
    "either of two": (
        NOT_NEGATIVE,
        "%0 = less(x, y) : bool[3,4]; %1 = abs(x) : f32[3,4]; %2 = exp(y) : f32[3,4]; "
        "%3 = where(%0, %1, %2) : f32[3,4]",
    ),
    "moved and summed": (
        NOT_NEGATIVE,
        "%0 = logistic(x) : f32[3,4]; %1 = transpose(%0) axes=[1,0] : f32[4,3]; %2 = sum(%1) axes=[1] : f32[4]",
    ),
    "less its maximum": (
        NOT_POSITIVE,
        "%0 = max(x) axes=[1] : f32[3]; %1 = broadcast(%0) axes=[0] : f32[3,4]; %2 = subtract(x, %1) : f32[3,4]",
    ),
    "less its maximum, which has no gradient": (
        NOT_POSITIVE,
        "%0 = stop_gradient(x) : f32[3,4]; %1 = max(%0) axes=[0] : f32[4]; %2 = broadcast(%1) axes=[1] : f32[3,4]; "
        "%3 = subtract(x, %2) : f32[3,4]",
    ),
    "less another's maximum": (
        UNKNOWN,
        "%0 = max(y) axes=[1] : f32[3]; %1 = broadcast(%0) axes=[0] : f32[3,4]; %2 = subtract(x, %1) : f32[3,4]",
    ),
    "less its minimum": (
        UNKNOWN,
        "%0 = min(x) axes=[1] : f32[3]; %1 = broadcast(%0) axes=[0] : f32[3,4]; %2 = subtract(x, %1) : f32[3,4]",
    ),
}
_SQUARE_BODY = (
    "%0 = max(z) axes=[1] : f32[3]; %1 = broadcast(%0) axes=[1] : f32[3,3]; %2 = subtract(z, %1) : f32[3,3]"
)


def graph_of_body(body: str, inputs: str = "x: f32[3,4], y: f32[3,4]") -> Graph:
    lines = body.split("; ")
    return parse("\n".join([f"graph ({inputs}) {{", *lines, f"return {lines[-1].split(' ')[0]}", "}"]))


@pytest.mark.parametrize("name", BODIES)
def test_a_sign_is_known_and_holds(name: str) -> None:
    expected, body = BODIES[name]
    graph = graph_of_body(body)
    (output,) = graph.outputs
    assert signs_of([output])[output] == expected
    rng = np.random.default_rng(0)
    edges = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -3e38, 3e38, -1.0, 2.0, -0.5, 7.0]).reshape(3, 4)
    for x in (rng.normal(size=(3, 4)), edges, edges[::-1], rng.normal(size=(3, 4)) * 1e30):
        for y in (rng.normal(size=(3, 4)), edges):
            with np.errstate(all="ignore"):
                (value,) = interpret(graph, x.astype(np.float32), y.astype(np.float32))
            assert Sign.NOT_POSITIVE not in expected or not np.any(value > 0)
            assert Sign.NOT_NEGATIVE not in expected or not np.any(value < 0)


def test_a_maximum_laid_out_along_another_axis_says_nothing() -> None:
    graph = graph_of_body(_SQUARE_BODY, "z: f32[3,3]")
    assert signs_of(graph.outputs)[graph.outputs[0]] == Sign.UNKNOWN


SOFTMAX = dedent("""
    graph (x: f32[6,40]) {
      %0 = max(x) axes=[1] : f32[6]
      %1 = broadcast(%0) axes=[0] : f32[6,40]
      %2 = subtract(x, %1) : f32[6,40]
      %3 = exp(%2) : f32[6,40]
      %4 = exp(x) : f32[6,40]
      return %3, %4
    }
    """)


def test_prepared_exponentials_say_where_they_cannot_overflow() -> None:
    bounded, plain = prepare(parse(SOFTMAX)).outputs
    assert bounded.attrs["nonpositive"] and not plain.attrs["nonpositive"]


def test_bounded_exponentials_are_right_on_the_device() -> None:
    x = np.random.default_rng(0).normal(0, 40, (6, 40)).round().astype(np.float32)  # so that differences are exact
    x[0, :3] = [-np.inf, np.nan, 1]
    x[1, 0] = np.inf
    x[2, :] = -np.inf
    x[3, :5] = [-3.4e38, -120, -88.5, -87.25, 0]
    graph = parse(SOFTMAX)
    found, _ = run(graph, [x])
    with np.errstate(all="ignore"):
        expected, _ = interpret(graph, x)
    np.testing.assert_allclose(found, expected, rtol=4 * 2.0**-23, atol=1.2e-38)  # denormal results may be 0
