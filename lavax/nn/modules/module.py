"""The base class of layers and models: dataclasses whose fields are the children of a pytree."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np

from lavax.tracer.pytrees.registration import register_fixed_dataclass
from lavax.tracer.values.value import Value

__all__ = ["Module", "field"]

_MISSING: Any = dataclasses.MISSING


def field(*, static: bool = False, default: Any = _MISSING, default_factory: Callable[[], Any] = _MISSING) -> Any:
    """A field of a module.

    A `static` field is a setting: part of the structure, not a leaf. It must be hashable, and a compiled function is
    traced anew for every value of it. All other fields hold arrays, modules, or containers of them.
    """
    return dataclasses.field(default=default, default_factory=default_factory, metadata={"static": static})


@dataclass_transform(eq_default=False, field_specifiers=(field, dataclasses.field))
class Module:
    """A dataclass that is a pytree: its fields are its children, so that `grad`, `vmap` and `tree.map` see its arrays.

        class Scale(nn.Module):
            factor: lx.Array
            name: str = nn.field(static=True, default="scale")

            def __call__(self, x):
                return x * self.factor

    Subclasses need no decorator. A class may define `__init__`, which assigns each field once; without one, it gets
    the constructor of a dataclass. Instances never change: `replace` makes others.
    """

    __slots__ = ("__dict__", "__weakref__", "_flattened")
    _has_constructor: ClassVar[bool] = False
    _field_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, init: bool = True, **arguments: Any) -> None:
        """`init=False` tells type checkers that the class has the constructor of its base."""
        super().__init_subclass__(**arguments)
        cls._has_constructor = "__init__" in cls.__dict__ or cls._has_constructor or not init
        made: Any = dataclasses.dataclass(eq=False, repr=False, init=not cls._has_constructor)(cls)
        cls._field_names = tuple(entry.name for entry in dataclasses.fields(made))
        register_fixed_dataclass(made)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self).__name__
        if name not in self._field_names:
            raise AttributeError(f"{kind} has no field {name!r}; declare it in the class: `{name}: lx.Array`")
        if self.__dict__.get(name, value) is not value:  # an array that is written stays that array: layer.bias += 1
            raise AttributeError(f"{kind}.{name} is set already, and modules do not change: use replace({name}=...)")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted: modules do not change")

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__  # of copies and pickles, which are flattened anew

    def replace(self, **fields: Any) -> Self:
        """The same module with other values in these fields. Raises TypeError for a field that it does not have."""
        unknown = fields.keys() - set(self._field_names)
        if unknown:
            raise TypeError(f"{type(self).__name__}.replace: no field {', '.join(sorted(unknown))}")
        made = object.__new__(type(self))
        for name in self._field_names:
            object.__setattr__(made, name, fields[name] if name in fields else getattr(self, name))
        return made

    def __repr__(self) -> str:
        """Fields with the shapes of arrays, not their numbers: `Linear(weight=f32[2,3], bias=f32[2])`."""
        shown = (f"{name}={_short(getattr(self, name, None))}" for name in self._field_names)
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    if isinstance(value, Value):
        return str(value.type)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = (f"{name}={_short(part)}" for name, part in zip(value._fields, value, strict=True))
        return f"{type(value).__name__}({', '.join(parts)})"
    if type(value) in (tuple, list):
        left, right = "()" if type(value) is tuple else "[]"
        return f"{left}{', '.join(map(_short, value))}{',' if len(value) == 1 and left == '(' else ''}{right}"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    return repr(value)
