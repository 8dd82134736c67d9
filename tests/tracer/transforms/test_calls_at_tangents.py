"""Functions with rules of their own that a rule calls at a tangent: forward and reverse mode agree, as in JAX.

The numbers are those that JAX gives for the same programs.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import CustomRuleError
from lavax.ir import parse
from lavax.tracer.compiled.executable import apply_graph


def _scaled() -> Any:
    """Twice the argument, by a rule that says three times."""
    scaled = lx.custom_jvp(lambda x: 2 * x)
    scaled.defjvp(lambda primals, tangents: (scaled(primals[0]), 3 * tangents[0]))
    return scaled


def _by(tangent: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Four times the argument, with the tangent that `tangent` gives for the argument and its tangent."""
    function = lx.custom_jvp(lambda x: 4 * x)
    function.defjvp(lambda primals, tangents: (4 * primals[0], tangent(primals[0], tangents[0])))
    return function


def _itself(tangent: Callable[[Any, Any, Any], Any]) -> Callable[[Any], Any]:
    function = lx.custom_jvp(lambda x: 2 * x)
    function.defjvp(lambda primals, tangents: (function(primals[0]), tangent(function, primals[0], tangents[0])))
    return function


def _each_other() -> Callable[[Any], Any]:
    first, second = lx.custom_jvp(lambda x: 2 * x), lx.custom_jvp(lambda x: 5 * x)
    first.defjvp(lambda primals, tangents: (first(primals[0]), second(tangents[0])))
    second.defjvp(lambda primals, tangents: (second(primals[0]), first(tangents[0])))
    return first


def _looped(function: Any, x: Any) -> Any:
    return lx.lax.scan(lambda carry, _: (function(carry), None), x, None, length=3)[0]


# The derivatives at 1 and -1, that of three turns of a loop, and that of the derivative of function(x) * x.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Sequence[float]]] = {
    "another": (_by(lambda x, t: _scaled()(t)), (2, 2, 8, 6)),
    "another, and a value": (
        _by(lambda x, t: _scaled()(t) * lnp.sin(_scaled()(x))),
        (2 * np.sin(2), -2 * np.sin(2), 8 * np.sin(2) * np.sin(8) * np.sin(32), 6 * np.cos(2) + 2 * np.sin(2) + 4),
    ),
    "another in a loop": (_by(lambda x, t: _looped(_scaled(), t)), (8, 8, 512, 12)),
    "another in a checkpoint": (_by(lambda x, t: lx.checkpoint(_scaled())(t)), (2, 2, 8, 6)),
    "itself": (_itself(lambda f, x, t: 3 * f(t)), (6, 6, 216, 12)),
    "itself in a loop": (_itself(lambda f, x, t: _looped(f, t)), (8, 8, 512, 16)),
    "itself in a branch": (
        _itself(lambda f, x, t: lx.lax.cond(x > 0, lambda t: f(t), lambda t: 3 * t, t)),
        (2, 3, 8, 4),
    ),
    "each other": (_each_other(), (5, 5, 125, 10)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_modes_agree(name: str) -> None:
    function, (right, left, looped, second) = PROGRAMS[name]
    one, both = np.float32(1), np.array([1, -1], "f")
    for found in (lx.grad(function), lx.jit(lx.grad(function)), lx.grad(lx.checkpoint(function))):
        np.testing.assert_allclose(found(one), right, rtol=1e-6)
    np.testing.assert_allclose(lx.jvp(function, (one,), (one,))[1], right, rtol=1e-6)
    np.testing.assert_allclose(lx.vmap(lx.grad(function))(both), [right, left], rtol=1e-6)
    turns = lx.grad(lambda x: lx.lax.fori_loop(0, 3, lambda _, x: function(x), x))
    np.testing.assert_allclose(turns(one), looped, rtol=1e-5)
    np.testing.assert_allclose(lx.grad(lx.grad(lambda x: function(x) * x))(one), second, rtol=1e-5)


def test_the_transpose_of_a_linear_function_is_that_of_its_body() -> None:
    one = np.float32(1)
    assert float(lx.linear_transpose(_scaled(), one)(one)[0]) == 2
    assert float(lx.linear_transpose(lambda x: _looped(_scaled(), x), one)(one)[0]) == 8


def test_a_checkpoint_holds_a_rule_for_one_derivative() -> None:
    """As without it: the next derivative is that of what the rules compute, here of x * y. The numbers are JAX's."""
    pulled = lx.custom_vjp(lambda x, y: x * y)
    pulled.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (g * kept[1] * 2, g * kept[0] * 3))
    pushed = lx.custom_jvp(lambda x, y: x * y)
    pushed.defjvp(lambda x, t: (x[0] * x[1], 2 * t[0] * x[1] + 3 * t[1] * x[0]))
    policy = lx.checkpoint_policies.dots_saveable
    for function in (pulled, pushed):
        plain = lambda x, y: lnp.sin(function(x, y))  # noqa: B023, E731
        inner = lambda x, y: lx.checkpoint(plain)(x, y) * 1  # noqa: B023, E731
        for outer in (plain, lx.checkpoint(plain), lx.checkpoint(plain, policy=policy), lx.checkpoint(inner)):
            np.testing.assert_allclose(lx.jacrev(outer)(1.0, 2.0), 4 * np.cos(2), rtol=1e-5)
            np.testing.assert_allclose(lx.jacrev(lx.jacrev(outer))(1.0, 2.0), -8 * np.sin(2), rtol=1e-5)
            looped = lambda x, y: lx.scan(lambda c, _: (outer(c, y), None), x, None, length=2)[0]  # noqa: B023, E731
            np.testing.assert_allclose(lx.jacrev(lx.jacrev(looped))(1.0, 2.0), -3.608102, rtol=1e-5)


def test_a_solver_that_its_own_rule_calls_is_differentiated_in_both_modes() -> None:
    """Its body is a loop, which has no transpose; its rule, which solves once more, is one."""

    x = np.float32([0.5, -1.0, 2.0])

    @lx.custom_vjp
    def halve(x: Any) -> Any:
        return lx.while_loop(lambda s: s[0] < 40, lambda s: (s[0] + 1, s[1] - (2 * s[1] - x) / 4), (0, x))[1]

    halve.defvjp(lambda x: (halve(x), None), lambda _, given: (halve(given),))

    def loss(y: Any) -> Any:
        return 3 * lnp.sum(x * halve(y) ** 2)

    np.testing.assert_allclose(lx.grad(loss)(x), 1.5 * x**2, rtol=1e-5)
    np.testing.assert_allclose(lx.jvp(loss, (x,), (x,))[1], np.sum(1.5 * x**3), rtol=1e-5)
    np.testing.assert_allclose(lx.hessian(loss)(x), np.diag(1.5 * x), rtol=1e-5)


@pytest.mark.parametrize("name", ["itself", "itself in a loop", "each other", "by two rules"])
def test_the_text_of_a_rule_that_calls_its_function_is_read_back(name: str) -> None:
    """With the rules that it holds: derivatives of the graph that was read are those of the function."""
    function: Any = PROGRAMS[name][0] if name in PROGRAMS else lx.custom_vjp(lambda x: 2 * x)
    if name not in PROGRAMS:
        function.defvjp(lambda x: (function(x), None), lambda _, given: (3 * function(given),))
    x = np.float32([1, -1, 2])
    for called in (function, lx.vmap(function), lambda x: lx.lax.fori_loop(0, 2, lambda _, x: function(x), x)):
        text = str(lx.trace(called)(x))
        graph = parse(text)
        assert str(graph) == text and "itself" in text
        read = lambda x: apply_graph(graph, [lnp.asarray(x)], [False])[0]  # noqa: B023, E731
        for each in (lambda f: f(x), lambda f: lx.vjp(f, x)[1](x)[0], lambda f: lx.hessian(lambda x: f(x) @ x)(x)):
            np.testing.assert_allclose(each(read), each(called), rtol=1e-6)


def test_a_text_without_the_rule_that_a_derivative_needs_says_so() -> None:
    function = PROGRAMS["itself"][0]
    graph = parse(str(lx.trace(lambda x: lx.jvp(function, (x,), (x,)))(np.float32(1))))
    np.testing.assert_array_equal(apply_graph(graph, [lnp.asarray(1.0)], [False] * 2), [2, 6])
    with pytest.raises(CustomRuleError, match="read from a text, which does not hold this call's rule"):
        lx.grad(lambda x: apply_graph(graph, [x], [False] * 2)[0])(1.0)


def test_the_text_of_functions_whose_rules_call_each_other_does_not_take_one_for_the_other() -> None:
    """Both have one body, so that only the words tell them apart."""
    first, second = lx.custom_jvp(lambda x: 2 * x), lx.custom_jvp(lambda x: 2 * x)
    first.defjvp(lambda primals, tangents: (first(primals[0]), 3 * second(tangents[0])))
    second.defjvp(lambda primals, tangents: (7 * first(primals[0]), 5 * first(tangents[0])))
    text = str(lx.trace(first)(np.float32(1)))
    assert text.count('rule="itself"') == 1 and text.count('rule="later"') == 2
