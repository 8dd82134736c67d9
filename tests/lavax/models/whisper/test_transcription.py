"""Transcripts against transformers, and how windows follow one another."""
from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax import models
from lavax.models.whisper.audio import log_mel_spectrogram
from lavax.models.whisper.config import WhisperConfig
from lavax.models.whisper.rules import Rules, Written
from lavax.models.whisper.settings import TranscriptionSettings
from lavax.models.whisper.transcription import _pieces, transcribe
from lavax.models.whisper.whisper import FAMILY
from tests.lavax.models.seeded import seeded_model
from tests.lavax.models.whisper.test_whisper import SMALL, checkpoint

pytestmark = pytest.mark.usefixtures("reference_backend")

# As in the published models: texts, the end, the start, languages, tasks, no timestamps, timestamps.
SETTINGS: dict[str, Any] = dict(
    eos_token_id=70, decoder_start_token_id=71, lang_to_id={"<|en|>": 72, "<|de|>": 73, "<|fr|>": 74},
    task_to_id={"translate": 75, "transcribe": 76}, no_timestamps_token_id=84, suppress_tokens=[3, 17, 41, 72, 76],
    begin_suppress_tokens=[5, 70], max_initial_timestamp_index=6, is_multilingual=True, pad_token_id=70,
    bos_token_id=70, max_length=16,
)  # fmt: skip
WINDOW = 20 * 160  # samples


def sound(samples: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    tones = np.sin(np.arange(samples)[:, None] * generator.uniform(0.01, 0.8, 3)).sum(axis=1)
    return (0.2 * tones + 0.05 * generator.standard_normal(samples)).astype(np.float32)


def settings(tmp_path: Path) -> TranscriptionSettings:
    (tmp_path / "generation_config.json").write_text(json.dumps(SETTINGS))
    return TranscriptionSettings.of_folder(tmp_path)


@pytest.mark.parametrize("timestamps", [False, True])
@pytest.mark.parametrize("language", [None, "de"])
def test_tokens_are_those_of_transformers(tmp_path: Path, timestamps: bool, language: str | None) -> None:
    oracle = checkpoint(tmp_path)
    import torch
    import transformers

    known, model = settings(tmp_path), models.load(tmp_path)
    for seed in range(3):
        samples = sound(WINDOW, seed)
        found = oracle.generate(
            torch.from_numpy(np.array(log_mel_spectrogram(samples, 8)))[None],
            generation_config=transformers.GenerationConfig(**SETTINGS),
            language=language,
            task="transcribe",
            return_timestamps=timestamps,
            return_segments=timestamps,
            return_dict_in_generate=timestamps,
        )
        made = transcribe(model, samples, known, language=language, timestamps=timestamps)
        assert [list(segment.tokens) for segment in made.segments] == _segments(found, timestamps)


def test_segments_of_long_recordings_are_those_of_transformers(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path)
    import torch
    import transformers

    known, model = settings(tmp_path), models.load(tmp_path)
    for seed, columns in enumerate((50, 57, 85)):
        samples = sound(160 * columns, seed)
        found = oracle.generate(
            torch.from_numpy(np.array(log_mel_spectrogram(samples, 8)))[None],
            generation_config=transformers.GenerationConfig(**SETTINGS),
            attention_mask=torch.ones(1, columns),
            language="en",
            task="transcribe",
            return_timestamps=True,
            return_segments=True,
            return_dict_in_generate=True,
            condition_on_prev_tokens=False,
            temperature=0.0,
        )
        made = transcribe(model, samples, known, language="en", timestamps=True).segments
        assert len(made) > 2
        assert [list(segment.tokens) for segment in made] == _segments(found, timestamps=True)
        for ours, theirs in zip(made, found["segments"][0], strict=True):
            assert (ours.start, ours.end) == pytest.approx((float(theirs["start"]), float(theirs["end"])))


def _segments(found: Any, timestamps: bool) -> list[list[int]]:
    """The tokens of each segment. Theirs may end with the first timestamp of what is heard again."""
    if not timestamps:
        return [[token for token in found[0].tolist() if token != SETTINGS["eos_token_id"]]]
    whole = [segment["tokens"].tolist() for segment in found["segments"][0]]
    return [tokens[:-1] if min(tokens[-2:]) > SETTINGS["no_timestamps_token_id"] else tokens for tokens in whole]


def small_model() -> Any:
    given = {name: value for name, value in SMALL.items() if name not in ("pad_token_id", "bos_token_id")}
    return seeded_model(FAMILY, WhisperConfig(**given))


# Of transformers 5.23.0 and torch 2.13.0: the tokens of one window, with the language that the model finds.
RECORDED: dict[bool, list[int]] = {
    False: [39, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27],
    True: [91, 27, 39, 27, 27, 27, 27, 27, 39, 27, 39, 27, 27],
}


@pytest.mark.parametrize("timestamps", [False, True])
def test_recorded_tokens(tmp_path: Path, timestamps: bool) -> None:
    made = transcribe(small_model(), sound(WINDOW), settings(tmp_path), timestamps=timestamps)
    assert [token for segment in made.segments for token in segment.tokens] == RECORDED[timestamps]


def test_a_long_recording_is_heard_in_windows(tmp_path: Path) -> None:
    model, known, samples = small_model(), settings(tmp_path), sound(int(2.5 * WINDOW))
    made = transcribe(model, samples, known, language="en")
    assert [segment.start for segment in made.segments] == pytest.approx([0, 0.2, 0.4])
    assert [segment.end for segment in made.segments] == pytest.approx([0.2, 0.4, 0.5])
    assert made.language == 72

    timed = transcribe(model, samples, known, language="en", timestamps=True).segments
    assert timed[0].start == 0 or timed[0].tokens[0] > 85
    assert all(first.end <= second.start + 1e-9 for first, second in pairwise(timed))
    assert timed[-1].end <= 0.61


# Texts are 1 to 9, timestamps from 20 on.
@pytest.mark.parametrize(
    ("tokens", "wanted", "passed"),
    [
        ([20, 1, 23], [([20, 1, 23], 0, 6)], 30),  # one segment: the rest is silence
        ([20, 1, 2], [([20, 1, 2], 0, 30)], 30),
        ([1, 2], [([1, 2], 0, 30)], 30),
        ([20, 1, 23, 23, 2, 27], [([20, 1, 23], 0, 6), ([23, 2, 27], 6, 14)], 30),  # ends alone: then silence
        ([20, 1, 23, 24, 2], [([20, 1, 23], 0, 6)], 6),  # an unfinished one is heard again
        ([20, 1, 23, 24, 2, 27, 27], [([20, 1, 23], 0, 6), ([24, 2, 27], 8, 14)], 14),
        ([], [([], 0, 30)], 30),
    ],
)
def test_windows_are_cut_between_timestamps(tokens: list[int], wanted: list[Any], passed: int) -> None:
    assert _pieces(tokens, 20, 30) == (wanted, passed)


def test_rules_of_timestamps(tmp_path: Path) -> None:
    """Which tokens may follow, by kind; scores are such that no timestamp is likelier than texts."""
    known = settings(tmp_path)
    rules = Rules(known, 96, timestamps=True)
    scores = np.where(np.arange(96) < 85, 10.0, 0.0).astype(np.float32)[None]

    def follow(*tokens: int) -> set[int]:
        written = Written.nothing(1)
        for token in tokens:
            written = rules.after(lnp.asarray([token], "int32"), written)
        return set(np.flatnonzero(np.isfinite(np.asarray(rules.allowed(lnp.asarray(scores), written))[0])).tolist())

    texts = set(range(70)) - {3, 17, 41}
    specials = {70, 71, 73, 74, 75, *range(77, 84)}
    assert follow() == set(range(85, 92))  # the first is a timestamp up to 6
    assert follow(85) == texts | specials  # after it comes text
    assert follow(85, 1) == texts | specials | set(range(86, 96))
    assert follow(85, 1, 88) == specials | set(range(88, 96))  # a pair, or the end
    assert follow(85, 1, 88, 88) == texts | specials
    assert follow(85, 1, 88, 88, 1) == texts | specials | set(range(89, 96))


def test_the_tokenizer_sees_texts_alone(tmp_path: Path) -> None:
    class Tokens:
        def decode(self, ids: list[int]) -> str:
            return "".join(f" {token}" for token in ids)

    made = transcribe(small_model(), sound(WINDOW), settings(tmp_path), tokenizer=Tokens(), timestamps=True)
    said = [token for segment in made.segments for token in segment.tokens if token < 70]
    assert made.text == "".join(f" {token}" for token in said)


def test_old_settings_force_tokens() -> None:
    english = TranscriptionSettings(71, 70, 84, forced_decoder_ids=((1, 84),))
    assert english.prompt(None, None, timestamps=False) == [71, 84]
    assert english.prompt(None, None, timestamps=True) == [71]
    several = TranscriptionSettings(71, 70, 84, lang_to_id={"<|en|>": 72}, task_to_id={"transcribe": 76},
                                    forced_decoder_ids=((1, 72), (2, 76)))  # fmt: skip
    assert several.prompt(several.forced_language, None, timestamps=False) == [71, 72, 76, 84]


def test_what_a_model_lacks_is_named(tmp_path: Path) -> None:
    model, known = small_model(), settings(tmp_path)
    with pytest.raises(ValueError, match="no language 'xx'; there are en, de, fr"):
        transcribe(model, sound(320), known, language="xx")
    with pytest.raises(ValueError, match="no task 'sing'; there are translate, transcribe"):
        transcribe(model, sound(320), known, task="sing")
    with pytest.raises(ValueError, match="no no_timestamps_token_id"):
        transcribe(model, sound(320), timestamps=True)
    with pytest.raises(ValueError, match="no languages, and no task 'translate'"):
        transcribe(model, sound(320), task="translate")
    with pytest.raises(ValueError, match="max_new_tokens must be between 1 and 12, got 13"):
        transcribe(model, sound(320), known, max_new_tokens=13)
    with pytest.raises(ValueError, match=r"samples are one recording \[L\], got the shape \[2, 320\]"):
        transcribe(model, np.zeros((2, 320)), known)
