"""The examples of derivatives of derivatives: they run with small settings, and what they compute is right."""
from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from examples import hessian_spectrum, maml, neural_ode, newton, per_example_gradients
from tests.closeness import close

# Where Newton's method on x⁴ − 2x² goes from 2: x − (4x³ − 4x)/(12x² − 4), by hand.
NEWTON = [2, 1.4545454545454546, 1.1510467893775467, 1.0253259289766978, 1.0009084519430513, 1.0000012353089454, 1, 1]


@pytest.mark.parametrize(
    ("example", "options", "printed"),
    [
        (newton, ["--steps", "10"], r"Rosenbrock, Newton, 8 steps: \(1.000000, 1.000000\)"),
        (neural_ode, ["--steps", "2", "--batch-size", "4"], r"on the whole path: \d"),
        (per_example_gradients, ["--count", "40", "--steps", "3"], r"40 gradients: \d"),
        (hessian_spectrum, ["--train-steps", "5", "--steps", "12", "--vectors", "2"], r"largest eigenvalue: \d"),
        (maml, ["--steps", "2", "--tasks", "3"], r"learned without: \d"),
    ],
    ids=["newton", "neural_ode", "per_example_gradients", "hessian_spectrum", "maml"],
)
def test_the_command_line(
    example: ModuleType,
    options: list[str],
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = example.__name__.rsplit(".", 1)[-1]
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *options, "--out", str(tmp_path / "made")])
    example.main()
    assert re.search(printed, capsys.readouterr().out)
    assert (tmp_path / "made" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_newton_and_descent() -> None:
    close(newton.newton_on_a_line(newton.double_well, np.float32(2), steps=7), NEWTON)
    close(newton.derivatives(lnp.tanh, 1.0, 4), [0.4199743416, -0.6397000084, 0.6216266807, 0.6650910447])
    start = np.array([0, 2], "f")
    close(newton.newton_in_a_plane(newton.rosenbrock, start, steps=6)[-1], [1, 1])
    path = np.asarray(newton.gradient_descent(newton.rosenbrock, start, 1e-3, steps=1000))
    close(path[0], start)
    close(path[-1], [0.6837118569138317, 0.4659526837427042], 1e-4)


def test_runge_kutta_has_order_four() -> None:
    errors = []
    for steps in (4, 8):
        solved = neural_ode.solve(lambda y: -y, np.ones(1, "f"), 2 / steps, steps)
        errors.append(abs(float(solved[-1, 0]) - np.exp(-2)))
    assert 12 < errors[0] / errors[1] < 30, "halving the interval divides the error by about 16"


def test_gradients_of_single_examples() -> None:
    points, labels, _ = per_example_gradients.two_moons(20, seed=0)
    network = per_example_gradients.initial_network(0)
    every = per_example_gradients.per_example(network, points, labels)
    mean = per_example_gradients.gradient_of_mean(network, points, labels)
    for one, other in zip(lx.tree.leaves(every), lx.tree.leaves(mean), strict=True):
        close(np.asarray(one).mean(0), other)
    (weight, bias), *_ = lx.grad(per_example_gradients.loss)(network, points[3], labels[3])
    close(every[0][0][3], weight)
    close(every[0][1][3], bias)


def test_lanczos_finds_the_ends_of_the_spectrum() -> None:
    random = np.random.default_rng(0)
    half = random.normal(size=(20, 20))
    matrix = (half + half.T).astype("f")
    forms = lx.compile(lambda start: hessian_spectrum.lanczos(lambda v: matrix @ v, start, 20))
    diagonal, beside = forms(random.normal(size=20).astype("f"))
    values, weights = hessian_spectrum.eigenvalues_and_weights(np.asarray(diagonal)[None], np.asarray(beside)[None])
    close(np.sort(values[0]), np.linalg.eigvalsh(matrix.astype("d")), 1e-3)
    close(weights.sum(), 1)


def test_the_outer_gradient_goes_through_the_inner_step() -> None:
    tasks = maml.sines(np.random.default_rng(0), 2)
    network = maml.initial_network(0)
    gradients = lx.compile(lx.grad(lambda n: maml.meta_loss(n, tasks, 1)))(network)
    bias = np.zeros(maml.HIDDEN, "f")
    bias[3] = 0.01

    def moved(scale: float) -> float:
        (weight, _), *rest = network
        return float(maml.error([(weight, scale * bias), *rest], tasks, inner_steps=1))

    close(gradients[0][1][3], (moved(1) - moved(-1)) / 0.02, 2e-2)
