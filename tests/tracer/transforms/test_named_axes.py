"""Reductions over the axes that vmap names: values, gradients, nesting, and names that are not bound."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import UnboundAxisError
from tests.closeness import close

A = np.random.default_rng(0).normal(size=(3, 4)).astype("f")


def over(function: Any, out_axes: Any = 0) -> Any:
    return lx.vmap(function, axis_name="i", out_axes=out_axes)


def test_reductions() -> None:
    close(over(lambda x: lx.psum(x, "i"), None)(A), A.sum(0))
    close(over(lambda x: lx.pmean(x, "i"))(A), np.stack([A.mean(0)] * 3))
    close(over(lambda x: lx.pmax(x, "i"), None)(A), A.max(0))
    close(over(lambda x: lx.pmin(x, "i"), None)(A), A.min(0))
    close(over(lambda x: x * 0 + lx.axis_index("i"))(A), np.arange(3)[:, None] * np.ones(4))
    found = over(lambda x: lx.psum({"a": x, "b": (2.0, x[0])}, "i"), None)(A)
    close(found["a"], A.sum(0))
    assert found["b"][0] == 6
    close(found["b"][1], A[:, 0].sum())


def test_integers_are_averaged_as_floats() -> None:
    close(over(lambda n: lx.pmean(n, "i"), None)(np.array([1, 2, 4])), 7 / 3)


def test_the_extent_is_a_number() -> None:
    assert over(lambda x: x * (lx.axis_size("i") == 3 and lx.psum(1, "i")))(A).shape == (3, 4)


def test_all_gather() -> None:
    close(over(lambda x: lx.all_gather(x, "i"), None)(A), A)
    close(over(lambda x: lx.all_gather(x, "i", axis=1), None)(A), A.T)
    close(over(lambda x: lx.all_gather(x, "i", tiled=True), None)(A), A.reshape(-1))
    close(over(lambda x: lx.all_gather(x, "i") @ x)(A), A @ A.T)


def test_several_axes() -> None:
    both = lx.vmap(lx.vmap(lambda x: x / lx.psum(x, ("i", "j")), axis_name="i"), axis_name="j")
    close(both(A), A / A.sum())
    rows = lx.vmap(lx.vmap(lambda x: x - lx.pmean(x, "j"), axis_name="i"), axis_name="j")
    close(rows(A), A - A.mean(0))


def softmax_by_name(x: Any) -> Any:
    e = lnp.exp(x - lx.stop_gradient(lx.pmax(x, "i")))
    return e / lx.psum(e, "i")


def test_gradients_go_through_the_batch() -> None:
    """Outside vmap a gradient is that of the whole batch."""

    def by_name(a: Any) -> Any:
        return lnp.sum(lx.vmap(softmax_by_name, axis_name="i")(a) ** 2)

    def by_axis(a: Any) -> Any:
        e = lnp.exp(a)
        return lnp.sum((e / lnp.sum(e, 0)) ** 2)

    close(lx.grad(by_name)(A), lx.grad(by_axis)(A))
    t = np.ones_like(A)
    close(lx.jvp(by_name, (A,), (t,))[1], lx.jvp(by_axis, (A,), (t,))[1])
    close(lx.hessian(by_name)(A), lx.hessian(by_axis)(A))


def test_gradients_inside_the_map_sum_over_the_batch() -> None:
    """The transpose of psum is psum: each element gets the sum of all elements' cotangents."""
    close(over(lx.grad(lambda x: lx.psum(lnp.sum(x**2), "i")))(A), 3 * 2 * A)
    most = over(lx.grad(lambda x: lnp.sum(lx.pmax(x, "i"))))(A)
    close(most, 3 * np.equal(A, A.max(0)))
    pushed = over(lambda x: lx.jvp(lambda x: lx.pmax(x, "i"), (x,), (x * 2,))[1], None)(A)
    close(pushed, 2 * A.max(0))
    gathered = over(lx.grad(lambda x: lnp.sum(lx.all_gather(x, "i") ** 2)))(A)
    close(gathered, 3 * 2 * A)


def test_unbound_names_are_refused() -> None:
    for call in (
        lambda: lx.psum(1.0, "i"),
        lambda: over(lambda x: lx.pmean(x, "j"))(A),
        lambda: lx.axis_index("i"),
        lambda: lx.all_gather(A, "i"),
        lambda: lx.compile(lambda x: lx.pmax(x, "i"))(A),
    ):
        with pytest.raises(UnboundAxisError, match="vmap"):
            call()
