"""Frozen dataclasses of which a program takes a hundred thousand."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeVar, dataclass_transform

from lavax.base.quick_dataclasses import dataclass

_Made = TypeVar("_Made")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def often_made(*, eq: bool = False, slots: bool = False) -> Callable[[type[_Made]], type[_Made]]:
    """A frozen dataclass, to the type checker: Python itself takes three times as long to make one that it guards.

    It is compared by identity, or with `eq` by its fields.
    """
    return dataclass(eq=eq, unsafe_hash=eq, slots=slots)
