"""Texts that a model goes on with: strings in place of tokens, and words at which a text ends."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lavax.generate.decoding import stream
from lavax.generate.tokenizer import Tokenizer
from lavax.models.language_model import LanguageModel

__all__ = ["stream_text", "text"]

Prompt = str | Sequence[int]  # a text, or tokens

_CONTEXT = 5  # tokens before a new one that may change how it is written
_UNFINISHED = "\ufffd"  # stands for the first bytes of a character


def text(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompts: Prompt | Sequence[Prompt],
    max_new_tokens: int,
    *,
    stop: str | Sequence[str] = (),
    **settings: Any,
) -> Any:
    """How the model goes on with a prompt, a string; or with several prompts, a list of strings.

    A prompt is a text, or a list of tokens, such as `tokenizer.chat` makes. The result ends before the first of the
    words in `stop`, and at the tokenizer's `ends`. `settings` are those of `generate`.
    """
    single = _is_prompt(prompts)
    rows = _Rows(tokenizer, [prompts] if single else list(prompts), stop, settings)
    pieces: list[list[str]] = [[] for _ in rows.rows]
    for row, piece in rows.pieces(model, max_new_tokens):
        pieces[row].append(piece)
    made = ["".join(row) for row in pieces]
    return made[0] if single else made


def stream_text(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: Prompt,
    max_new_tokens: int,
    *,
    stop: str | Sequence[str] = (),
    **settings: Any,
) -> Iterator[str]:
    """The pieces of what `text` gives, as soon as they are there."""
    if not _is_prompt(prompt):
        raise TypeError("stream_text: the prompt is a text or a list of tokens; `text` takes several prompts")
    rows = _Rows(tokenizer, [prompt], stop, settings)
    return (piece for _, piece in rows.pieces(model, max_new_tokens))


def _is_prompt(given: Any) -> bool:
    return isinstance(given, str) or (len(given) > 0 and not isinstance(given[0], (str, Sequence)))


class _Rows:
    """The prompts as tokens, and the texts that follow them."""

    def __init__(
        self, tokenizer: Tokenizer, prompts: Sequence[Any], stop: str | Sequence[str], settings: dict[str, Any]
    ) -> None:
        words = (stop,) if isinstance(stop, str) else tuple(stop)
        if not all(words):
            raise ValueError("text: the words in stop must not be empty")
        ids = [tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt) for prompt in prompts]
        ends = settings.get("eos_token_id")
        ends = tokenizer.ends if ends is None else tuple(ends) if isinstance(ends, Sequence) else (ends,)
        self.settings = {**settings, "eos_token_id": ends}
        self.rows = [_Row(tokenizer, row, ends, words) for row in ids]

    def pieces(self, model: LanguageModel, count: int) -> Iterator[tuple[int, str]]:
        """The number of a row, and the next piece of its text. Ends when all rows have ended."""
        for tokens in stream(model, [row.ids for row in self.rows], count, **self.settings):
            for number, (row, token) in enumerate(zip(self.rows, tokens.tolist(), strict=True)):
                piece = row.read(token)
                if piece:
                    yield number, piece
            if all(row.has_ended for row in self.rows):
                return
        for number, row in enumerate(self.rows):
            yield number, row.rest()


class _Row:
    """The text of one row. What may be the beginning of a stop word is held back until that is known."""

    def __init__(self, tokenizer: Tokenizer, ids: list[int], ends: tuple[int, ...], stop: tuple[str, ...]) -> None:
        self.tokenizer, self.ids, self.ends, self.stop = tokenizer, list(ids), ends, stop
        self.shown = len(ids)  # tokens whose text was read
        self.start = max(self.shown - _CONTEXT, 0)
        self.held, self.has_ended = "", False

    def read(self, token: int) -> str:
        """The text that is certain with this token."""
        if self.has_ended:
            return ""
        if token in self.ends:
            found = self.rest()
            self.has_ended = True
            return found
        self.ids.append(token)
        piece = self._unread()
        if piece.endswith(_UNFINISHED):
            return ""
        self.start, self.shown = max(self.shown - _CONTEXT, 0), len(self.ids)
        return self._released(piece)

    def rest(self) -> str:
        """The text that was held back, if there are no more tokens."""
        if self.has_ended:
            return ""
        released = self._released(self._unread())
        return released + self.held  # nothing is held if a stop word was found

    def _unread(self) -> str:
        before = self.tokenizer.decode(self.ids[self.start : self.shown])
        return self.tokenizer.decode(self.ids[self.start :])[len(before) :]

    def _released(self, piece: str) -> str:
        whole = self.held + piece
        found = [place for place in map(whole.find, self.stop) if place >= 0]
        if found:
            self.has_ended, self.held = True, ""
            return whole[: min(found)]
        kept = max((_overlap(whole, word) for word in self.stop), default=0)
        self.held = whole[len(whole) - kept :]
        return whole[: len(whole) - kept]


def _overlap(whole: str, word: str) -> int:
    """How many characters at the end of `whole` may be the beginning of `word`."""
    return next((count for count in range(min(len(word) - 1, len(whole)), 0, -1) if word.startswith(whole[-count:])), 0)
