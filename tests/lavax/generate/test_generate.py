"""Text generation: the tokens of the uncached model, rows that end, buckets, sampling."""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.generate import Sampling, generate, sample, stream
from lavax.generate.prompts import bucket_of, prompts_of
from lavax.models.family import family_of
from lavax.models.llama_config import LlamaConfig
from tests.lavax.models.language import token_ids
from tests.lavax.models.seeded import assert_close, seeded_model

CONFIG = LlamaConfig(
    vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=True,
)
on_the_interpreter = pytest.mark.usefixtures("reference_backend")


@pytest.fixture
def model() -> Any:
    return seeded_model(family_of("llama"), CONFIG)


def test_a_cached_decode_of_256_tokens_is_the_uncached_forward_pass(model: Any) -> None:
    """On the device: the logits of each step, and the tokens of greedy decoding."""
    ids = token_ids(96, 1, 260)
    wanted = np.asarray(lx.compile(lambda m, x: m(x))(model, ids))[0]

    @lx.compile(donate_argnums=2)
    def decode(model: Any, token: Any, cache: Any) -> Any:
        hidden, cache = model.extend(token, cache)
        return model.logits(hidden)[:, 0], cache

    _, cache = model.extend(ids[:, :4], model.empty_cache(1, 272))
    found = []
    for position in range(4, 260):
        logits, cache = decode(model, ids[:, position : position + 1], cache)
        found.append(logits)
    assert_close(np.concatenate(found), wanted[4:], 1e-5)

    made = generate(model, ids[:, :4], 256)
    scores = np.asarray(lx.compile(lambda m, x: m(x))(model, made))[0, 3:-1]
    chosen = np.take_along_axis(scores, made[0, 4:, None], axis=1)[:, 0]
    # The token is the most likely one, but for rounding.
    assert np.all(scores.max(axis=1) - chosen <= 1e-5 * np.abs(scores).max())


def test_a_step_writes_less_than_the_cache_holds(model: Any) -> None:
    cache = model.empty_cache(2, 256)
    step = lx.compile(lambda model, token, cache: model.extend(token, cache), donate_argnums=2)
    cost = step.lower(model, np.zeros((2, 1), np.int32), cache).compile().cost()
    rows = 2 * 2 * 2 * 2 * 8 * 4  # keys and values of two layers and two rows: two heads of eight float32
    routines = [each.bytes_written for each in cost.kernels.values() if each.kind == "routine" and each.bytes_written]
    assert rows <= sum(routines) <= 4 * rows  # attention's results, too
    assert cost.bytes_written < sum(leaf.nbytes for leaf in lx.tree.leaves(cache)) / 4


@on_the_interpreter
@pytest.mark.parametrize("kind", ["mistral", "gemma3_text"])
def test_long_prompts_with_windows_go_on_as_without_a_cache(kind: str) -> None:
    settings: dict[str, Any] = dict(model_type=kind, sliding_window=6, sliding_window_pattern=2)
    model = seeded_model(family_of(kind), dataclasses.replace(CONFIG, **settings))
    prompts = [token_ids(96, 41).tolist(), token_ids(96, 7, seed=1).tolist()]
    made = generate(model, prompts, 6)
    for row, prompt in zip(made, prompts, strict=True):
        ids = list(prompt)
        for _ in range(6):
            ids.append(int(np.asarray(model(np.array([ids])))[0, -1].argmax()))
        assert row[: len(ids)].tolist() == ids


def test_other_prompts_compile_nothing(model: Any) -> None:
    generate(model, [[5, 6, 7], [8, 9]], 5, temperature=0.8, top_k=9)
    before = lx.profiler.counters()
    generate(model, [[3] * 9, [4] * 11], 4, temperature=0.8, top_k=9, seed=3)
    after = lx.profiler.counters()
    assert all(after[name] == before[name] for name in ("traces", "glsl_compiles", "pipelines"))


@on_the_interpreter
def test_rows_end_at_their_end_tokens_and_streams_give_the_same(model: Any) -> None:
    prompts = [[5, 6, 7], [8, 9, 10, 11, 12]]
    whole = generate(model, prompts, 8)
    end = int(whole[0, 3 + 2])  # the third new token of the first row
    cut = generate(model, prompts, 8, eos_token_id=end, pad_token_id=0)
    for row, prompt in zip(range(2), prompts, strict=True):
        new = whole[row, len(prompt) : len(prompt) + 8].tolist()
        kept = new[: new.index(end) + 1] if end in new else new
        assert cut[row, : len(prompt) + len(kept)].tolist() == prompt + kept
        assert not cut[row, len(prompt) + len(kept) :].any()
    streamed = np.stack(list(stream(model, prompts, 8)), axis=1)
    for row, prompt in enumerate(prompts):
        assert np.array_equal(streamed[row], whole[row, len(prompt) : len(prompt) + 8])


@on_the_interpreter
@pytest.mark.parametrize("at_once", [2, 5, 8])
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.9, "top_k": 20, "repetition_penalty": 1.2, "seed": 3}])
def test_tokens_that_are_drawn_at_once_are_the_same(model: Any, at_once: int, settings: dict[str, Any]) -> None:
    prompts = [[1, 2, 3, 4, 5], [7, 8]]
    one = generate(model, prompts, 7, **settings)
    np.testing.assert_array_equal(generate(model, prompts, 7, tokens_at_once=at_once, **settings), one)
    end = int(one[1, 2 + 3])
    ended = generate(model, prompts, 7, eos_token_id=end, pad_token_id=0, **settings)
    several = list(stream(model, prompts, 7, eos_token_id=end, pad_token_id=0, tokens_at_once=at_once, **settings))
    np.testing.assert_array_equal(np.stack(several, 1)[1], ended[1, 2 : 2 + len(several)])


def test_a_loop_of_steps_changes_the_cache_in_place(model: Any) -> None:
    """On the device: a turn of the loop is the kernels of a step, and writes no more."""

    def several(model: Any, token: Any, cache: Any) -> Any:
        def turn(carried: Any, _: Any) -> Any:
            hidden, cache = model.extend(carried[0][:, None], carried[1])
            token = lnp.argmax(model.logits(hidden[:, 0]), axis=-1).astype("int32")
            return (token, cache), token

        return lx.scan(turn, (token, cache), None, length=4)

    text = lx.compile(several, donate_argnums=2).lower(
        model, np.zeros(1, np.int32), model.empty_cache(1, 128)
    ).as_text("kernels")
    _, turn = text.split("\nrepeat ")
    assert turn.count("  kernel ") <= 9 * 2 + 4
    assert "kind=map outer=[1,128,2,8]" not in turn


@on_the_interpreter
def test_the_seed_decides_and_rows_do_not_depend_on_others(model: Any) -> None:
    prompts = [[5, 6, 7], [8, 9, 10, 11, 12]]
    settings: dict[str, Any] = dict(temperature=1.0, top_p=0.9)
    first = generate(model, prompts, 6, seed=1, **settings)
    assert np.array_equal(first, generate(model, prompts, 6, seed=1, **settings))
    assert not np.array_equal(first, generate(model, prompts, 6, seed=2, **settings))
    assert np.array_equal(first[0, :9], generate(model, prompts[:1], 6, seed=1, **settings)[0])


@on_the_interpreter
def test_lengths_and_lists_are_the_same_prompts(model: Any) -> None:
    padded = np.array([[5, 6, 7, 90, 91], [8, 9, 10, 11, 12]])
    assert np.array_equal(
        generate(model, padded, 4, lengths=[3, 5]), generate(model, [[5, 6, 7], [8, 9, 10, 11, 12]], 4)
    )


LOGITS = np.array([[2.0, 1.0, 0.5, 0.0, -1.0], [0.0, 3.0, 2.9, -2.0, 1.0]], np.float32)


def _drawn(sampling: Sampling, seen: Any = None, count: int = 400) -> np.ndarray:
    """How often each token is drawn, [B, V]."""
    keys = np.stack([np.arange(2 * count, dtype=np.uint32), np.ones(2 * count, np.uint32)], axis=1)
    rows = np.repeat(LOGITS, count, axis=0)
    marks = None if seen is None else np.repeat(seen, count, axis=0)
    tokens = np.asarray(sample(rows, keys, sampling, marks)).reshape(2, count)
    return np.stack([np.bincount(row, minlength=5) for row in tokens])


def _chances(scores: np.ndarray) -> np.ndarray:
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


@on_the_interpreter
@pytest.mark.parametrize(
    ("sampling", "allowed"),
    [
        (Sampling(0.7), [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]),
        (Sampling(1.0, top_k=2), [[0, 1], [1, 2]]),
        (Sampling(1.0, top_p=0.6), [[0, 1], [1, 2]]),
        (Sampling(1.0, top_p=0.0), [[0], [1]]),
        (Sampling(1.0, min_p=0.2), [[0, 1, 2], [1, 2]]),
        (Sampling(2.0, top_k=3, min_p=0.5), [[0, 1], [1, 2]]),
    ],
)
def test_tokens_are_drawn_from_the_limited_distribution(sampling: Sampling, allowed: list[list[int]]) -> None:
    mask = np.full(LOGITS.shape, -np.inf)
    for row, tokens in enumerate(allowed):
        mask[row, tokens] = 0
    chances = _chances(LOGITS.astype(np.float64) / sampling.temperature + mask)
    counts = _drawn(sampling)
    assert not counts[chances == 0].any()
    # Four standard deviations of a binomial distribution, and one draw for the tails.
    assert np.all(np.abs(counts - 400 * chances) <= 1 + 4 * np.sqrt(400 * chances * (1 - chances)))


@on_the_interpreter
def test_the_penalty_makes_seen_tokens_less_likely() -> None:
    seen = np.array([[True, False, False, False, True], [False, True, False, False, False]])
    keys = np.zeros((2, 2), np.uint32)
    assert sample(LOGITS, keys, Sampling(repetition_penalty=4.0), seen).tolist() == [1, 2]
    scores = np.where(seen, np.where(LOGITS > 0, LOGITS / 2, LOGITS * 2), LOGITS).astype(np.float64)
    counts, chances = _drawn(Sampling(1.0, repetition_penalty=2.0), seen), _chances(scores)
    assert np.all(np.abs(counts - 400 * chances) <= 1 + 4 * np.sqrt(400 * chances * (1 - chances)))


@on_the_interpreter
def test_a_repetition_penalty_counts_prompts_and_new_tokens(model: Any) -> None:
    tokens = generate(model, [[5, 6, 7]], 12, repetition_penalty=1e6)[0].tolist()
    assert len(set(tokens)) == len(tokens)


def test_buckets_are_at_most_a_quarter_larger() -> None:
    for length in range(1, 5000):
        assert max(length, 16) <= bucket_of(length) <= max(16, length + max(15, length / 4))
    assert len({bucket_of(length) for length in range(1, 4097)}) <= 32


@on_the_interpreter
def test_bad_arguments_are_named(model: Any) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        (dict(ids=[[1]], max_new_tokens=-1), "max_new_tokens must not be negative, got -1"),
        (dict(ids=[[1] * 500], max_new_tokens=20), "prompts of 500 tokens and 20 new ones exceed the model's 512"),
        (dict(ids=[[1]], max_new_tokens=2, tokens_at_once=0), "tokens_at_once must be at least 1, got 0"),
        (dict(ids=[[1]], max_new_tokens=2, temperature=-1.0), "temperature must be at least 0"),
        (dict(ids=[[1]], max_new_tokens=2, top_p=1.5), "top_p is a probability"),
        (dict(ids=[[1]], max_new_tokens=2, top_k=0), "top_k must be at least 1"),
        (dict(ids=[[1]], max_new_tokens=2, repetition_penalty=0.0), "repetition_penalty must be positive"),
        (dict(ids=np.zeros((2, 0), int), max_new_tokens=2), "lengths must lie between 1 and 0"),
        (dict(ids=[[1], []], max_new_tokens=2), "lengths must lie between 1"),
        (dict(ids=np.zeros((2, 3), int), lengths=[1], max_new_tokens=2), r"lengths must be \[2\]"),
        (dict(ids=np.zeros(3, int), max_new_tokens=2), r"tokens \[B, T\] or a list of prompts"),
        (dict(ids=[[1], [2, 96]], max_new_tokens=2), "the model has the tokens 0 to 95, not 96"),
        (dict(ids=[[-1]], max_new_tokens=2), "the model has the tokens 0 to 95, not -1"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            generate(model, **arguments)
    with pytest.raises(TypeError, match="tokens are integers, got float64"):
        prompts_of([[1.5, 2.0]])
    assert generate(model, [[1, 2]], 0).tolist() == [[1, 2]]
    assert lnp.asarray(generate(model, [[1, 2]], 1)).shape == (1, 3)
