"""What a function rests on besides its arguments, so that a trace serves as long as none of it has changed.

The walk goes through closures, default arguments, global variables, attributes of the user's modules, classes and
objects. Arrays count by their memory, NumPy arrays by their numbers. Functions and classes of libraries count by
identity: their own state is not looked at.
"""
from __future__ import annotations

import enum
import functools
import hashlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from lavax.ir.exact_text import exact_text
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value

_LIBRARIES = (sys.stdlib_module_names - {"__main__", "test"}) | {"lavax", "numpy", "scipy"}
_MOST_ATOMS = 20_000  # beyond these, comparing takes as long as tracing
_MOST_BYTES = 1 << 24  # of a NumPy array whose numbers are compared
_PLAIN = (type(None), bool, int, str, bytes, type(Ellipsis), type(NotImplemented))
_BY_IDENTITY = (enum.Enum, np.dtype, np.ufunc, types.WrapperDescriptorType, types.MethodDescriptorType)
_WRAPPERS = (staticmethod, classmethod, functools.cached_property, functools._lru_cache_wrapper)
# Of a class, these say nothing about what its methods do.
_BOOKKEEPING = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__match_args__", "__slots__"}
    | {"__slotnames__", "_abc_impl", "__abstractmethods__", "__static_attributes__", "__firstlineno__"}
    | {"__dataclass_fields__", "__dataclass_params__"}
)


class _UnseenError(Exception):
    """There is something whose state cannot be seen."""


class State:
    """What a function rests on at one moment. Equal states of one function give equal traces."""

    __slots__ = ("_atoms", "_held")

    def __init__(self, atoms: list[Any], held: list[Any]) -> None:
        self._atoms = atoms
        self._held = held  # so that an identity among the atoms stays that of one object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self._atoms == other._atoms

    __hash__ = None  # type: ignore[assignment]


def state_of(function: Callable[..., Any]) -> State | None:
    """What `function` rests on now; None if part of it cannot be seen, or if it is too much to compare."""
    walk = _Walk()
    try:
        walk.visit(function, ())
    except Exception:  # a user's object may refuse to be looked at in any way
        return None
    return State(walk.atoms, walk.held)


class _Walk:
    """A walk through everything that can be reached from a function."""

    def __init__(self) -> None:
        self.atoms: list[Any] = []
        self.held: list[Any] = []
        self._places: dict[int, int] = {}  # of the objects met, by identity

    def visit(self, value: Any, names: tuple[str, ...]) -> None:
        """Adds `value`, of which a function's code uses attributes of these names."""
        if len(self.atoms) > _MOST_ATOMS:
            raise _UnseenError
        kind = type(value)
        if kind in _PLAIN:
            self.atoms += (kind, value)
        elif kind is float or kind is complex:
            self.atoms += (kind, exact_text(value))  # 0.0 and -0.0 are equal
        elif id(value) in self._places and not isinstance(value, types.ModuleType):
            self.atoms.append(self._places[id(value)])
        else:
            self._places[id(value)] = len(self._places)
            self.held.append(value)
            self._visit_object(value, kind, names)

    def _visit_object(self, value: Any, kind: type, names: tuple[str, ...]) -> None:
        for classes, visit in _VISITS:
            if isinstance(value, classes):
                visit(self, value, names)
                return
        self._visit_instance(value, kind, names)

    def identity(self, value: Any, names: tuple[str, ...] = ()) -> None:
        self.held.append(value)
        self.atoms.append(id(value))

    def array(self, value: Value, names: tuple[str, ...]) -> None:
        if not isinstance(value, Array):
            raise _UnseenError  # a tracer
        self.atoms += (value.abstract, exact_text(value.splat))
        if value.splat is None:
            self.identity(value.memory)

    def numbers(self, value: np.ndarray | np.generic, names: tuple[str, ...]) -> None:
        if value.dtype.hasobject or value.nbytes > _MOST_BYTES:
            raise _UnseenError
        self.atoms += (type(value), value.shape, value.dtype.str, hashlib.blake2b(value.tobytes()).digest())

    def several(self, value: Any, names: tuple[str, ...]) -> None:
        self.atoms += (type(value), len(value))
        for item in value:
            self.visit(item, names)

    def mapping(self, value: dict[Any, Any], names: tuple[str, ...]) -> None:
        self.atoms += (type(value), len(value))
        for key, item in value.items():
            self.visit(key, names)
            self.visit(item, names)

    def members(self, value: Any, names: tuple[str, ...]) -> None:
        if not all(type(item) in _PLAIN for item in value):
            raise _UnseenError  # their order says nothing
        self.atoms += (type(value), frozenset((type(item), item) for item in value))

    def module(self, value: types.ModuleType, names: tuple[str, ...]) -> None:
        self.identity(value)
        if not _is_of_library(value.__name__):
            for name in names:
                if name in vars(value):
                    self.atoms.append(name)
                    self.visit(vars(value)[name], names)

    def function(self, value: types.FunctionType, names: tuple[str, ...]) -> None:
        if _is_of_library(value.__module__):
            self.identity(value)
            return
        self.identity(value.__code__)
        self.visit(value.__defaults__, ())
        self.visit(value.__kwdefaults__, ())
        used = _names_in(value.__code__)
        for cell in value.__closure__ or ():
            self.visit(_content(cell), used)
        for name in used:
            found = value.__globals__.get(name, sys.modules.get(name))  # a module may be imported in the body
            if found is not None:
                self.atoms.append(name)
                self.visit(found, used)

    def method(self, value: types.MethodType, names: tuple[str, ...]) -> None:
        self.visit(value.__func__, names)
        self.visit(value.__self__, names)

    def partial(self, value: functools.partial[Any], names: tuple[str, ...]) -> None:
        for part in (value.func, value.args, value.keywords):
            self.visit(part, names)

    def bound_builtin(self, value: Any, names: tuple[str, ...]) -> None:
        self.atoms.append(value.__name__)
        if isinstance(value.__self__, types.ModuleType):
            self.identity(value)
        else:
            self.visit(value.__self__, names)

    def wrapper(self, value: Any, names: tuple[str, ...]) -> None:
        self.visit(value.func if isinstance(value, functools.cached_property) else value.__wrapped__, names)

    def property(self, value: property, names: tuple[str, ...]) -> None:
        self.visit(value.fget, names)

    def cls(self, value: type, names: tuple[str, ...]) -> None:
        self.identity(value)
        for base in value.__mro__:
            attributes = {} if _is_of_library(base.__module__) else dict(vars(base))
            for name, attribute in attributes.items():
                if name not in _BOOKKEEPING and not isinstance(attribute, _DESCRIPTORS):
                    self.atoms.append(name)
                    self.visit(attribute, names)

    def _visit_instance(self, value: Any, kind: type, names: tuple[str, ...]) -> None:
        """What pickle would write of an object is what there is to see of it."""
        self.visit(kind, names)
        written = value.__reduce_ex__(2)
        if isinstance(written, str):  # the name of one object
            self.identity(value)
            return
        _, *parts = written
        for part in parts:
            self.visit(part if part is None or isinstance(part, (tuple, dict)) else tuple(part), names)


_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
# The first row whose classes a value belongs to says how it is looked at.
_VISITS: tuple[tuple[Any, Callable[[_Walk, Any, tuple[str, ...]], None]], ...] = (
    (Value, _Walk.array),
    ((np.ndarray, np.generic), _Walk.numbers),
    ((tuple, list), _Walk.several),
    (dict, _Walk.mapping),
    (types.MappingProxyType, _Walk.mapping),
    ((set, frozenset), _Walk.members),
    (types.ModuleType, _Walk.module),
    (types.FunctionType, _Walk.function),
    (types.MethodType, _Walk.method),
    (functools.partial, _Walk.partial),
    (types.BuiltinFunctionType, _Walk.bound_builtin),
    (_WRAPPERS, _Walk.wrapper),
    (property, _Walk.property),
    (type, _Walk.cls),
    (_BY_IDENTITY, _Walk.identity),
)


def _is_of_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=1024)
def _names_in(code: types.CodeType) -> tuple[str, ...]:
    """The names of globals and attributes that a function's code uses, with those of the functions inside it."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names_in(part)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _content(cell: types.CellType) -> Any:
    """The value of a closure's variable; NotImplemented before it has one."""
    try:
        return cell.cell_contents
    except ValueError:
        return NotImplemented
