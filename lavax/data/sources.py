"""What a loader reads: arrays, sequences of examples, or streams of them."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np

from lavax.tracer.pytrees import pytree
from lavax.tracer.values.array import Array

Indices = slice | np.ndarray


class Indexed(Protocol):
    """Examples that can be read in any order."""

    def __len__(self) -> int: ...

    def batch(self, indices: Any) -> Any:
        """The examples at these places, as one pytree with them along the first axis."""
        ...


class Arrays:
    """A pytree of arrays with the examples along the first axis of each."""

    def __init__(self, tree: Any) -> None:
        leaves, structure = pytree.flatten(tree)
        self._tree = pytree.unflatten(structure, [_numbers(leaf) for leaf in leaves])
        lengths = {}
        for path, leaf in zip(pytree.paths(structure), pytree.leaves(self._tree), strict=True):
            if not leaf.ndim:
                raise ValueError(f"Loader: {path or 'the source'} has no axis along which examples could lie")
            lengths[path] = len(leaf)
        if len(set(lengths.values())) != 1:
            raise ValueError(f"Loader: all arrays must have one number of examples, got {_listed(lengths)}")
        (self._length,) = set(lengths.values())

    def __len__(self) -> int:
        return self._length

    def batch(self, indices: Indices) -> Any:
        return pytree.map(lambda leaf: leaf[indices], self._tree)


class Examples:
    """A sequence of pytrees, stacked into batches."""

    def __init__(self, examples: Sequence[Any]) -> None:
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def batch(self, indices: Indices) -> Any:
        places = range(*indices.indices(len(self))) if isinstance(indices, slice) else indices.tolist()
        return stacked([self._examples[place] for place in places])


class Stream:
    """Examples that come in one order only; each epoch begins anew."""

    def __init__(self, iterable: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self._iterable = iterable

    def batches(self, size: int, skipped: int) -> Iterator[Any]:
        """Batches of up to `size` examples, after the first `skipped` examples."""
        iterator = iter(self._iterable() if callable(self._iterable) else self._iterable)
        if skipped and iterator is self._iterable:
            raise ValueError(
                "Loader: an iterator cannot go back to a saved position: give a function that makes iterators"
            )
        examples = islice(iterator, skipped, None)
        while group := list(islice(examples, size)):
            yield stacked(group)


def source_of(given: Any) -> Indexed | Stream:
    """The source that a loader was given. Raises TypeError for what is none."""
    if hasattr(given, "batch") and hasattr(given, "__len__"):
        indexed: Indexed = given
        return indexed
    if isinstance(given, (np.ndarray, Array)):
        return Arrays(given)
    if not isinstance(given, list) and pytree.structure(given) is not pytree.LEAF:
        return Arrays(given)
    if hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        return Examples(given)
    if callable(given) or isinstance(given, Iterable):
        return Stream(given)
    raise TypeError(f"Loader: {given!r:.80} is neither arrays, nor a sequence of examples, nor iterable")


def stacked(examples: Sequence[Any]) -> Any:
    """Examples as one pytree, each leaf with one more axis in front."""
    return pytree.map(lambda *leaves: np.stack(leaves), *examples)


def size_of(batch: Any) -> int:
    """The number of examples in a batch: the extent of the first array that is no scalar; 1 if all are."""
    return next((int(np.shape(leaf)[0]) for leaf in pytree.leaves(batch) if np.shape(leaf)), 1)


def _numbers(leaf: Any) -> np.ndarray:
    return np.asanyarray(leaf)


def _listed(lengths: dict[str, int]) -> str:
    return ", ".join(f"{path or 'the top'}: {length}" for path, length in lengths.items())
