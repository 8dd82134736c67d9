"""Keys and bits: the numbers of the published generator, wherever and however they are computed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import random
from lavax.base.errors import DtypeError, ShapeError
from lavax.ir import interpret
from tests.lavax.numpy.arrays import traced

KEYS: list[tuple[Callable[[], Any], Any]] = [
    (lambda: random.key(0), [0, 0]),
    (lambda: random.key(42), [0, 42]),
    (lambda: random.key(-1), [0, 2**32 - 1]),
    (lambda: random.key(2**40 + 5), [0, 5]),
    (lambda: random.key(np.uint32(2**32 - 1)), [0, 2**32 - 1]),
    (lambda: random.key(lx.numpy.asarray(-2)), [0, 2**32 - 2]),
    (
        lambda: random.split(random.key(0), 3),
        [[1797259609, 2579123966], [928981903, 3453687069], [4146024105, 2718843009]],
    ),
    (lambda: random.split(random.key(42)), [[1832780943, 270669613], [64467757, 2916123636]]),
    (
        lambda: random.split(random.key(0), (2, 2)),
        [[[1797259609, 2579123966], [928981903, 3453687069]], [[4146024105, 2718843009], [2467461003, 3840466878]]],
    ),
    (lambda: random.fold_in(random.key(0), 7), [2716826189, 292468403]),
    (lambda: random.fold_in(random.key(0), lx.numpy.asarray(7)), [2716826189, 292468403]),
    (lambda: random.bits(random.key(42), (5,)), [2098992034, 2919706841, 2646866425, 2409546199, 1935504149]),
    (
        lambda: random.bits(random.key(0), (2, 3)),
        [[4070199207, 4202968722, 1427181096], [2012915765, 2447653815, 710830403]],
    ),
    (lambda: random.bits(random.key(0)), 4070199207),
    (lambda: random.bits(random.key(0), (0, 3)), np.zeros((0, 3))),
]


def words(drawn: Any) -> Any:
    """The numbers of a draw, or the words of keys."""
    is_key = lx.numpy.issubdtype(drawn.dtype, lx.dtypes.prng_key)
    return np.asarray(random.key_data(drawn) if is_key else drawn)


@pytest.mark.parametrize(("draw", "expected"), KEYS)
def test_the_words_are_those_of_the_table(draw: Callable[[], Any], expected: Any) -> None:
    found = words(draw())
    assert found.dtype == np.uint32
    np.testing.assert_array_equal(found, expected)


def test_all_numbers_are_different() -> None:
    drawn = np.asarray(random.bits(random.key(3), 1 << 14))
    # Of 2^14 words of 32 bits, 1/32 pair is expected to be equal.
    assert len(np.unique(drawn)) >= len(drawn) - 2
    keys = words(random.split(random.key(3), 1 << 14))
    assert len(np.unique(keys, axis=0)) == len(keys)


def test_every_bit_is_set_half_of_the_time() -> None:
    drawn = np.asarray(random.bits(random.key(11), 1 << 16))
    for bit in range(32):
        share = np.mean(drawn >> np.uint32(bit) & 1)
        assert abs(share - 0.5) < 5 * 0.5 / 2**8, bit


def test_the_numbers_do_not_depend_on_the_shape() -> None:
    flat = np.asarray(random.bits(random.key(5), 60))
    np.testing.assert_array_equal(np.asarray(random.bits(random.key(5), (3, 4, 5))), flat.reshape(3, 4, 5))
    np.testing.assert_array_equal(np.asarray(random.bits(random.key(5), 7)), flat[:7])


def test_inside_and_outside_a_compiled_function() -> None:
    def draw(key: Any, seed: Any) -> Any:
        first, second = random.split(key)
        return random.bits(first, (3,)) * 1, random.bits(random.fold_in(second, seed), (2, 5)), random.key(seed)

    compiled = lx.compile(draw)(random.key(7), np.int32(-3))
    for inside, outside in zip(compiled, draw(random.key(7), np.int32(-3)), strict=True):
        np.testing.assert_array_equal(words(inside), words(outside))


def test_fused_or_not_the_bits_are_the_same() -> None:
    alone = np.asarray(random.bits(random.key(9), (4, 33)))

    def among_others(key: Any, x: Any) -> Any:
        drawn = random.bits(key, (4, 33))
        return lx.numpy.sum(lx.numpy.where(drawn > 2**31, x, -x) @ x.T), drawn ^ 5, lx.numpy.max(drawn, axis=1)

    _, changed, greatest = lx.compile(among_others)(random.key(9), np.ones((4, 33), np.float32))
    np.testing.assert_array_equal(np.asarray(changed), alone ^ 5)
    np.testing.assert_array_equal(np.asarray(greatest), alone.max(axis=1))


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: random.bits(key, (3, 2)),
        lambda key: random.split(key, 3),
        lambda key: random.fold_in(key, 9),
        lambda key: random.normal(key, (5,)),
        lambda key: random.randint(key, (5,), 0, 1000),
        lambda key: random.categorical(key, np.zeros(6, np.float32), shape=(4,)),
    ],
)
def test_over_many_keys_at_once(draw: Callable[[Any], Any]) -> None:
    keys = random.split(random.key(4), 3)
    expected = np.stack([words(draw(key)) for key in keys])
    np.testing.assert_array_equal(words(lx.vmap(draw)(keys)), expected)
    np.testing.assert_array_equal(words(lx.compile(lx.vmap(draw))(keys)), expected)


def test_a_number_folded_in_over_many_numbers() -> None:
    numbers = np.arange(4, dtype=np.int32)
    found = lx.vmap(lambda number: random.fold_in(random.key(0), number))(numbers)
    np.testing.assert_array_equal(
        words(found), np.stack([words(random.fold_in(random.key(0), int(number))) for number in numbers])
    )


def test_the_reference_interpreter_draws_the_same() -> None:
    graph = traced(lambda key: random.bits(random.split(key, 5)[3], (6,)), np.array([0, 8], np.uint32))
    (found,) = interpret(graph, np.array([0, 8], np.uint32))
    np.testing.assert_array_equal(found, np.asarray(random.bits(random.split(random.key(8), 5)[3], (6,))))


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: random.bits(key, (257, 3)),
        lambda key: random.uniform(key, (1000,), minval=-1.0, maxval=3.0),
        lambda key: random.normal(key, (1000,)),
        lambda key: random.randint(key, (100,), 0, 100),
        lambda key: random.bernoulli(random.split(key)[0], 0.3, (1000,)),
    ],
)
def test_a_draw_is_one_kernel(draw: Callable[[Any], Any]) -> None:
    text = lx.compile(draw).lower(random.key(0)).as_text("kernels")
    assert text.count("kernel") == 1, text


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: random.bits(0, (3,)), DtypeError, "bits: a key is an array from lavax.random.key, or its"),
    (lambda: random.bits(random.split(random.key(0)), (3,)), ShapeError, "bits: takes one key, or its words"),
    (lambda: random.bits(random.key(0), (-1,)), ShapeError, "bits: a shape has no negative extents, got (-1,)"),
    (lambda: random.bits(random.key(0), (2,), np.float32), DtypeError, "bits: dtype must be unsigned, got float32"),
    (lambda: random.split(random.key(0), -1), ShapeError, "split: a shape has no negative extents"),
    (lambda: random.key(1.5), DtypeError, "key: seed must be an integer"),
    (lambda: random.key(np.arange(3)), ShapeError, "key: seed must be one integer"),
    (lambda: random.fold_in(random.key(0), 0.5), DtypeError, "fold_in: data must be an integer"),
    (lambda: random.fold_in(random.key(0), np.arange(2)), ShapeError, "fold_in: data must be one integer"),
]


@pytest.mark.parametrize(("draw", "error", "message"), REFUSED)
def test_what_is_refused(draw: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as found:
        draw()
    assert message in str(found.value)
    assert "test_bits.py:" in str(found.value)
