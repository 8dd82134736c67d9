"""Networks that are solved: an ordinary differential equation, and an equilibrium with implicit derivatives."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.library import CLASSES


def neural_ode(F: Any, w: Any, x: Any, labels: Any, width: int = 256, steps: int = 20) -> Any:
    """Runge and Kutta's steps of order 4, derivatives through all of them."""
    features = x.shape[1]
    weights = (
        w("up", width, features), w("up_bias", width), w("middle", width, width), w("middle_bias", width),
        w("down", features, width), w("down_bias", features),
    )  # fmt: skip

    def slope(x: Any) -> Any:
        x = F.tanh(F.linear(x, weights[0], weights[1]))
        return F.linear(F.tanh(F.linear(x, weights[2], weights[3])), weights[4], weights[5])

    def step(x: Any) -> Any:
        size = 1 / steps
        first = slope(x)
        second = slope(x + size / 2 * first)
        third = slope(x + size / 2 * second)
        return x + size / 6 * (first + 2 * second + 2 * third + slope(x + size * third))

    x = F.repeated(step, x, steps)
    return F.cross_entropy(F.linear(x, w("head", 10, features)), labels)


def equilibrium(F: Any, w: Any, x: Any, labels: Any, width: int = 512, turns: int = 30) -> Any:
    """z = tanh(0.5 W z + U x + b), found by iteration; its derivative is found by iteration, too."""
    given = F.linear(x, w("in", width, x.shape[1]), w("in_bias", width))
    weight = 0.5 * w("hidden", width, width)
    z = F.fixed_point(lambda z, weight, given: F.tanh(F.linear(z, weight) + given), (weight, given), turns)
    return F.cross_entropy(F.linear(z, w("head", CLASSES, width)), labels)
