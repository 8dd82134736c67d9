"""Fragments, which are compositions that a file defines: a call of one stands for the statements in it."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from lavax.base.errors import ONNXError
from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.nnef.text import Call, Fragment, Name, Statement, folded

_DEEPEST = 64  # fragments in one another
_MOST_STATEMENTS = 1 << 16  # that calls of fragments stand for: each can double what the one before it makes


@dataclass(eq=False)
class Expansion:
    """The fragments of a file at work. One calls only those before it, so none calls itself."""

    fragments: Mapping[str, Fragment]
    calls: int = 0
    made: int = 0
    _places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._places = {name: place for place, name in enumerate(self.fragments)}

    def expanded(self, statement: Statement, before: int | None = None, depth: int = 0) -> Iterator[Statement]:
        """The statements that a statement stands for, of operations alone.

        `before` is the place of the fragment that it stands in, `depth` in how many. Raises ONNXError, which names the
        line.
        """
        call = statement.value
        if not isinstance(call, Call):
            yield statement
            return
        hoisted: list[Statement] = []
        if depth > _DEEPEST:
            raise _error(call.line, f"fragments stand more than {_DEEPEST} deep in each other")
        flat = self._without_inner_fragments(call, hoisted)
        for inner in hoisted:
            yield from self.expanded(inner, before, depth)
        if flat.operation not in self.fragments:
            yield Statement(statement.names, flat, statement.line)
            return
        place = self._places[flat.operation]
        if before is not None and place >= before:
            raise _error(call.line, f"the fragment {call.operation!r} is defined after the one that calls it")
        for inner in self._statements(self.fragments[flat.operation], statement.names, flat):
            yield from self.expanded(inner, place, depth + 1)

    def _without_inner_fragments(self, call: Call, hoisted: list[Statement]) -> Call:
        """The call with names in the place of calls of fragments among its arguments, which go before it.

        So do all calls among the arguments of a fragment, which may read them many times.
        """
        is_fragment = call.operation in self.fragments

        def outside(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(outside, value))
            if not isinstance(value, Call):
                return value
            if not is_fragment and value.operation not in self.fragments:
                return self._without_inner_fragments(value, hoisted)
            self.calls += 1
            name = f"{value.operation}.argument.{self.calls}"
            hoisted.append(Statement((name,), value, value.line))
            return Name(name)

        named = {key: outside(value) for key, value in call.named.items()}
        return Call(call.operation, tuple(map(outside, call.positional)), named, call.line, call.kind)

    def _statements(self, fragment: Fragment, names: tuple[str, ...], call: Call) -> Iterator[Statement]:
        self.calls += 1
        self.made += len(fragment.statements)
        if self.made > _MOST_STATEMENTS:
            raise _error(call.line, f"the fragments stand for more than {_MOST_STATEMENTS} statements")
        if len(names) != len(fragment.outputs):
            raise _error(call.line, f"{fragment.name} gives {len(fragment.outputs)} results, not {len(names)}")
        values: dict[str, Any] = {**_arguments(fragment, call)}
        values.update((own, Name(given)) for own, given in zip(fragment.outputs, names, strict=True))
        known = set(fragment.parameters)
        for statement in fragment.statements:
            for own in statement.names:
                values.setdefault(own, Name(f"{fragment.name}.{self.calls}.{own}"))
            targets = tuple(_target(values[own], own, statement) for own in statement.names)
            value = _with_values(statement.value, values, known, statement.line)
            if not isinstance(value, Call):
                value = Call("copy", (value,), {}, statement.line)
            known.update(statement.names)
            yield Statement(targets, value, statement.line)
        missing = [own for own in fragment.outputs if own not in known]
        if missing:
            raise _error(fragment.line, f"nothing gives a value to {', '.join(missing)} in {fragment.name}")


def _arguments(fragment: Fragment, call: Call) -> dict[str, Any]:
    names = tuple(fragment.parameters)
    if len(call.positional) > len(names):
        raise _error(call.line, f"{fragment.name} takes {len(names)} arguments")
    given = dict(zip(names, call.positional, strict=False))
    for name, value in call.named.items():
        if name not in fragment.parameters or name in given:
            raise _error(call.line, f"{fragment.name} takes no argument {name!r}, or has it already")
        given[name] = value
    for name, default in fragment.parameters.items():
        if name in given:
            continue
        if default is None:
            raise _error(call.line, f"{fragment.name} needs the argument {name!r}")
        given[name] = default
    return given


def _target(value: Any, own: str, statement: Statement) -> str:
    if not isinstance(value, Name):
        raise _error(statement.line, f"{own!r} has a value already")
    return value.text


def _with_values(value: Any, values: Mapping[str, Any], known: set[str], line: int) -> Any:
    """A value with what names stand for in their place."""
    if isinstance(value, Name):
        if value.text not in known:
            raise _error(line, f"{value.text!r} has no value yet")
        return values[value.text]
    if isinstance(value, tuple):
        return tuple(_with_values(part, values, known, line) for part in value)
    if not isinstance(value, Call):
        return value
    positional = tuple(_with_values(part, values, known, line) for part in value.positional)
    named = {key: _with_values(part, values, known, line) for key, part in value.named.items()}
    return folded(Call(value.operation, positional, named, value.line, value.kind))


def _error(line: int, message: str) -> ONNXError:
    return ONNXError(f"onnx.load_nnef: line {line}: {message}")
