"""Traces: graphs under construction, and the active one."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

from lavax.ir import TensorType
from lavax.ir.graph import Node, input_node
from lavax.tracer.values.value import Value

_active: ContextVar[Trace | None] = ContextVar("lavax_active_trace", default=None)
active_trace = _active.get  # the innermost trace of this thread or task, or None
# The innermost trace around `ensure_compile_time_eval`.
_suspended: ContextVar[Trace | None] = ContextVar("lavax_suspended_trace", default=None)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A context in which operations run at once, on arrays and numbers, although a function is being traced.

    Their results are constants of that function. Operations on its traced values are still recorded; transformations
    and compiled functions do not take these here: TracerLeakError.
    """
    suspended = _suspended.set(_active.get() or _suspended.get())
    active = _active.set(None)
    try:
        yield
    finally:
        _active.reset(active)
        _suspended.reset(suspended)


@contextmanager
def resumed(trace: Trace | None = None) -> Iterator[bool]:
    """Within `ensure_compile_time_eval`, a context in which operations are recorded; whether `trace` is around it.

    None: any trace.
    """
    around = _suspended.get() if _active.get() is None else None
    if around is None or (trace is not None and not trace.encloses(around)):
        yield False
        return
    active = _active.set(around)
    try:
        yield True
    finally:
        _active.reset(active)


class Trace:
    """A graph that is built while the user's function runs; `with trace:` makes it the innermost trace.

    `known` maps nodes to known values: an input to the Array behind it (or to the Tracer of an outer trace), other
    nodes to numbers that were computed because the user's code asked for them. An input that is not in it is abstract.
    `abstract` maps nodes that were asked for, and depend on an abstract input, to that input and its trace.
    `differentiated` says whether a derivative is taken by an input; for an input that is not in it, the value behind it
    decides.
    """

    __slots__ = (
        "_names", "_token", "abstract", "captures", "differentiated", "effects", "ended", "inputs", "known", "parent",
        "purpose",
    )  # fmt: skip

    def __init__(self, purpose: str) -> None:
        self.purpose = purpose  # for messages: "compile of step"
        self.parent: Trace | None = None
        self.inputs: list[Node] = []
        self.captures: dict[Any, tuple[Node, Value]] = {}
        self.known: dict[Node, Value] = {}
        self.abstract: dict[Node, tuple[Trace, Node]] = {}
        self.differentiated: dict[Node, bool] = {}
        self.effects: list[Any] = []  # effects on the host, see lavax.tracer.tracing.effects
        self.ended = False
        self._names: set[str] = set()
        self._token: Token[Trace | None] | None = None

    def __enter__(self) -> Trace:
        self.parent = _active.get()
        self._token = _active.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        assert self._token is not None
        _active.reset(self._token)
        self.ended = True
        self.known.clear()
        self.abstract.clear()
        self.differentiated.clear()
        self.captures.clear()
        self.effects.clear()

    def add_input(
        self, name: str, type: TensorType, value: Value | None = None, differentiated: bool | None = None
    ) -> Node:
        """A new input; `value` is the value behind it, if that is known."""
        node = input_node(name, type)
        self._names.add(name)
        self.inputs.append(node)
        if value is not None:
            self.known[node] = value
        if differentiated is not None:
            self.differentiated[node] = differentiated
        return node

    def capture(self, key: Any, value: Value) -> Node:
        """The extra input for a value from outside; one per `key`."""
        found = self.captures.get(key)
        if found is None:
            node = input_node(self._free_name(f"captured{len(self.captures)}"), value.type)
            found = self.captures[key] = (node, value)
            self.known[node] = value
        return found[0]

    def _free_name(self, name: str) -> str:
        while name in self._names:
            name += "_"
        return name

    def encloses(self, other: Trace | None) -> bool:
        """Whether this trace is `other` or encloses it."""
        while other is not None:
            if other is self:
                return True
            other = other.parent
        return False
