"""Solves Burgers' equation by a physics-informed network (Raissi, Perdikaris and Karniadakis 2019).

    python examples/burgers.py --seed 1 --out out

The equation is ∂u/∂t + u ∂u/∂x = 0.01/π ∂²u/∂x² for x from −1 to 1 and t from 0 to 1, with u = −sin πx in the beginning
and u = 0 at both ends; a shock forms at x = 0. A network stands for u. It has these values by construction, and learns
from nothing but how far it is from the equation at random points. Its derivatives are jvp, and jvp of jvp; the gradient
for training goes through them. Prints the relative error against the exact solution by the Cole-Hopf transformation,
and draws both.
"""
from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import trange

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, optim

VISCOSITY = 0.01 / np.pi
SIZES = (2, 32, 32, 32, 32, 1)
RATE = 5e-3  # of the first step; it falls to nothing along a cosine
STEPS_PER_CALL = 50
QUICK = {"steps": 500, "points": 512}  # what --quick changes


class Solution(nn.Module):
    """u at t [n] and x [n]: [n]. The factor t (1 − x²) of the network keeps the initial and boundary values."""

    layers: tuple[nn.Linear, ...]

    def __init__(self, *, key: Any) -> None:
        keys = lx.random.split(key, len(SIZES) - 1)
        self.layers = tuple(nn.Linear(n, m, key=k) for n, m, k in zip(SIZES, SIZES[1:], keys, strict=False))

    def __call__(self, t: Any, x: Any) -> Any:
        values = lnp.stack([2 * t - 1, x], axis=-1)
        *hidden, last = self.layers
        for layer in hidden:
            values = lnp.tanh(layer(values))
        return -lnp.sin(np.pi * x) + t * (1 - x**2) * last(values)[:, 0]


def residual(solution: Solution, t: Any, x: Any) -> Any:
    """∂u/∂t + u ∂u/∂x − viscosity ∂²u/∂x² at points [n]. Each value depends on its own point, so one jvp serves all."""
    ones = lnp.ones_like(x)

    def along_x(x: Any) -> tuple[Any, Any]:
        return lx.jvp(lambda x: solution(t, x), (x,), (ones,))

    (u, u_x), (_, u_xx) = lx.jvp(along_x, (x,), (ones,))
    _, u_t = lx.jvp(lambda t: solution(t, x), (t,), (ones,))
    return u_t + u * u_x - VISCOSITY * u_xx


def loss(solution: Solution, t: Any, x: Any) -> Any:
    """Mean square of the residual."""
    return lnp.mean(residual(solution, t, x) ** 2)


@partial(lx.compile, static_argnames="points", donate_argnums=(0, 1))
def learn(solution: Solution, state: Any, key: Any, rates: Any, points: int) -> tuple[Solution, Any, Any]:
    """A step of Adam for each of the rates, each at other random points; also gives the mean loss before them."""

    def step(carry: Any, inputs: Any) -> tuple[Any, Any]:
        solution, state = carry
        key, rate = inputs
        t, x = lx.random.uniform(key, (2, points)) * np.array([[1], [2]], "f") - np.array([[0], [1]], "f")
        value, gradients = lx.value_and_grad(loss)(solution, t, x)
        updates, state = optim.adam(rate).update(gradients, state)
        return (optim.apply_updates(solution, updates), state), value

    keys = lx.random.split(key, len(rates))
    (solution, state), values = lx.scan(step, (solution, state), (keys, rates))
    return solution, state, lnp.mean(values)


def train(seed: int, steps: int, points: int) -> tuple[Solution, list[float]]:
    """The network, and the mean losses of its calls of `learn`."""
    key, for_weights = lx.random.split(lx.random.key(seed))
    solution = Solution(key=for_weights)
    state = optim.adam(RATE).init(solution)
    rates = (RATE * (1 + np.cos(np.pi * np.arange(steps) / steps)) / 2).astype(np.float32)
    losses = []
    with trange(0, steps, STEPS_PER_CALL, unit_scale=STEPS_PER_CALL, unit="step") as progress:
        for start in progress:
            chosen = rates[start : start + STEPS_PER_CALL]
            solution, state, value = learn(solution, state, lx.random.fold_in(key, start), chosen, points=points)
            losses.append(float(value))
            progress.set_postfix(loss=f"{losses[-1]:.2e}")
    return solution, losses


def exact(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """u by the Cole-Hopf transformation: averages over a Gaussian, by Gauss-Hermite quadrature, in float64.

    With θ the solution of the heat equation that begins as exp(−cos(πx) / (2π · viscosity)), u is −2 · viscosity · θₓ/θ.
    """
    nodes, weights = np.polynomial.hermite.hermgauss(200)
    y = x[..., None] - np.sqrt(4 * VISCOSITY * t[..., None]) * nodes
    density = weights * np.exp(-(np.cos(np.pi * y) + 1) / (2 * np.pi * VISCOSITY))
    return -np.sum(np.sin(np.pi * y) * density, axis=-1) / np.sum(density, axis=-1)


def relative_error(found: np.ndarray, right: np.ndarray) -> float:
    """The distance in the Euclidean norm over the norm of what is right."""
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


def draw(file: Path, t: np.ndarray, x: np.ndarray, found: np.ndarray, right: np.ndarray) -> None:
    """The solution in time and space, and at some times beside the exact one."""
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, axes = figure.subplots(1, 2)
    shown = left.pcolormesh(t, x, found, cmap="RdBu_r", vmin=-1, vmax=1)
    figure.colorbar(shown, ax=left)
    left.set(xlabel="t", ylabel="x", title="u by the network")
    for column in (25, 50, 75):
        (line,) = axes.plot(x[:, 0], right[:, column], linewidth=3, alpha=0.4)
        axes.plot(x[:, 0], found[:, column], "--", color=line.get_color(), label=f"t = {t[0, column]:.2f}")
    axes.legend(title="dashed: network")
    axes.set(xlabel="x", title="beside the exact solution")
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Solves Burgers' equation by a network.")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the points")
    parser.add_argument("--steps", type=int, default=3000, help="of Adam")
    parser.add_argument("--points", type=int, default=2048, help="a step")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    solution, losses = train(options.seed, options.steps, options.points)
    t, x = np.meshgrid(np.linspace(0, 1, 101), np.linspace(-1, 1, 257))
    points = (t.ravel().astype(np.float32), x.ravel().astype(np.float32))
    found, right = np.asarray(lx.compile(solution)(*points)).reshape(t.shape), exact(t, x)
    print(f"mean square of the residual: {losses[0]:.2e} in the first steps, {losses[-1]:.2e} in the last")
    print(f"relative error: {relative_error(found, right):.4f}")

    options.out.mkdir(parents=True, exist_ok=True)
    draw(options.out / "burgers.png", t, x, found, right)
    print(f"picture: {options.out / 'burgers.png'}")


if __name__ == "__main__":
    main()
