"""Layers and losses, and all their gradients, on the device; against the interpreter in float64."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import image, nn
from lavax.ir import interpret
from tests.lavax.nn.test_ctc import LENGTHS, LOGITS, STEPS, TARGETS
from tests.lavax.numpy.arrays import sample

KEY = np.array([0, 7], np.uint32)


def weighed(y: Any) -> Any:
    """One number that depends on each element in its own way."""
    return lnp.sum(lnp.square(y) * lnp.cos(lnp.reshape(lnp.arange(y.size, dtype="float32"), y.shape)))


# What is called, with an input or with a model and an input; the arrays; the model.
CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray], Any]] = {
    "LSTM": (lambda m, x: weighed(m(x)[0]), [sample((2, 4, 3))],
             lambda: nn.LSTM(3, 4, bidirectional=True, key=KEY)),
    "GRU": (lambda m, x: weighed(m(x)[0]), [sample((2, 4, 3))], lambda: nn.GRU(3, 4, key=KEY)),
    "attention": (lambda m, x: weighed(m(x)), [sample((2, 5, 8))],
                  lambda: nn.MultiHeadAttention(8, 4, 2, qk_norm=True, is_causal=True, window=3, key=KEY)),
    "transposed convolution": (lambda m, x: weighed(m(x)), [sample((2, 4, 5, 4))],
                               lambda: nn.ConvTranspose2d(4, 8, 3, 2, 1, 1, groups=2, dilation=2, key=KEY)),
    "batch norm": (lambda m, x: weighed(m(lnp.sin(x), m.initial_state(), training=True)[0]), [sample((4, 3, 5))],
                   lambda: nn.BatchNorm(3)),
    "cross-entropy": (lambda x, y: nn.cross_entropy(lnp.sin(x), y, label_smoothing=0.1, z_loss=0.1, axis=-1),
                      [sample((2, 6, 50)), np.arange(12, dtype=np.int32).reshape(2, 6)], None),
    "CTC": (lambda x, *rest: nn.ctc_loss(nn.log_softmax(x), *rest),
            [LOGITS[:, :3], TARGETS[:3], STEPS[:3], LENGTHS[:3]], None),
    "upsampling": (lambda x: weighed(nn.interpolate(lnp.sin(x), (10, 7), mode="bicubic")),
                   [sample((2, 3, 5, 6))], None),
    "resizing": (lambda x: weighed(image.resize(lnp.sin(x), (2, 4, 9, 3), "lanczos3")), [sample((2, 7, 5, 3))], None),
    "pooling": (lambda x: weighed(nn.max_pool2d(lnp.sin(x), 3, 2, 1, ceil_mode=True))
                + weighed(nn.avg_pool2d(x, 3, 2, 1, True, False)) + weighed(nn.adaptive_avg_pool2d(lnp.cos(x), 3)),
                [sample((2, 3, 8, 7))], None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradients_on_the_device(name: str) -> None:
    called, inputs, build = CASES[name]
    leaves, structure = lx.tree.flatten(build() if build else ())
    weights = [sample(leaf.shape, low=-0.7, high=0.7, seed=30 + place) for place, leaf in enumerate(leaves)]
    arrays = [*weights, *inputs]
    count = len(weights)

    def loss(*values: Any) -> Any:
        model = [lx.tree.unflatten(structure, values[:count])] if build else []
        return 1.7 * called(*model, *values[count:])

    places = tuple(place for place, array in enumerate(arrays) if array.dtype == np.float32)
    both = lx.value_and_grad(loss, places)
    value, slopes = lx.compile(both)(*arrays)
    exact = interpret(lx.trace(both)(*arrays), *arrays)
    largest = max(np.abs(array).max() for array in exact[1:])
    for found, expected in zip([value, *slopes], exact, strict=True):
        # Rounding in the largest gradients; those that vanish, such as of biases of keys, are as exact as these.
        size = max(np.abs(expected).max(), 0.01 * largest)
        np.testing.assert_allclose(np.asarray(found) / size, expected / size, rtol=0, atol=3e-5)
