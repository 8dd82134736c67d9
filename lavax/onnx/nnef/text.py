"""The text of a graph, in NNEF's flat syntax (NNEF 1.0, chapter 3), as statements."""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lavax.base.errors import ONNXError

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)
    |(?P<string>'[^'\n]*'|"[^"\n]*")|(?P<mark>->|[()\[\]{}<>,;:=?])""",
    re.VERBOSE,
)
_DEEPEST = 16  # lists and calls in one another
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class Name:
    """A value that is read."""

    text: str


@dataclass(frozen=True)
class Call:
    """An operation with its arguments; those with a name come last."""

    operation: str
    positional: tuple[Any, ...]
    named: dict[str, Any]
    line: int


@dataclass(frozen=True)
class Statement:
    """Names that are given the results of a call, or another value."""

    names: tuple[str, ...]
    value: Any
    line: int


@dataclass(frozen=True)
class Fragment:
    """A composition: its parameters with their defaults (None: it has none), its results, its statements in order."""

    name: str
    parameters: dict[str, Any]
    outputs: tuple[str, ...]
    statements: tuple[Statement, ...]
    line: int


@dataclass(frozen=True)
class Text:
    """A graph: its name, its inputs and outputs, its statements in order, and the fragments before it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    statements: tuple[Statement, ...]
    fragments: dict[str, Fragment]


def parsed(text: str) -> Text:
    """The graph in a text. Raises ONNXError, which names the line."""
    return _Parser(list(_tokens(text))).document()


def quantizations(text: str) -> dict[str, Call]:
    """How tensors are quantised, by their names: lines `"name": algorithm(…);`. Raises ONNXError."""
    parser, found = _Parser(list(_tokens(text))), {}
    while parser.place < len(parser.tokens):
        name = parser.take().strip("\"'")
        parser.expect(":")
        call = parser.value()
        if not isinstance(call, Call):
            raise parser.error(f"expected an algorithm for {name!r}")
        parser.expect(";")
        found[name] = call
    return found


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and line of each word."""
    place, line = 0, 1
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ONNXError(
                f"onnx.load_nnef: line {line}: {text[place : place + 12]!r} is not in NNEF's flat syntax; write "
                "operators as calls"
            )
        if found.lastgroup != "blank":
            yield str(found.lastgroup), found[0], line
        line += found[0].count("\n")
        place = found.end()


@dataclass
class _Parser:
    tokens: list[tuple[str, str, int]]
    place: int = 0
    depth: int = field(default=0)

    def document(self) -> Text:
        self.expect("version")
        self.take()
        self.expect(";")
        while self.peek() == "extension":
            while self.take() != ";":
                pass
        fragments: dict[str, Fragment] = {}
        while self.peek() == "fragment":
            found = self.fragment()
            if found.name in fragments:
                raise self.error(f"there are two fragments {found.name!r}")
            fragments[found.name] = found
        self.expect("graph")
        name = self.take()
        inputs = self.names("(", ")")
        self.expect("->")
        outputs = self.names("(", ")")
        return Text(name, inputs, outputs, self.body(), fragments)

    def fragment(self) -> Fragment:
        line = self.line
        self.expect("fragment")
        name = self.take()
        if self.peek() == "<":
            while self.take() != ">":
                pass
        parameters = self.declared()
        self.expect("->")
        outputs = tuple(self.declared())
        if self.peek() == ";":
            raise self.error(f"the fragment {name!r} has no statements, so it is an operation that is not supported")
        return Fragment(name, parameters, outputs, self.body(), line)

    def declared(self) -> dict[str, Any]:
        """Names with types, which say nothing that is needed here, and defaults."""
        self.expect("(")
        found: dict[str, Any] = {}
        while self.peek() != ")":
            name = self.take()
            self.expect(":")
            depth = 0
            while depth or self.peek() not in (",", ")", "="):
                depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(self.take(), 0)
            found[name] = None
            if self.peek() == "=":
                self.take()
                found[name] = self.value()
            if self.peek() == ",":
                self.take()
        self.expect(")")
        return found

    def body(self) -> tuple[Statement, ...]:
        self.expect("{")
        statements = []
        while self.peek() != "}":
            statements.append(self.statement())
        self.expect("}")
        return tuple(statements)

    def statement(self) -> Statement:
        line = self.line
        closing = {"[": "]", "(": ")"}.get(self.peek())
        names = self.names(self.peek(), closing) if closing else (self.take(),)
        self.expect("=")
        value = self.value()
        self.expect(";")
        return Statement(names, value, line)

    def names(self, opening: str, closing: str) -> tuple[str, ...]:
        self.expect(opening)
        found = []
        while self.peek() != closing:
            found.append(self.take())
            if self.peek() == ",":
                self.take()
        self.expect(closing)
        return tuple(found)

    def value(self) -> Any:
        """A number, a text, a truth value, a name, a call, or a list of such."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"values lie more than {_DEEPEST} deep")
        kind, text, line = self.word()
        self.place += 1
        made: Any
        if kind == "number":
            made = float(text) if any(sign in text for sign in ".eE") else int(text)
        elif kind == "string":
            made = text[1:-1]
        elif text in ("[", "("):
            made = self.list({"[": "]", "(": ")"}[text])
        elif kind == "name":
            made = _TRUTHS[text] if text in _TRUTHS else self.named(text, line)
        else:
            raise self.error(f"{text!r} is no value")
        self.depth -= 1
        return made

    def list(self, closing: str) -> tuple[Any, ...]:
        found = []
        while self.peek() != closing:
            found.append(self.value())
            if self.peek() == ",":
                self.take()
        self.expect(closing)
        return tuple(found)

    def named(self, name: str, line: int) -> Name | Call:
        if self.peek() == "<":
            while self.take() != ">":
                pass
        if self.peek() != "(":
            return Name(name)
        self.take()
        positional, named = [], {}
        while self.peek() != ")":
            if self.place + 1 < len(self.tokens) and self.tokens[self.place + 1][1] == "=":
                key = self.take()
                self.expect("=")
                named[key] = self.value()
            else:
                positional.append(self.value())
            if self.peek() == ",":
                self.take()
        self.expect(")")
        return Call(name, tuple(positional), named, line)

    @property
    def line(self) -> int:
        return self.tokens[min(self.place, len(self.tokens) - 1)][2] if self.tokens else 1

    def word(self) -> tuple[str, str, int]:
        if self.place >= len(self.tokens):
            raise self.error("the text ends too early")
        return self.tokens[self.place]

    def peek(self) -> str:
        return self.word()[1]

    def take(self) -> str:
        found = self.peek()
        self.place += 1
        return found

    def expect(self, text: str) -> None:
        found = self.peek()
        if found != text:
            raise self.error(f"expected {text!r}, got {found!r:.40}")
        self.place += 1

    def error(self, message: str) -> ONNXError:
        return ONNXError(f"onnx.load_nnef: line {self.line}: {message}")
