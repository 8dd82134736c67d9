"""Arrays of random keys: their dtype is `key<fry>`, and their elements are pairs of words, which only draws may read.

An array of keys is a container of its words, uint32 [..., 2], to all that traces (tracer/tracing/key_nodes.py), and one
leaf to those who use pytrees (tracer/pytrees/key_trees.py). So programs have words alone, and nothing below knows of
keys.
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Self

import numpy as np

from lavax.base.errors import DtypeError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import user_error
from lavax.ir.types import uint32
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import AS_NUMPY, Value

GENERATOR = "threefry2x32"


class extended(np.generic):  # noqa: N801 – JAX's name
    """The class of dtypes that are no numbers."""


class prng_key(extended):  # noqa: N801 – JAX's name
    """The class of the dtypes of random keys."""


@dataclass(frozen=True)
class KeyDtype:
    """The dtype of keys of the generator Threefry. NumPy has no such dtype, and numerical functions do not take it."""

    name: str = "key<fry>"
    itemsize: int = 8
    type: type = prng_key

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


KEY = KeyDtype()


class KeyOperandError(DtypeError):
    """Keys are used as numbers."""


class KeyArray(Value):
    """An array of keys: `words` are its numbers, uint32 of its shape and a last axis of 2.

    `lavax.numpy` adds indexing and the methods that move elements. Whatever asks for its type asks for numbers, and
    gets a KeyOperandError.
    """

    __slots__ = ("__weakref__", "words")

    def __init__(self, words: Value) -> None:
        if words.type.dtype != uint32 or words.shape[-1:] != (2,):
            raise user_error(DtypeError, f"keys are uint32 [..., 2], two words each; got {words.type}")
        self.words = words

    @property
    def abstract(self) -> Any:  # type: ignore[override]  # of the words there is one
        raise user_error(
            KeyOperandError,
            f"an array of random keys ({self._kind}) has no numbers: draw from it by the functions of lavax.random, or "
            "take its words by lavax.random.key_data",
        )

    @property
    def _kind(self) -> str:
        return f"{KEY}[{','.join(map(str, self.shape))}]"

    @property
    def type(self) -> Any:
        return self.abstract

    splat = type
    weak = weak_type = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.words.shape[:-1]

    @property
    def dtype(self) -> Any:
        return KEY

    @property
    def ndim(self) -> int:
        return self.words.ndim - 1

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of a key."""
        return KEY.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all keys."""
        return self.size * KEY.itemsize

    def block_until_ready(self) -> Self:
        self.words.block_until_ready()
        return self

    def to_host(self, wanted: str) -> np.ndarray:
        what = "a NumPy array" if wanted == AS_NUMPY else f"what {wanted} gives"
        raise user_error(
            KeyOperandError,
            f"an array of random keys ({self._kind}) cannot be converted to {what}: take its words by "
            "lavax.random.key_data",
        )

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        if not isinstance(self.words, Array):
            return f"Tracer({self._kind} of {self.words!r})"
        return f"Array({self.shape}, dtype={KEY}) overlaying:\n{self.words}"

    __str__ = __repr__

    def __copy__(self) -> KeyArray:
        return KeyArray(self.words)

    def __deepcopy__(self, memo: Any) -> KeyArray:
        return KeyArray(self.words)

    def __reduce__(self) -> tuple[Callable[..., KeyArray], tuple[Value]]:
        return KeyArray, (self.words,)
