"""Learns to learn: weights from which one step of gradient descent goes far (MAML; Finn et al. 2017).

    python examples/maml.py --seed 1 --out out

A task is a sine of some amplitude and phase, given by ten points. The outer gradient differentiates the inner one: grad
of a loss after a step along grad, for all tasks of a batch at once by vmap, as one compiled program. Prints the error
on new tasks before and after inner steps, for the learned weights and for weights that were learned without inner
steps.

With the seeds 0, 1 and 2 the error after a step is 0.56, 0.65 and 0.60, and without learning through it 2.9, 2.9 and
2.7, after 4 s on lavapipe.
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
from lavax import optim

HIDDEN = 40
SHOWN = (0, 1, 5)  # inner steps on new tasks
SHOTS = 10  # points of a task that are seen, and as many that are asked for
INNER_RATE = 0.02
OUTER_RATE = 3e-3
QUICK = {"steps": 100}  # what --quick changes

Network = list[tuple[Any, Any]]


def initial_network(seed: int) -> Network:
    """Weights and biases from 1 number over hidden ones to 1."""
    normal = np.random.default_rng(seed).normal
    sizes = ((1, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))
    return [(normal(0, np.sqrt(1 / n), (n, m)).astype(np.float32), np.zeros(m, np.float32)) for n, m in sizes]


def predict(network: Network, x: Any) -> Any:
    """The curve at x [n]."""
    values = x[:, None]
    *hidden, (weight, bias) = network
    for w, b in hidden:
        values = lnp.tanh(values @ w + b)
    return (values @ weight + bias)[:, 0]


def loss(network: Network, x: Any, y: Any) -> Any:
    """Mean squared error on points of one task."""
    return lnp.mean((predict(network, x) - y) ** 2)


def adapted(network: Network, x: Any, y: Any, steps: int) -> Network:
    """The network after gradient descent on points of one task."""
    for _ in range(steps):
        gradients = lx.grad(loss)(network, x, y)
        network = lx.tree.map(lambda weight, gradient: weight - INNER_RATE * gradient, network, gradients)
    return network


def meta_loss(network: Network, tasks: Any, inner_steps: int) -> Any:
    """Mean error on the query points over tasks, each after inner steps on the given points."""
    return lnp.mean(lx.vmap(lambda x, y, u, v: loss(adapted(network, x, y, inner_steps), u, v))(*tasks))


@partial(lx.compile, static_argnames="steps")
def curve_after(network: Network, x: Any, y: Any, at: Any, steps: int) -> Any:
    """The curve at `at` after inner steps on the points of one task."""
    return predict(adapted(network, x, y, steps), at)


@partial(lx.compile, static_argnames="inner_steps", donate_argnums=(0, 1))
def learn(network: Network, state: Any, tasks: Any, inner_steps: int) -> tuple[Network, Any, Any]:
    """One outer step; also gives the loss before it."""
    value, gradients = lx.value_and_grad(lambda weights: meta_loss(weights, tasks, inner_steps))(network)
    updates, state = optim.adam(OUTER_RATE).update(gradients, state)
    return optim.apply_updates(network, updates), state, value


@partial(lx.compile, static_argnames="inner_steps")
def error(network: Network, tasks: Any, inner_steps: int) -> Any:
    """The mean error on tasks after inner steps."""
    return meta_loss(network, tasks, inner_steps)


def sines(draw: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """Tasks: x and y of the points seen, and of those asked for, each [count, SHOTS]."""
    amplitude, phase = draw.uniform(0.1, 5, (count, 1)), draw.uniform(0, np.pi, (count, 1))
    seen, asked = draw.uniform(-5, 5, (2, count, SHOTS))
    arrays = seen, amplitude * np.sin(seen - phase), asked, amplitude * np.sin(asked - phase)
    return tuple(array.astype(np.float32) for array in arrays)


def train(seed: int, steps: int, tasks: int, inner_steps: int) -> tuple[Network, list[float]]:
    """The network after so many outer steps, and the loss before each."""
    draw = np.random.default_rng(seed)
    network: Network = initial_network(seed)
    state = optim.adam(OUTER_RATE).init(network)
    losses = []
    for _ in trange(steps, unit="step"):
        network, state, value = learn(network, state, sines(draw, tasks), inner_steps=inner_steps)
        losses.append(value)
    return network, [float(value) for value in losses]


def draw_curves(file: Path, networks: dict[str, Network], seed: int) -> None:
    """One new task: the points seen, and the curve of each network before and after inner steps."""
    x, y, *_ = (array[0] for array in sines(np.random.default_rng(seed + 1), 1))
    at = np.linspace(-5, 5, 200, dtype=np.float32)
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    for axes, (name, network) in zip(figure.subplots(1, len(networks), sharey=True), networks.items(), strict=True):
        for steps, style in zip(SHOWN, (":", "--", "-"), strict=True):
            axes.plot(at, curve_after(network, x, y, at, steps=steps), style, label=f"after {steps} steps")
        axes.plot(x, y, "o", label="points seen")
        axes.set(title=name)
        axes.legend()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns to learn sines.")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the tasks")
    parser.add_argument("--steps", type=int, default=1000, help="outer steps")
    parser.add_argument("--tasks", type=int, default=20, help="tasks an outer step")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    networks = {
        name: train(options.seed, options.steps, options.tasks, inner_steps)[0]
        for name, inner_steps in (("learned through a step", 1), ("learned without", 0))
    }
    fresh = sines(np.random.default_rng(options.seed + 1), 200)
    for name, network in networks.items():
        errors = ", ".join(f"{float(error(network, fresh, inner_steps=steps)):.3f} after {steps}" for steps in SHOWN)
        print(f"error on new tasks, {name}: {errors} inner steps")

    options.out.mkdir(parents=True, exist_ok=True)
    draw_curves(options.out / "maml.png", networks, options.seed)
    print(f"picture: {options.out / 'maml.png'}")


if __name__ == "__main__":
    main()
