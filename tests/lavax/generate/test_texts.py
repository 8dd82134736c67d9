"""Texts from prompts: tokenizers of folders, stop words, characters of several tokens, conversations."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lavax.generate import Tokenizer, generate, stream_text, text, texts
from lavax.generate.conversation import written
from lavax.models.family import family_of
from lavax.models.llama_config import LlamaConfig
from tests.lavax.models.seeded import seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a tokenizer of single bytes and two special tokens."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({character: number for number, character in enumerate(alphabet)}, []))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>"])
    backend.save(str(tmp_path / "tokenizer.json"))
    settings = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": TEMPLATE}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    return tmp_path


@pytest.fixture
def model() -> Any:
    config = LlamaConfig(
        vocab_size=258, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64, tie_word_embeddings=True,
    )
    return seeded_model(family_of("llama"), config)


def test_a_text_is_what_the_tokens_say(folder: Path, model: Any) -> None:
    tokenizer = Tokenizer.load(folder)
    settings: dict[str, Any] = dict(temperature=1.0, seed=4, eos_token_id=())
    prompts = ["The sea", "is"]
    tokens = generate(model, [tokenizer.encode(prompt) for prompt in prompts], 12, **settings)
    wanted = [
        tokenizer.decode(row[: len(prompt) + 12])[len(prompt) :] for row, prompt in zip(tokens, prompts, strict=True)
    ]
    assert text(model, tokenizer, prompts, 12, **settings) == wanted
    assert text(model, tokenizer, prompts[0], 12, **settings) == wanted[0]
    assert text(model, tokenizer, tokenizer.encode(prompts[0]), 12, **settings) == wanted[0]
    assert "".join(stream_text(model, tokenizer, prompts[0], 12, **settings)) == wanted[0]


def _writes(monkeypatch: pytest.MonkeyPatch, *rows: list[int]) -> list[int]:
    """Makes models write these tokens; the result counts how many were read."""
    read = [0]

    def fake(model: Any, ids: Any, count: int, **settings: Any) -> Iterator[np.ndarray]:
        for tokens in zip(*rows, strict=True):
            read[0] += 1
            yield np.array(tokens)

    monkeypatch.setattr(texts, "stream", fake)
    return read


@pytest.mark.parametrize(
    ("written", "stop", "shown"),
    [
        ("one two three", "two", "one "),
        ("one two three", ["three", "wo"], "one t"),
        ("a\n\nb", "\n\n", "a"),
        ("a\nb\n", "\n\n", "a\nb\n"),  # what may become a stop word is held back, but not lost
        ("aab", "ab", "a"),
        ("no end", (), "no end"),
        ("größer als ∞", "∞", "größer als "),
    ],
)
def test_a_text_ends_before_a_stop_word(
    written: str, stop: Any, shown: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = Tokenizer.load(folder)
    tokens = tokenizer.encode(written)
    read = _writes(monkeypatch, tokens)
    pieces = list(stream_text(None, tokenizer, "x", len(tokens), stop=stop))
    assert "".join(pieces) == shown and "\ufffd" not in "".join(pieces)
    assert text(None, tokenizer, "x", len(tokens), stop=stop) == shown
    assert read[0] <= 2 * len(tokens)


def test_rows_end_one_by_one_and_nothing_is_read_after_the_last(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer.load(folder)
    end = tokenizer.backend.token_to_id("</s>")
    assert tokenizer.ends == (end,)
    first, second = tokenizer.encode("abcdefgh"), tokenizer.encode("ABCDEFGH")
    first[2] = second[4] = end
    read = _writes(monkeypatch, first, second)
    assert text(None, tokenizer, ["x", "y"], 8) == ["ab", "ABCD"]
    assert read == [5]


def test_bytes_of_an_unfinished_character_are_shown_at_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer.load(folder)
    _writes(monkeypatch, tokenizer.encode("a∞")[:-1])
    assert text(None, tokenizer, "x", 3) == "a\ufffd"


def test_the_tokens_that_end_a_text_are_those_of_the_first_file_that_names_any(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 7}))
    assert Tokenizer.load(folder).ends == (7,)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [8, 9]}))
    assert Tokenizer.load(folder).ends == (8, 9)


def test_conversations_are_written_by_the_template(folder: Path) -> None:
    pytest.importorskip("jinja2", reason="renders chat templates")
    tokenizer = Tokenizer.load(folder)
    ids = tokenizer.chat([{"role": "user", "content": "Hi"}])
    assert ids[0] == tokenizer.backend.token_to_id("<s>")
    assert tokenizer.decode(ids, special_tokens=True) == "<s>[user]Hi[assistant]"
    assert tokenizer.decode(tokenizer.chat([{"role": "user", "content": "Hi"}], is_answered=True)) == "[user]Hi"
    (folder / "chat_template.jinja").write_text("{{ raise_exception('only one role') }}")
    with pytest.raises(ValueError, match=r"Tokenizer.chat: only one role"):
        Tokenizer.load(folder).chat([])


# A template -> what it makes of a question and an answer, by transformers 5.23.0.
TEMPLATES: dict[str, str] = {
    "{{ messages[0] | tojson }}": '{"role": "user", "content": "<é> & \'x\'"}',
    "{{ {'a': [1]} | tojson(indent=1) }}": '{\n "a": [\n  1\n ]\n}',
    "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m.role }}{% endfor %}": "user",
    "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}": "<é> & 'x'Yes\n",
    "{% if tools is none and documents is none %}neither{% endif %}": "neither",
    "{{ bos_token }}{{ unk_token }}{% if thinks %}thinks{% endif %}": "<s>thinks",
    "{% for m in messages %}\n  {{ m.content | trim }}\n{% endfor %}\n": "  <é> & 'x'\n  Yes\n",
}
QUESTION_AND_ANSWER = [{"role": "user", "content": "<é> & 'x'"}, {"role": "assistant", "content": "Yes\n"}]


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_are_rendered_as_by_transformers(template: str) -> None:
    pytest.importorskip("jinja2", reason="renders chat templates")
    given = {"tools": None, "documents": None, "bos_token": "<s>", "thinks": True}
    assert written(template, QUESTION_AND_ANSWER, given) == TEMPLATES[template]


def test_templates_know_the_day() -> None:
    pytest.importorskip("jinja2", reason="renders chat templates")
    assert re.fullmatch(r"\d\d\d\d, 1", written("{{ strftime_now('%Y') }}, {{ messages | length }}", [{}], {}))


def test_a_conversation_may_have_tools_and_settings_of_its_own(folder: Path) -> None:
    pytest.importorskip("jinja2", reason="renders chat templates")
    (folder / "chat_template.jinja").write_text("{% for t in tools or [] %}{{ t.name }}{% endfor %}{{ thinks }}")
    tokenizer = Tokenizer.load(folder)
    assert tokenizer.decode(tokenizer.chat([], tools=[{"name": "add"}], thinks="No")) == "addNo"


def test_special_tokens_of_older_folders_are_in_a_file_of_their_own(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "special_tokens_map.json").write_text(json.dumps({"bos_token": {"content": "<s>"}, "eos_token": "</s>"}))
    assert Tokenizer.load(folder).specials == {"bos_token": "<s>", "eos_token": "</s>"}


def test_what_is_missing_is_named(folder: Path, tmp_path: Path) -> None:
    (folder / "tokenizer_config.json").unlink()
    tokenizer = Tokenizer.load(folder)
    with pytest.raises(ValueError, match="no chat template"):
        tokenizer.chat([{"role": "user", "content": "Hi"}])
    with pytest.raises(ValueError, match="must not be empty"):
        text(None, tokenizer, "x", 3, stop=["a", ""])
    with pytest.raises(TypeError, match="`text` takes several"):
        stream_text(None, tokenizer, ["x", "y"], 3)  # type: ignore[arg-type, list-item]
    (folder / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no tokenizer\.json"):
        Tokenizer.load(folder)
