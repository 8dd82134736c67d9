"""The gradient by attention's bias in few bits."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.ir.types import DTYPES


def _exact(q: np.ndarray, k: np.ndarray, v: np.ndarray, bias: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]) + bias
    weights = np.exp(scores - scores.max(2, keepdims=True))
    weights /= weights.sum(2, keepdims=True)
    of_weights = cotangent @ v.transpose(0, 2, 1)
    found: np.ndarray = weights * (of_weights - (weights * of_weights).sum(2, keepdims=True))
    return found


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_large_scores_do_not_cost_the_biases_gradient_its_bits(dtype: str) -> None:
    """Scores of 30 have units of 1/8 in bfloat16; what remains are the roundings of results, weights and cotangents."""
    random = np.random.default_rng(3)
    kind = DTYPES[{"bfloat16": "bf16", "float16": "f16"}[dtype]]
    shapes = [(8, 16, 32), (8, 16, 32), (8, 16, 32), (8, 16, 16), (8, 16, 32)]
    sizes = (10, 1, 1, 1, 1)
    arrays = [kind.rounded(size * random.normal(size=shape)) for size, shape in zip(sizes, shapes, strict=True)]

    def loss(bias: object, q: object, k: object, v: object, cotangent: object) -> object:
        return lnp.sum(nn.scaled_dot_product_attention(q, k, v, bias) * cotangent)

    q, k, v, bias, cotangent = (lnp.asarray(array, dtype) for array in arrays)
    found = np.asarray(lx.compile(lx.grad(loss))(bias, q, k, v, cotangent)).astype(np.float64)
    right = _exact(*(np.asarray(array, np.float64) for array in arrays))
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype]
    assert np.linalg.norm(found - right) < 3 * unit * np.linalg.norm(right)
