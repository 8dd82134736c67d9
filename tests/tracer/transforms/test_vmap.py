"""vmap: axes of arguments and results, shared values, nesting with itself and with derivatives, and its errors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ConcretizationError, VmapAxisError
from tests.closeness import close

RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=(3, 4, 2)).astype("f")
B = RANDOM.normal(size=(4,)).astype("f")


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_the_mapped_axis_is_chosen_from_either_end(axis: int) -> None:
    close(lx.vmap(lnp.sum, in_axes=axis)(A), np.moveaxis(A, axis, 0).sum((1, 2)))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_where_the_axis_goes_in_the_result(axis: int) -> None:
    close(lx.vmap(lambda x: x * 2, out_axes=axis)(A), np.moveaxis(2 * A, 0, axis))


def test_axes_are_prefixes_of_trees() -> None:
    tree = {"a": A, "b": (B, 2.0)}
    axes = ({"a": 1, "b": (0, None)},)

    def function(t: Any) -> Any:
        return {"s": lnp.sum(t["a"]) + t["b"][0], "t": t["b"][1]}

    found = lx.vmap(function, axes, out_axes={"s": 0, "t": None})(tree)
    close(found["s"], A.sum((0, 2)) + B)
    assert float(found["t"]) == 2
    assert found["t"].shape == ()
    close(lx.vmap(lambda t, u: t[0] + t[1] + u, in_axes=(0, None))([B, B], 1.0), 2 * B + 1)
    close(lx.vmap(lambda x, y: x + y, in_axes=[0, None])(B, 1.0), B + 1)


def test_what_is_not_mapped_is_the_same_for_all() -> None:
    close(lx.vmap(lambda x, w: x @ w, in_axes=(0, None))(A, np.ones((2, 5), "f")), A @ np.ones((2, 5)))
    outside = lnp.asarray(B)
    close(lx.vmap(lambda x: x + outside, in_axes=1, out_axes=-1)(A[0]), A[0] + B[:, None])
    close(lx.vmap(lambda x: outside)(A), np.stack([B] * 3))
    close(lx.vmap(lambda: outside, axis_size=5)(), np.stack([B] * 5))


def test_keyword_arguments_are_mapped_along_their_first_axis() -> None:
    close(lx.vmap(lambda x, *, scale: x * scale)(B, scale=B), B * B)


def test_settings_pass_through() -> None:
    found = lx.vmap(lambda x, how: x * 2 if how == "twice" else x, in_axes=(0, None))(B, "twice")
    close(found, 2 * B)


def test_shared_values_may_be_asked_for_and_mapped_ones_not() -> None:
    assert lx.vmap(lambda x, n: x * int(n), in_axes=(0, None))(B, 3).shape == (4,)
    with pytest.raises(ConcretizationError, match="vmap of"):
        lx.vmap(lambda x: x if x > 0 else -x)(B)


def test_nested() -> None:
    outer = lx.vmap(lx.vmap(lambda x, y: x * y, in_axes=(0, None)), in_axes=(None, 0))
    close(outer(B, A[:, 0, 0]), A[:, 0, 0][:, None] * B)
    close(lx.vmap(lx.vmap(lx.vmap(lnp.sin)))(A), np.sin(A))


def test_with_derivatives() -> None:
    def loss(w: Any, x: Any) -> Any:
        return lnp.sum(lnp.tanh(x @ w) ** 2)

    w = RANDOM.normal(size=(2, 3)).astype("f")
    per_example = lx.vmap(lx.grad(loss), in_axes=(None, 0))(w, A)
    assert per_example.shape == (3, 2, 3)
    for k in range(3):
        close(per_example[k], lx.grad(loss)(w, A[k]))
    total = lx.grad(lambda w: lnp.sum(lx.vmap(loss, in_axes=(None, 0))(w, A)))(w)
    close(total, np.asarray(per_example).sum(0))


def test_inside_and_outside_compile() -> None:
    mapped = lx.vmap(lx.compile(lambda x: lnp.sum(x)))
    close(mapped(A), A.sum((1, 2)))
    text = lx.compile(lx.vmap(lambda x, w: x @ w, in_axes=(0, None))).lower(A[:, 0], np.ones((2, 5), "f")).as_text()
    assert text.count("dot(") == 1


def test_batched_positions() -> None:
    rows = lx.vmap(lambda x, i: x[i])(A, np.array([3, 0, 1]))
    close(rows, A[[0, 1, 2], [3, 0, 1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lx.vmap(lnp.sin, in_axes=3)(A), r"axis 3 is not an axis of x: f32\[3,4,2\], which has 3"),
        (lambda: lx.vmap(lambda x, y: x)(A, B), r"different extents: 3 by x: f32\[3,4,2\] along axis 0; 4 by y"),
        (lambda: lx.vmap(lambda x, y: x, in_axes=(0,))(A, B), "has 1 entries, but the call has 2"),
        (lambda: lx.vmap(lambda x: x, in_axes=None)(A), "give axis_size"),
        (lambda: lx.vmap(lambda x: x)(2.0), r"axis 0 is not an axis of x: f32\[\], which has 0"),
        (lambda: lx.vmap(lambda x: x, out_axes=None)(B), "differs between elements"),
        (lambda: lx.vmap(lambda x: x, out_axes=2)(B), "axis 2 is not an axis of a result"),
        (lambda: lx.vmap(lambda x: x, out_axes=(0, 1))(B), "out_axes must begin like the result"),
        (lambda: lx.vmap(lambda x: x, in_axes=({"a": 0},))(B), "in_axes must begin like"),
        (lambda: lx.vmap(lambda x, s: x)(B, "text"), "s is 'text' of type str, which has no axes"),
        (lambda: lx.vmap(lambda x: x, axis_size=7)(B), "different extents: 4 by x.*7 by axis_size"),
        (lambda: lx.vmap(lambda x: x, axis_name="a b")(B), "must be a word"),
    ],
)
def test_wrong_axes_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(VmapAxisError, match=message):
        call()


@pytest.mark.parametrize("wrap", [lambda f: f, lx.compile], ids=["eager", "compiled"])
def test_loops_that_end_apart_over_no_elements(wrap: Any) -> None:
    doubled = lx.vmap(lambda x: lx.while_loop(lambda y: y < 10, lambda y: 2 * y, x))
    assert np.asarray(wrap(doubled)(np.zeros(0, np.float32))).shape == (0,)

    def turn(carry: Any, _: None) -> Any:
        return lx.while_loop(lambda y: y < 10, lambda y: y + carry, carry), carry

    last, every = wrap(lx.vmap(lambda x: lx.scan(turn, x, None, 3)))(np.zeros(0, np.float32))
    assert (np.asarray(last).shape, np.asarray(every).shape) == ((0,), (0, 3))


def test_the_name_of_an_axis_of_devices_changes_nothing() -> None:
    close(lx.vmap(lnp.sum, spmd_axis_name="data")(A), A.sum((1, 2)))
