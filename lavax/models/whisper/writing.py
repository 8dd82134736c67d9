"""The tokens of one window of sound, written again at higher temperatures until they are good enough."""
from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32, int32
from lavax.models.whisper.rules import Rules, Written
from lavax.models.whisper.whisper import Whisper
from lavax.nn.functional import log_softmax, softmax
from lavax.numpy._core.operands import cast
from lavax.tracer.compiled.compile import compile
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class Draft:
    """What a window's sound was taken for.

    `tokens` are without the end. `logprob` is the mean logarithm of the probabilities of all tokens, the end among
    them; `compression` how many times smaller zlib makes their bytes; `no_speech` the probability that nobody speaks.
    """

    tokens: list[int]
    logprob: float
    compression: float
    no_speech: float


@dataclass(frozen=True)
class Attempts:
    """At which temperatures a window is written, one after another, until the draft is not poor.

    A draft is poor if its tokens repeat so often that `compression` exceeds `compression_ratio_threshold`, or if
    `logprob` is below `logprob_threshold`. A window is silent, and has no text, if `logprob` is below its threshold and
    `no_speech` above `no_speech_threshold` (Radford et al. 2022, section 4.5). A threshold of None is no condition.
    """

    temperatures: tuple[float, ...] = (0.0,)
    compression_ratio_threshold: float | None = None
    logprob_threshold: float | None = None
    no_speech_threshold: float | None = None

    def __post_init__(self) -> None:
        if not self.temperatures or not all(each >= 0 for each in self.temperatures):
            raise ValueError(f"transcribe: temperature is a number or several, none below 0, got {self.temperatures}")
        if self.no_speech_threshold is not None and self.logprob_threshold is None:
            raise ValueError("transcribe: no_speech_threshold needs a logprob_threshold as well")

    def is_silent(self, draft: Draft) -> bool:
        """Whether nobody speaks in the window."""
        return self.no_speech_threshold is not None and self._is_unlikely(draft) and (
            draft.no_speech > self.no_speech_threshold
        )

    def is_poor(self, draft: Draft) -> bool:
        """Whether the window should be written again."""
        most = self.compression_ratio_threshold
        return self._is_unlikely(draft) or (most is not None and draft.compression > most)

    def _is_unlikely(self, draft: Draft) -> bool:
        return self.logprob_threshold is not None and draft.logprob < self.logprob_threshold


def written(
    model: Whisper, window: np.ndarray, prompt: Sequence[int], rules: Rules, room: int, attempts: Attempts, key: Any
) -> list[int] | None:
    """The tokens of a window, at most `room`, up to its end; None if the window is silent."""
    for number, temperature in enumerate(attempts.temperatures):
        draft = _draft(model, window, prompt, rules, room, temperature, random.fold_in(key, number))
        if attempts.is_silent(draft):
            return None
        if not attempts.is_poor(draft):
            break
    return draft.tokens


def _draft(
    model: Whisper, window: np.ndarray, prompt: Sequence[int], rules: Rules, room: int, temperature: float, key: Any
) -> Draft:
    """One attempt. The host reads one step behind the device, which so never waits."""
    heat = None if temperature == 0 else lnp.float32(temperature)
    (token, logprob), no_speech, state = _first(model, window, np.array([prompt], np.int32), rules, heat, key)
    tokens: list[int] = []
    logprobs = []
    for step in range(room):
        following = None
        if step + 1 < room:
            following, state = _next(model, token, state, rules, heat)
        tokens.append(int(np.asarray(token)[0]))
        logprobs.append(logprob)
        if tokens[-1] == rules.end or following is None:
            break
        token, logprob = following
    mean = sum(float(np.asarray(each)[0]) for each in logprobs) / len(logprobs)
    said = tokens[:-1] if tokens[-1] == rules.end else tokens
    return Draft(said, mean, compression_ratio(tokens, model.config.vocab_size), float(np.asarray(no_speech)[0]))


def compression_ratio(tokens: Sequence[int], vocabulary: int) -> float:
    """How many times smaller zlib makes the bytes of tokens, as many each as the vocabulary needs."""
    size = int(math.log2(vocabulary) / 8) + 1
    whole = b"".join(token.to_bytes(size, "little") for token in tokens)
    return len(whole) / len(zlib.compress(whole))


@compile
def _first(
    model: Any, window: Any, prompt: Any, rules: Rules, heat: Any, key: Any
) -> tuple[Any, Value, dict[str, Any]]:
    """The first token, the probability of silence, and the state for more."""
    cache = model.empty_cache(window[None], model.config.max_target_positions)
    hidden, cache = model.extend(prompt, cache)
    chances = softmax(cast(model.logits(hidden[:, 0]), float32))  # at the token that starts every text
    no_speech = lnp.zeros(1) if rules.no_speech is None else chances[:, rules.no_speech]
    state = {"cache": cache, "written": Written.nothing(1), "step": lnp.int32(0), "key": key}
    found, state = _chosen(model.logits(hidden[:, -1]), state, rules, heat)
    return found, no_speech, state


@partial(compile, donate_argnames=("state",))
def _next(model: Any, token: Any, state: dict[str, Any], rules: Rules, heat: Any) -> tuple[Any, dict[str, Any]]:
    hidden, cache = model.extend(token[:, None], state["cache"])
    return _chosen(model.logits(hidden[:, -1]), {**state, "cache": cache}, rules, heat)


def _chosen(scores: Value, state: dict[str, Any], rules: Rules, heat: Any) -> tuple[Any, dict[str, Any]]:
    """A token that may come next, the logarithm of its probability, and the state after it."""
    allowed = rules.allowed(cast(scores, float32), state["written"])
    drawn = allowed
    if heat is not None:
        drawn = allowed / heat + random.gumbel(random.fold_in(state["key"], state["step"]), allowed.shape)
    token = cast(lnp.argmax(drawn, axis=-1), int32)
    logprob = lnp.take_along_axis(log_softmax(allowed), token[:, None], axis=-1)[:, 0]
    return (token, logprob), {**state, "written": rules.after(token, state["written"]), "step": state["step"] + 1}
