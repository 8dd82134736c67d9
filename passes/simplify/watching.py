"""Which rules of simplification apply, for those who ask: `with watched() as applied:`."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node


@dataclass(frozen=True)
class AppliedRule:
    """A rule by its name and, if it has one, its description, and the node that it replaced."""

    rule: str
    meaning: str
    op: str
    location: str | None


_applied: ContextVar[list[AppliedRule] | None] = ContextVar("applied", default=None)


@contextmanager
def watched() -> Iterator[list[AppliedRule]]:
    """A context; the list that it gives grows by every rule that applies within it, in order."""
    found: list[AppliedRule] = []
    token = _applied.set(found)
    try:
        yield found
    finally:
        _applied.reset(token)


def note(rules: Iterable[Callable[[Node], Node | None]], node: Node) -> None:
    """Notes the first of the rules that applies to the node. Costs next to nothing if nobody watches."""
    applied = _applied.get()
    if applied is not None:
        for rule in rules:
            if rule(node) is not None:
                applied.append(AppliedRule(_name(rule), _meaning(rule), node.op, node.location))
                return


def _name(rule: Callable[[Node], Node | None]) -> str:
    return str(getattr(rule, "__name__", type(rule).__name__)).strip("_").replace("_", " ")


def _meaning(rule: Callable[[Node], Node | None]) -> str:
    return " ".join((rule.__doc__ or "").split("\n\n")[0].split())
