"""Text generation as compiled functions: one reads the prompts, one adds a token to each row, or several in a loop."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.generate.prompts import Prompts, bucket_of, prompts_of
from lavax.generate.sampling import Sampling, sample
from lavax.models.language_model import LanguageModel
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.compiled.compile import compile
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.tracing.placement import device_put
from lavax.tracer.transforms.vmap import vmap

__all__ = ["generate", "stream"]


def generate(
    model: LanguageModel,
    ids: Any,
    max_new_tokens: int,
    *,
    lengths: ArrayLike | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    seed: int = 0,
    eos_token_id: int | Sequence[int] | None = None,
    pad_token_id: int | None = None,
    cache_dtype: Any = None,
    tokens_at_once: int = 1,
) -> np.ndarray:
    """The prompts with up to `max_new_tokens` more tokens: int32 [B, longest prompt + max_new_tokens].

    `ids` are prompts [B, T], or a list of B prompts of any lengths; with `lengths` [B], each row of [B, T] counts up to
    its length. Each row of the result is its prompt, its new tokens, and then padding. A row ends with the first
    `eos_token_id`, by default that of the model's configuration. `temperature` 0 takes the most likely token; see
    `Sampling` for the others. The same `seed` draws the same tokens for a row, whatever the other rows are.

    `tokens_at_once` are drawn in one submission, in a loop on the device, which so never waits for the host; after the
    end of a row it computes some that are not used. The tokens are the same for every number.

    Lengths are rounded up before anything is compiled, so other prompts of about the same length compile nothing.
    Raises ValueError if prompts and new tokens exceed the model's positions, for tokens that the model does not have,
    and for arguments outside their range.
    """
    sampling = Sampling(temperature, repetition_penalty, top_k, top_p, min_p)
    prompts = prompts_of(ids, lengths)
    ends = _ends(model, eos_token_id)
    pad = _padding(model, pad_token_id, ends)
    made = list(_steps(model, prompts, max_new_tokens, sampling, seed, ends, pad, cache_dtype, tokens_at_once))
    new = np.stack(made, axis=1) if made else np.zeros((len(prompts.lengths), 0), np.int32)
    found = np.full((len(prompts.lengths), prompts.longest + max_new_tokens), pad, np.int32)
    for row, (length, prompt) in enumerate(zip(prompts.lengths, prompts.ids, strict=True)):
        found[row, :length] = prompt[:length]
        found[row, length : length + new.shape[1]] = new[row]
    return found


def stream(
    model: LanguageModel,
    ids: Any,
    max_new_tokens: int,
    *,
    lengths: ArrayLike | None = None,
    seed: int = 0,
    eos_token_id: int | Sequence[int] | None = None,
    pad_token_id: int | None = None,
    cache_dtype: Any = None,
    tokens_at_once: int = 1,
    **sampling: Any,
) -> Iterator[np.ndarray]:
    """The tokens that `generate` adds, int32 [B] each, as soon as they are there; rows that ended give padding.

    `tokens_at_once` come together.
    """
    chosen, prompts, ends = Sampling(**sampling), prompts_of(ids, lengths), _ends(model, eos_token_id)
    pad = _padding(model, pad_token_id, ends)
    return _steps(model, prompts, max_new_tokens, chosen, seed, ends, pad, cache_dtype, tokens_at_once)


def _ends(model: LanguageModel, given: int | Sequence[int] | None) -> tuple[int, ...]:
    """The tokens that end a row."""
    found = getattr(model.config, "eos_token_id", None) if given is None else given
    if found is None:
        return ()
    return tuple(found) if isinstance(found, Sequence) else (int(found),)


def _padding(model: LanguageModel, given: int | None, ends: tuple[int, ...]) -> int:
    found = getattr(model.config, "pad_token_id", None) if given is None else given
    if found is not None and found >= 0:
        return int(found)
    return ends[0] if ends else 0


def _steps(
    model: LanguageModel,
    prompts: Prompts,
    count: int,
    sampling: Sampling,
    seed: int,
    ends: tuple[int, ...],
    pad: int,
    cache_dtype: Any,
    at_once: int,
) -> Iterator[np.ndarray]:
    """The new tokens."""
    if count < 0:
        raise ValueError(f"generate: max_new_tokens must not be negative, got {count}")
    if at_once < 1:
        raise ValueError(f"generate: tokens_at_once must be at least 1, got {at_once}")
    room = getattr(model.config, "longest", getattr(model.config, "max_position_embeddings", None))
    if room is not None and prompts.longest + count > room:
        raise ValueError(
            f"generate: prompts of {prompts.longest} tokens and {count} new ones exceed the model's {room} positions"
        )
    _check_tokens(model, prompts)
    if not count:
        return
    penalised = sampling.repetition_penalty != 1
    ids, lengths, keys = device_put((prompts.padded(pad, room), prompts.lengths, _keys_of_rows(prompts, seed)))
    length = bucket_of(max(ids.shape[1], prompts.longest + count))
    token, state = _prefill(model, ids, lengths, keys, length, sampling, penalised, cache_dtype)
    ended = np.zeros(len(prompts.lengths), bool)
    submissions = _submissions(model, token, state, count, sampling, at_once)
    drawn = (tokens for several in submissions for tokens in np.asarray(several).reshape(-1, len(ended)))
    for tokens in islice(drawn, count):
        read = np.where(ended, pad, tokens).astype(np.int32)
        yield read
        ended |= np.isin(read, ends) if ends else False
        if ended.all():
            return


def _submissions(
    model: LanguageModel, token: Any, state: dict[str, Any], count: int, sampling: Sampling, at_once: int
) -> Iterator[Any]:
    """The first token, then tokens as they are drawn: [B], or [at_once, B]. The host reads one submission behind the
    device, which so never waits for it."""
    made = token
    for _ in range(0, count - 1, at_once):
        if at_once == 1:
            token, state = _decode(model, token, state, sampling)
            following = token
        else:
            following, token, state = _decode_several(model, token, state, sampling, at_once)
        yield made
        made = following
    yield made


def _check_tokens(model: LanguageModel, prompts: Prompts) -> None:
    """Raises ValueError for tokens that the model does not have; a lookup would take its last one for them."""
    known = getattr(model.config, "vocab_size", None)
    given = np.concatenate([row[:length] for row, length in zip(prompts.ids, prompts.lengths, strict=True)])
    if known is not None and (given.min() < 0 or given.max() >= known):
        wrong = given[(given < 0) | (given >= known)][0]
        raise ValueError(
            f"generate: the model has the tokens 0 to {known - 1}, not {wrong}; are prompts made by its own tokenizer?"
        )


def _keys_of_rows(prompts: Prompts, seed: int) -> Any:
    return np.stack([np.array([seed & 0xFFFFFFFF, row], np.uint32) for row in range(len(prompts.lengths))])


@partial(compile, static_argnames=("length", "sampling", "penalised", "cache_dtype"))
def _prefill(
    model: Any,
    ids: Any,
    lengths: Any,
    keys: Any,
    length: int,
    sampling: Sampling,
    penalised: bool,
    cache_dtype: Any,
) -> tuple[Any, dict[str, Any]]:
    """The first new token of each row, and the state for more."""
    hidden, cache = _read(model, ids, lengths, model.empty_cache(ids.shape[0], length, cache_dtype))
    last = lnp.squeeze(lnp.take_along_axis(hidden, lnp.expand_dims(lengths - 1, (1, 2)), axis=1), 1)
    logits = model.logits(last)
    seen = None
    if penalised:
        rows = lnp.expand_dims(lnp.arange(ids.shape[0]), 1)
        inside = lnp.arange(ids.shape[1]) < lnp.expand_dims(lengths, 1)
        nothing: Any = lnp.zeros(logits.shape, "int32")
        counts = nothing.at[rows, ids].add(lnp.astype(inside, "int32"))
        seen = counts > 0
    return _drawn(logits, {"cache": cache, "keys": keys, "step": lnp.int32(0), "seen": seen}, sampling)


def _read(model: Any, ids: Any, lengths: Any, cache: Any) -> tuple[Any, Any]:
    """The states of the prompts, and the cache after the last token of each, as if there were no padding.

    New tokens take the places of padding in a key-value cache. Models that would remember it, or whose positions depend
    on how many there are, are told.
    """
    told = (lengths,) if getattr(model, "takes_counts", False) else ()
    hidden, cache = model.extend(ids, cache, *told)
    return hidden, cache.replace(lengths=lengths)


@partial(compile, static_argnames=("sampling",), donate_argnames=("state",))
def _decode(model: Any, token: Any, state: dict[str, Any], sampling: Sampling) -> tuple[Any, dict[str, Any]]:
    """The token after `token` in each row; the state's memory is that of the next state."""
    return _next(model, token, state, sampling)


def _next(model: Any, token: Any, state: dict[str, Any], sampling: Sampling) -> tuple[Any, dict[str, Any]]:
    hidden, cache = model.extend(lnp.expand_dims(token, 1), state["cache"])
    logits = model.logits(lnp.squeeze(hidden, 1))
    return _drawn(logits, {**state, "cache": cache, "step": state["step"] + 1}, sampling)


@partial(compile, static_argnames=("sampling", "count"), donate_argnames=("state",))
def _decode_several(
    model: Any, token: Any, state: dict[str, Any], sampling: Sampling, count: int
) -> tuple[Any, Any, dict[str, Any]]:
    """The `count` tokens after `token` in each row [count, B], the last of them [B], and the next state."""

    def turn(carried: tuple[Any, dict[str, Any]], _: None) -> tuple[tuple[Any, dict[str, Any]], Any]:
        drawn = _next(model, *carried, sampling)
        return drawn, drawn[0]

    (last, state), made = scan(turn, (token, state), None, length=count)
    return made, last, state


def _drawn(logits: Any, state: dict[str, Any], sampling: Sampling) -> tuple[Any, dict[str, Any]]:
    keys = vmap(random.fold_in, in_axes=(0, None))(state["keys"], state["step"])
    token = sample(logits, keys, sampling, state["seen"])
    if state["seen"] is not None:
        state = {**state, "seen": state["seen"].at[lnp.arange(token.shape[0]), token].set(True)}
    return token, state
