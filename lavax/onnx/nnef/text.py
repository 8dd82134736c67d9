"""The text of a graph, in NNEF's syntax (NNEF 1.0, chapter 3), as statements; operators between values as calls."""
from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from lavax.base.errors import ONNXError
from lavax.base.quick_dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)
    |(?P<string>'[^'\n]*'|"[^"\n]*")|(?P<mark>->|<=|>=|==|!=|&&|\|\||[-+*/^!()\[\]{}<>,;:=?])""",
    re.VERBOSE,
)
_DEEPEST = 16  # lists and calls in one another
# Operators between values, from those that bind least to those that bind most, and the operations that they stand for.
_OPERATORS: tuple[dict[str, str], ...] = (
    {"||": "or"},
    {"&&": "and"},
    {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"},
    {"+": "add", "-": "sub"},
    {"*": "mul", "/": "div"},
    {"^": "pow"},
)
_PREFIXES = {"-": "neg", "+": "copy", "!": "not"}
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
    kind: str = ""  # the type in angle brackets


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


def fragments(text: str) -> dict[str, Fragment]:
    """The fragments in a text of fragments alone. Raises ONNXError."""
    parser, found = _Parser(list(_tokens(text))), {}
    while parser.place < len(parser.tokens):
        fragment = parser.fragment()
        if fragment is not None:
            found[fragment.name] = fragment
    return found


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
                f"onnx.load_nnef: line {line}: {text[place : place + 12]!r} is not in NNEF's syntax"
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
            if found is None:
                continue
            if found.name in fragments:
                raise self.error(f"there are two fragments {found.name!r}")
            fragments[found.name] = found
        self.expect("graph")
        name = self.take()
        inputs = self.names("(", ")")
        self.expect("->")
        outputs = self.names("(", ")")
        return Text(name, inputs, outputs, self.body(), fragments)

    def fragment(self) -> Fragment | None:
        """A fragment; None for one without statements, which only says how an operation is called."""
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
            self.take()
            return None
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
        """A value, or one of two: `this if condition else that`."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"values lie more than {_DEEPEST} deep")
        made, line = self.joined(0), self.line
        if self.place < len(self.tokens) and self.peek() == "if":
            self.take()
            condition = self.joined(0)
            self.expect("else")
            made = folded(Call("select", (condition, made, self.value()), {}, line))
        self.depth -= 1
        return made

    def joined(self, level: int) -> Any:
        """Values with operators of this level and those that bind more between them."""
        if level == len(_OPERATORS):
            return self.prefixed()
        made = self.joined(level + 1)
        while self.place < len(self.tokens) and self.peek() in _OPERATORS[level]:
            _, text, line = self.word()
            self.place += 1
            made = folded(Call(_OPERATORS[level][text], (made, self.joined(level + 1)), {}, line))
        return made

    def prefixed(self) -> Any:
        _, text, line = self.word()
        if text not in _PREFIXES:
            return self.single()
        self.place += 1
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"values lie more than {_DEEPEST} deep")
        made = folded(Call(_PREFIXES[text], (self.prefixed(),), {}, line))
        self.depth -= 1
        return made

    def single(self) -> Any:
        """A number, a text, a truth value, a name, a call, a list of such, or a value in parentheses."""
        kind, text, line = self.word()
        self.place += 1
        if kind == "number":
            return float(text) if any(sign in text for sign in ".eE") else int(text)
        if kind == "string":
            return text[1:-1]
        if text == "[":
            if self.peek() == "for":
                raise self.error("lists that are made by `for` are not supported: write their parts")
            return self.list("]")
        if text == "(":
            parts = self.list(")")
            return parts[0] if len(parts) == 1 and self.tokens[self.place - 2][1] != "," else parts
        if kind == "name":
            return _TRUTHS[text] if text in _TRUTHS else self.named(text, line)
        raise self.error(f"{text!r} is no value")

    def list(self, closing: str) -> tuple[Any, ...]:
        found = []
        while self.peek() != closing:
            found.append(self.value())
            if self.peek() == ",":
                self.take()
        self.expect(closing)
        return tuple(found)

    def named(self, name: str, line: int) -> Name | Call:
        kind = ""
        following = [text for _, text, _ in self.tokens[self.place : self.place + 4]]
        if following[:1] == ["<"] and following[2:] == [">", "("]:
            kind = following[1]
            self.place += 3
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
        return Call(name, tuple(positional), named, line, kind)

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


def folded(call: Call) -> Any:
    """The number that operators between numbers give, the chosen one of two values, or the call."""
    if call.operation == "select" and isinstance(call.positional[0], bool) and len(call.positional) == 3:
        return call.positional[1 if call.positional[0] else 2]
    if call.operation not in _NUMBERS or call.named or not all(isinstance(x, (int, float)) for x in call.positional):
        return call
    try:
        return _NUMBERS[call.operation](*call.positional)
    except (ArithmeticError, TypeError, ValueError):
        what = f"{call.operation} of {call.positional}"
        raise ONNXError(f"onnx.load_nnef: line {call.line}: {what} has no value") from None


def _power(x: float, y: float) -> Any:
    return x**y if abs(x) <= 1 or abs(y) < 64 else float(x) ** y  # integers of any length take any time


def _quotient(x: float, y: float) -> Any:
    return x // y if isinstance(x, int) and isinstance(y, int) else x / y


_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "and": lambda x, y: x and y, "copy": operator.pos, "div": _quotient, "eq": operator.eq,
    "ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt, "mul": operator.mul,
    "ne": operator.ne, "neg": operator.neg, "not": operator.not_, "or": lambda x, y: x or y, "pow": _power,
    "sub": operator.sub,
}  # fmt: skip
