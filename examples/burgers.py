"""Solves Burgers' equation by a physics-informed network (Raissi, Perdikaris and Karniadakis 2019).

    python examples/burgers.py --seed 1 --out out

The equation is ∂u/∂t + u ∂u/∂x = 0.01/π ∂²u/∂x² for x from −1 to 1 and t from 0 to 1, with u = −sin πx in the beginning
and u = 0 at both ends; a shock forms at x = 0. A network stands for u. It has these values by construction, and learns
from nothing but how far it is from the equation at random points. Its derivatives are jvp, and jvp of jvp. Training is
by the Levenberg-Marquardt method, which takes one gradient for each point, by vmap of grad, and a decomposition by
Cholesky. Prints the relative error against the exact solution by the Cole-Hopf transformation, and draws both.

The error is 0.40, 0.42 and 0.41 % with the seeds 0, 1 and 2, after 58 s on lavapipe.
"""
from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.linalg import cholesky, solve_triangular

VISCOSITY = 0.01 / np.pi
WIDTH, DEPTH = 16, 3  # of the network
STEPS_PER_CALL = 10  # on the same points
CANDIDATES = 1 << 14  # from which the points are drawn
LEAST_DAMPING = 1e-7  # float32 sees nothing smaller beside the largest entries of the matrix
QUICK = {"steps": 200, "points": 400}  # what --quick changes


class Solution(nn.Module):
    """u at t [n] and x [n]: [n]. The factor t (1 − x²) of the network keeps the initial and boundary values."""

    network: nn.MLP

    def __init__(self, *, key: Any) -> None:
        self.network = nn.MLP(2, 1, WIDTH, DEPTH, activation=nn.tanh, key=key)

    def __call__(self, t: Any, x: Any) -> Any:
        values = self.network(lnp.stack([2 * t - 1, x], axis=-1))
        return -lnp.sin(np.pi * x) + t * (1 - x**2) * values[:, 0]


def residual(solution: Solution, t: Any, x: Any) -> Any:
    """∂u/∂t + u ∂u/∂x − viscosity ∂²u/∂x² at points [n]. Each value depends on its own point, so one jvp serves all."""
    ones = lnp.ones_like(x)

    def along_x(x: Any) -> tuple[Any, Any]:
        return lx.jvp(lambda x: solution(t, x), (x,), (ones,))

    (u, u_x), (_, u_xx) = lx.jvp(along_x, (x,), (ones,))
    _, u_t = lx.jvp(lambda t: solution(t, x), (t,), (ones,))
    return u_t + u * u_x - VISCOSITY * u_xx


def random_points(key: Any, count: int) -> tuple[Any, Any]:
    """Times from 0 to 1 and places from −1 to 1, uniformly: both [count]."""
    for_t, for_x = lx.random.split(key)
    return lx.random.uniform(for_t, (count,)), lx.random.uniform(for_x, (count,), minval=-1, maxval=1)


def difficult_points(solution: Solution, key: Any, count: int) -> tuple[Any, Any]:
    """Points [count] with a density of 1 + |residual| / its mean (Wu et al. 2023): the shock is narrow."""
    for_candidates, for_choice = lx.random.split(key)
    t, x = random_points(for_candidates, CANDIDATES)
    size = lnp.abs(residual(solution, t, x))
    weights = 1 + size / lnp.mean(size)
    chosen = lx.random.choice(for_choice, CANDIDATES, (count,), p=weights / lnp.sum(weights))
    return t[chosen], x[chosen]


def jacobian(solution: Solution, t: Any, x: Any) -> Any:
    """The derivatives of the residuals at n points by all weights: [n, weights]."""

    def at_a_point(solution: Solution, t: Any, x: Any) -> Any:
        return residual(solution, t[None], x[None])[0]

    gradients = lx.vmap(lx.grad(at_a_point), in_axes=(None, 0, 0))(solution, t, x)
    return lnp.concatenate([leaf.reshape(len(t), -1) for leaf in lx.tree.leaves(gradients)], axis=1)


def moved(solution: Solution, change: Any) -> Solution:
    """The solution with a change [weights] added to its weights."""
    leaves, structure = lx.tree.flatten(solution)
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = lnp.split(change, ends[:-1])
    return lx.tree.unflatten(structure, [leaf + p.reshape(leaf.shape) for leaf, p in zip(leaves, parts, strict=True)])


def levenberg_marquardt(solution: Solution, damping: Any, t: Any, x: Any) -> tuple[Solution, Any, Any]:
    """One step: the damped least-squares solution of the linearised residuals, taken only if it lowers their squares.

    Also gives the next damping, less after a step that was taken, and the mean square of the residuals.
    """
    now, matrix = residual(solution, t, x), jacobian(solution, t, x)
    factor = cholesky(matrix.T @ matrix / len(t) + damping * lnp.eye(matrix.shape[1]))
    halfway = solve_triangular(factor, matrix.T @ now / len(t), lower=True)
    there = moved(solution, -solve_triangular(factor, halfway, lower=True, trans="T"))
    before, after = lnp.mean(now**2), lnp.mean(residual(there, t, x) ** 2)
    is_better = after < before  # also false for NaN, where the decomposition failed for lack of damping
    solution = lx.tree.map(lambda new, old: lnp.where(is_better, new, old), there, solution)
    damping = lnp.maximum(lnp.where(is_better, damping / 3, 4 * damping), LEAST_DAMPING)
    return solution, damping, lnp.where(is_better, after, before)


@partial(lx.compile, static_argnames="points", donate_argnums=(0, 1))
def learn(solution: Solution, damping: Any, key: Any, points: int) -> tuple[Solution, Any, Any]:
    """Some steps on new points; also gives the mean square of the residuals after them."""
    t, x = difficult_points(solution, key, points)

    def step(carry: Any, _: Any) -> tuple[Any, Any]:
        *carry, square = levenberg_marquardt(*carry, t, x)
        return tuple(carry), square

    (solution, damping), squares = lx.scan(step, (solution, damping), None, length=STEPS_PER_CALL)
    return solution, damping, squares[-1]


def train(seed: int, steps: int, points: int) -> tuple[Solution, list[float]]:
    """The network, and the mean squares of the residuals after each call of `learn`."""
    key, for_weights = lx.random.split(lx.random.key(seed))
    solution, damping = Solution(key=for_weights), lnp.float32(1e-2)
    squares = []
    with tqdm(total=steps, unit="step") as progress:
        for start in range(0, steps, STEPS_PER_CALL):
            solution, damping, square = learn(solution, damping, lx.random.fold_in(key, start), points=points)
            squares.append(float(square))
            progress.update(STEPS_PER_CALL)
            progress.set_postfix(residual=f"{squares[-1] ** 0.5:.2e}")
    return solution, squares


def exact(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """u by the Cole-Hopf transformation: averages over a Gaussian, by Gauss-Hermite quadrature, in float64.

    With θ the solution of the heat equation that begins as exp(−cos(πx) / 2πν), ν the viscosity, u is −2ν θₓ/θ.
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
    parser.add_argument("--steps", type=int, default=600, help="of the Levenberg-Marquardt method")
    parser.add_argument("--points", type=int, default=1500, help="a step")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    solution, squares = train(options.seed, options.steps, options.points)
    t, x = np.meshgrid(np.linspace(0, 1, 101), np.linspace(-1, 1, 257))
    points = (t.ravel().astype(np.float32), x.ravel().astype(np.float32))
    found, right = np.asarray(lx.compile(solution)(*points)).reshape(t.shape), exact(t, x)
    print(f"mean square of the residual: {squares[0]:.2e} after {STEPS_PER_CALL} steps, {squares[-1]:.2e} at the end")
    print(f"relative error: {relative_error(found, right):.4f}")

    options.out.mkdir(parents=True, exist_ok=True)
    draw(options.out / "burgers.png", t, x, found, right)
    print(f"picture: {options.out / 'burgers.png'}")


if __name__ == "__main__":
    main()
