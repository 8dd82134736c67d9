"""Batches of examples: shuffled, uploaded ahead, and resumable at every batch."""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from itertools import count
from typing import Any

import numpy as np

from lavax.data.order import generator, shuffled
from lavax.data.prefetch import prefetched
from lavax.data.sources import Stream, size_of, source_of
from lavax.tracer.tracing.placement import device_put

_ABOUT = ("batch_size", "drop_last", "examples", "seed", "shuffle")  # what must agree for a position to mean the same


class Loader:
    """Batches for training, on the device; a `for` loop over it is an epoch.

        loader = data.Loader((images, labels), batch_size=64, shuffle=True, seed=0)
        for images, labels in loader:
            ...

    `source`: a pytree of arrays with examples along their first axis (NumPy's, those that `io.load` maps, or those
    of the device; tuples, dicts and dataclasses are pytrees); a list or other sequence of examples, which are pytrees
    themselves; or an iterable of examples, or a function that returns one for each epoch.

    `shuffle` orders every epoch anew, by `seed` alone. With `drop_last`, the default, examples that do not fill a
    batch are left out of an epoch: a smaller batch would need another compiled program. `transform(batch, rng)` changes
    a batch of NumPy arrays; `rng`, a `numpy.random.Generator`, is the same for the same batch of the same epoch.
    A thread prepares and uploads up to `prefetch` batches while the program works on the one before; 0 does without a
    thread. With `to_device=False` batches stay NumPy arrays.

    `state()` is the position as a dict that JSON can hold: that of the batches handed out, not of those prepared. After
    `restore(state)` the next loop goes on there, with the same batches as if it had never stopped. A loop that was
    left by `break` is also gone on with.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int,
        *,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = True,
        transform: Callable[[Any, np.random.Generator], Any] | None = None,
        prefetch: int = 2,
        to_device: bool = True,
    ) -> None:
        for name, number, least in (("batch_size", batch_size, 1), ("prefetch", prefetch, 0), ("seed", seed, 0)):
            if number < least:
                raise ValueError(f"Loader: {name} must be at least {least}, got {number}")
        self._source = source_of(source)
        if shuffle and isinstance(self._source, Stream):
            raise ValueError("Loader: only what has a length can be shuffled, not a stream: shuffle what makes it")
        self._size, self._shuffle, self._seed, self._drop_last = batch_size, shuffle, seed, drop_last
        self._transform, self._prefetch, self._to_device = transform, prefetch, to_device
        if not isinstance(self._source, Stream) and not len(self):
            raise ValueError(f"Loader: {len(self._source)} examples make no batch of {batch_size}")
        self._epoch, self._batch = 0, 0

    def __len__(self) -> int:
        """The number of batches in an epoch. Raises TypeError for a stream."""
        if isinstance(self._source, Stream):
            raise TypeError("Loader: a stream of examples has no length")
        examples = len(self._source)
        return examples // self._size if self._drop_last else -(-examples // self._size)

    @property
    def epoch(self) -> int:
        """The number of epochs that are done."""
        return self._epoch

    def state(self) -> dict[str, Any]:
        """The position behind the last batch that was handed out, for `restore`."""
        return {"epoch": self._epoch, "batch": self._batch, **self._about()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes to a position. Raises ValueError if it is of a loader with other settings."""
        about = self._about()
        for name in _ABOUT:
            if state.get(name) != about[name]:
                raise ValueError(f"Loader.restore: the state is of {name} {state.get(name)}, not {about[name]}")
        self._epoch, self._batch = int(state["epoch"]), int(state["batch"])

    def __iter__(self) -> Generator[Any, None, None]:
        return self.batches(epochs=1)

    def batches(self, epochs: int | None = None) -> Generator[Any, None, None]:
        """The batches of so many epochs, or without end, from the position on.

        Between epochs the thread goes on, so that the first batches of the next one are ready in time. Raises
        ValueError for an epoch without batches.
        """
        prepared = prefetched(self._prepared_epochs(self._epoch, self._batch, epochs), self._prefetch)
        try:
            for batch, position in prepared:
                self._epoch, self._batch = position
                yield batch
        finally:
            prepared.close()  # ends the thread

    def _prepared_epochs(
        self, epoch: int, first: int, epochs: int | None
    ) -> Iterator[tuple[Any, tuple[int, int]]]:
        """Batches, each with the position behind it."""
        for number in count(epoch) if epochs is None else range(epoch, epoch + epochs):
            behind = first
            for batch, is_last in _with_last(self._prepared(number, first)):
                behind += 1
                yield batch, (number + 1, 0) if is_last else (number, behind)
            if not behind:
                raise ValueError(f"Loader: epoch {number} has no batch of {self._size} examples")
            first = 0

    def _prepared(self, epoch: int, first: int) -> Iterator[Any]:
        """The batches of an epoch from number `first` on."""
        for number, batch in enumerate(self._read(epoch, first), first):
            if self._transform is not None:
                batch = self._transform(batch, generator(self._seed, epoch, number))
            yield device_put(batch) if self._to_device else batch

    def _read(self, epoch: int, first: int) -> Iterator[Any]:
        source, size = self._source, self._size
        if isinstance(source, Stream):
            for batch in source.batches(size, first * size):
                if size_of(batch) == size or not self._drop_last:
                    yield batch
            return
        order = shuffled(len(source), self._seed, epoch) if self._shuffle else None
        for number in range(first, len(self)):
            places = slice(number * size, min((number + 1) * size, len(source)))
            yield source.batch(places if order is None else order[places])

    def _about(self) -> dict[str, Any]:
        examples = None if isinstance(self._source, Stream) else len(self._source)
        return dict(zip(_ABOUT, (self._size, self._drop_last, examples, self._seed, self._shuffle), strict=True))


def _with_last(items: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    """Each item, and whether it is the last."""
    held: list[Any] = []
    for item in items:
        if held:
            yield held.pop(), False
        held.append(item)
    for item in held:
        yield item, True
