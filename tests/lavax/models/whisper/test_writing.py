"""Windows that are written again at higher temperatures, or are silent, against transformers."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lavax import models
from lavax.models.whisper import writing
from lavax.models.whisper.audio import log_mel_spectrogram
from lavax.models.whisper.settings import TranscriptionSettings
from lavax.models.whisper.transcription import transcribe
from lavax.models.whisper.writing import Attempts, Draft, compression_ratio
from tests.lavax.models.whisper.test_transcription import SETTINGS, WINDOW, settings, small_model, sound
from tests.lavax.models.whisper.test_whisper import checkpoint

pytestmark = pytest.mark.usefixtures("reference_backend")

COLUMNS = 80  # four windows
THRESHOLDS = dict(compression_ratio_threshold=1.35, logprob_threshold=-1.0, no_speech_threshold=0.6)


def drafts_of(monkeypatch: pytest.MonkeyPatch, model: Any, samples: np.ndarray, known: Any, **more: Any) -> list[Draft]:
    """All attempts of a transcription, in order."""
    made: list[Draft] = []
    draft = writing._draft

    def noted(*arguments: Any) -> Draft:
        made.append(draft(*arguments))
        return made[-1]

    monkeypatch.setattr(writing, "_draft", noted)
    transcribe(model, samples, known, language="en", **more)
    return made


def test_measures_of_drafts_are_those_of_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = checkpoint(tmp_path)
    import torch
    import transformers

    theirs: list[tuple[float, float, float]] = []

    def noted(sequence: Any, outputs: Any, index: int, processors: Any, *rest: Any) -> tuple[bool, bool]:
        _, vocabulary, temperature = rest
        logprob = oracle._retrieve_avg_logprobs(outputs[index]["scores"], sequence, temperature)
        silence = next(each for each in processors if hasattr(each, "no_speech_prob")).no_speech_prob[index]
        ratio = oracle._retrieve_compression_ratio(sequence, vocabulary)
        theirs.append((float(logprob), ratio, float(silence)))
        return False, False

    monkeypatch.setattr(oracle, "_need_fallback", noted)
    samples = sound(160 * COLUMNS, 2)
    oracle.generate(
        torch.from_numpy(np.array(log_mel_spectrogram(samples, 8)))[None],
        generation_config=transformers.GenerationConfig(**SETTINGS),
        attention_mask=torch.ones(1, COLUMNS),
        language="en",
        task="transcribe",
        return_timestamps=True,
        condition_on_prev_tokens=False,
        temperature=0.0,
        **THRESHOLDS,
    )
    ours = drafts_of(monkeypatch, models.load(tmp_path), samples, settings(tmp_path), timestamps=True)
    assert len(ours) == len(theirs) > 2
    for draft, wanted in zip(ours, theirs, strict=True):
        assert (draft.logprob, draft.compression, draft.no_speech) == pytest.approx(wanted, rel=1e-4)


def test_drafts_that_are_poor_are_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, known, samples = small_model(), settings(tmp_path), sound(WINDOW)
    heats = (0.0, 0.5, 1.0)
    all_poor = drafts_of(monkeypatch, model, samples, known, temperature=heats, logprob_threshold=0.0)
    assert len(all_poor) == 3 and len({tuple(draft.tokens) for draft in all_poor}) > 1
    made = transcribe(model, samples, known, language="en", temperature=heats, logprob_threshold=0.0)
    assert made.segments[0].tokens == tuple(all_poor[-1].tokens)


def test_the_first_good_draft_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, known, samples = small_model(), settings(tmp_path), sound(WINDOW)
    good = drafts_of(monkeypatch, model, samples, known, temperature=(0.0, 1.0), logprob_threshold=-50.0)
    assert len(good) == 1
    again = drafts_of(monkeypatch, model, samples, known, temperature=(0.0, 1.0), compression_ratio_threshold=0.01)
    assert len(again) == 2


def test_the_seed_decides_what_is_drawn(tmp_path: Path) -> None:
    model, known, samples = small_model(), settings(tmp_path), sound(WINDOW)
    made = {
        seed: transcribe(model, samples, known, language="en", temperature=1.0, seed=seed).segments[0].tokens
        for seed in range(4)
    }
    assert len(set(made.values())) > 1
    assert transcribe(model, samples, known, language="en", temperature=1.0, seed=2).segments[0].tokens == made[2]


def test_silent_windows_have_no_text(tmp_path: Path) -> None:
    model, known, samples = small_model(), settings(tmp_path), sound(2 * WINDOW)
    nothing = transcribe(
        model, samples, known, language="en", logprob_threshold=0.0, no_speech_threshold=0.0, temperature=(0.0, 0.4)
    )
    assert nothing.segments == () and nothing.text == ""
    all_of_it = transcribe(model, samples, known, language="en", logprob_threshold=0.0, no_speech_threshold=1.0)
    assert len(all_of_it.segments) == 2


def test_what_makes_a_draft_poor() -> None:
    draft = Draft([1], logprob=-0.8, compression=1.2, no_speech=0.7)
    assert not Attempts().is_poor(draft) and not Attempts().is_silent(draft)
    assert Attempts(logprob_threshold=-0.5).is_poor(draft) and not Attempts(logprob_threshold=-1.0).is_poor(draft)
    assert Attempts(compression_ratio_threshold=1.1).is_poor(draft)
    assert Attempts(logprob_threshold=-0.5, no_speech_threshold=0.6).is_silent(draft)
    assert not Attempts(logprob_threshold=-1.0, no_speech_threshold=0.6).is_silent(draft)
    assert compression_ratio([7] * 200, 1000) > 20 > 1 > compression_ratio([1, 2], 1000)


def test_bad_arguments_are_named() -> None:
    model, samples = small_model(), sound(320)
    with pytest.raises(ValueError, match="temperature is a number or several, none below 0, got"):
        transcribe(model, samples, temperature=(0.0, -1.0))
    with pytest.raises(ValueError, match="temperature is a number or several"):
        transcribe(model, samples, temperature=())
    with pytest.raises(ValueError, match="no_speech_threshold needs a logprob_threshold"):
        transcribe(model, samples, no_speech_threshold=0.5)
    with pytest.raises(ValueError, match="no no_timestamps_token_id; silence stands before it"):
        transcribe(model, samples, TranscriptionSettings(71, 70), no_speech_threshold=0.5, logprob_threshold=-1.0)
