"""Losses and their gradients, against PyTorch and recorded values; extremes; what is refused."""
from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, optim
from lavax.base.errors import DtypeError, ShapeError
from tests.closeness import close
from tests.lavax.nn.loss_cases import CASES, LABELS, Case, X, Y, probabilities
from tests.lavax.nn.windows import check_derivatives
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

REDUCTIONS = ("none", "sum", "mean")
# By torch 2.13 for each of CASES: the mean, and the greatest absolute value of each gradient of twice the mean.
RECORDED: list[list[float]] = [
    [6.385845, 0.5749905, 0.5749905],
    [2.175167, 0.06666667, 0.06666667],
    [1.291575, 0.04666667, 0.04666667],
    [1.938397, 0.06666667, 0.06666667],
    [2.175167, 0.06666667, 0.06666667],
    [0.8385471, 0.05727375, 0.1767492],
    [0.5631638, 0.08936172],
    [1.032583, 1.15413],
    [-0.2909339, 0.03303954, 0.2491711],
    [10.23883, 1.322739, 7.026956],
    [3.952868, 0.688944],
    [2.441508, 1.265891],
    [9.472828, 2.078235, 2.078235, 32.07648],
    [5.079887, 0.5749905, 0.5749905, 2.412939],
    [12.32571, 2.336104, 2.336104, 114.4444],
    [2.77266, 0.3314127],
    [3.512201, 0.8072534],
    [2.779585, 0.3016952],
    [3.576189, 0.6127335],
    [2.77266, 0.3314127],
    [2.097952, 0.1554792, 1.718824],
    [2.650438, 0.2262653, 2.300278],
    [2.213179, 0.3276799],
    [2.305212, 0.1624284, 1.51826],
    [1.473878, 1.541929],
    [1.442561, 0.8119317],
    [0.00511388, 0.3333333],
    [0.6833488, 0.08638068, 0.06035148],
    [1.818942, 0.3333333],
    [0.8437807, 0.3333333, 0.3333333],
    [2.480015, 0.3081337, 0.2545878, 0.2687275],
    [2.767773, 0.2786032, 0.2678716, 0.2703482],
]


def with_gradients(case: Case, reduction: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """The loss, and the gradients of 2·Σ weights·loss."""
    function = getattr(nn, case.name)

    def loss(*arrays: Any) -> Any:
        made = function(*arrays, **case.settings, reduction=reduction)
        return 2 * lnp.sum(weights_of(made.shape) * made), made

    places = tuple(range(case.differentiated))
    gradients, made = lx.grad(loss, places, has_aux=True)(*case.arrays)
    return np.asarray(made), [np.asarray(gradient) for gradient in gradients]


def weights_of(shape: tuple[int, ...]) -> np.ndarray:
    return sample(shape, low=0.5, high=1.5, seed=8) if shape else np.float32(1)


def by_torch(case: Case, reduction: str) -> tuple[np.ndarray, list[np.ndarray]]:
    torch = pytest.importorskip("torch", reason="torch is the oracle of losses")
    arrays = [torch.tensor(array if array.dtype == np.float32 else array.astype(np.int64)) for array in case.arrays]
    for array in arrays[: case.differentiated]:
        array.requires_grad_()
    settings = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in case.settings.items()}
    made = getattr(torch.nn.functional, case.name)(*arrays, **settings, reduction=reduction)
    (2 * (torch.tensor(weights_of(tuple(made.shape))) * made).sum()).backward()
    return made.detach().numpy(), [array.grad.numpy() for array in arrays[: case.differentiated]]


@pytest.mark.parametrize(("case", "recorded"), list(zip(CASES, RECORDED, strict=True)), ids=str)
def test_losses_are_those_recorded(case: Case, recorded: list[float]) -> None:
    loss, gradients = with_gradients(case, "mean")
    close([float(loss), *(np.abs(gradient).max() for gradient in gradients)], recorded)


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_losses_are_those_of_pytorch(case: Case, reduction: str) -> None:
    expected, slopes = by_torch(case, reduction)
    loss, gradients = with_gradients(case, reduction)
    close(loss, expected)
    for gradient, slope in zip(gradients, slopes, strict=True):
        close(gradient, slope)


def test_arguments_have_the_names_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle of losses")
    for name in sorted({case.name for case in CASES} | {"ctc_loss"}):
        theirs = set(inspect.signature(getattr(torch.nn.functional, name)).parameters) - {"size_average", "reduce"}
        assert theirs - {"weight"} <= set(inspect.signature(getattr(nn, name)).parameters), name


@pytest.mark.parametrize("case", [case for case in CASES if case.name == "cross_entropy"], ids=str)
def test_derivatives_of_cross_entropy(case: Case) -> None:
    inputs, constants = list(case.arrays[: case.differentiated]), list(case.arrays[case.differentiated :])
    settings = {name: setting for name, setting in case.settings.items() if name != "weight"}
    check_derivatives(lambda *x: nn.cross_entropy(*x, **settings, reduction="none", z_loss=0.01), inputs, constants)


def test_classes_along_another_axis_and_z_loss() -> None:
    logits, labels = sample((2, 3, 5)), np.array([[0, 4, 2], [-100, 1, 3]], np.int32)
    found = nn.cross_entropy(logits, labels, axis=-1, z_loss=0.1)
    wide = logits.astype(np.float64)
    log_total = np.log(np.exp(wide).sum(-1))
    picked = np.take_along_axis(wide, np.maximum(labels, 0)[..., None], -1)[..., 0]
    each = (log_total - picked + 0.1 * log_total**2)[labels != -100]
    close(found, each.mean())
    slope = lx.grad(lambda x: nn.cross_entropy(x, labels, axis=-1, z_loss=0.1))(logits)
    softmax = np.exp(wide) / np.exp(wide).sum(-1, keepdims=True)
    expected = softmax - np.eye(5)[np.maximum(labels, 0)] + 0.2 * log_total[..., None] * softmax
    close(slope, np.where(labels[..., None] == -100, 0, expected) / 5)


def test_extreme_logits() -> None:
    logits = np.array([[1e4, 0, -1e4], [1e4, 0, -1e4], [-1e4, 1e4, 1e4]], np.float32)
    labels = np.array([0, 2, 1], np.int32)
    loss, slope = lx.value_and_grad(lambda x: nn.cross_entropy(x, labels, reduction="sum"))(logits)
    close(loss, 20000 + np.log(2))
    close(slope, [[0, 0, 0], [1, 0, -1], [0, -0.5, 0.5]])
    masked = np.array([0.0, -np.inf, 1.0], np.float32)
    loss, slope = lx.value_and_grad(lambda x: nn.cross_entropy(x, np.array([1.0, 0.0, 0.0], np.float32)))(masked)
    close(loss, np.log(1 + np.e))
    close(slope, [1 / (1 + np.e) - 1, 0, np.e / (1 + np.e)])
    x, t = np.array([1e4, -1e4, 1e4, -1e4], np.float32), np.array([1, 0, 0, 1], np.float32)
    loss, slope = lx.value_and_grad(lambda x: nn.binary_cross_entropy_with_logits(x, t, reduction="sum"))(x)
    close(loss, 20000)
    close(slope, [0, 0, 1, -1])


def test_probabilities_of_zero_and_one() -> None:
    p, t = np.array([0, 1, 0, 1], np.float32), np.array([0, 1, 1, 0], np.float32)
    loss, slope = lx.value_and_grad(lambda p: nn.binary_cross_entropy(p, t, reduction="sum"))(p)
    close(loss, 200)
    np.testing.assert_allclose(slope, [0, 0, -1e12, 1e12], rtol=1e-6)
    target = np.array([0.0, 1.0], np.float32)
    logs = np.array([-np.inf, 0.0], np.float32)
    loss, slopes = lx.value_and_grad(lambda x: nn.kl_div(x, target, "sum"))(logs)
    close(loss, 0)
    close(slopes, [0, -1])


def test_indices_that_are_no_class() -> None:
    found = nn.cross_entropy(X, np.array([0, 5, -1, -100, 4, 2], np.int32), reduction="none")
    assert np.isnan(np.asarray(found)).tolist() == [False, True, True, False, False, False]
    assert np.isnan(np.asarray(nn.cross_entropy(X, np.full(6, -100, np.int32))))


def test_16_bit_logits_lose_nothing() -> None:
    logits = lnp.asarray(X, "bfloat16")
    found = nn.cross_entropy(logits, LABELS)
    assert found.dtype == np.float32
    close(found, nn.cross_entropy(lnp.asarray(logits, "float32"), LABELS), 1e-6)
    assert lx.grad(lambda x: nn.cross_entropy(x, LABELS))(logits).dtype == logits.dtype
    many = lnp.full((70000,), 2.0, "float16")
    close(nn.mse_loss(many, 0.0, "sum"), 280000)


def test_contrastive_losses_find_pairs() -> None:
    a, b = X.astype(np.float64), Y.astype(np.float64)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    logits = a @ b.T

    def expected(logits: np.ndarray) -> Any:
        return np.mean(np.log(np.exp(logits).sum(1)) - np.diag(logits))

    close(nn.clip_loss(X, Y, 3.0), (expected(3 * logits) + expected(3 * logits.T)) / 2)
    close(nn.info_nce_loss(X, Y, temperature=0.5), expected(logits / 0.5))
    others = sample((4, 5), seed=9)
    unit = others / np.linalg.norm(others, axis=1, keepdims=True)
    scores = np.concatenate([np.diag(logits)[:, None], a @ unit.T], 1) / 0.5
    each = np.log(np.exp(scores).sum(1)) - scores[:, 0]
    close(nn.info_nce_loss(X, Y, others, 0.5, "none"), each)
    close(nn.info_nce_loss(X, Y, np.broadcast_to(others, (6, 4, 5)).copy(), 0.5, "none"), each)
    check_derivatives(lambda a, b, s: nn.clip_loss(a, b, s), [X, Y, np.float32(3)])


def test_similarities_and_distances() -> None:
    close(nn.cosine_similarity(X, Y), (X * Y).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1))
    close(nn.pairwise_distance(X, Y), np.linalg.norm(X - Y + 1e-6, axis=1))
    close(nn.pairwise_distance(X, Y, 1.0, keepdims=True), np.abs(X - Y + 1e-6).sum(1, keepdims=True))
    zero = np.zeros((1, 3), np.float32)
    slope = lx.grad(lambda x: lnp.sum(nn.cosine_similarity(x, X[:1, :3])))(zero)
    close(slope * 1e-8, X[:1, :3] / np.linalg.norm(X[0, :3]))
    assert np.isfinite(np.asarray(lx.grad(lambda x: lnp.sum(nn.normalize(x)))(zero))).all()


def test_what_does_not_fit() -> None:
    deep = sample((2, 3, 5))
    refused: list[tuple[type[Exception], str, Any]] = [
        (ShapeError, r"mse_loss: input and target must have the same shape, got f32\[6,5\] and f32\[6\]",
         lambda: nn.mse_loss(X, X[:, 0])),
        (ValueError, "mse_loss: reduction is 'mean', 'sum' or 'none', got 'average'",
         lambda: nn.mse_loss(X, Y, "average")),  # type: ignore[arg-type]
        (ValueError, "huber_loss: delta must be positive, got 0", lambda: nn.huber_loss(X, Y, delta=0)),
        (ShapeError, r"the indices are \[2, 5\], got i32\[6\]; for classes along the last axis say axis=-1",
         lambda: nn.cross_entropy(deep, LABELS)),
        (ShapeError, r"probabilities have the shape of the input, got f32\[6\] .* class indices are integers",
         lambda: nn.cross_entropy(X, LABELS.astype(np.float32))),
        (ShapeError, r"weight is \[5\], one for each class, got f32\[2\]",
         lambda: nn.cross_entropy(X, LABELS, np.ones(2, np.float32))),
        (ValueError, "label_smoothing lies between 0 and 1, got 1.5",
         lambda: nn.cross_entropy(X, LABELS, label_smoothing=1.5)),
        (DtypeError, r"nll_loss: class indices are integers, got f32\[6\]",
         lambda: nn.nll_loss(X, LABELS.astype(np.float32))),
        (ShapeError, "cross_entropy: input needs an axis of classes",
         lambda: nn.cross_entropy(np.float32(1), np.int32(0))),
        (ShapeError, r"target must be \[6\], with 1 or -1 for each pair, got f32\[\]",
         lambda: nn.cosine_embedding_loss(X, Y, 1.0)),
        (ShapeError, r"clip_loss: image and text are \[N, D\]", lambda: nn.clip_loss(deep, deep, 1.0)),
        (ShapeError, r"negatives are \[M, D\] or \[N, M, D\]", lambda: nn.info_nce_loss(X, Y, X[:, :2])),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()


def test_soft_labels_may_be_those_of_another_model() -> None:
    teacher = probabilities((6, 5))
    slope = lx.grad(lambda x: nn.kl_div(nn.log_softmax(x), teacher, "batchmean"))(X)
    softmax = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    close(slope, (softmax - teacher) / 6)


def test_complex_numbers_have_losses_of_their_distances_alone() -> None:
    """(a - b)² would be complex, and no loss: the messages say what to take."""
    a, b = np.complex64([[3 + 4j, 1j]]), np.complex64([[0, 2j]])
    assert float(nn.l1_loss(a, b, "sum")) == 6
    assert float(nn.smooth_l1_loss(a, b, "sum")) == float(nn.huber_loss(a, b, "sum")) == 5
    assert float(optim.huber_loss(a, b).sum()) == 5
    for loss in (
        nn.mse_loss, nn.cosine_similarity, nn.binary_cross_entropy_with_logits,
        optim.l2_loss, optim.squared_error, optim.log_cosh, optim.cosine_similarity,
    ):  # fmt: skip
        for pair in ((a, b), (a, b.real), (a.real, b)):
            with pytest.raises(DtypeError, match=r"takes real numbers, got c64.*: take its real part, or its abs"):
                loss(*pair)
