"""Loaders: every example once an epoch, the same order from the same seed, and resumed at any batch."""
from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.data import Loader, tokens
from lavax.data.sources import size_of

pytestmark = pytest.mark.usefixtures("reference_backend")

NUMBERS = np.arange(23, dtype=np.float32)


def lists(loader: Loader) -> list[list[float]]:
    return [np.asarray(batch).tolist() for batch in loader]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_an_epoch_has_every_example_once_in_an_order_of_its_own(prefetch: int) -> None:
    loader = Loader(NUMBERS, 5, shuffle=True, seed=3, drop_last=False, prefetch=prefetch)
    epochs = [lists(loader) for _ in range(3)]
    assert len(loader) == 5 and loader.epoch == 3
    for epoch in epochs:
        assert [len(batch) for batch in epoch] == [5, 5, 5, 5, 3]
        assert sorted(number for batch in epoch for number in batch) == NUMBERS.tolist()
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert lists(Loader(NUMBERS, 5, shuffle=True, seed=3, drop_last=False)) == epochs[0]
    assert lists(Loader(NUMBERS, 5, shuffle=True, seed=4, drop_last=False)) != epochs[0]


def test_the_order_is_the_same_for_ever() -> None:
    first = next(iter(Loader(np.arange(100), 8, shuffle=True, seed=7)))
    assert first.tolist() == [52, 15, 97, 13, 78, 90, 8, 12]


def test_batches_are_on_the_device_with_the_structure_of_the_source() -> None:
    loader = Loader({"x": NUMBERS.reshape(23, 1), "y": (np.arange(23), None)}, 4)
    batches = list(loader)
    assert len(batches) == len(loader) == 5, "what does not fill a batch is left out"
    assert isinstance(batches[1]["x"], lx.Array) and batches[1]["x"].shape == (4, 1)
    assert batches[1]["y"][0].tolist() == [4, 5, 6, 7] and batches[1]["y"][1] is None
    assert isinstance(next(iter(Loader(NUMBERS, 4, to_device=False))), np.ndarray)
    with lx.enable_x64():
        assert next(iter(Loader(np.arange(4.0), 2))).dtype == np.float64, "settings hold in the thread"


class Squares:
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"n": index, "square": np.float32(index**2)}


def stream() -> Iterator[tuple[int, float]]:
    yield from ((n, n**2) for n in range(10))


@pytest.mark.parametrize("source", [Squares(), [Squares()[n] for n in range(10)]], ids=["sequence", "list"])
def test_examples_are_stacked(source: Any) -> None:
    first, second = Loader(source, 4)
    assert first["n"].tolist() == [0, 1, 2, 3] and second["square"].tolist() == [16, 25, 36, 49]
    shuffled = [int(n) for batch in Loader(source, 5, shuffle=True) for n in batch["n"]]
    assert sorted(shuffled) == list(range(10)) and shuffled != list(range(10))


@pytest.mark.parametrize(
    ("make", "streams"),
    [
        (lambda: Loader(NUMBERS, 4, shuffle=True, seed=1), False),
        (lambda: Loader(NUMBERS, 4, shuffle=True, drop_last=False, prefetch=0), False),
        (lambda: Loader(NUMBERS, 4, transform=lambda batch, rng: batch + rng.random(4, np.float32)), False),
        (lambda: Loader(Squares(), 3, shuffle=True), False),
        (lambda: Loader(stream, 3), True),
        (lambda: Loader(range(20), 4, prefetch=5), False),
        (lambda: Loader(tokens(np.arange(50), 4), 3, shuffle=True), False),
    ],
)
@pytest.mark.parametrize("stopped", [1, 3, 4, 7])
def test_it_goes_on_where_it_was(make: Any, streams: bool, stopped: int) -> None:
    def some(loader: Loader, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            for batch in loader:
                found.append(lx.tree.map(lambda leaf: np.asarray(leaf).tolist(), batch))
                if len(found) == count:
                    break
        return found

    whole = some(make(), 12)
    first = make()
    begun = some(first, stopped)
    state = json.loads(json.dumps(first.state()))
    time.sleep(0.01)  # the thread may be ahead
    second = make()
    second.restore(state)
    assert begun + some(second, 12 - stopped) == whole
    assert second.state()["epoch"] == 12 // (3 if streams else len(second))
    assert begun + some(first, 12 - stopped) == whole, "a loop that was left by break is gone on with"


@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_without_end_go_through_epoch_after_epoch(prefetch: int) -> None:
    by_epoch = Loader(NUMBERS, 5, shuffle=True, prefetch=prefetch)
    wanted = [batch for _ in range(3) for batch in lists(by_epoch)]
    loader = Loader(NUMBERS, 5, shuffle=True, prefetch=prefetch)
    found = []
    for batch in loader.batches():
        found.append(np.asarray(batch).tolist())
        assert loader.epoch == len(found) // 4
        if len(found) == 12:
            break
    assert found == wanted and loader.state() == by_epoch.state()
    assert len(list(loader.batches(epochs=2))) == 8
    with pytest.raises(ValueError, match="epoch 0 has no batch of 30 examples"):
        next(Loader(stream, 30, prefetch=prefetch).batches())


def test_arrays_of_the_device_keep_their_dtype() -> None:
    numbers = lx.device_put(NUMBERS).astype("bfloat16")
    assert next(iter(Loader(numbers, 4))).dtype == numbers.dtype


def test_a_state_of_other_settings_is_refused() -> None:
    state = Loader(NUMBERS, 4, seed=1).state()
    with pytest.raises(ValueError, match="the state is of batch_size 4, not 5"):
        Loader(NUMBERS, 5, seed=1).restore(state)
    with pytest.raises(ValueError, match="the state is of examples 23, not 22"):
        Loader(NUMBERS[1:], 4, seed=1).restore(state)
    iterator = Loader(stream(), 3)
    assert len(list(iterator)) == 3
    again = Loader(stream(), 3)
    again.restore({**again.state(), "batch": 1})
    with pytest.raises(ValueError, match="give a function that makes iterators"):
        list(again)


def test_batches_are_made_ahead_and_no_further() -> None:
    made: list[int] = []

    class Counting(Squares):
        def __getitem__(self, index: int) -> dict[str, Any]:
            made.append(index)
            return super().__getitem__(index)

    iterator = iter(Loader(Counting(), 1, prefetch=2))
    next(iterator)
    deadline = time.monotonic() + 5
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert 4 <= len(made) <= 6, "one handed out, two waiting, one held to see whether it is the last, one at hand"
    iterator.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name == "lavax data"]


def test_an_error_comes_where_its_batch_would_have() -> None:
    class Failing(Squares):
        def __getitem__(self, index: int) -> dict[str, Any]:
            if index == 4:
                raise RuntimeError("example 4")
            return super().__getitem__(index)

    iterator = iter(Loader(Failing(), 2, prefetch=4))
    assert next(iterator)["n"].tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="example 4"):
        list(iterator)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((np.zeros(3), np.zeros((4, 2))), 2), ValueError, "one number of examples, got 0: 3, 1: 4"),
        (({"x": np.float32(1)}, 2), ValueError, "x has no axis"),
        ((np.zeros(3), 0), ValueError, "batch_size must be at least 1, got 0"),
        ((np.zeros(3), 4), ValueError, "3 examples make no batch of 4"),
        ((1.5, 4), TypeError, "neither arrays, nor a sequence"),
    ],
)
def test_bad_sources_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Loader(*arguments)


def test_streams_have_no_order_and_no_length() -> None:
    with pytest.raises(ValueError, match="only what has a length can be shuffled"):
        Loader(stream, 2, shuffle=True)
    with pytest.raises(TypeError, match="no length"):
        len(Loader(stream, 2))


def test_the_size_of_a_batch_is_that_of_its_arrays() -> None:
    assert size_of({"a": np.float32(1), "b": np.zeros((3, 2))}) == 3 and size_of(1.0) == size_of(()) == 1


def test_windows_of_tokens(tmp_path: Path) -> None:
    corpus = np.arange(12, dtype=np.uint16)
    windows = tokens(corpus, 4)
    assert len(windows) == 2
    assert [[part.tolist() for part in windows[n]] for n in (0, -1)] == [
        [[0, 1, 2, 3], [1, 2, 3, 4]],
        [[4, 5, 6, 7], [5, 6, 7, 8]],
    ]
    assert len(tokens(corpus, 4, stride=1)) == 8 and tokens(corpus, 4, stride=1)[7][1].tolist() == [8, 9, 10, 11]
    np.save(tmp_path / "a.npy", corpus)
    corpus.tofile(tmp_path / "a.bin")
    corpus.astype("u4").tofile(tmp_path / "wide.bin")
    for found in (
        tokens(tmp_path / "a.npy", 4),
        tokens(str(tmp_path / "a.bin"), 4),
        tokens(tmp_path / "wide.bin", 4, dtype="u4"),
    ):
        ((inputs, targets),) = Loader(found, 2)
        assert inputs.dtype == np.int32 and inputs.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert targets.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    for wrong, error, message in (
        (corpus[:4], ValueError, "need more than 4 tokens"),
        (np.zeros(9), TypeError, "tokens are integers"),
        (np.zeros((3, 3), int), ValueError, "one axis"),
    ):
        with pytest.raises(error, match=message):
            tokens(wrong, 4)
    with pytest.raises(IndexError, match="there are 2 windows, got the index 2"):
        windows[2]
