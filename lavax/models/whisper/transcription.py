"""Text from sound of any length, in windows of 30 seconds."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.models.whisper.audio import HOP, SAMPLE_RATE, log_mel_spectrogram
from lavax.models.whisper.rules import Rules
from lavax.models.whisper.settings import TranscriptionSettings
from lavax.models.whisper.whisper import Whisper
from lavax.models.whisper.writing import Attempts, written
from lavax.tracer.compiled.compile import compile
from lavax.tracer.values.value import Value

_STRIDE = 2  # columns of a spectrogram for one step of a timestamp


@dataclass(frozen=True)
class Segment:
    """A piece of a transcript: its times in seconds, its tokens, timestamps among them, and its text."""

    start: float
    end: float
    tokens: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class Transcript:
    """What was said: `text` in all, and in `segments`. `language` is the token of the language, if there are several.

    Without a tokenizer, texts are empty, and only the tokens are there.
    """

    text: str
    segments: tuple[Segment, ...]
    language: int | None


def transcribe(
    model: Whisper,
    samples: Any,
    settings: TranscriptionSettings | None = None,
    *,
    tokenizer: Any = None,
    language: str | None = None,
    task: str | None = None,
    timestamps: bool = False,
    max_new_tokens: int | None = None,
    temperature: float | Sequence[float] = 0.0,
    compression_ratio_threshold: float | None = None,
    logprob_threshold: float | None = None,
    no_speech_threshold: float | None = None,
    seed: int = 0,
) -> Transcript:
    """The text of a recording: `samples` [L] between -1 and 1, 16,000 a second.

        settings = TranscriptionSettings.of_folder(folder)
        tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
        print(transcribe(models.load(folder), samples, settings, tokenizer=tokenizer).text)

    `settings` are special tokens, by default those of the model's configuration. `language`, such as "en", is found by
    the model if neither it nor the settings say; `task` is "transcribe" or "translate". With `timestamps`, the model
    says when each segment begins and ends, and the next window begins where the last whole segment ends; without, a
    window is a segment. At most `max_new_tokens` are written for a window.

    At `temperature` 0, each token is the most likely one that may come; at higher ones it is drawn, depending on
    `seed`. Of several temperatures, such as (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), the next one is tried if the text repeats
    itself, so that zlib makes its tokens smaller by more than `compression_ratio_threshold` (such as 1.35), or if the
    mean logarithm of their probabilities is below `logprob_threshold` (such as -1). If the latter holds, and silence is
    likelier than `no_speech_threshold` (such as 0.6), the window has no text (Radford et al. 2022, section 4.5).
    """
    tried = tuple(temperature) if isinstance(temperature, Sequence) else (float(temperature),)
    attempts = Attempts(tried, compression_ratio_threshold, logprob_threshold, no_speech_threshold)
    known = TranscriptionSettings.of_model(model.config) if settings is None else settings
    given = np.asarray(samples, np.float32)
    if given.ndim != 1 or not given.size:
        raise ValueError(f"transcribe: samples are one recording [L], got the shape {list(given.shape)}")
    if no_speech_threshold is not None and known.no_speech_token is None:
        raise ValueError("transcribe: generation_config.json has no no_timestamps_token_id; silence stands before it")
    frames = model.config.frames
    columns, spectrogram = -(-given.size // HOP), _spectrogram(given, frames, model.config.num_mel_bins)
    token = known.forced_language if language is None else known.language_token(language)
    if token is None and known.lang_to_id:
        languages = np.array(sorted(known.lang_to_id.values()), np.int32)
        token = int(_detect(model, spectrogram[:, :frames], languages, known.decoder_start_token_id))
    prompt = known.prompt(token, task, timestamps)
    room = _room(model, prompt, max_new_tokens)
    rules = Rules(known, model.config.vocab_size, timestamps)
    segments: list[Segment] = []
    place = 0
    while place < columns:
        window = np.ascontiguousarray(spectrogram[:, place : place + frames])
        length = min(frames, columns - place)
        tokens = written(model, window, prompt, rules, room, attempts, random.fold_in(random.key(seed), place))
        if tokens is None:
            place += length
            continue
        pieces, passed = _pieces(tokens, known.first_timestamp if timestamps else None, length)
        segments += [_segment(*piece, place, known.eos_token_id, tokenizer) for piece in pieces]
        place += passed
    return Transcript("".join(segment.text for segment in segments), tuple(segments), token)


def _room(model: Whisper, prompt: list[int], max_new_tokens: int | None) -> int:
    most: int = model.config.max_target_positions - len(prompt)
    if max_new_tokens is None:
        return most
    if not 0 < max_new_tokens <= most:
        raise ValueError(f"transcribe: max_new_tokens must be between 1 and {most}, got {max_new_tokens}")
    return max_new_tokens


def _spectrogram(samples: np.ndarray, frames: int, mel_bins: int) -> np.ndarray:
    """The spectrogram of a recording, [mel_bins, columns], and zeros, so that every window is whole.

    A recording of less than a window ends in silence, as those that Whisper was trained on.
    """
    window = frames * HOP
    padded = np.zeros(-(-samples.size // window) * window, np.float32)
    padded[: samples.size] = samples
    made = np.asarray(_compiled_spectrogram(padded, mel_bins))
    heard = made if samples.size <= window else made[:, : -(-samples.size // HOP)]
    return np.pad(heard, ((0, 0), (0, frames)))


@partial(compile, static_argnames=("mel_bins",))
def _compiled_spectrogram(samples: Any, mel_bins: int) -> Value:
    return log_mel_spectrogram(samples, mel_bins)


@partial(compile, static_argnames=("start",))
def _detect(model: Any, window: Any, languages: Any, start: int) -> Value:
    """The likeliest of `languages` [L] to follow the first token."""
    hidden = model.decoder(lnp.full((1, 1), start, "int32"), model.encoder(window[None]))
    found: Value = languages[lnp.argmax(model.logits(hidden[0, 0])[languages])]
    return found


# Tokens with the columns of the window at which they begin and end.
_Piece = tuple[list[int], int, int]


def _pieces(tokens: list[int], first_timestamp: int | None, length: int) -> tuple[list[_Piece], int]:
    """The segments of a window of `length` columns, and the columns that they pass over.

    Texts with timestamps are cut between two of them. What comes after the last cut is heard again in the next window.
    """
    if first_timestamp is None:
        return [(tokens, 0, length)], length
    times = [_STRIDE * (token - first_timestamp) if token >= first_timestamp else None for token in tokens]
    cuts = [index + 1 for index in range(len(tokens) - 1) if times[index] is not None and times[index + 1] is not None]
    if not cuts:
        last = next((time for time in reversed(times) if time is not None), None)
        return [(tokens, 0, last or length)], length
    ends_alone = times[-1] is not None and times[-2] is None  # nothing is said after it
    bounds = [0, *cuts, *([len(tokens)] if ends_alone else [])]
    pieces = [
        (tokens[left:right], int(times[left] or 0), int(times[right - 1] or 0))
        for left, right in pairwise(bounds)
    ]
    return pieces, length if ends_alone else max(pieces[-1][2], 1)


def _segment(tokens: list[int], start: int, end: int, place: int, first_special: int, tokenizer: Any) -> Segment:
    said = [token for token in tokens if token < first_special]
    text = "" if tokenizer is None else tokenizer.decode(said)
    seconds = HOP / SAMPLE_RATE
    return Segment((place + start) * seconds, (place + end) * seconds, tuple(tokens), text)
