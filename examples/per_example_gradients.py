"""One gradient per example, by vmap of grad, finds wrong labels.

    python examples/per_example_gradients.py --seed 1 --out out

Some labels of two interleaved classes of points are flipped. After a short training, the gradients of examples with
wrong labels still have large norms. Prints how many of the flipped labels are among the examples with the largest
norms, and the time of all gradients compared with that of their mean.

With the seeds 0, 1 and 2 it finds 50 of 51, 44 of 50 and 54 of 55 wrong labels, in 2 s on lavapipe.
"""
from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, optim

HIDDEN = 16
WRONG = 0.05  # part of the labels that are turned over
QUICK = {"count": 300, "steps": 150}  # what --quick changes


def two_moons(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points [count, 2], their labels 0 or 1 with some flipped, and which these are."""
    draw = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    angles = draw.uniform(0, np.pi, count)
    points = np.stack([np.cos(angles), np.sin(angles)], 1)
    points = np.where(labels[:, None] == 1, [1.0, 0.5] - points, points) + draw.normal(0, 0.1, (count, 2))
    is_wrong = draw.random(count) < WRONG
    return points.astype(np.float32), (labels ^ is_wrong).astype(np.float32), is_wrong


def initial_network(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases of layers from 2 numbers over hidden ones to 1."""
    normal = np.random.default_rng(seed).normal
    sizes = ((2, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))
    return [(normal(0, 1 / np.sqrt(n), (n, m)).astype(np.float32), np.zeros(m, np.float32)) for n, m in sizes]


def score(network: Any, point: Any) -> Any:
    """Logarithm of the odds that the label of a point [2] is 1."""
    *hidden, (weight, bias) = network
    for w, b in hidden:
        point = lnp.tanh(point @ w + b)
    return (point @ weight + bias)[0]


def loss(network: Any, point: Any, label: Any) -> Any:
    """The cross-entropy of one example."""
    return nn.softplus(score(network, point)) - label * score(network, point)


def mean_loss(network: Any, points: Any, labels: Any) -> Any:
    return lnp.mean(lx.vmap(partial(loss, network))(points, labels))


@partial(lx.compile, static_argnames="steps")
def train(network: Any, points: Any, labels: Any, steps: int) -> Any:
    """The network after so many steps of Adam on all examples, in one program."""
    optimizer = optim.adam(1e-2)

    def step(carry: Any, _: Any) -> tuple[Any, Any]:
        weights, state = carry
        updates, state = optimizer.update(lx.grad(mean_loss)(weights, points, labels), state)
        return (optim.apply_updates(weights, updates), state), None

    return lx.scan(step, (network, optimizer.init(network)), None, length=steps)[0][0]


per_example = lx.compile(lx.vmap(lx.grad(loss), in_axes=(None, 0, 0)))
gradient_of_mean = lx.compile(lx.grad(mean_loss))


@lx.compile
def norms(gradients: Any) -> Any:
    """The norm of each example's gradient: [n]."""
    return lnp.sqrt(sum(lnp.sum(leaf**2, axis=tuple(range(1, leaf.ndim))) for leaf in lx.tree.leaves(gradients)))


def seconds(call: Callable[[], Any]) -> float:
    """The shortest of a few times."""
    found = []
    for _ in range(5):
        start = time.perf_counter()
        lx.tree.map(lambda leaf: leaf.block_until_ready(), call())
        found.append(time.perf_counter() - start)
    return min(found)


def draw_norms(file: Path, points: np.ndarray, sizes: np.ndarray, is_wrong: np.ndarray) -> None:
    """The points, larger for larger norms, and the norms of right and wrong labels."""
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for chosen, name in ((~is_wrong, "right label"), (is_wrong, "turned label")):
        left.scatter(*points[chosen].T, s=3 + 20 * sizes[chosen], label=name, alpha=0.6)
        right.hist(np.log10(sizes[chosen] + 1e-6), bins=40, alpha=0.6, density=True, label=name)
    left.legend()
    left.set(title="area: norm of the example's gradient", aspect="equal")
    right.set(xlabel="log₁₀ of the norm", ylabel="density")
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Finds wrong labels by gradients of single examples.")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the points")
    parser.add_argument("--count", type=int, default=1000, help="examples")
    parser.add_argument("--steps", type=int, default=300, help="of training")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args()

    points, labels, is_wrong = two_moons(options.count, options.seed)
    network = train(initial_network(options.seed), points, labels, steps=options.steps)
    gradients = per_example(network, points, labels)
    sizes = np.asarray(norms(gradients))
    suspects = np.argsort(-sizes)[: is_wrong.sum()]
    print(f"turned labels among the {is_wrong.sum()} examples of the largest norms: {is_wrong[suspects].sum()}")
    all_of_them = seconds(lambda: per_example(network, points, labels))
    mean = seconds(lambda: gradient_of_mean(network, points, labels))
    print(f"{options.count} gradients: {1e3 * all_of_them:.2f} ms; their mean alone: {1e3 * mean:.2f} ms")

    options.out.mkdir(parents=True, exist_ok=True)
    draw_norms(options.out / "per_example_gradients.png", points, sizes, is_wrong)
    print(f"picture: {options.out / 'per_example_gradients.png'}")


if __name__ == "__main__":
    main()
