"""Which tokens may come next in a transcript."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.models.whisper.settings import TranscriptionSettings
from lavax.nn.functional import log_softmax, logsumexp
from lavax.nn.modules.module import Module, field
from lavax.tracer.values.value import Value


class Written(Module):
    """What the rules must know of the tokens so far, [B] each."""

    last: Any  # the last token
    before: Any  # whether the one before it was a timestamp; true if there is none
    timestamp: Any  # the last timestamp, or 0

    @classmethod
    def nothing(cls, batch: int) -> Written:
        """The state before the first token."""
        return cls(lnp.full(batch, -1, "int32"), lnp.ones(batch, bool), lnp.zeros(batch, "int32"))


class Rules(Module):
    """Scores of tokens that may not come next become -inf.

    Some tokens never come, some not first. With timestamps, a text begins with one, they come in pairs except before
    the end, and never fall; one must come if together they are likelier than every other token (Radford et al. 2022,
    and the code published with it).
    """

    never: Any
    never_first: Any
    timestamps: bool = field(static=True)
    first_timestamp: int = field(static=True)
    latest_start: int | None = field(static=True)  # the greatest timestamp that a text begins with
    end: int = field(static=True)
    no_speech: int | None = field(static=True)  # the token that stands for silence

    def __init__(self, settings: TranscriptionSettings, vocabulary: int, timestamps: bool) -> None:
        never, never_first = np.zeros(vocabulary, bool), np.zeros(vocabulary, bool)
        never[list(settings.suppress_tokens)] = True
        never_first[list(settings.begin_suppress_tokens)] = True
        first, limit = settings.first_timestamp, settings.max_initial_timestamp_index
        if timestamps:
            never[settings.no_timestamps_token_id] = True
        self.never, self.never_first = lnp.asarray(never), lnp.asarray(never_first)
        self.timestamps = timestamps
        self.first_timestamp = vocabulary if first is None else first
        self.latest_start = None if first is None or limit is None else first + limit
        self.end, self.no_speech = settings.eos_token_id, settings.no_speech_token

    def allowed(self, scores: Value, written: Written) -> Value:
        """Scores [B, V] in float32, with -inf for what may not follow."""
        forbidden = self.never | (self.never_first & _column(written.last < 0))
        if not self.timestamps:
            return _without(scores, forbidden)
        return self._timestamp_if_likely(_without(scores, forbidden | self._out_of_turn(scores.shape[-1], written)))

    def after(self, token: Value, written: Written) -> Written:
        """The state after one more token [B]."""
        is_timestamp = token >= self.first_timestamp
        before = (written.last >= self.first_timestamp) | (written.last < 0)
        return Written(token, before, lnp.where(is_timestamp, token, written.timestamp))

    def _out_of_turn(self, vocabulary: int, written: Written) -> Value:
        token = lnp.arange(vocabulary, dtype="int32")
        is_timestamp, is_first = token >= self.first_timestamp, _column(written.last < 0)
        after_timestamp, before = _column(written.last >= self.first_timestamp), _column(written.before)
        second_wanted = after_timestamp & ~before
        least = _column(written.timestamp) + lnp.where(second_wanted, 0, 1)  # no segment is empty
        too_late = False if self.latest_start is None else token > self.latest_start
        found: Value = (
            (after_timestamp & before & is_timestamp)
            | (second_wanted & (token < self.end))
            | (is_timestamp & (token < least))
            | (is_first & (~is_timestamp | too_late))
        )
        return found

    def _timestamp_if_likely(self, scores: Value) -> Value:
        chances = log_softmax(scores)
        texts, times = chances[:, : self.first_timestamp], chances[:, self.first_timestamp :]
        likely = logsumexp(times, axis=-1) > lnp.max(texts, axis=-1)
        is_text = lnp.arange(scores.shape[-1], dtype="int32") < self.first_timestamp
        return _without(scores, is_text & _column(likely))


def _without(scores: Value, forbidden: Any) -> Value:
    found: Value = lnp.where(forbidden, -lnp.inf, scores)
    return found


def _column(x: Value) -> Value:
    return lnp.expand_dims(x, 1)
