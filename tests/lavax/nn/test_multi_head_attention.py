"""Attention as a layer, against its definition, PyTorch, and itself with a cache."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.base.errors import ShapeError
from tests.closeness import close
from tests.lavax.nn.windows import check_derivatives
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X, CONTEXT = sample((2, 5, 8)), sample((2, 7, 6), seed=1)


def made(features: int, heads: int, **settings: Any) -> Any:
    """A layer with weights that NumPy draws, leaf by leaf."""
    model = nn.MultiHeadAttention(features, heads, **settings, key=lx.random.key(0))
    leaves, structure = lx.tree.flatten(model)
    drawn = [sample(leaf.shape, low=-0.6, high=0.6, seed=20 + number) for number, leaf in enumerate(leaves)]
    return lx.tree.unflatten(structure, drawn)


def defined(model: Any, x: np.ndarray, context: np.ndarray, visible: Any = True, bias: Any = 0) -> np.ndarray:
    """What the layer computes, in float64, head by head."""

    def linear(layer: Any, x: np.ndarray) -> Any:
        return x.astype(np.float64) @ np.asarray(layer.weight).T + (0 if layer.bias is None else np.asarray(layer.bias))

    def split(x: np.ndarray, heads: int, norm: Any) -> np.ndarray:
        parts = x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
        if norm is not None:
            parts = parts / np.sqrt((parts**2).mean(-1, keepdims=True) + 1e-6) * np.asarray(norm.weight)
        return parts

    def turned(x: np.ndarray) -> np.ndarray:
        if model.rope_theta is None:
            return x
        pairs = x.shape[-1] // 2
        angles = np.arange(x.shape[2])[:, None] * model.rope_theta ** -(np.arange(pairs) / pairs)
        numbers = (x[..., :pairs] + 1j * x[..., pairs:]) * np.exp(1j * angles)
        return np.concatenate([numbers.real, numbers.imag], -1)

    queries = turned(split(linear(model.query, x), model.heads, model.query_norm))
    keys = turned(split(linear(model.key, context), model.kv_heads, model.key_norm))
    values = split(linear(model.value, context), model.kv_heads, None)
    keys, values = (np.repeat(each, model.heads // model.kv_heads, 1) for each in (keys, values))
    scale = queries.shape[-1] ** -0.5 if model.scale is None else model.scale
    scores = np.where(visible, scale * queries @ keys.transpose(0, 1, 3, 2) + bias, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result = weights / weights.sum(-1, keepdims=True) @ values
    return np.asarray(linear(model.out, result.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)))


def band(queries: int, keys: int, before: int, after: int) -> Any:
    distance = np.arange(keys) - np.arange(queries)[:, None]
    return (distance >= -before) & (distance <= after)


@pytest.mark.parametrize(("settings", "visible"), [
    ({}, True),
    ({"kv_heads": 2, "bias": False, "scale": 0.7}, True),
    ({"kv_heads": 1, "is_causal": True, "out_bias": False}, band(5, 5, 9, 0)),
    ({"is_causal": True, "window": 2, "rope_theta": 100.0}, band(5, 5, 1, 0)),
    ({"window": 2, "qk_norm": True, "kv_heads": 2}, band(5, 5, 1, 1)),
    ({"head_dim": 6, "rope_theta": 1e4, "qk_norm": True, "is_causal": True}, band(5, 5, 9, 0)),
], ids=str)  # fmt: skip
def test_self_attention_is_its_definition(settings: dict[str, Any], visible: Any) -> None:
    model = made(8, 4, **settings)
    close(model(X), defined(model, X, X, visible))
    close(model(X[0]), defined(model, X, X, visible)[0])


def test_cross_attention_masks_and_biases() -> None:
    model = made(8, 2, key_features=6, out_features=3)
    close(model(X, CONTEXT), defined(model, X, CONTEXT))
    mask = np.arange(5 * 7).reshape(1, 1, 5, 7) % 3 != 0
    bias = sample((1, 2, 5, 7), seed=4)
    close(model(X, CONTEXT, mask=mask, bias=bias), defined(model, X, CONTEXT, mask, bias))
    lengths = np.array([3, 7], np.int32)
    hidden = np.arange(7) < lengths[:, None, None, None]
    close(model(X, CONTEXT, key_lengths=lengths), defined(model, X, CONTEXT, hidden))
    other = made(8, 2, key_features=6, value_features=8)
    assert other(X, CONTEXT, sample((2, 7, 8))).shape == (2, 5, 8)


def test_attention_is_that_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle of attention")
    model = made(8, 2)
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    projections = (model.query, model.key, model.value)
    theirs.in_proj_weight.data = torch.tensor(np.concatenate([p.weight for p in projections]))
    theirs.in_proj_bias.data = torch.tensor(np.concatenate([p.bias for p in projections]))
    theirs.out_proj.weight.data = torch.tensor(model.out.weight)
    theirs.out_proj.bias.data = torch.tensor(model.out.bias)
    x = torch.tensor(X, requires_grad=True)
    context = torch.tensor(sample((2, 7, 8), seed=3), requires_grad=True)
    expected, _ = theirs(x, context, context, attn_mask=torch.tensor(~band(5, 7, 9, 1)))
    (expected**2).sum().backward()

    def loss(x: Any, context: Any, model: Any) -> Any:
        return lnp.sum(model(x, context, mask=band(5, 7, 9, 1)) ** 2)

    close(model(X, context.detach().numpy(), mask=band(5, 7, 9, 1)), expected.detach().numpy())
    slopes = lx.grad(loss, (0, 1, 2))(X, context.detach().numpy(), model)
    close(slopes[0], x.grad.numpy(), 3e-5)
    close(slopes[1], context.grad.numpy(), 3e-5)
    close(slopes[2].value.weight, theirs.in_proj_weight.grad.numpy()[16:], 3e-5)


@pytest.mark.parametrize("settings", [{}, {"window": 3, "qk_norm": True}], ids=str)
def test_tokens_one_by_one_are_those_at_once(settings: dict[str, Any]) -> None:
    model = made(8, 4, kv_heads=2, rope_theta=100.0, is_causal=True, **settings)
    whole = np.asarray(model(X))
    cache, lengths = model.empty_cache(2, 6), np.zeros(2, np.int32)
    found, cache = model(X[:, :2], cache=cache, lengths=lengths)
    close(found, whole[:, :2])
    for t in range(2, 5):
        found, cache = model(X[:, t : t + 1], cache=cache, lengths=lengths + np.int32(t))
        close(found, whole[:, t : t + 1])


def test_rotary_tables_of_the_model() -> None:
    plain, turning = made(8, 2), made(8, 2, rope_theta=50.0)
    tables = nn.rotary.tables(np.arange(5), nn.rotary.frequencies(4, 50.0))
    close(plain(X, rotary=tables), turning(X))


def test_derivatives() -> None:
    model = made(4, 2, kv_heads=1, is_causal=True, qk_norm=True)
    leaves, structure = lx.tree.flatten(model)
    run = lambda x, *weights: lx.tree.unflatten(structure, weights)(x)  # noqa: E731
    check_derivatives(run, [X[:1, :3, :4], *map(np.asarray, leaves)])


def test_low_precision_stays() -> None:
    model = nn.MultiHeadAttention(8, 2, key=lx.random.key(0), dtype="bfloat16", rope_theta=10.0)
    assert model(lnp.asarray(X, "bfloat16")).dtype == lnp.asarray(X, "bfloat16").dtype
    assert model.empty_cache(1, 2).keys.dtype == model.key.weight.dtype


def test_what_does_not_fit() -> None:
    key, model = lx.random.key(0), made(8, 2)
    refused: list[tuple[type[Exception], str, Any]] = [
        (ValueError, "heads=4 must divide by kv_heads=3", lambda: nn.MultiHeadAttention(8, 4, 3, key=key)),
        (ValueError, "features=8 do not divide by heads=3; give head_dim",
         lambda: nn.MultiHeadAttention(8, 3, key=key)),
        (ValueError, "window is at least 1, got 0", lambda: nn.MultiHeadAttention(8, 2, window=0, key=key)),
        (ShapeError, r"x is \[B, T, features\]", lambda: model(X[None])),
        (ValueError, "a cache is for self-attention", lambda: model(X, cache=model.empty_cache(2, 8))),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
