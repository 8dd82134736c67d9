"""Mutants of texts and files: small damage, the same for the same seed, that readers must refuse by name or accept."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

# Numbers at the ends of what readers expect, and words that mean something in some file.
NUMBERS = ("0", "1", "2", "7", "-1", "63", "64", "65", "4096", "2147483647", "2147483648", "4294967296",
           "1000000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e400", "1.5", "nan",
           "9" * 40)  # fmt: skip
WORDS = ("", "[]", "[0]", "[0,0]", "[1]x[0]", "true", "false", '"f16"', '"nothing"', "null", "{}", '"', "f32[2]", "()",
         "i32[]", "bool[3]", "(f32[2], i32[])", "graph () {\n  return\n}", "%0", "x", "[", "]", "{", "}", "(", ")", ",",
         ":", "=", " ", "\n", "\\", "\x00", "é", "\u2028")  # fmt: skip

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_]\w*|[\[\](){}\",:=]")


def _span(random: Random, length: int, most: int = 40) -> tuple[int, int]:
    start = random.randrange(length + 1)
    return start, min(length, start + random.randrange(1, most))


def _other_number(random: Random, text: str, others: Sequence[str]) -> str:
    return _replaced(random, text, _NUMBER, lambda: random.choice(NUMBERS))


def _other_word(random: Random, text: str, others: Sequence[str]) -> str:
    found = _WORD.findall(random.choice(others)) or [""]
    return _replaced(random, text, _WORD, lambda: random.choice((*WORDS, *found[:40])))


def _replaced(random: Random, text: str, pattern: re.Pattern[str], choose: Callable[[], str]) -> str:
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = random.choice(places)
    return text[: place.start()] + choose() + text[place.end() :]


def _swapped_words(random: Random, text: str, others: Sequence[str]) -> str:
    places = list(_WORD.finditer(text)) + list(_NUMBER.finditer(text))
    if len(places) < 2:
        return text
    first, second = sorted(random.sample(places, 2), key=lambda place: place.start())
    if first.end() > second.start():
        return text
    return text[: first.start()] + second[0] + text[first.end() : second.start()] + first[0] + text[second.end() :]


def _without(random: Random, text: str, others: Sequence[str]) -> str:
    start, end = _span(random, len(text))
    return text[:start] + text[end:]


def _twice(random: Random, text: str, others: Sequence[str]) -> str:
    start, end = _span(random, len(text))
    return text[:end] + text[start:]


def _inserted(random: Random, text: str, others: Sequence[str]) -> str:
    start = random.randrange(len(text) + 1)
    return text[:start] + random.choice((*WORDS, *NUMBERS)) + text[start:]


def _moved_line(random: Random, text: str, others: Sequence[str]) -> str:
    lines = text.split("\n")
    line = lines.pop(random.randrange(len(lines)))
    if random.random() < 0.7:
        lines.insert(random.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def _foreign_line(random: Random, text: str, others: Sequence[str]) -> str:
    lines = text.split("\n")
    lines[random.randrange(len(lines))] = random.choice(random.choice(others).split("\n"))
    return "\n".join(lines)


_OF_TEXTS = (
    _other_number, _other_number, _other_number, _other_word, _other_word, _swapped_words, _without, _twice, _inserted,
    _moved_line, _foreign_line,
)  # fmt: skip


def mutated_text(random: Random, text: str, others: Sequence[str]) -> str:
    """The text with one to three changes; some are parts of the `others`."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = random.choice(_OF_TEXTS)(random, text, others)
    return text


_WORDS_OF_BYTES = (b"\x00" * 8, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\x00" * 7 + b"\x80", b"\xff" * 7 + b"\x7f",
                   b"\x00\x00\x00\x00\x00\x00\x00\x10", b"\x01", b"\x00\x10\xa5\xd4\xe8\x00\x00\x00")  # fmt: skip


def mutated_bytes(random: Random, content: bytes, front: int | None = None) -> bytes:
    """The bytes with one to four changes, most of them within the first `front`, where a file says what it holds."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4))):
        within = min(len(changed), front) if front and random.random() < 0.8 else len(changed)
        if not within:
            return bytes(changed)
        place = random.randrange(within)
        match random.randrange(5):
            case 0:
                changed[place] ^= 1 << random.randrange(8)
            case 1:
                changed[place] = random.randrange(256)
            case 2:
                word = random.choice(_WORDS_OF_BYTES)
                changed[place : place + len(word)] = word
            case 3:
                del changed[place : place + random.randrange(1, 30)]
            case 4:
                changed[place:place] = changed[place : place + random.randrange(1, 30)]
    if random.random() < 0.1:
        del changed[random.randrange(len(changed) + 1) :]
    return bytes(changed)
