"""What a Whisper model's generation_config.json says: special tokens, and tokens that it never writes."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Self

from lavax.base.quick_dataclasses import dataclass
from lavax.io.json_files import read_json
from lavax.models.whisper.config import WhisperConfig


@dataclass(frozen=True)
class TranscriptionSettings:
    """Special tokens of a model, by the names of its generation_config.json.

    `lang_to_id` and `task_to_id` name languages, as "<|en|>", and tasks; English-only models have none.
    `forced_decoder_ids` are pairs of a position and the token there, or None for one that the model finds.
    """

    decoder_start_token_id: int
    eos_token_id: int
    no_timestamps_token_id: int | None = None
    suppress_tokens: tuple[int, ...] = ()
    begin_suppress_tokens: tuple[int, ...] = ()
    max_initial_timestamp_index: int | None = None
    lang_to_id: Mapping[str, int] = field(default_factory=dict)
    task_to_id: Mapping[str, int] = field(default_factory=dict)
    forced_decoder_ids: tuple[tuple[int, int | None], ...] = ()
    language: str | None = None
    task: str | None = None

    @classmethod
    def of_model(cls, config: WhisperConfig) -> Self:
        """What the model's own configuration has."""
        return cls(config.decoder_start_token_id, config.eos_token_id)

    @classmethod
    def of_folder(cls, folder: str | os.PathLike[str]) -> Self:
        """The settings of generation_config.json in `folder`. Raises FileNotFoundError if there is none."""
        data = read_json(Path(folder) / "generation_config.json")
        given = {name: data[name] for name in cls.__dataclass_fields__ if data.get(name) is not None}
        return cls(**{name: _as_tuples(value) for name, value in given.items()})

    @property
    def first_timestamp(self) -> int | None:
        """The token of 0.00 seconds; each after it stands for 0.02 seconds more."""
        return None if self.no_timestamps_token_id is None else self.no_timestamps_token_id + 1

    @property
    def no_speech_token(self) -> int | None:
        """The token whose probability at the start is that of silence; it stands before that for no timestamps."""
        return None if self.no_timestamps_token_id is None else self.no_timestamps_token_id - 1

    @property
    def forced_language(self) -> int | None:
        """The token of the language that the settings prescribe."""
        if self.language is not None:
            return self.language_token(self.language)
        return dict(self.forced_decoder_ids).get(1) if self.lang_to_id else None

    def language_token(self, language: str) -> int:
        """The token of a language such as "en" or "<|en|>". Raises ValueError if the model has none."""
        for name in (language, f"<|{language}|>"):
            if name in self.lang_to_id:
                return self.lang_to_id[name]
        known = ", ".join(name.strip("<|>") for name in self.lang_to_id) or "none: the model knows one language"
        raise ValueError(f"transcribe: no language {language!r}; there are {known}")

    def prompt(self, language: int | None, task: str | None, timestamps: bool) -> list[int]:
        """The tokens that a text starts with. Raises ValueError for what the model does not have."""
        if timestamps and self.no_timestamps_token_id is None:
            raise ValueError("transcribe: generation_config.json has no no_timestamps_token_id, so no timestamps")
        made = [self.decoder_start_token_id, *self._middle(language, task)]
        return made if timestamps or self.no_timestamps_token_id is None else [*made, self.no_timestamps_token_id]

    def _middle(self, language: int | None, task: str | None) -> list[int]:
        chosen = task or self.task or "transcribe"
        if not self.lang_to_id or language is None:
            if task not in (None, "transcribe"):
                raise ValueError(f"transcribe: this model has no languages, and no task {task!r}")
            return [token for _, token in self.forced_decoder_ids if token not in (None, self.no_timestamps_token_id)]
        if chosen not in self.task_to_id:
            raise ValueError(f"transcribe: no task {chosen!r}; there are {', '.join(self.task_to_id) or 'none'}")
        return [language, self.task_to_id[chosen]]


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
