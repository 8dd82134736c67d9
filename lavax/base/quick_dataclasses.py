"""Dataclasses that are made in an eighth of the time: lavax has four hundred, which took a third of a first call.

The standard library writes and compiles the text of up to six functions for each. Here those of one class are compiled
for all classes of as many fields, which get the same code with the names of their own.
"""
from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError
from functools import cache
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, **others: Any) -> Any:
        """As dataclasses.dataclass."""

        def made(cls: type) -> type:
            if others or not _is_plain(cls):
                return dataclasses.dataclass(frozen=frozen, eq=eq, **others)(cls)
            return _made(cls, frozen, eq)

        return made if cls is None else made(cls)


# A class that has one of these of its own is left to the standard library.
_OWN = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__slots__")
_NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")  # in annotations
_assign = object.__setattr__
_NO_TEXT = "-"  # in place of which the standard library would ask for the signature, which is not there yet


def _is_plain(cls: type) -> bool:
    """Whether the class has no more than fields with or without values, and inherits none."""
    own, annotations = cls.__dict__, inspect.get_annotations(cls)
    return (
        all(not hasattr(base, "__dataclass_fields__") for base in cls.__mro__[1:])
        and not any(name in own for name in _OWN)
        and not any(isinstance(own.get(name), dataclasses.Field) for name in annotations)
        and not any(word in str(kind) for kind in annotations.values() for word in _NO_FIELDS)
    )


def _made(cls: Any, frozen: bool, eq: bool) -> type:
    text = cls.__doc__
    cls.__doc__ = text or _NO_TEXT
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(cls)
    names = tuple(field.name for field in fields)
    cls.__doc__ = text or f"{cls.__name__}({', '.join(names)})"
    settings = cls.__dataclass_params__
    settings.init, settings.repr, settings.eq, settings.frozen = True, True, eq, frozen
    init: Any = _of_code(_init_code(len(names), frozen, hasattr(cls, "__post_init__")), names)
    init.__defaults__ = tuple(field.default for field in fields if field.default is not dataclasses.MISSING)
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    functions: dict[str, Callable[..., Any]] = {"__init__": init, "__repr__": _representation(names)}
    if eq:
        equal, hashed = _comparison_codes(len(names))
        functions["__eq__"] = _of_code(equal, names)
        cls.__hash__ = _of_code(hashed, names) if frozen else None
    if frozen:
        functions |= _guards(cls, names)
    for name, function in functions.items():
        function.__name__, function.__qualname__ = name, f"{cls.__qualname__}.{name}"
        setattr(cls, name, function)
    return cls  # type: ignore[no-any-return]


def _of_code(code: CodeType, names: tuple[str, ...]) -> FunctionType:
    """The function of a code, with the names of fields in place of numbers."""
    of_place = dict(zip(_places(len(names)), names, strict=True))

    def named(words: Iterable[Any]) -> tuple[Any, ...]:
        return tuple([of_place.get(word, word) if isinstance(word, str) else word for word in words])

    own = code.replace(
        co_varnames=named(code.co_varnames), co_names=named(code.co_names), co_consts=named(code.co_consts)
    )
    return FunctionType(own, globals(), code.co_name)


def _places(count: int) -> list[str]:
    return [f"field_{number}" for number in range(count)]


@cache
def _init_code(count: int, frozen: bool, post: bool) -> CodeType:
    places = _places(count)
    lines = [f"_assign(self, {place!r}, {place})" if frozen else f"self.{place} = {place}" for place in places]
    lines += ["self.__post_init__()"] if post else []
    return _compiled(f"__init__({', '.join(['self', *places])})", lines or ["pass"])


@cache
def _comparison_codes(count: int) -> tuple[CodeType, CodeType]:
    """The codes of `__eq__` and `__hash__`.

    Fields are compared as tuples, in which an object equals itself: keys of caches that hold a NaN are found again. The
    standard library compares them so up to Python 3.12.
    """
    mine, others = ("".join(f"{owner}.{place}, " for place in _places(count)) for owner in ("self", "other"))
    equal = f"return ({mine}) == ({others}) if other.__class__ is self.__class__ else NotImplemented"
    return _compiled("__eq__(self, other)", [equal]), _compiled("__hash__(self)", [f"return hash(({mine}))"])


def _compiled(head: str, lines: list[str]) -> CodeType:
    made: dict[str, Any] = {}
    exec(f"def {head}:\n  " + "\n  ".join(lines), made)
    code: CodeType = made[head.partition("(")[0]].__code__
    return code


def _representation(names: tuple[str, ...]) -> Callable[..., Any]:
    @recursive_repr()
    def shown(self: Any) -> str:
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({fields})"

    return shown


def _guards(cls: type[Any], names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    """What refuses to change fields; classes that inherit from this one may have attributes of their own."""

    def assigned(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def deleted(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": assigned, "__delattr__": deleted}
