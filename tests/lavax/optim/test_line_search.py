"""L-BFGS and its line searches on Rosenbrock's function, against optax and values recorded from it."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim

pytestmark = pytest.mark.usefixtures("reference_backend")
START = np.array([-1.2, 1], "f")


def rosenbrock(p: Any) -> Any:
    return 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2


def searches(library: Any) -> dict[str, Any]:
    return {
        "zoom": library.lbfgs(),
        "short memory": library.lbfgs(memory_size=2, scale_init_precond=False),
        "keep": library.lbfgs(linesearch=library.scale_by_zoom_linesearch(15, max_learning_rate=2.0)),
        "backtracking": library.lbfgs(linesearch=library.scale_by_backtracking_linesearch(20, store_grad=True)),
    }


def path(library: Any, compiled: Any, solver: Any, steps: int) -> list[np.ndarray]:
    """The parameters after each step."""
    value_and_grad = library.value_and_grad_from_state(rosenbrock)

    @compiled
    def step(params: Any, state: Any) -> Any:
        value, grad = value_and_grad(params, state=state)
        updates, state = solver.update(grad, state, params, value=value, grad=grad, value_fn=rosenbrock)
        return library.apply_updates(params, updates), state

    params: Any = START
    state, found = solver.init(params), []
    for _ in range(steps):
        params, state = step(params, state)
        found.append(np.asarray(params))
    return found


# Of optax 0.2.8 with jax 0.10: the parameters after the sixth step.
RECORDED = {
    "zoom": [-1.0045552, 1.0296029],
    "backtracking": [-1.0144426, 1.044814],
}


@pytest.mark.parametrize("name", list(RECORDED))
def test_recorded_steps(name: str) -> None:
    found = path(optim, lx.compile, searches(optim)[name], 6)
    # The function's condition at the start is 2500: rounding in float32 grows by that.
    np.testing.assert_allclose(found[-1], RECORDED[name], rtol=1e-4)


@pytest.mark.parametrize("name", list(searches(optim)))
def test_five_steps_as_optax_takes_them(name: str) -> None:
    optax = pytest.importorskip("optax", reason="optax is the oracle; recorded values stand in")
    jax = pytest.importorskip("jax", reason="optax needs it")
    ours = path(optim, lx.compile, searches(optim)[name], 5)
    theirs = path(optax, jax.jit, searches(optax)[name], 5)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_minimize_finds_the_minimum() -> None:
    found = lx.compile(lambda start: optim.minimize(rosenbrock, start))(START)
    assert bool(found.converged) and int(found.steps) < 60
    # At a gradient of 1e-4 and a least curvature of 0.4 the parameters are within 3e-4.
    np.testing.assert_allclose(np.asarray(found.params), [1, 1], atol=5e-4)


def test_minimize_takes_another_optimizer_trees_and_arguments() -> None:
    def distance(params: Any, target: Any, scale: Any = 1.0) -> Any:
        return scale * (lnp.sum((params["a"] - target) ** 2) + params["b"] ** 2)

    start = {"a": np.zeros(3, "f"), "b": np.float32(2)}
    target = np.array([1, 2, 3], "f")
    found = optim.minimize(distance, start, target, optimizer=optim.sgd(0.1), tol=1e-3, scale=2.0)
    assert bool(found.converged)
    np.testing.assert_allclose(np.asarray(found.params["a"]), target, atol=1e-3)
    unfinished = optim.minimize(distance, start, target, optimizer=optim.sgd(1e-3), max_steps=3)
    assert int(unfinished.steps) == 3 and not bool(unfinished.converged)


def test_a_step_into_nan_is_not_taken() -> None:
    def loss(p: Any) -> Any:
        return -lnp.log(p) + p  # undefined below zero; the first step of 1 goes there

    search = optim.scale_by_zoom_linesearch(20)
    param = np.float32(0.5)
    value, _grad = lx.value_and_grad(loss)(param)
    updates, state = search.update(np.float32(-1), search.init(param), param, value=value, grad=np.float32(1),
                                   value_fn=loss)
    moved = float(optim.apply_updates(param, updates))
    assert moved > 0 and np.isfinite(float(loss(lnp.asarray(moved)))) and float(state.learning_rate) < 0.5


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: optim.scale_by_lbfgs(0), ValueError, "memory_size .* got 0"),
        (lambda: optim.scale_by_zoom_linesearch(5, initial_guess_strategy="two"), ValueError, "'two'"),
        (
            lambda: optim.lbfgs().update(START, optim.lbfgs().init(START), START, value=1.0, grad=START,
                                         value_fn=rosenbrock, batch=3),
            TypeError, r"no arguments \['batch'\]",
        ),
        (
            lambda: optim.value_and_grad_from_state(rosenbrock)(START, state=optim.adam(0.1).init(START)),
            ValueError, "holds no value",
        ),
    ],
)
def test_what_cannot_be(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()
