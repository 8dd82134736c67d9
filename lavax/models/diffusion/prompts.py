"""Prompts as the tokens that CLIP's text encoder reads."""
from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.io.json_files import read_json

_BEGIN, _END = "<|startoftext|>", "<|endoftext|>"
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


@dataclass(frozen=True)
class PromptTokenizer:
    """Byte pairs of lower-case words (Radford et al. 2021), with a token before and after, filled up to `length`."""

    tokenizer: Any
    length: int
    padding: int

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> PromptTokenizer:
        """The tokenizer of a folder: tokenizer.json, or vocab.json and merges.txt."""
        path = Path(folder)
        tokenizer = _read(path)
        settings = read_json(path / "tokenizer_config.json")
        padding = settings.get("pad_token") or _END
        name = padding["content"] if isinstance(padding, dict) else padding
        return PromptTokenizer(tokenizer, int(settings.get("model_max_length", 77)), tokenizer.token_to_id(name))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes tokenizer.json and tokenizer_config.json."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(str(path / "tokenizer.json"))
        settings = {
            "tokenizer_class": "CLIPTokenizer",
            "model_max_length": self.length,
            "pad_token": self.tokenizer.id_to_token(self.padding),
        }
        (path / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    def __call__(self, prompts: Sequence[str]) -> np.ndarray:
        """Tokens int32 [N, length]. Of a longer prompt, the last tokens are left out."""
        rows = np.full((len(prompts), self.length), self.padding, np.int32)
        for row, prompt in zip(rows, prompts, strict=True):
            found = self.tokenizer.encode(prompt).ids
            if len(found) > self.length:
                found = [*found[: self.length - 1], found[-1]]
            row[: len(found)] = found
        return rows


def _read(path: Path) -> Any:
    try:
        from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    except ImportError as error:
        raise ImportError("PromptTokenizer needs the tokenizers package: pip install 'lavax[models]'") from error
    if (path / "tokenizer.json").exists():
        made = Tokenizer.from_file(str(path / "tokenizer.json"))
        made.no_padding()
        made.no_truncation()
        return made
    pairs = models.BPE.from_file(
        str(path / "vocab.json"), str(path / "merges.txt"), end_of_word_suffix="</w>", unk_token=_END
    )
    made = Tokenizer(pairs)
    made.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([_BEGIN, _END])
    ends: Any = [(name, made.token_to_id(name)) for name in (_END, _BEGIN)]
    made.post_processor = processors.RobertaProcessing(ends[0], ends[1], trim_offsets=False, add_prefix_space=False)
    return made
