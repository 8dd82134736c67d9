"""A small convolutional network on the device: gradients as in float64, and it learns random data by heart."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, optim
from lavax.ir import interpret

LAYOUT = ("NHWC", "HWIO", "NHWC")
SHAPES = ((5, 5, 1, 8), (3, 3, 8, 16), (4 * 4 * 16, 32), (32, 10))  # two convolutions, two linear layers


def scores(weights: Any, biases: Any, images: Any) -> Any:
    """As LeNet (LeCun et al. 1998): convolution and pooling twice, then linear layers. Images are 16 by 16."""
    for weight, bias in zip(weights[:2], biases[:2], strict=True):
        images = nn.relu(nn.conv(images, weight, 1, "SAME", dimension_numbers=LAYOUT) + bias)
        images = nn.max_pool(images, (2, 2), 2, axes=(1, 2))
    rows = images.reshape(images.shape[0], -1)
    return nn.relu(rows @ weights[2] + biases[2]) @ weights[3] + biases[3]


def cross_entropy(weights: Any, biases: Any, images: Any, labels: Any) -> Any:
    log_probabilities = nn.log_softmax(scores(weights, biases, images))
    return -lnp.mean(lnp.take_along_axis(log_probabilities, labels[:, None], axis=1))


@partial(lx.compile, donate_argnums=(0, 1))
def step(parameters: Any, state: Any, images: Any, labels: Any) -> tuple[Any, Any, Any]:
    loss, gradients = lx.value_and_grad(lambda p: cross_entropy(*p, images, labels))(parameters)
    updates, state = optim.adam(3e-3).update(gradients, state)
    return optim.apply_updates(parameters, updates), state, loss


def initial() -> tuple[list[np.ndarray], list[np.ndarray]]:
    normal = np.random.default_rng(0).normal
    weights = [normal(0, np.sqrt(2 / np.prod(shape[:-1])), shape).astype(np.float32) for shape in SHAPES]
    return weights, [np.zeros(shape[-1], np.float32) for shape in SHAPES]


def examples(count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    images = random.normal(size=(count, 16, 16, 1)).astype(np.float32)
    return images, random.integers(0, 10, count).astype(np.int32)


def test_gradients_are_those_of_float64() -> None:
    def gradients(weights: Any, biases: Any, images: Any, labels: Any) -> Any:
        return lx.grad(cross_entropy, (0, 1))(weights, biases, images, labels)

    arguments = (*initial(), *examples(4))
    found = lx.tree.leaves(lx.compile(gradients)(*arguments))
    exact = interpret(lx.trace(gradients)(*arguments), *lx.tree.leaves(arguments))
    for one, right in zip(found, exact, strict=True):
        np.testing.assert_allclose(np.asarray(one), right, rtol=1e-4, atol=1e-5 * np.abs(right).max())


def test_it_learns_by_heart() -> None:
    parameters = initial()
    state = optim.adam(3e-3).init(parameters)
    images, labels = examples(32)
    losses = []
    for _ in range(25):
        parameters, state, loss = step(parameters, state, images, labels)
        losses.append(loss)
    curve = [float(loss) for loss in losses]
    assert curve[0] > 2
    assert curve[-1] < curve[0] / 4
