"""Newton's method and gradient descent, with derivatives of derivatives.

    python examples/newton.py --out out

Finds a minimum of x⁴ − 2x² by first and second derivatives, and that of the Rosenbrock function by its gradient and
Hessian; each path is one compiled program. Prints tanh's first four derivatives, and plots the paths.

From points by the seeds 0, 1 and 2, 8 steps of Newton's method end within 1e-6 of the minimum, and 10,000 of gradient
descent within 0.02, after 2 s on lavapipe.
"""
from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import lavax as lx
import lavax.numpy as lnp

Function = Callable[[Any], Any]
QUICK = {"steps": 1000}  # what --quick changes


def double_well(x: Any) -> Any:
    """x⁴ − 2x²: minima at −1 and 1."""
    return x**4 - 2 * x**2


def rosenbrock(point: Any) -> Any:
    """(x − 1)² + 100 (y − x²)²: a bent valley with its minimum, 0, at (1, 1)."""
    x, y = point
    return 100 * (y - x**2) ** 2 + (x - 1) ** 2


def derivatives(f: Function, x: float, orders: int) -> list[float]:
    """The derivatives of f at x, the first to the one of order `orders`."""
    found = []
    for _ in range(orders):
        f = lx.grad(f)
        found.append(float(f(x)))
    return found


def path_of(step: Function, start: Any, steps: int) -> Any:
    """The points that repeated `step` reaches from `start`: [steps + 1, …]."""

    def onward(point: Any, _: Any) -> tuple[Any, Any]:
        moved = step(point)
        return moved, moved

    points = lx.scan(onward, start, None, length=steps)[1]
    return lnp.concatenate([start[None], points])


@partial(lx.compile, static_argnames=("f", "steps"))
def newton_on_a_line(f: Function, start: Any, steps: int) -> Any:
    """Newton's method for a stationary point of a function of one number: [steps + 1]."""
    slope = lx.grad(f)
    curvature = lx.grad(slope)
    return path_of(lambda x: x - slope(x) / curvature(x), start, steps)


@partial(lx.compile, static_argnames=("f", "steps"))
def newton_in_a_plane(f: Function, start: Any, steps: int) -> Any:
    """Newton's method for a stationary point of a function of two numbers: [steps + 1, 2]."""

    def step(point: Any) -> Any:
        (a, b), (c, d) = lx.hessian(f)(point)
        inverse = lnp.stack([lnp.stack([d, -b]), lnp.stack([-c, a])]) / (a * d - b * c)
        return point - inverse @ lx.grad(f)(point)

    return path_of(step, start, steps)


@partial(lx.compile, static_argnames=("f", "steps"))
def gradient_descent(f: Function, start: Any, rate: Any, steps: int) -> Any:
    """The points of gradient descent: [steps + 1, …]."""
    return path_of(lambda point: point - rate * lx.grad(f)(point), start, steps)


def draw(path: Path, line: np.ndarray, newton: np.ndarray, descent: np.ndarray) -> None:
    """The three paths over their functions."""
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    xs = np.linspace(-0.2, 2.05, 200)
    left.plot(xs, double_well(xs))
    left.plot(line, double_well(line), "o-")
    left.set(title="Newton's method on x⁴ − 2x²", xlabel="x")
    x, y = np.meshgrid(np.linspace(-1.2, 1.5, 200), np.linspace(-1, 2.2, 200))
    right.contour(x, y, np.log10(rosenbrock((x, y)) + 1e-3), levels=20, cmap="Greys")
    right.plot(*descent.T, label=f"gradient descent, {len(descent) - 1} steps")
    right.plot(*newton.T, "o-", label=f"Newton, {len(newton) - 1} steps")
    right.legend()
    right.set(title="Rosenbrock", xlabel="x", ylabel="y", ylim=(-1, 2.2))
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Newton's method and gradient descent.")
    parser.add_argument("--steps", type=int, default=10_000, help="of gradient descent")
    parser.add_argument("--seed", type=int, default=0, help="of the point that both descents begin from")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    print("tanh at 1, derivatives of order 1 to 4:", *(f"{d:.6f}" for d in derivatives(lnp.tanh, 1.0, 4)))
    line = np.asarray(newton_on_a_line(double_well, np.float32(2), steps=7))
    print("Newton on x⁴ − 2x²:", *(f"{x:.6f}" for x in line[1:]))
    start = np.random.default_rng(options.seed).uniform([-1, 1], [0, 2]).astype(np.float32)
    newton = np.asarray(newton_in_a_plane(rosenbrock, start, steps=8))
    descent = np.asarray(gradient_descent(rosenbrock, start, 1e-3, steps=options.steps))
    for name, points in (("Newton", newton), ("gradient descent", descent)):
        x, y = points[-1]
        print(f"Rosenbrock, {name}, {len(points) - 1} steps: ({x:.6f}, {y:.6f})")

    options.out.mkdir(parents=True, exist_ok=True)
    draw(options.out / "newton.png", line, newton, descent)
    print(f"picture: {options.out / 'newton.png'}")


if __name__ == "__main__":
    main()
