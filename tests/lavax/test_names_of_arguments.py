"""Arguments by keyword: NumPy's names, in NumPy's order, wherever a function is NumPy's; JAX's names elsewhere."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.arange(12, dtype="f").reshape(3, 4) / 7
# Of NumPy's memory, of its dispatch and of its ways to compute, which JAX does not take either.
_NOT_TAKEN = frozenset(
    ("subok", "like", "casting", "out", "where", "dtype", "overwrite_input", "weights", "order", "kind", "ndmax")
)
# Functions whose arguments are JAX's, which has other names, another order, or takes them by place alone.
_OTHERWISE = frozenset(
    ("clip", "einsum_path", "fromiter", "histogram", "histogram2d", "histogramdd", "imag", "matrix_rank", "real")
    + ("trim_zeros", "unique_all", "unique_counts", "unique_inverse", "unique_values")
)


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def _names_to_compare() -> list[tuple[str, str]]:
    found = []
    for module in ("", "linalg.", "fft."):
        ours, theirs = (eval(f"root.{module}".rstrip("."), {"root": root}) for root in (lnp, np))
        for name in sorted(set(dir(ours)) & set(dir(theirs)) - _OTHERWISE):
            own, other = getattr(ours, name), getattr(theirs, name)
            if inspect.isfunction(own) and _parameters(other) is not None and not isinstance(other, (type, np.ufunc)):
                found.append((module, name))
    return found


NAMES = _names_to_compare()


def test_most_functions_are_compared() -> None:
    assert len(NAMES) > 150


@pytest.mark.parametrize(("module", "name"), NAMES, ids="".join)
def test_arguments_have_the_names_and_the_order_of_numpy(module: str, name: str) -> None:
    own, other = (_parameters(eval(f"root.{module}{name}", {"root": root})) for root in (lnp, np))
    assert own is not None and other is not None
    kinds = inspect.Parameter
    named = [key for key, part in other.items() if part.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    missing = set(named) - set(own) - _NOT_TAKEN
    assert not missing
    assert not [key for key in named if key in own and own[key].kind == kinds.POSITIONAL_ONLY]
    by_place = [key for key, part in other.items() if part.kind != kinds.KEYWORD_ONLY and key in own]
    taken = [key for key, part in own.items() if part.kind != kinds.KEYWORD_ONLY and key in by_place]
    assert taken == [key for key in by_place if key in taken]


def test_names_of_jax() -> None:
    def square(x: Any) -> Any:
        return x * x

    assert float(lx.grad(fun=square)(3.0)) == 6
    assert float(lx.value_and_grad(fun=square)(3.0)[1]) == 6
    for name in ("vmap", "jit", "checkpoint", "remat", "named_call"):
        assert np.array_equal(getattr(lx, name)(fun=square)(X), X * X)
    assert float(lx.jvp(fun=square, primals=(3.0,), tangents=(1.0,))[1]) == 6
    assert np.array_equal(lx.lax.stop_gradient(x=X), X) and np.array_equal(lx.device_put(x=X), X)
    outer, inner = lx.tree.structure((0, 0)), lx.tree.structure({"a": 0})
    turned = lx.tree.transpose(outer_treedef=outer, inner_treedef=inner, pytree_to_transpose=({"a": 1}, {"a": 2}))
    assert turned == {"a": (1, 2)}
    assert np.array_equal(lx.lax.igamma(a=X + 1, x=X), lx.scipy.special.gammainc(X + 1, X))
    assert np.array_equal(lx.lax.polygamma(m=np.float32(1), x=X + 1), lx.scipy.special.polygamma(1, X + 1))


def test_arguments_that_come_late() -> None:
    assert np.array_equal(lnp.sum(X, 0, None, None, True), X.sum(0, keepdims=True))
    assert np.array_equal(lnp.max(X, 0, None, True), X.max(0, keepdims=True))
    assert np.array_equal(lnp.nan_to_num(np.array([np.nan, 1], "f"), False), [0, 1])
    numbers, step = lnp.linspace(0, 1, 5, True, True)
    assert float(step) == 0.25 and numbers.shape == (5,)
    assert lnp.linspace(0, 1, 5, False, False, "float16").dtype == np.float16
    assert np.array_equal(lnp.take(X, np.array([9]), 1, None, "clip"), X[:, -1:])
    assert np.array_equal(lnp.isin(X, X[0], False, True), np.isin(X, X[0], invert=True))
    assert lnp.array(1.0, None, True, "C", 2).shape == (1, 1)
    with pytest.raises(NotImplementedError, match="cumsum: out must be None"):
        lnp.cumsum(X, out=np.ones(12, "f"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="asarray: order must be"):
        lnp.asarray(X, order="F")


def test_means_that_are_known() -> None:
    holes = np.where(X > 1.4, np.nan, X)
    for axis in (0, None):
        mean = X.mean(axis, keepdims=True)
        np.testing.assert_allclose(lnp.var(X, axis, mean=mean, ddof=1), X.var(axis, ddof=1), rtol=1e-6)
        np.testing.assert_allclose(lnp.std(X, axis, mean=mean + 1), np.sqrt(X.var(axis) + 1), rtol=1e-6)
        np.testing.assert_allclose(lnp.var(X, axis, mean=mean + 1, where=X < 9), X.var(axis) + 1, rtol=1e-6)
        known = np.nanmean(holes, axis, keepdims=True)
        np.testing.assert_allclose(lnp.nanvar(holes, axis, mean=known), np.nanvar(holes, axis), rtol=1e-5)
        np.testing.assert_allclose(
            lnp.nanstd(holes, axis, mean=known + 2), np.sqrt(np.nanvar(holes, axis) + 4), rtol=1e-5
        )


def test_integers_that_are_not_promoted() -> None:
    small = np.full((4,), 100, "uint8")
    assert lnp.sum(small).dtype == np.uint32
    narrow = lnp.sum(small, promote_integers=False)
    assert narrow.dtype == np.uint8 and int(narrow) == 400 % 256
    assert lnp.prod(small, promote_integers=False).dtype == np.uint8


def test_signs_of_sums() -> None:
    factors = np.array([1, -2, 0.5, -3], "f")
    logarithm, sign = lx.nn.logsumexp(X, axis=1, b=factors, return_sign=True)
    wanted = (factors * np.exp(X)).sum(1)
    np.testing.assert_allclose(logarithm, np.log(np.abs(wanted)), rtol=1e-5)
    assert np.array_equal(sign, np.sign(wanted))


def test_covariances_without_an_inverse() -> None:
    singular = np.array([[1, 1], [1, 1]], "f")
    key, centre = lx.random.key(0), np.zeros(2, "f")
    draws = np.asarray(lx.random.multivariate_normal(key, centre, singular, (4000,), method="svd"))
    np.testing.assert_allclose(draws[:, 0], draws[:, 1], atol=1e-4)
    np.testing.assert_allclose(draws.std(0), 1, atol=0.05)


def test_dtypes_of_positions() -> None:
    assert lnp.argsort(X, dtype="uint8").dtype == np.uint8 and lnp.argsort(X).dtype == np.int32
    assert lnp.ravel_multi_index(([1], [2]), (3, 4), dtype="int16").dtype == np.int16
    assert lnp.iinfo(int_type="int8").max == 127


def test_casting_follows_numpy() -> None:
    for casting in ("no", "equiv", "safe", "same_kind", "unsafe"):
        for one in ("int8", "uint32", "int32", "float16", "float32", "complex64"):
            for other in ("bool", "int8", "int32", "float32", "float64", "complex64"):
                assert lnp.can_cast(one, other, casting) == np.can_cast(one, other, casting), (one, other, casting)
    assert lnp.can_cast("bfloat16", "float32") and not lnp.can_cast("float32", "bfloat16")
    with pytest.raises(ValueError, match="can_cast: casting is one of"):
        lnp.can_cast("int8", "int32", "safely")  # type: ignore[arg-type]


def test_places_along_an_axis_by_mode() -> None:
    base, places, new = np.zeros((2, 3), "f"), np.array([[-1, 5], [1, -9]]), np.array([[1, 2], [3, 4]], "f")
    clipped = lnp.put_along_axis(base, places, new, 1, inplace=False, mode="clip")
    assert np.array_equal(clipped, [[0, 0, 2], [4, 3, 0]])
    for mode in ("drop", "fill"):
        kept = lnp.put_along_axis(base, places, new, 1, inplace=False, mode=mode)  # type: ignore[arg-type]
        assert np.array_equal(kept, [[0, 0, 1], [0, 3, 0]])
    flat = lnp.put_along_axis(base, np.array([7, 0]), np.array([1, 2], "f"), None, inplace=False, mode="drop")
    assert np.array_equal(flat, [[2, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="put_along_axis"):
        lnp.put_along_axis(base, places, new, 1, inplace=False, mode="nearest")  # type: ignore[arg-type]


def test_negative_positions_that_are_outside() -> None:
    places = np.array([[-1, 0]], "int8")
    assert np.array_equal(lnp.take_along_axis(X[:1], places, 1, wrap_negative_indices=True), X[:1, [-1, 0]])
    filled = np.asarray(lnp.take_along_axis(X[:1], places, 1, "fill", 7.0, wrap_negative_indices=False))
    assert np.array_equal(filled, [[7, X[0, 0]]])
    assert np.array_equal(lnp.take_along_axis(X[:1], places, 1, "clip", wrap_negative_indices=False), X[:1, [0, 0]])


def test_functions_of_trees_by_name() -> None:
    tree = {"a": 1, "b": 2}
    assert lx.tree.map(f=lambda x: x + 1, tree=tree) == lx.tree_util.tree_map(lambda x: x + 1, tree)
    assert lx.tree.map_with_path(f=lambda path, x: x, tree=tree) == tree
    assert lx.eval_shape(fun=lambda x: x * 2, x=X).shape == X.shape


def test_late_arguments_by_place() -> None:
    assert lnp.average(X, 0, None, False, True).shape == (1, 4)
    assert lnp.count_nonzero(X, 0, True).shape == (1, 4)
    assert np.allclose(lnp.unwrap(np.array([0, 5.0], "f"), None, -1, 4.0), np.unwrap([0, 5.0], period=4.0))
    assert lnp.stack([X, X], 0, None, "float16").dtype == np.float16


def test_several_arrays_with_more_axes() -> None:
    for ours, theirs in (
        (lnp.atleast_1d, np.atleast_1d), (lnp.atleast_2d, np.atleast_2d), (lnp.atleast_3d, np.atleast_3d)
    ):  # fmt: skip
        several = ours(np.float32(1), X[0], X)
        assert [part.shape for part in several] == [part.shape for part in theirs(np.float32(1), X[0], X)]
        assert ours(X[0]).shape == theirs(X[0]).shape


def test_choices_outside() -> None:
    rows = [X[0], X[1]]
    with pytest.raises(IndexError, match="choose: there are 2 choices"):
        lnp.choose(np.array([0, 2, 1, 0]), rows)
    assert np.array_equal(lnp.choose(np.array([0, 3, 1, -2]), rows, mode="wrap"), [X[0, 0], X[1, 1], X[1, 2], X[0, 3]])
    with pytest.raises(ValueError, match="choose: mode is"):
        lnp.choose(np.array([0]), rows, mode="drop")  # type: ignore[arg-type]


def test_sets_are_filled_up_with_their_smallest() -> None:
    first, second = np.array([5, 3, 9, 2]), np.array([3, 9, 4])
    assert np.array_equal(lnp.intersect1d(first, second, size=4), [3, 9, 3, 3])
    assert np.array_equal(lnp.setxor1d(first, second, size=5), [2, 4, 5, 2, 2])
    assert np.array_equal(lnp.setxor1d(first, second, size=4, fill_value=0), [2, 4, 5, 0])
    assert np.array_equal(lnp.intersect1d(first, np.array([11]), size=2), [0, 0])


def test_settings_of_checkpoint_by_name() -> None:
    @lx.checkpoint
    def plain(x: Any) -> Any:
        return x * x

    def powered(x: Any, *, kind: str) -> Any:
        return x * x if kind == "square" else x * x * x

    settled = lx.checkpoint(powered, static_argnames="kind")
    assert float(lx.grad(lambda x: settled(x, kind="cube"))(2.0)) == 12
    assert float(lx.grad(lambda x: settled(x, kind="square"))(2.0)) == float(lx.grad(plain)(2.0)) == 4
