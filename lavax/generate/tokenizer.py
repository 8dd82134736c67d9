"""Text as tokens and back, with the tokenizer of a model's folder."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lavax.base.quick_dataclasses import dataclass
from lavax.generate.conversation import Message, written
from lavax.io.json_files import read_json

__all__ = ["Tokenizer"]


@dataclass(frozen=True)
class Tokenizer:
    """The tokenizer of a folder.

    `backend` is a `tokenizers.Tokenizer`. `ends` are the tokens that end a text. `template` is the folder's chat
    template in the language of jinja2, or None; it is rendered with the special tokens in `specials`, such as
    "bos_token".
    """

    backend: Any
    ends: tuple[int, ...] = ()
    template: str | None = None
    specials: Mapping[str, str] | None = None

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """The tokenizer that tokenizer.json in `folder` describes.

        The tokens that end a text are those of generation_config.json, config.json or tokenizer_config.json, whichever
        is the first to name any. Raises FileNotFoundError without tokenizer.json, ImportError without the package
        tokenizers.
        """
        try:
            from tokenizers import Tokenizer as Backend
        except ImportError as error:
            raise ImportError("Tokenizer needs the tokenizers package: pip install 'lavax[models]'") from error
        path = Path(folder)
        if not (path / "tokenizer.json").is_file():
            raise FileNotFoundError(f"{path}: there is no tokenizer.json")
        backend = Backend.from_file(str(path / "tokenizer.json"))
        settings = _json(path / "tokenizer_config.json")
        named = {**_json(path / "special_tokens_map.json"), **settings}  # older folders have the former file, too
        specials = {name: _text_of(value) for name, value in named.items() if name.endswith("_token") and value}
        given = (_json(path / name).get("eos_token_id") for name in ("generation_config.json", "config.json"))
        ends = next((found for found in given if found is not None), None)
        if ends is None and "eos_token" in specials:
            ends = backend.token_to_id(specials["eos_token"])
        as_tuple = tuple(ends) if isinstance(ends, list) else () if ends is None else (int(ends),)
        return cls(backend, as_tuple, _template(path, settings), specials)

    def encode(self, text: str, *, special_tokens: bool = True) -> list[int]:
        """The tokens of a text; with `special_tokens`, also those that the model expects around it."""
        return list(self.backend.encode(text, add_special_tokens=special_tokens).ids)

    def decode(self, ids: Iterable[int], *, special_tokens: bool = False) -> str:
        """The text of tokens; special ones have none unless `special_tokens` is set."""
        return str(self.backend.decode([int(token) for token in ids], skip_special_tokens=not special_tokens))

    def chat(
        self,
        messages: Sequence[Message],
        *,
        is_answered: bool = False,
        tools: Sequence[Any] | None = None,
        **variables: Any,
    ) -> list[int]:
        """The tokens of a conversation: messages with a "role" and a "content", as the model was trained on them.

        The model's answer follows, unless the last message is an answer, and `is_answered`. `tools` are those that the
        model may call, as JSON schemas, and `variables` whatever else the template knows, such as
        `enable_thinking=False`. Raises ValueError if the folder has no chat template, ImportError without the package
        jinja2.
        """
        if self.template is None:
            raise ValueError("Tokenizer.chat: the folder has no chat template, so its model may know no conversations")
        own = {"add_generation_prompt": not is_answered, "tools": tools, "documents": None}
        text = written(self.template, messages, {**own, **(self.specials or {}), **variables})
        return self.encode(text, special_tokens=False)


def _template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """The chat template: a file of its own, or an entry of tokenizer_config.json, of which there may be several."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    found = settings.get("chat_template")
    if isinstance(found, list):
        found = next((entry["template"] for entry in found if entry.get("name") == "default"), None)
    return found


def _text_of(token: Any) -> str:
    """A special token is a text, or an object with its text as "content"."""
    return str(token["content"] if isinstance(token, Mapping) else token)


def _json(file: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_json(file) if file.is_file() else {}
    return found
