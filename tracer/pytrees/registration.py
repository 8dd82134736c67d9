"""Classes of the user's own as containers."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar, overload

from lavax.ir.location import user_error
from lavax.tracer.pytrees.keys import FlattenedIndexKey, GetAttrKey
from lavax.tracer.pytrees.pytree import NodeKind, register
from lavax.tracer.pytrees.settings import hashable, plain

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

    def by_name(data: Any, count: int) -> Iterable[Any]:
        if child_names is None:
            return map(FlattenedIndexKey, range(count))
        return map(GetAttrKey, child_names(data, count))

    register(cls, NodeKind(cls.__name__, flatten, unflatten, by_name, cls))
    return cls


@overload
def register_dataclass(
    nodetype: _Class,
    /,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] | None = None,
    drop_fields: Iterable[str] = (),
) -> _Class: ...
@overload
def register_dataclass(*, static: Iterable[str] = ()) -> Callable[[_Class], _Class]: ...
def register_dataclass(
    nodetype: Any = None,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] | None = None,
    drop_fields: Iterable[str] = (),
    *,
    static: Iterable[str] = (),
) -> Any:
    """Class decorator: makes a dataclass a container whose fields are its children.

    Fields named in `static` or `meta_fields`, or made by `tree.static` or `dataclasses.field(metadata={"static":
    True})`, are not children but part of the structure: settings, whose equality decides whether a compiled function
    runs a program that it has. A hash makes that fast. `data_fields` names the children, in their order; both lists are
    given or neither. `drop_fields` are in neither.

    `__init__` and `__post_init__` do not run when an instance is rebuilt, unless there are `drop_fields`, or `nodetype`
    is no dataclass: then the class is called with the fields by name. Raises TypeError if `nodetype` is neither a
    dataclass nor has `data_fields`, ValueError if the lists name fields that it lacks, leave some out, or share one.
    """
    if nodetype is None:
        return lambda decorated: _registered(decorated, None, frozenset(static), ())
    if (data_fields is None) != (meta_fields is None):
        raise user_error(TypeError, "register_dataclass: give both data_fields and meta_fields, or neither")
    data = None if data_fields is None else tuple(data_fields)
    return _registered(nodetype, data, frozenset((*static, *(meta_fields or ()))), tuple(drop_fields))


def register_fixed_dataclass(cls: Any) -> None:
    """As `register_dataclass`, for a class whose instances never change and have a slot named `_flattened`."""
    _registered(cls, None, frozenset(), (), is_fixed=True)


def _registered(
    cls: Any, data: tuple[str, ...] | None, static: frozenset[str], dropped: tuple[str, ...], is_fixed: bool = False
) -> Any:
    traced, fixed = _fields(cls, data, static, dropped)
    children_of, settings_of = _values_of(traced), _values_of(fixed)
    names = (*traced, *fixed)
    calls = bool(dropped) or not dataclasses.is_dataclass(cls)
    has_slots = any(hasattr(getattr(cls, name, None), "__set__") for name in names) or not cls.__dictoffset__

    def flatten(instance: Any) -> tuple[tuple[Any, ...], Hashable]:
        settings = settings_of(instance)
        return children_of(instance), (hashable(settings), tuple(map(type, settings)))  # 1, 1.0 and True are equal

    def unflatten(data: Any, children: Sequence[Any]) -> Any:
        values = zip(names, (*children, *plain(data[0])), strict=True)
        if calls:
            return cls(**dict(values))
        instance = object.__new__(cls)
        if has_slots:
            for name, value in values:
                object.__setattr__(instance, name, value)
        else:
            instance.__dict__.update(values)
        return instance

    keys = tuple(map(GetAttrKey, traced))
    kind = NodeKind(cls.__name__, flatten, unflatten, lambda data, count: keys, cls)
    register(cls, dataclasses.replace(kind, is_fixed=is_fixed, keeps_leaves=is_fixed))
    return cls


def _fields(
    cls: Any, data: tuple[str, ...] | None, static: frozenset[str], dropped: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the children and of the settings."""
    is_dataclass = isinstance(cls, type) and dataclasses.is_dataclass(cls)
    if not is_dataclass and (data is None or not isinstance(cls, type)):
        raise user_error(TypeError, f"register_dataclass: {cls!r} is not a dataclass; put @dataclass below it")
    if not is_dataclass:
        return data or (), tuple(sorted(static))
    fields = [each for each in dataclasses.fields(cls) if each.name not in dropped]
    unknown = {*static, *(data or ())} - {each.name for each in fields}
    if unknown:
        raise user_error(ValueError, f"register_dataclass: {cls.__name__} has no field {', '.join(sorted(unknown))}")
    if data is not None:
        both = static.intersection(data)
        if both:
            text = f"{', '.join(sorted(both))} of {cls.__name__} cannot be both data and settings"
            raise user_error(ValueError, f"register_dataclass: {text}")
        missing = [each.name for each in fields if each.init and each.name not in (*data, *static)]
        if missing:
            raise user_error(
                ValueError,
                f"register_dataclass: {', '.join(missing)} of {cls.__name__} stands in none of data_fields, "
                "meta_fields and drop_fields",
            )
        return data, tuple(each.name for each in fields if each.name in static)
    fixed = tuple(each.name for each in fields if each.name in static or each.metadata.get("static"))
    return tuple(each.name for each in fields if each.name not in fixed), fixed


def static_field(*, metadata: Any = None, **settings: Any) -> Any:
    """A field of a dataclass that `register_dataclass` takes as a setting, made as by `dataclasses.field`."""
    return dataclasses.field(metadata={"static": True, **(metadata or {})}, **settings)


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)
