"""Arrays of keys, of the dtype key<fry>: elements that move, go through every transform, and are no numbers."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, random
from lavax.base.errors import ArrayIndexError, DtypeError, NonFloatArgumentError, ShapeError, VmapAxisError

# The words of `random.split(random.key(0), 3)`, and the normal numbers drawn from them, in JAX.
WORDS = [[1797259609, 2579123966], [928981903, 3453687069], [4146024105, 2718843009]]
DRAWN = [1.0040143, -2.442456, 1.2956359]
MASK = [True, False, True]


def one() -> Any:
    return random.key(0)


def three() -> Any:
    return random.split(random.key(0), 3)


def words(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


def test_a_key_is_an_array_of_no_axes() -> None:
    key, keys = one(), three()
    assert isinstance(key, lx.Array)
    assert (key.shape, key.ndim, key.size, key.itemsize, key.nbytes) == ((), 0, 1, 8, 8)
    assert (keys.shape, keys.ndim, keys.size, len(keys)) == ((3,), 1, 3, 3)
    assert (lnp.shape(keys), lnp.ndim(keys), lnp.size(keys), lnp.size(keys, 0)) == ((3,), 1, 3, 3)
    assert str(key.dtype) == "key<fry>"
    assert repr(key) == str(key) == f"{key}" == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert key.dtype == keys.dtype == lnp.result_type(key) == random.key_dtype()
    assert key.dtype != np.dtype("uint32")
    assert key.block_until_ready() is key


def test_its_dtype_is_of_the_classes_of_keys() -> None:
    for belongs in (lx.dtypes.prng_key, lx.dtypes.extended):
        assert lnp.issubdtype(one().dtype, belongs)
        assert not lnp.issubdtype(np.dtype("uint32"), belongs)
    assert not lnp.issubdtype(one().dtype, lnp.integer)


def test_words_become_keys_and_keys_words() -> None:
    assert words(three()) == WORDS
    assert words(random.wrap_key_data(np.asarray(WORDS, np.uint32))) == WORDS
    assert words(random.PRNGKey(42)) == words(random.key(42)) == [0, 42]
    assert random.key_impl(one()) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"
    assert words(random.clone(one())) == [0, 0]
    assert words(random.clone(three())) == words(lx.jit(random.clone)(three())) == WORDS


@pytest.mark.parametrize("draw", [random.normal, random.bits, lambda key: random.permutation(key, 5)])
def test_keys_and_their_words_draw_the_same(draw: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(draw(one()), draw(random.PRNGKey(0)))
    np.testing.assert_array_equal(lx.jit(draw)(one()), draw(random.PRNGKey(0)))


def test_what_comes_from_words_is_words() -> None:
    assert random.split(random.PRNGKey(0), 3).dtype == random.fold_in(random.PRNGKey(0), 1).dtype == np.uint32


MOVES: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda keys: keys[0], lambda w: w[0]),
    (lambda keys: keys[-1], lambda w: w[-1]),
    (lambda keys: keys[::-1], lambda w: w[::-1]),
    (lambda keys: keys[None], lambda w: w[None]),
    (lambda keys: keys[..., None], lambda w: w[:, None]),
    (lambda keys: keys[lnp.asarray([2, 0])], lambda w: w[[2, 0]]),
    (lambda keys: keys[np.asarray(MASK)], lambda w: w[MASK]),
    (lambda keys: lnp.stack([*keys]), lambda w: w),
    (lambda keys: lnp.stack([keys, keys], axis=-1), lambda w: np.stack([w, w], axis=1)),
    (lambda keys: lnp.array([keys[1], keys[0]]), lambda w: w[[1, 0]]),
    (lambda keys: lnp.concatenate([keys, keys[:1]]), lambda w: np.concatenate([w, w[:1]])),
    (lambda keys: lnp.hstack([keys[0], keys]), lambda w: np.concatenate([w[:1], w])),
    (lambda keys: keys.reshape(3, 1), lambda w: w.reshape(3, 1, 2)),
    (lambda keys: lnp.reshape(keys, (1, -1)), lambda w: w.reshape(1, 3, 2)),
    (lambda keys: lnp.broadcast_to(keys, (2, 3)), lambda w: np.broadcast_to(w, (2, 3, 2))),
    (lambda keys: lnp.broadcast_to(keys[0], (2,)), lambda w: np.broadcast_to(w[0], (2, 2))),
    (lambda keys: lnp.where(np.asarray(MASK), keys, keys[1]), lambda w: w[[0, 1, 2]]),
    (lambda keys: lnp.where(np.asarray(MASK), keys[0], keys[1]), lambda w: w[[0, 1, 0]]),
    (lambda keys: lnp.take(keys, lnp.asarray([2, 2])), lambda w: w[[2, 2]]),
    (lambda keys: lnp.roll(keys, 1), lambda w: np.roll(w, 1, 0)),
    (lambda keys: lnp.tile(keys, 2), lambda w: np.concatenate([w, w])),
    (lambda keys: keys.repeat(2), lambda w: np.repeat(w, 2, 0)),
    (lambda keys: keys[None].T, lambda w: w[:, None]),
    (lambda keys: lnp.moveaxis(keys[None], 0, -1), lambda w: w[:, None]),
    (lambda keys: lnp.squeeze(keys[None]), lambda w: w),
    (lambda keys: lnp.split(keys, 3)[1], lambda w: w[1:2]),
    (lambda keys: lnp.insert(keys, 0, keys[2]), lambda w: w[[2, 0, 1, 2]]),
    (lambda keys: lnp.delete(keys, 0), lambda w: w[1:]),
    (lambda keys: lnp.full_like(keys, keys[1]), lambda w: w[[1, 1, 1]]),
    (lambda keys: keys.at[0].set(keys[2]), lambda w: w[[2, 1, 2]]),
    (lambda keys: keys.at[1].get(), lambda w: w[1]),
    (lambda keys: lax.dynamic_index_in_dim(keys, 1, keepdims=False), lambda w: w[1]),
    (lambda keys: lax.dynamic_slice(keys, (1,), (2,)), lambda w: w[1:]),
    (lambda keys: lax.dynamic_update_index_in_dim(keys, keys[2], 0, 0), lambda w: w[[2, 1, 2]]),
    (lambda keys: lax.select(np.asarray(MASK), keys, keys[::-1]), lambda w: w[[0, 1, 2]]),
    (lambda keys: lax.rev(keys, (0,)), lambda w: w[::-1]),
    (lambda keys: lnp.zeros((2,), keys.dtype), lambda w: np.zeros((2, 2))),
    (lambda keys: lnp.diag(keys[None]), lambda w: w[:1]),
    (lambda keys: lnp.diagonal(keys[:, None]), lambda w: w[:1]),
    (lambda keys: lnp.tril(lnp.stack([keys, keys])), lambda w: np.stack([w, w]) * np.tri(2, 3)[..., None]),
    (lambda keys: lnp.triu(keys[None], 1), lambda w: w[None] * np.array([[[0], [1], [1]]])),
    (lambda keys: lnp.meshgrid(keys, keys[:2])[1], lambda w: np.stack([w[[0, 0, 0]], w[[1, 1, 1]]])),
    (lambda keys: lnp.block([[keys], [keys[::-1]]]), lambda w: np.stack([w, w[::-1]])),
    (lambda keys: lnp.choose(np.array([2, 0]), keys), lambda w: w[[2, 0]]),
    (lambda keys: lnp.fill_diagonal(keys[None], keys[2], inplace=False), lambda w: w[None, [2, 1, 2]]),
    (lambda keys: lnp.put_along_axis(keys, np.array([1]), keys[2], 0, inplace=False), lambda w: w[[0, 2, 2]]),
    (lambda keys: random.permutation(one(), keys), lambda w: w[np.asarray(random.permutation(one(), 3))]),
    (
        lambda keys: random.permutation(one(), keys[None], axis=-1),
        lambda w: w[None, np.asarray(random.permutation(one(), 3))],
    ),
    (lambda keys: random.choice(one(), keys, (4,)), lambda w: w[np.asarray(random.choice(one(), 3, (4,)))]),
]


@pytest.mark.parametrize(("move", "expected"), MOVES)
def test_keys_move_as_elements(move: Callable[[Any], Any], expected: Callable[[Any], Any]) -> None:
    wanted = expected(np.asarray(WORDS)).tolist()
    found = move(three())
    assert found.dtype == random.key_dtype()
    assert words(found) == wanted
    assert words(lx.jit(move)(three())) == wanted


def test_a_key_that_is_not_there_is_refused() -> None:
    with pytest.raises(ArrayIndexError):
        one()[0]


def test_keys_are_compared() -> None:
    assert (three() == three()[0]).tolist() == [True, False, False]
    assert (three() != three()[0]).tolist() == [False, True, True]
    assert bool(lnp.array_equal(three(), three()))
    assert not bool(lnp.array_equal(three(), three()[::-1])) and not bool(lnp.array_equal(three(), three()[0]))
    with pytest.raises(DtypeError, match="compared with keys alone"):
        _ = one() == 0


NUMERICAL: list[Callable[[Any], Any]] = [
    lambda key: key + 1,
    lambda key: key * key,
    lambda key: 1 - key,
    lambda key: -key,
    lambda key: key < key,
    lambda key: key & 1,
    lnp.sin,
    lnp.sort,
    lnp.sum,
    lambda key: key.sum(),
    lambda key: key.astype("uint32"),
    np.asarray,
    float,
    int,
    bool,
]


@pytest.mark.parametrize("use", NUMERICAL)
def test_keys_are_no_numbers(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"an array of random keys \(key<fry>\[\]\).*lavax.random.key_data"):
        use(one())


MIXED: list[Callable[[Any], Any]] = [
    lambda keys: lnp.concatenate([keys, lnp.zeros(3)]),
    lambda keys: lnp.stack([keys, np.zeros(3, np.uint32)]),
    lambda keys: lnp.where(np.asarray(MASK), keys, 0),
    lambda keys: lnp.where(np.asarray(MASK), np.uint32(1), keys),
    lambda keys: lnp.select([np.asarray(MASK)], [keys], 0),
    lambda keys: lnp.append(keys, np.uint32(1)),
    lambda keys: keys.at[0].set(5),
    lambda keys: lax.select(np.asarray(MASK), keys, np.zeros(3, np.uint32)),
    lambda keys: lax.dynamic_update_slice(keys, np.zeros(1, np.uint32), (0,)),
    lambda keys: lnp.meshgrid(keys, np.arange(3)),
    lambda keys: lnp.block([keys, np.zeros(3, np.uint32)]),
    lambda keys: lnp.fill_diagonal(keys[None], np.uint32(0), inplace=False),
]


@pytest.mark.parametrize("mix", MIXED)
def test_keys_do_not_join_numbers(mix: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="random keys go with keys alone"):
        mix(three())


def test_keys_go_through_loops_and_branches() -> None:
    def step(key: Any, _: None) -> Any:
        key, now = random.split(key)
        return key, random.normal(now)

    def raw(key: Any, _: None) -> Any:
        key, now = random.split(key)
        return key, random.normal(now)

    last, drawn = lax.scan(step, one(), None, 3)
    last_words, drawn_of_words = lax.scan(raw, random.PRNGKey(0), None, 3)
    assert words(last) == words(last_words)
    np.testing.assert_array_equal(drawn, drawn_of_words)
    np.testing.assert_allclose(lax.map(random.normal, three()), DRAWN, rtol=1e-6)
    assert words(lax.scan(lambda carry, key: (carry, key), 0, three())[1]) == WORDS
    assert words(lax.fori_loop(0, 2, lambda i, key: random.fold_in(key, i), one())) == words(
        random.fold_in(random.fold_in(one(), 0), 1)
    )

    def chosen(where: Any, key: Any) -> Any:
        return lax.cond(where, lambda key: key, lambda key: random.split(key)[0], key)

    assert words(lx.jit(chosen)(True, one())) == [0, 0]
    assert words(lx.jit(chosen)(False, one())) == words(random.split(one())[0])


def test_vmap_maps_keys_along_their_own_axes() -> None:
    np.testing.assert_allclose(lx.vmap(random.normal)(three()), DRAWN, rtol=1e-6)
    np.testing.assert_allclose(lx.vmap(random.normal, in_axes=-1)(three()), DRAWN, rtol=1e-6)
    assert lx.vmap(random.split)(three()).shape == (3, 2)
    assert lx.vmap(random.split, out_axes=-1)(three()).shape == (2, 3)
    assert words(lx.vmap(random.key)(lnp.arange(3))) == [[0, 0], [0, 1], [0, 2]]
    for axes in ({"in_axes": 1}, {"in_axes": -2}, {"out_axes": 1}):
        with pytest.raises(VmapAxisError):
            lx.vmap(lambda key: key, **axes)(three())


@pytest.mark.parametrize("draw", [random.normal, random.split, lambda keys: random.fold_in(keys, 1)])
def test_draws_take_one_key(draw: Callable[[Any], Any]) -> None:
    with pytest.raises(ShapeError, match=r"lavax\.vmap"):
        draw(three())


def test_derivatives_go_past_keys() -> None:
    def f(x: Any, key: Any) -> Any:
        return x * random.normal(key)

    drawn = float(random.normal(one()))
    for g in (f, lx.checkpoint(f), lx.jit(f)):
        np.testing.assert_allclose(lx.grad(g)(2.0, one()), drawn)
    tangent = np.zeros((), lx.dtypes.float0)
    np.testing.assert_allclose(lx.jvp(f, (2.0, one()), (1.0, tangent))[1], drawn)
    assert lx.grad(f, argnums=1, allow_int=True)(2.0, one()).shape == ()
    with pytest.raises(NonFloatArgumentError):
        lx.grad(f, argnums=1)(2.0, one())


def test_a_key_is_a_leaf_of_pytrees() -> None:
    tree = {"key": three(), "x": 1.0}
    leaves, structure = lx.tree.flatten(tree)
    assert words(leaves[0]) == WORDS
    assert structure.num_leaves == 2
    assert structure == lx.tree.structure({"key": 0, "x": 0})
    assert lx.tree.map(lnp.shape, tree) == {"key": (3,), "x": ()}
    assert words(lx.tree.map(lambda keys: keys[1], (three(),))[0]) == WORDS[1]
    assert lx.tree.leaves(tree, is_leaf=lambda part: isinstance(part, dict)) == [tree]
    assert [str(path) for path, _ in lx.tree.leaves_with_path(tree)] == ["key", "x"]
    assert lx.tree_util.all_leaves([one()])
    assert words(lx.tree.map(lambda old, new: new, tree, {"key": three()[0], "x": 2.0})["key"]) == WORDS[0]


def test_shapes_of_keys_are_known_without_keys() -> None:
    kind = lx.ShapeDtype((), random.key_dtype())
    assert lx.eval_shape(random.split, kind) == lx.ShapeDtype((2,), random.key_dtype())
    assert lx.eval_shape(random.normal, one()) == lx.ShapeDtype((), "float32")
    assert lx.eval_shape(lambda: {"key": three()})["key"].shape == (3,)
    assert lx.typeof(three()) == lx.ShapeDtype((3,), random.key_dtype())
    compiled = lx.jit(random.normal).lower(kind).compile()
    np.testing.assert_array_equal(compiled(one()), random.normal(one()))


def test_keys_are_copied_and_stored() -> None:
    for found in (copy.copy(three()), copy.deepcopy(three()), pickle.loads(pickle.dumps(three())), three().copy()):
        assert words(found) == WORDS
    for found in (lx.device_put(three()), lx.device_get(three()), lx.block_until_ready(three())):
        assert words(found) == WORDS


def test_another_generator_is_refused() -> None:
    for make in (random.key, random.PRNGKey):
        with pytest.raises(ValueError, match="threefry2x32"):
            make(0, impl="rbg")
    with pytest.raises(ValueError, match="threefry2x32"):
        random.key_dtype("unsafe_rbg")
