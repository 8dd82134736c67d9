"""checkpoint: equal values and derivatives, the values computed again under each policy, and the memory saved."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ad_checkpoint import checkpoint_name
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import WAITING_KERNELS, schedule
from tests.closeness import close

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(8, 16)).astype("f")
WEIGHTS = [RANDOM.normal(size=(16, 16)).astype("f") * 0.3 for _ in range(4)]
POLICIES = pytest.mark.parametrize("policy", ["nothing", "dots", "everything"])


def block(w: Any, x: Any) -> Any:
    return lnp.tanh(lnp.sin(x @ w) * 2)


def loss_with(transform: Any) -> Any:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = transform(block)(w, x)
        return lnp.sum(x)

    return loss


def with_policy(policy: Any) -> Any:
    return loss_with(lambda f: lx.checkpoint(f, policy=policy))


PLAIN = loss_with(lambda f: f)


@POLICIES
def test_values_and_derivatives_stay(policy: str) -> None:
    loss = with_policy(policy)
    close(loss(WEIGHTS, X), PLAIN(WEIGHTS, X))
    for found, expected in zip(lx.grad(loss)(WEIGHTS, X), lx.grad(PLAIN)(WEIGHTS, X), strict=True):
        close(found, expected)
    close(lx.grad(loss, argnums=1)(WEIGHTS, X), lx.grad(PLAIN, argnums=1)(WEIGHTS, X))
    tangents = [2 * w for w in WEIGHTS]
    pushed = lx.jvp(lambda w: loss(w, X), (WEIGHTS,), (tangents,))[1]
    close(pushed, lx.jvp(lambda w: PLAIN(w, X), (WEIGHTS,), (tangents,))[1])


@POLICIES
def test_nested_in_other_transformations(policy: str) -> None:
    def loss(x: Any) -> Any:
        return lnp.sum(lx.checkpoint(lambda x: lnp.sin(x) * lnp.sum(x * x), policy=policy)(x))

    def plain(x: Any) -> Any:
        return lnp.sum(lnp.sin(x) * lnp.sum(x * x))

    close(lx.hessian(loss)(X[0]), lx.hessian(plain)(X[0]))
    close(lx.jacrev(lx.grad(loss))(X[0]), lx.hessian(plain)(X[0]))
    close(lx.vmap(lx.grad(loss))(X), lx.vmap(lx.grad(plain))(X))
    close(lx.grad(lambda x: lnp.sum(lx.vmap(loss)(x)))(X), lx.vmap(lx.grad(plain))(X))
    close(lx.grad(lx.checkpoint(loss, policy=policy))(X[0]), lx.grad(plain)(X[0]))


def count_of(op: str, policy: str) -> int:
    text = lx.compile(lx.grad(with_policy(policy))).lower(WEIGHTS, X).as_text("optimized")
    return len(re.findall(rf" {op}\(", text))


def test_what_is_computed_again() -> None:
    """The last block's forward values are needed by nobody but its gradient, so they are computed once."""
    assert [count_of("sin", policy) for policy in ("nothing", "dots", "everything")] == [7, 7, 4]
    assert [count_of("dot", policy) for policy in ("nothing", "dots", "everything")] == [14, 11, 11]


def arena_of(policy: str) -> int:
    """Bytes of temporaries of the gradient of 16 layers in 4 checkpoints.

    Each is longer than what small kernels keep while they wait for each other (WAITING_KERNELS).
    """
    weights = [np.ones((64, 64), "f")] * 16
    x = np.ones((2048, 64), "f")
    assert x.nbytes > WAITING_KERNELS.kept_bytes

    def group(weights: Any, x: Any) -> Any:
        for w in weights:
            x = block(w, x)
        return x

    def loss(weights: Any, x: Any) -> Any:
        for k in range(0, 16, 4):
            x = lx.checkpoint(group, policy=policy)(weights[k : k + 4], x)
        return lnp.sum(x)

    optimized = lx.compile(lx.grad(loss)).lower(weights, x).optimized
    return schedule(prepare(optimized)).arena_bytes


def test_memory() -> None:
    """Four of sixteen layers live at once, and the inputs of the four groups."""
    nothing, dots, everything = map(arena_of, ("nothing", "dots", "everything"))
    assert nothing < 0.5 * everything
    assert nothing < dots < everything


def test_settings_pass_through() -> None:
    def power(x: Any, how: str) -> Any:
        return lnp.sum(x**2) if how == "square" else x[0]

    close(lx.grad(lambda x: lx.checkpoint(power)(x, "square"))(X[0]), 2 * X[0])


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="policy 'all' is none of nothing, dots, everything"):
        lx.checkpoint(block, policy="all")  # type: ignore[arg-type]


@POLICIES
def test_a_product_before_a_loop_is_kept_for_its_gradient(policy: Any) -> None:
    def body(x: Any, y: Any, w: Any) -> Any:
        return lx.scan(lambda carry, row: (lnp.tanh(carry * row), carry), x, w @ y)[0]

    arguments = (np.float32(0.5), np.ones(3, "f"), 0.9 * np.eye(3, dtype="f"))
    found = lx.grad(lx.checkpoint(body, policy), argnums=(0, 1, 2))(*arguments)
    for one, other in zip(found, lx.grad(body, argnums=(0, 1, 2))(*arguments), strict=True):
        close(one, other)


NAMES = lx.checkpoint_policies
# The policy, and how often the gradient of `named` computes an exponential, a sine and a cosine. Without a checkpoint,
# that is once, twice and twice: the derivative of a sine is a cosine of what it was made of, and the other way round.
BY_NAME = {
    "none": (None, (2, 3, 2)),
    "first": (NAMES.save_only_these_names("first"), (1, 3, 2)),
    "second": (NAMES.save_only_these_names("second", "another"), (2, 2, 2)),
    "all": (NAMES.save_only_these_names("first", "second"), (1, 2, 2)),
    "but": (NAMES.save_any_names_but_these("second"), (1, 3, 2)),
    "both": (
        NAMES.save_from_both_policies(
            NAMES.save_only_these_names("first"), NAMES.save_any_names_but_these("first", "third")
        ),
        (1, 2, 2),
    ),
    "everything": (NAMES.save_anything_except_these_names("first"), (1, 2, 2)),
}


def named(x: Any) -> Any:
    grown = checkpoint_name({"a": lnp.exp(x)}, "first")["a"]
    return lnp.cos(checkpoint_name(lnp.sin(grown), "second"))


@pytest.mark.parametrize("which", BY_NAME)
def test_values_with_names_are_kept(which: str) -> None:
    policy, expected = BY_NAME[which]
    scale = np.cos(X[0])

    def loss(x: Any) -> Any:
        return lnp.sum(lx.checkpoint(named, policy=policy)(x) * scale)

    def plain(x: Any) -> Any:
        return lnp.sum(named(x) * scale)

    text = lx.compile(lx.value_and_grad(loss)).lower(X[0]).as_text("optimized")
    assert tuple(len(re.findall(rf" {op}\(", text)) for op in ("exp", "sin", "cos")) == expected
    close(lx.grad(loss)(X[0]), lx.grad(plain)(X[0]))
    close(lx.vmap(lx.grad(loss))(X), lx.vmap(lx.grad(plain))(X))
    close(lx.hessian(loss)(X[0]), lx.hessian(plain)(X[0]))
    close(lx.jvp(lx.grad(loss), (X[0],), (scale,))[1], lx.jvp(lx.grad(plain), (X[0],), (scale,))[1])


def test_names_in_loops() -> None:
    policy = NAMES.save_only_these_names("carried")

    def looped(transform: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = checkpoint_name(lnp.tanh(carry * row), "carried")
            return carry, lnp.sin(carry)

        return lambda x: lnp.sum(lx.scan(transform(step), x[0], x)[1] ** 2)

    expected = lx.grad(looped(lambda f: f))(X)
    close(lx.grad(looped(lambda f: lx.checkpoint(f, policy=policy)))(X), expected)
    close(lx.grad(lx.checkpoint(looped(lambda f: f), policy=policy))(X), expected)


def test_names_are_text() -> None:
    with pytest.raises(TypeError, match="checkpoint_name: names are text, got 3"):
        checkpoint_name(X, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="save_only_these_names: names are text"):
        NAMES.save_only_these_names(["first"])  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [2, -3])
def test_a_static_argument_that_a_call_lacks_is_an_error(number: int) -> None:
    function = lx.checkpoint(lambda x, n: x**n, static_argnums=number)
    with pytest.raises(ValueError, match=r"static_argnums \[-?\d\] of a call with 2 arguments"):
        function(2.0, 3)
