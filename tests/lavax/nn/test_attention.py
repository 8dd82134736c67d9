"""dot_product_attention, against the formula in NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax.nn as nn
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.numpy.arrays import F32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

B, T, S, N, K, H, E = 2, 5, 7, 4, 2, 3, 6
QUERY, KEY, VALUE = sample((B, T, N, H)), sample((B, S, K, H)), sample((B, S, K, E))


def formula(query: Any, key: Any, value: Any, bias: Any = 0.0, visible: Any = True, scale: float = H**-0.5) -> Any:
    """Head by head, in float64; 0 for queries that see nothing."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    shape = (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    bias, visible = np.broadcast_to(bias, shape), np.broadcast_to(visible, shape)
    out = np.zeros((*query.shape[:3], value.shape[-1]))
    for b, n, t in np.ndindex(shape[:3]):
        head = n // (query.shape[2] // key.shape[2])
        seen = visible[b, n, t]
        if seen.any():
            scores = (key[b, :, head] @ query[b, t, n] * scale + bias[b, n, t])[seen]
            grown = np.exp(scores - scores.max())
            out[b, t, n] = grown / grown.sum() @ value[b, seen, head]
    return out.astype(F32)


def attend(**settings: Any) -> Any:
    return lambda *operands: nn.dot_product_attention(*operands, **settings)


def distances() -> Any:
    return np.arange(S) - np.arange(T)[:, None]


def test_grouped_heads() -> None:
    check(attend(), formula, QUERY, KEY, VALUE)
    check(attend(scale=2.0), lambda *x: formula(*x, scale=2.0), QUERY, KEY, VALUE)
    check(attend(), formula, QUERY, sample((B, S, 1, H)), sample((B, S, 1, E)))
    check(attend(), formula, QUERY, sample((B, S, N, H)), sample((B, S, N, E)))


def test_without_a_batch() -> None:
    check(attend(), lambda *x: formula(*(a[None] for a in x))[0], QUERY[0], KEY[0], VALUE[0])


@pytest.mark.parametrize("shape", [(B, N, T, S), (N, T, S), (1, N, 1, S), (B, 1, T, S), (T, 1), (S,)])
def test_bias_and_mask_broadcast(shape: tuple[int, ...]) -> None:
    bias, mask = sample(shape), sample(shape, np.dtype(bool), seed=3)
    check(attend(), formula, QUERY, KEY, VALUE, bias)
    check(
        lambda q, k, v, m: nn.dot_product_attention(q, k, v, mask=m),
        lambda q, k, v, m: formula(q, k, v, visible=m),
        *(QUERY, KEY, VALUE, mask),
    )


@pytest.mark.parametrize(
    ("settings", "visible"),
    [
        (dict(is_causal=True), distances() <= 0),
        (dict(local_window_size=2), abs(distances()) <= 2),
        (dict(local_window_size=(3, 1)), (distances() >= -3) & (distances() <= 1)),
        (dict(local_window_size=(1, 4), is_causal=True), (distances() >= -1) & (distances() <= 0)),
    ],
)
def test_windows(settings: dict[str, Any], visible: Any) -> None:
    check(attend(**settings), lambda *x: formula(*x, visible=visible), QUERY, KEY, VALUE)


def test_lengths() -> None:
    """Queries beyond theirs give 0, keys beyond theirs are not seen; where there are none, that is 0 too."""
    of_queries, of_keys = np.array([5, 2], np.int32), np.array([0, 4], np.int32)
    below_queries = (np.arange(T) < of_queries[:, None])[:, None, :, None]
    below_keys = (np.arange(S) < of_keys[:, None])[:, None, None, :]
    check(
        lambda q, k, v, a, b: nn.dot_product_attention(q, k, v, query_seq_lengths=a, key_value_seq_lengths=b),
        lambda q, k, v, a, b: formula(q, k, v, visible=below_queries & below_keys),
        *(QUERY, KEY, VALUE, of_queries, of_keys),
    )


@pytest.mark.parametrize(
    ("operands", "settings", "error", "message"),
    [
        ((QUERY[0], KEY, VALUE), {}, ShapeError, "have 4 axes, or 3 without a batch, got f32[5,4,3], f32[2,7,2,3]"),
        ((QUERY, KEY[:, 1:], VALUE), {}, ShapeError, "and value [B, S, K, E], got f32[2,5,4,3], f32[2,6,2,3]"),
        ((QUERY[:, :, :3], KEY, VALUE), {}, ShapeError, "3 query heads cannot share 2 heads of keys"),
        ((QUERY, KEY[:, :0], VALUE[:, :0]), {}, ShapeError, "there must be a key"),
        ((QUERY, KEY.astype(int), VALUE), {}, DtypeError, "must have one floating dtype"),
        ((QUERY, KEY, VALUE), dict(bias=sample((3, T, S))), ShapeError, "the bias f32[3,5,7] does not broadcast"),
        ((QUERY, KEY, VALUE), dict(mask=sample((T, S))), DtypeError, "the mask must be bool, got f32[5,7]"),
        ((QUERY, KEY, VALUE), dict(query_seq_lengths=sample((B,))), DtypeError, "query_seq_lengths must be integers"),
        ((QUERY, KEY, VALUE), dict(key_value_seq_lengths=np.ones(3, np.int32)), ShapeError, "must have the shape [2]"),
        ((QUERY, KEY, VALUE), dict(local_window_size=(-1, 0)), ValueError, "local_window_size (-1, 0) must not be"),
    ],
)
def test_bad_input(operands: Any, settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        nn.dot_product_attention(*operands, **settings)
    assert message in str(raised.value)
