"""Classes that users register as containers of arrays."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar, overload

from lavax.tracer.pytrees.pytree import NodeKind, register

_Class = TypeVar("_Class", bound=type)


def register_node(
    cls: _Class,
    flatten: Callable[[Any], tuple[Sequence[Any], Hashable]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
    child_names: Callable[[Any, int], Iterable[str]] | None = None,
) -> _Class:
    """Makes `cls` a container.

    `flatten(instance)` returns its children and hashable data, `unflatten(data, children)` rebuilds it;
    `child_names(data, count)` names the children in dumps and messages (by default by number).
    """

    def by_number(data: Any, count: int) -> Iterable[str]:
        return [str(position) for position in range(count)]

    register(cls, NodeKind(cls.__name__, flatten, unflatten, child_names or by_number))
    return cls


@overload
def register_dataclass(cls: _Class, /) -> _Class: ...
@overload
def register_dataclass(*, static: Iterable[str] = ()) -> Callable[[_Class], _Class]: ...
def register_dataclass(cls: Any = None, /, *, static: Iterable[str] = ()) -> Any:
    """Class decorator: makes a dataclass a container whose fields are its children.

    Fields named in `static`, or made with `dataclasses.field(metadata={"static": True})`, are not children but part
    of the structure: settings, which must be hashable. `__init__` and `__post_init__` do not run when an instance
    is rebuilt. Raises TypeError if `cls` is not a dataclass or has no such field.
    """
    if cls is None:
        return lambda decorated: _registered(decorated, frozenset(static))
    return _registered(cls, frozenset(static))


def _registered(cls: Any, static: frozenset[str]) -> Any:
    if not isinstance(cls, type) or not dataclasses.is_dataclass(cls):
        raise TypeError(f"register_dataclass: {cls!r} is not a dataclass; put @dataclass below it")
    fields = dataclasses.fields(cls)
    unknown = static - {field.name for field in fields}
    if unknown:
        raise TypeError(f"register_dataclass: {cls.__name__} has no field {', '.join(sorted(unknown))}")
    fixed = tuple(f.name for f in fields if f.name in static or f.metadata.get("static"))
    traced = tuple(f.name for f in fields if f.name not in fixed)
    children_of, settings_of = _values_of(traced), _values_of(fixed)

    def flatten(instance: Any) -> tuple[tuple[Any, ...], Hashable]:
        settings = settings_of(instance)
        return children_of(instance), (settings, tuple(map(type, settings)))  # 1, 1.0 and True are equal

    def unflatten(data: Any, children: Sequence[Any]) -> Any:
        instance = object.__new__(cls)
        for names, values in ((traced, children), (fixed, data[0])):
            for name, value in zip(names, values, strict=True):
                object.__setattr__(instance, name, value)
        return instance

    register(cls, NodeKind(cls.__name__, flatten, unflatten, lambda data, count: traced))
    return cls


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)
