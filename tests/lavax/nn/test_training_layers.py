"""Layers that behave otherwise in training, and transposed convolutions: against PyTorch and recorded values."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.base.errors import ShapeError
from tests.closeness import close
from tests.lavax.nn.windows import check_derivatives, convolved
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X = sample((4, 3, 5))
SHAPES = [(8, 3), (4, 3, 5), (2, 3, 4, 2)]


def normalised(x: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    shape = (1, -1, *(1 for _ in x.shape[2:]))
    return (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batch_norm_in_training(shape: tuple[int, ...]) -> None:
    layer = nn.BatchNorm(3, momentum=0.3).replace(weight=sample((3,), seed=1), bias=sample((3,), seed=2))
    state, expected_mean, expected_variance = layer.initial_state(), np.zeros(3), np.ones(3)
    for step in range(2):
        x = sample(shape, seed=step)
        axes = (0, *range(2, x.ndim))
        mean, variance = x.mean(axes, dtype=np.float64), x.var(axes, dtype=np.float64)
        count = x.size / 3
        found, state = layer(x, state, training=True)
        channels = (1, -1, *(1 for _ in x.shape[2:]))
        weight, bias = (np.asarray(p).reshape(channels) for p in (layer.weight, layer.bias))
        close(found, normalised(x, mean, variance) * weight + bias)
        expected_mean = 0.7 * expected_mean + 0.3 * mean
        expected_variance = 0.7 * expected_variance + 0.3 * variance * count / (count - 1)
    close(state.mean, expected_mean)
    close(state.variance, expected_variance)
    found, same = layer(x, state)
    close(found, normalised(x, expected_mean, expected_variance) * weight + bias)
    assert same is state


def test_batch_norm_is_that_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle of batch norm")
    theirs = torch.nn.BatchNorm1d(3)
    ours = nn.BatchNorm(3)
    state = ours.initial_state()
    weights = sample(X.shape, seed=5)
    for step in range(3):
        x = torch.tensor(sample(X.shape, seed=step), requires_grad=True)
        expected = theirs(x)
        (torch.tensor(weights) * expected**2).sum().backward()
        (slope, _), (found, state) = lx.grad(
            lambda x, layer, state=state: _with_aux(weights, layer(x, state, training=True)), (0, 1), has_aux=True
        )(x.detach().numpy(), ours)
        close(found, expected.detach().numpy())
        close(slope, x.grad.numpy(), 3e-5)
    close(state.mean, theirs.running_mean.numpy())
    close(state.variance, theirs.running_var.numpy())
    close(ours(X, state)[0], theirs.eval()(torch.tensor(X)).detach().numpy())


def _with_aux(weights: np.ndarray, made: tuple[Any, Any]) -> Any:
    return lnp.sum(weights * made[0] ** 2), made


def test_derivatives_of_batch_norm() -> None:
    def trained(x: Any, weight: Any, bias: Any) -> Any:
        layer = nn.BatchNorm(3).replace(weight=weight, bias=bias)
        return layer(x, nn.BatchNormState(lnp.zeros(3), lnp.ones(3)), training=True)[0]

    check_derivatives(trained, [X, sample((3,), seed=1), sample((3,), seed=2)])


def test_running_statistics_have_no_gradients() -> None:
    layer = nn.BatchNorm(3)

    def loss(x: Any, state: Any) -> Any:
        made, after = layer(x, state, training=True)
        inferred, _ = layer(x, state)
        return lnp.sum(made) + lnp.sum(inferred) + lnp.sum(after.mean) + lnp.sum(after.variance)

    slopes = lx.grad(loss, 1)(X, layer.initial_state())
    close(slopes.mean, 0)
    close(slopes.variance, 0)


def test_dropout_keeps_the_mean() -> None:
    layer, x = nn.Dropout(0.25), np.ones((100, 200), np.float32)
    dropped = np.asarray(layer(x, key=lx.random.key(0)))
    assert set(np.unique(dropped)) == {0, np.float32(1 / 0.75)}
    # 20000 draws of deviation 0.58 have a mean within 5 deviations of 0.02.
    assert abs(dropped.mean() - 1) < 0.02
    np.testing.assert_array_equal(layer(x), x)
    np.testing.assert_array_equal(dropped, layer(x, key=lx.random.key(0)))
    assert (np.asarray(layer(x, key=lx.random.key(1))) != dropped).any()
    slope = np.asarray(lx.grad(lambda x: lnp.sum(layer(x, key=lx.random.key(0)) * 2))(x))
    np.testing.assert_array_equal(slope, 2 * dropped)


def test_dropout_of_channels_and_of_everything() -> None:
    x = np.ones((8, 16, 3, 3), np.float32)
    dropped = np.asarray(nn.dropout(x, 0.5, lx.random.key(0), shared_axes=(2, 3)))
    assert (dropped == dropped[:, :, :1, :1]).all() and {0, 2} == set(np.unique(dropped))
    np.testing.assert_array_equal(nn.dropout(x, 1.0, lx.random.key(0)), 0 * x)
    np.testing.assert_array_equal(nn.dropout(x, 0.0, lx.random.key(0)), x)


# Arguments of a transposed convolution of two axes.
TRANSPOSED: list[dict[str, Any]] = [
    {"kernel_size": 3},
    {"kernel_size": (2, 3), "stride": 2, "padding": (1, 0), "output_padding": 1},
    {"kernel_size": 3, "stride": (3, 1), "dilation": (1, 2), "groups": 2},
    {"kernel_size": 2, "stride": 2, "padding": 1, "groups": 4, "dilation": 3, "output_padding": (2, 0), "bias": False},
]


@pytest.mark.parametrize("settings", TRANSPOSED, ids=str)
def test_transposed_convolution_is_the_gradient_of_convolution(settings: dict[str, Any]) -> None:
    layer = nn.ConvTranspose2d(4, 8, **settings, key=lx.random.key(0))
    x = sample((2, 4, 5, 4))
    made = np.asarray(layer(x))
    extents = [
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, s, p, d, k, o in zip(
            x.shape[2:], layer.stride, layer.padding, layer.dilation, layer.weight.shape[2:], layer.output_padding,
            strict=True,
        )
    ]  # fmt: skip
    assert made.shape == (2, 8, *extents)
    # <conv(big), x> = <big, layer(x)> for any big.
    big = sample(made.shape, seed=1)
    pads = [(p, p) for p in layer.padding]
    back = convolved(big, np.asarray(layer.weight), layer.stride, pads, (1, 1), layer.dilation, layer.groups)
    bias = 0 if layer.bias is None else np.asarray(layer.bias).reshape(-1, 1, 1)
    # Rows of `big` beyond the last window have no part in the convolution; output_padding adds them.
    close((back[:, :, :5, :4] * x).sum(), ((made - bias) * big).sum(), 1e-4)


@pytest.mark.parametrize("settings", TRANSPOSED, ids=str)
def test_transposed_convolution_is_that_of_pytorch(settings: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle of transposed convolution")
    theirs = torch.nn.ConvTranspose2d(4, 8, **settings)
    ours = nn.ConvTranspose2d(4, 8, **settings, key=lx.random.key(0))
    assert ours.weight.shape == tuple(theirs.weight.shape)
    bias = None if theirs.bias is None else theirs.bias.detach().numpy()
    ours = ours.replace(weight=theirs.weight.detach().numpy(), bias=bias)
    x = torch.tensor(sample((2, 4, 5, 4)), requires_grad=True)
    expected = theirs(x)
    weights = sample(tuple(expected.shape), seed=3)
    (torch.tensor(weights) * expected**2).sum().backward()
    close(ours(x.detach().numpy()), expected.detach().numpy())
    slope, model = lx.grad(lambda x, m: lnp.sum(weights * m(x) ** 2), (0, 1))(x.detach().numpy(), ours)
    close(slope, x.grad.numpy(), 1e-4)
    close(model.weight, theirs.weight.grad.numpy(), 1e-4)


@pytest.mark.parametrize(("layer", "shape"), [(nn.ConvTranspose1d, (2, 3, 4)), (nn.ConvTranspose3d, (1, 3, 2, 3, 2))])
def test_transposed_convolution_in_one_and_three_dimensions(layer: Any, shape: tuple[int, ...]) -> None:
    made = layer(3, 2, 2, stride=2, key=lx.random.key(0))(sample(shape))
    assert made.shape == (shape[0], 2, *(2 * extent for extent in shape[2:]))


def test_what_does_not_fit() -> None:
    key = lx.random.key(0)
    refused: list[tuple[type[Exception], str, Any]] = [
        (ValueError, "training needs more than one element per channel, got f32\\[1,3\\]",
         lambda: nn.BatchNorm(3)(X[:1, :, 0], nn.BatchNorm(3).initial_state(), training=True)),
        (ShapeError, r"variance must be \[3\], one for each channel of f32\[4,3,5\], got f32\[2\]",
         lambda: nn.BatchNorm(2)(X, nn.BatchNorm(2).initial_state())),
        (ShapeError, r"batch_statistics: x is \[N, C, ...\], got f32\[5\]", lambda: nn.batch_statistics(X[0, 0])),
        (ValueError, "p is a probability, got 1.5", lambda: nn.Dropout(1.5)(X, key=key)),
        (ValueError, "output_padding=2 must be less than the stride or the dilation",
         lambda: nn.ConvTranspose1d(3, 3, 3, 2, output_padding=2, key=key)),
        (ValueError, "padding must be a number from 0 on", lambda: nn.ConvTranspose1d(3, 3, 3, padding=-1, key=key)),
        (ValueError, "groups=2 must divide in_channels=3", lambda: nn.ConvTranspose1d(3, 4, 3, groups=2, key=key)),
        (ShapeError, "2 groups must divide the 3 channels", lambda: nn.conv_transpose(
            X, sample((3, 1, 2)), transpose_kernel=True, feature_group_count=2)),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
