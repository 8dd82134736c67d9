"""The integrator against closed forms, SciPy and JAX; its gradients against differences and JAX."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import lavax as lx
import lavax.numpy as lnp
from lavax.experimental.ode import odeint
from lavax.test_util import check_grads
from tests.closeness import close

pytestmark = pytest.mark.usefixtures("reference_backend")

TIMES = np.array([0.0, 0.3, 0.5, 1.2], "f")


def pendulum(numpy: Any, y: Any, t: Any, friction: Any, length: Any) -> Any:
    return numpy.stack([y[1], -friction * y[1] - numpy.sin(y[0]) / length + 0.1 * t])


def ours(y: Any, t: Any, friction: Any, length: Any) -> Any:
    return pendulum(lnp, y, t, friction, length)


def test_solutions() -> None:
    found = odeint(ours, np.array([1.0, 0.2], "f"), TIMES, 0.3, 1.5, rtol=1e-6, atol=1e-6)
    wanted = scipy.integrate.odeint(
        lambda y, t: pendulum(np, y, t, 0.3, 1.5), [1.0, 0.2], TIMES.astype(float), rtol=1e-10, atol=1e-10
    )
    close(found, wanted)
    close(odeint(lambda y, t: -y, 1.0, TIMES), np.exp(-TIMES))
    assert odeint(lambda y, t: -y, 1.0, TIMES[:1]).tolist() == [1.0]
    compiled = lx.jit(lambda y: odeint(lambda y, t: {"a": -2 * y["a"], "b": y["a"][0] * t}, y, TIMES, hmax=0.1))
    tree = compiled({"a": np.array([1.0, 2.0], "f"), "b": np.float32(0)})
    close(tree["a"], np.exp(-2 * TIMES)[:, None] * [1, 2])
    close(tree["b"], 0.25 - np.exp(-2 * TIMES) * (TIMES / 2 + 0.25))


def test_gradients_by_everything() -> None:
    with lx.enable_x64():
        def f(y: Any, t: Any, friction: Any, scale: Any) -> Any:
            def slope(y: Any, t: Any, friction: Any, factor: Any) -> Any:
                return scale * ours(y, t, friction, 1.5) * factor

            return odeint(slope, lnp.sin(y), t, friction, 2, rtol=1e-12, atol=1e-12)

        arguments = (np.array([1.0, 0.2]), TIMES.astype(float), np.float64(0.3), np.float64(0.7))
        check_grads(f, arguments, 1, modes="rev", atol=1e-6, rtol=1e-6)


def test_gradients_agree_with_jax() -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")
    from jax.experimental.ode import odeint as theirs

    weights = np.random.default_rng(0).normal(size=(4, 2)).astype("f")

    def loss(numpy: Any, solve: Any, y: Any, t: Any, friction: Any) -> Any:
        found = solve(lambda *a: pendulum(numpy, *a), y, t, friction, 1.5, rtol=1e-6, atol=1e-6)
        return 2 * numpy.sum(found * weights)

    arguments = (np.array([1.0, 0.2], "f"), TIMES, np.float32(0.3))
    found = lx.grad(lambda *a: loss(lnp, odeint, *a), (0, 1, 2))(*arguments)
    wanted = jax.grad(lambda *a: loss(jax.numpy, theirs, *a), (0, 1, 2))(*arguments)
    for one, other in zip(found, wanted, strict=True):
        close(one, other, 2e-5)


def test_recorded_gradients() -> None:
    """By jax 0.10.2, for the sum of the last state of the pendulum, with rtol = atol = 1e-6."""
    found = lx.jit(lx.grad(lambda y, k: lnp.sum(odeint(ours, y, TIMES, k, 1.5, rtol=1e-6, atol=1e-6)[-1]), (0, 1)))(
        np.array([1.0, 0.2], "f"), np.float32(0.3)
    )
    close(found[0], RECORDED[:2], 2e-5)
    close(found[1], RECORDED[2], 2e-5)


RECORDED = [0.443696, 1.414205, 0.1486187]


def test_wrong_arguments() -> None:
    with pytest.raises(lx.ShapeError, match="odeint: t must be times"):
        odeint(lambda y, t: y, 1.0, 2.0)
    with pytest.raises(lx.TreeMismatchError, match="odeint: func must return"):
        odeint(lambda y, t: (y, y), 1.0, TIMES)


def test_complex_states_and_arguments() -> None:
    """A driven qubit's equation, whose arguments are complex too; gradients ∂/∂x − i·∂/∂y against differences."""

    def loss(y: Any, times: Any, coupling: Any, detuning: Any) -> Any:
        def slope(y: Any, t: Any, coupling: Any, detuning: Any) -> Any:
            drive = coupling * lnp.exp(1j * detuning * t)
            up, down = y["state"]
            turned = -1j * lnp.stack([drive * down, lnp.conj(drive) * up])
            return {"state": turned, "work": lnp.real(lnp.vdot(y["state"], turned * 1j)) * detuning}

        held = {"state": y, "work": np.float64(0.5)}
        found = odeint(slope, held, times, coupling, detuning, rtol=1e-11, atol=1e-11)
        return lnp.sum(lnp.abs(found["state"][-1] + 0.3) ** 2) + 2 * lnp.sum(found["work"])

    with lx.enable_x64():
        times = TIMES.astype(float)
        arguments = (np.array([1.0 + 0.2j, -0.4j]), times, np.complex128(0.7 - 0.4j), np.float64(0.9))
        found = lx.grad(loss, (0, 2, 3))(*arguments)
        for gradient, place in zip(found, (0, 2, 3), strict=True):
            whole = np.atleast_1d(np.asarray(gradient))
            directions = (1.0, 1j) if np.iscomplexobj(whole) else (1.0,)
            parts = []
            for direction in directions:
                step = np.zeros(whole.shape, whole.dtype)
                step[-1] = 1e-5 * direction
                ends = [
                    float(loss(*[x + sign * step.reshape(np.shape(x)) if k == place else x
                                 for k, x in enumerate(arguments)]))
                    for sign in (1, -1)
                ]  # fmt: skip
                parts.append((ends[0] - ends[1]) / 2e-5)
            wanted = parts[0] - 1j * parts[1] if len(parts) == 2 else parts[0]
            np.testing.assert_allclose(whole[-1], wanted, rtol=1e-6)


def test_turning_at_a_rate() -> None:
    start = np.array([1.0 + 2.0j, -0.5j], "complex64")
    found = odeint(lambda y, t: 1j * t * y, start, TIMES)
    assert found.dtype == np.complex64
    close(found, start * np.exp(0.5j * TIMES[:, None] ** 2))
    with pytest.raises(lx.DtypeError, match="a part of y0 that is real"):
        odeint(lambda y, t: 1j * y, np.float32(1), TIMES)
