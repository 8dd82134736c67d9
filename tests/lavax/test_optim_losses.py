"""Losses with optax's names, against optax and recorded values."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from lavax.optim import losses
from tests.closeness import close
from tests.lavax.nn.loss_cases import LABELS, SIGNS, UNIT, X, Y, Z, probabilities
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

P, HALF = probabilities((6, 5)), (UNIT > 0.5).astype(np.float32)
WHERE = np.arange(30).reshape(6, 5) % 4 != 1
CLASSES = np.where(np.take_along_axis(WHERE, LABELS[:, None], 1)[:, 0], LABELS, (LABELS + 1) % 5).astype(np.int32)
ENDS = (np.zeros((3, 9), np.float32), np.array([[0, 0, 1], [0, 0, 0], [1, 1, 1]], np.float32))
SPEECH = sample((3, 9, 4))
# The name, arguments and settings; by optax 0.2.8: Σ losses, and the greatest gradient of it by the first argument.
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], list[float]]] = [
    ("squared_error", (X, Y), {}, [191.5753, 8.624857]),
    ("l2_loss", (X, Y), {}, [95.78767, 4.312428]),
    ("l2_loss", (X,), {}, [38.51879, 2.651237]),
    ("huber_loss", (X, Y), {"delta": 0.7}, [38.74726, 0.7]),
    ("log_cosh", (X, Y), {}, [47.4301, 0.9996407]),
    ("cosine_similarity", (X, Y), {}, [-1.18341, 0.3371658]),
    ("cosine_distance", (X, Y), {"where": WHERE, "epsilon": 1e-8}, [6.421412, 0.3311198]),
    ("softmax_cross_entropy", (X, P), {}, [12.58771, 0.4664376]),
    ("softmax_cross_entropy", (X, P), {"where": WHERE}, [7.647821, 0.3321464]),
    ("safe_softmax_cross_entropy", (X, P), {}, [12.58771, 0.4664376]),
    ("softmax_cross_entropy_with_integer_labels", (X, LABELS), {}, [16.63596, 0.994238]),
    ("softmax_cross_entropy_with_integer_labels", (X, CLASSES), {"where": WHERE}, [19.73911, 1]),
    ("sigmoid_binary_cross_entropy", (X, UNIT), {}, [25.15642, 0.8591062]),
    ("sigmoid_focal_loss", (X, HALF), {"alpha": 0.3}, [4.395285, 0.7488477]),
    ("sigmoid_focal_loss", (X, UNIT), {"gamma": 1.5}, [9.59748, 0.8835286]),
    ("poly_loss_cross_entropy", (X, P), {}, [21.91311, 0.5670794]),
    ("smooth_labels", (P, 0.1), {}, [5.999999, 0.9]),
    ("kl_divergence", (X, P), {}, [-8.728017, 0.495593]),
    ("kl_divergence", (X, P), {"where": WHERE}, [-5.968112, 0.3631281]),
    ("kl_divergence_with_log_targets", (X, Y), {}, [307.1649, 19.84108]),
    ("generalized_kl_divergence", (X, P), {}, [57.00131, 12.89181]),
    ("hinge_loss", (X[:, 0], SIGNS), {}, [2.519868, 1]),
    ("perceptron_loss", (X[:, 0], SIGNS), {}, [1.027222, 1]),
    ("multiclass_hinge_loss", (X, LABELS), {}, [18.42426, 1]),
    ("multiclass_perceptron_loss", (X, LABELS), {}, [12.42426, 1]),
    ("triplet_margin_loss", (X, Y, Z), {"margin": 2.0}, [14.88009, 0.924401]),
    ("ntxent", (X, LABELS), {"temperature": 0.5}, [1.399775, 0.1980501]),
    ("ctc_loss", (SPEECH, ENDS[0], LABELS[:9].reshape(2, 3)[[0, 1, 1]] % 3 + 1, ENDS[1]), {}, [27.34204, 0.9824809]),
]  # fmt: skip


def ids(case: Any) -> str | None:
    return case if isinstance(case, str) else ""


@pytest.mark.parametrize(("name", "arrays", "settings", "recorded"), CASES, ids=ids)
def test_losses_are_those_recorded(name: str, arrays: Any, settings: Any, recorded: list[float]) -> None:
    function = getattr(losses, name)
    total, slope = lx.value_and_grad(lambda x: lnp.sum(function(x, *arrays[1:], **settings)))(arrays[0])
    close([float(total), np.abs(slope).max()], recorded, 3e-5)


@pytest.mark.parametrize(("name", "arrays", "settings", "recorded"), CASES, ids=ids)
def test_losses_are_those_of_optax(name: str, arrays: Any, settings: Any, recorded: list[float]) -> None:
    optax = pytest.importorskip("optax", reason="optax is the oracle of losses")
    import jax

    ours, theirs = getattr(losses, name), getattr(optax.losses, name)
    close(ours(*arrays, **settings), theirs(*arrays, **settings), 3e-5)
    slope = jax.grad(lambda x: theirs(x, *arrays[1:], **settings).sum())(arrays[0])
    close(lx.grad(lambda x: lnp.sum(ours(x, *arrays[1:], **settings)))(arrays[0]), slope, 3e-5)


def test_extreme_logits() -> None:
    x, t = np.array([1e4, -1e4, -1e4], np.float32), np.array([1, 0, 1], np.float32)
    close(losses.sigmoid_binary_cross_entropy(x, t), [0, 0, 1e4])
    close(lx.grad(lambda x: lnp.sum(losses.sigmoid_binary_cross_entropy(x, t)))(x), [0, 0, -1])
    masked = np.array([0.0, -np.inf, 1.0], np.float32)
    close(losses.safe_softmax_cross_entropy(masked, np.array([1, 0, 0], np.float32)), np.log(1 + np.e))
    close(losses.softmax_cross_entropy_with_integer_labels(x[None], np.array([2])), [20000])


def test_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"l2_loss: predictions and targets must have the same shape"):
        losses.l2_loss(X, X[0])
    with pytest.raises(ShapeError, match=r"ntxent: embeddings are \[N, D\] and labels \[N\]"):
        losses.ntxent(X, LABELS[:2])
