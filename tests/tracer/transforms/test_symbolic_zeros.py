"""Rules of derivatives that ask for zeros as such."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax.custom_derivatives import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values
from lavax.test_util import check_grads


def test_a_rule_of_forward_mode_gets_zeros_for_integers_and_gives_them() -> None:
    @lx.custom_jvp
    def power(x: Any, n: Any) -> Any:
        return {"value": x**n, "half": x / 2, "count": n}

    seen: list[Any] = []

    def rule(primals: Any, tangents: Any) -> Any:
        (x, n), (dx, dn) = primals, tangents
        seen.append(dn)
        tangent = {"value": n * x ** (n - 1) * dx, "half": SymbolicZero.from_primal_value(x), "count": dn}
        return power(x, n), tangent

    power.defjvp(rule, symbolic_zeros=True)
    n = np.arange(1, 4)
    f = lambda x: lnp.sum(lnp.sin(power(lnp.cos(x), n)["value"]))  # noqa: E731
    check_grads(f, (np.ones(3, "f"),), 1)
    (zero, *_) = seen
    assert isinstance(zero, SymbolicZero) and zero.shape == (3,) and zero.dtype == lx.float0 and zero.size == 3
    assert lx.grad(lambda x: lnp.sum(power(x, n)["half"]))(np.ones(3, "f")).tolist() == [0, 0, 0]


def test_rules_of_reverse_mode_are_told_what_may_change() -> None:
    @lx.custom_vjp
    def scaled(tree: Any, by: Any) -> Any:
        return tree["x"] * by, tree["n"] + 1

    def forward(tree: Any, by: Any) -> Any:
        assert isinstance(by, CustomVJPPrimal) and by.perturbed
        assert (tree["x"].perturbed, tree["n"].perturbed) == (True, False)
        plain = custom_vjp_primal_tree_values(tree)
        return scaled(plain, by.value), (plain["x"], by.value)

    def backward(kept: Any, cotangents: Any) -> Any:
        _, by = kept
        of_product, of_count = cotangents
        assert isinstance(of_count, SymbolicZero) and of_count.shape == (2,)
        return {"x": 2 * of_product * by, "n": of_count}, SymbolicZero.from_primal_value(by)

    scaled.defvjp(forward, backward, symbolic_zeros=True)
    f = lambda x, by: lnp.sum(scaled({"x": lnp.exp(x), "n": lnp.arange(2)}, lnp.cos(by))[0])  # noqa: E731
    by_x, by_scale = lx.jit(lx.grad(f, (0, 1)))(np.zeros(2, "f"), np.zeros((), "f"))
    assert by_x.tolist() == [2, 2] and by_scale == 0


def test_arguments_that_are_settings_come_as_they_are() -> None:
    function = lx.custom_vjp(lambda name, x: x * len(name), nondiff_argnums=0)
    function.defvjp(
        lambda name, x: (x.value * len(name), None), lambda name, _, g: (7 * g,), symbolic_zeros=True
    )
    assert lx.grad(lambda x: function("abc", x))(1.0) == 7


def test_shapes_of_derivatives() -> None:
    whole, real = lx.typeof(np.arange(3)), lx.typeof(np.ones(2, "f"))
    assert real.to_tangent_aval() == real and whole.to_tangent_aval() == lx.ShapeDtypeStruct((3,), lx.float0)
    assert whole.at_least_vspace().dtype == lx.float0
