"""Calls of losses that PyTorch has too, by the same names and arguments."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.lavax.numpy.arrays import sample


@dataclass(frozen=True)
class Case:
    """`name(*arrays, **settings)`; the first `differentiated` arrays get gradients."""

    name: str
    arrays: tuple[np.ndarray, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    differentiated: int = 1

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{k}={v}" for k, v in self.settings.items() if not isinstance(v, np.ndarray))])


def indices(shape: tuple[int, ...], classes: int) -> np.ndarray:
    return np.random.default_rng([7, *shape]).integers(0, classes, shape).astype(np.int32)


def probabilities(shape: tuple[int, ...], axis: int = 1) -> np.ndarray:
    drawn = np.abs(sample(shape, seed=3))
    return np.asarray(drawn / drawn.sum(axis, keepdims=True), np.float32)


X, Y, Z = (sample((6, 5), seed=seed) for seed in range(3))
UNIT = sample((6, 5), low=0.02, high=0.98, seed=4)
SIGNS = np.where(np.arange(6) % 2 == 0, 1, -1).astype(np.float32)
LABELS = indices((6,), 5)
WITH_IGNORED = np.where(np.arange(6) == 2, -100, LABELS).astype(np.int32)
WEIGHT = sample((5,), low=0.5, high=2, seed=5)
DEEP, DEEP_LABELS = sample((2, 5, 3), seed=6), indices((2, 3), 5)

CASES = [
    Case("mse_loss", (X, Y), {}, 2),
    Case("l1_loss", (X, Y), {}, 2),
    Case("huber_loss", (X, Y), {"delta": 0.7}, 2),
    Case("smooth_l1_loss", (X, Y), {"beta": 0.5}, 2),
    Case("smooth_l1_loss", (X, Y), {"beta": 0.0}, 2),
    Case("binary_cross_entropy_with_logits", (X, UNIT), {}, 2),
    Case("binary_cross_entropy_with_logits", (X, UNIT), {"weight": UNIT, "pos_weight": WEIGHT}, 1),
    Case("binary_cross_entropy", (UNIT, probabilities((6, 5))), {"weight": WEIGHT}, 1),
    Case("kl_div", (X, probabilities((6, 5))), {}, 2),
    Case("kl_div", (X, Y), {"log_target": True}, 2),
    Case("poisson_nll_loss", (X, UNIT + 2), {"full": True}, 1),
    Case("poisson_nll_loss", (UNIT, UNIT + 2), {"log_input": False}, 1),
    Case("gaussian_nll_loss", (X, Y, UNIT), {"full": True}, 3),
    Case("gaussian_nll_loss", (X, Y, UNIT), {"eps": 0.5}, 3),
    Case("gaussian_nll_loss", (X, Y, UNIT[:, 0]), {}, 3),
    Case("cross_entropy", (X, LABELS)),
    Case("cross_entropy", (X, WITH_IGNORED), {"weight": WEIGHT}),
    Case("cross_entropy", (X, WITH_IGNORED), {"label_smoothing": 0.3}),
    Case("cross_entropy", (X, WITH_IGNORED), {"weight": WEIGHT, "label_smoothing": 0.3}),
    Case("cross_entropy", (X, LABELS), {"ignore_index": 1}),
    Case("cross_entropy", (X, probabilities((6, 5))), {}, 2),
    Case("cross_entropy", (X, probabilities((6, 5))), {"weight": WEIGHT, "label_smoothing": 0.2}, 2),
    Case("cross_entropy", (DEEP, DEEP_LABELS)),
    Case("cross_entropy", (DEEP, probabilities((2, 5, 3))), {"label_smoothing": 0.1}, 2),
    Case("cross_entropy", (X[0], LABELS[0])),
    Case("nll_loss", (X, WITH_IGNORED), {"weight": WEIGHT}),
    Case("nll_loss", (DEEP, DEEP_LABELS)),
    Case("cosine_embedding_loss", (X, Y, SIGNS), {"margin": -0.3}, 2),
    Case("hinge_embedding_loss", (X[:, 0], SIGNS), {"margin": 1.5}),
    Case("margin_ranking_loss", (X[:, 0], Y[:, 0], SIGNS), {"margin": 0.4}, 2),
    Case("triplet_margin_loss", (X, Y, Z), {"margin": 2.0}, 3),
    Case("triplet_margin_loss", (X, Y, Z), {"margin": 2.0, "p": 3, "swap": True}, 3),
]
