"""Products of vectors, matrices and stacks of them, against NumPy's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from tests.closeness import close
from tests.lavax.numpy.arrays import BOOL, DTYPES, F32, I32, U32, check, sample, traced

pytestmark = pytest.mark.usefixtures("reference_backend")

MATMULS = [
    ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((6, 5, 2, 3), (5, 3, 4)), ((5, 2, 3), (6, 1, 3, 4)), ((1, 5, 2, 3), (6, 1, 3, 4)), ((1, 1, 2, 3), (1, 3, 4)),
    ((2, 3), (6, 5, 3, 4)),
    ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((0, 2, 3), (3, 4)), ((0,), (0,)), ((3,), (6, 5, 3, 4)), ((2, 1, 1, 2, 3),
    (2, 5, 1, 3, 4)),
]  # fmt: skip
DOTS = [((), (2, 3)), ((2,), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((6, 2, 3),
(5, 3, 4)), ((3,), (5, 3, 2))]
INNERS = [((), ()), ((2, 3), ()), ((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), (5, 4, 3)), ((3,), (4, 3))]
TENSORDOTS: list[tuple[Any, Any, Any]] = [
    ((2, 3, 4), (3, 4, 5), 2), ((2, 3), (3, 4), 1), ((2,), (3,), 0), ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0))),
    ((2, 3), (2, 4), (0, 0)), ((2, 3), (3, 2), ([-1, 0], [0, 1])),
]  # fmt: skip
EINSUMS: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,jk->ik", ((2, 3), (3, 4))), ("ij,jk->ki", ((2, 3), (3, 4))), ("ij,jk", ((2, 3), (3, 4))),
    ("ji,jk", ((3, 2), (3, 4))),
    ("bhqd,bhkd->bhqk", ((2, 3, 4, 5), (2, 3, 6, 5))), ("bhqk,bhkd->bqhd", ((2, 3, 4, 6), (2, 3, 6, 5))),
    ("i,i->i", ((3,), (3,))), ("i,i", ((3,), (3,))), ("i,j->ij", ((2,), (3,))), ("i,j->ji", ((2,), (3,))),
    ("ij->", ((2, 3),)),
    ("ij->j", ((2, 3),)), ("ij->ji", ((2, 3),)), ("ii->i", ((3, 3),)), ("ii", ((3, 3),)), ("iij->j", ((3, 3, 2),)),
    ("iji->ij", ((3, 2, 3),)), ("iii->i", ((2, 2, 2),)), ("...ij,...jk->...ik", ((5, 2, 3), (3, 4))),
    ("...ij,...jk->...ik", ((5, 1, 2, 3), (6, 3, 4))), ("...i->...", ((2, 3),)), ("i...->...i", ((2, 3, 4),)),
    ("...,...", ((2, 3), (3,))),
    ("...ii->...i", ((2, 3, 3),)), ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))), ("ij,jk,kl,lm->im", ((2, 9), (9, 1),
    (1, 8), (8, 2))),
    ("a,ab,abc->c", ((2,), (2, 3), (2, 3, 4))), ("ab,ab->", ((2, 3), (2, 3))), ("ij,kl->", ((2, 3), (4, 5))),
    ("ij,kl->il", ((2, 3), (4, 5))),
    ("ij,j->ij", ((2, 3), (1,))), ("ij,jk->ik", ((2, 1), (3, 4))), ("ij,ij->j", ((1, 3), (2, 3))),
    ("b n , n->b", ((2, 3), (3,))),
    (",i->i", ((), (3,))), ("->", ((),)), ("ijk,jil->kl", ((2, 3, 4), (3, 2, 5))), ("aB,Bc", ((2, 3), (3, 4))),
    ("ij,jk->ik", ((0, 3), (3, 2))),
    ("ij,jk->ik", ((2, 0), (0, 2))), ("ik,jk,lk->ijl", ((2, 5), (3, 5), (4, 5))), ("abc,acd,ade->abe", ((2, 3, 4),
    (2, 4, 5), (2, 5, 1))),
]  # fmt: skip


def loosely(dtype: np.dtype) -> float:
    """Sums of up to 60 products of size 10, in any order."""
    return 1e-4 if dtype == F32 else 0


def check_products(
    ours: Callable[..., Any], theirs: Callable[..., Any], left: Any, right: Any, dtype: np.dtype
) -> None:
    arrays = sample(left, dtype), sample(right, dtype, seed=1)
    check(ours, lambda x, y: np.asarray(theirs(x, y), dtype), *arrays, atol=loosely(dtype))


@pytest.mark.parametrize(("left", "right"), MATMULS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_matmul(left: Any, right: Any, dtype: np.dtype) -> None:
    check_products(lnp.matmul, np.matmul, left, right, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dot_inner_outer_vdot(dtype: np.dtype) -> None:
    for left, right in DOTS:
        check_products(lnp.dot, np.dot, left, right, dtype)
    for left, right in INNERS:
        check_products(lnp.inner, np.inner, left, right, dtype)
    check_products(lnp.vdot, np.vdot, (2, 3), (3, 2), dtype)
    check_products(lnp.outer, np.outer, (2, 3), (4,), dtype)
    check_products(lnp.outer, np.outer, (), (0,), dtype)


@pytest.mark.parametrize(("left", "right", "axes"), TENSORDOTS, ids=str)
@pytest.mark.parametrize("dtype", [F32, I32, U32], ids=str)
def test_tensordot(left: Any, right: Any, axes: Any, dtype: np.dtype) -> None:
    check_products(lambda x, y: lnp.tensordot(x, y, axes), lambda x, y: np.tensordot(x, y, axes), left, right, dtype)


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_einsum(subscripts: str, shapes: tuple[tuple[int, ...], ...], dtype: np.dtype) -> None:
    arrays = [sample(shape, dtype, -2, 2, seed=place) for place, shape in enumerate(shapes)]
    check(
        lambda *x: lnp.einsum(subscripts, *x), lambda *x: np.asarray(np.einsum(subscripts, *x), dtype), *arrays,
        atol=loosely(dtype),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("subscripts", "letters", "shapes"),
    [
        ("j...,...->j", "jxy,xy->j", [(3, 2, 4), (2, 4)]),
        ("...i,i...->", "xi,ix->", [(2, 3), (3, 2)]),
        ("i...,j...->ij", "ix,jx->ij", [(3, 4), (2, 4)]),
        ("...ij,...,...jk->ik", "xij,x,xjk->ik", [(4, 3, 2), (4,), (4, 2, 3)]),
        ("...->", "xy->", [(3, 4)]),
    ],
)
def test_einsum_sums_over_further_axes_that_the_result_lacks(
    subscripts: str, letters: str, shapes: list[tuple[int, ...]]
) -> None:
    """As in JAX; NumPy refuses it."""
    arrays = [sample(shape, seed=seed) for seed, shape in enumerate(shapes)]
    close(lnp.einsum(subscripts, *arrays), np.einsum(letters, *arrays), 1e-5)
    close(lnp.einsum("...i,...i->i", np.ones((1, 3), "f"), np.ones((4, 3), "f")), [4, 4, 4])


def test_einsum_of_lists_of_labels() -> None:
    x, y = sample((2, 3)), sample((3, 4), seed=1)
    for labels in ([[0, 1], [1, 2], [0, 2]], [[7, 30], [30, 2]], [[0, 1], [1, 2]], [[..., 1], (1, 2), [2, ...]]):
        check(
            lambda x, y, rest=labels: lnp.einsum(x, rest[0], y, rest[1], *rest[2:]),
            lambda x, y, rest=labels: np.einsum(x, rest[0], y, rest[1], *rest[2:]), x, y, atol=1e-5,
        )  # fmt: skip
    by_digits = lnp.einsum("i1,12->2i", x, y)
    np.testing.assert_array_equal(np.asarray(by_digits), np.asarray(lnp.einsum("ij,jk->ki", x, y)))
    assert lnp.einsum_path(x, [0, 1], y, [1, 2])[0] == ["einsum_path", (0, 1)]


def test_products_promote() -> None:
    x, y = sample((2, 3), I32), sample((3, 4), F32)
    check(lnp.matmul, lambda x, y: np.matmul(x, y).astype(F32), x, y, atol=1e-4)
    check(lambda x, y: lnp.einsum("ij,jk", x, y), lambda x, y: np.matmul(x, y).astype(F32), x, y, atol=1e-4)
    check(lambda x: lnp.dot(2, x), lambda x: np.dot(2, x).astype(I32), x)
    check(lnp.matmul, lambda x, y: np.matmul(x.astype(I32), y), sample((2, 3), BOOL), sample((3, 2), I32))


def operations(function: Callable[..., Any], *shapes: tuple[int, ...]) -> list[str]:
    return [node.op for node in traced(function, *map(sample, shapes)).nodes]


def test_no_operand_is_repeated_or_moved_without_need() -> None:
    assert operations(lnp.matmul, (2, 3), (3, 4)) == ["dot"]
    assert operations(lnp.matmul, (5, 2, 3), (3, 4)) == ["dot"]
    assert operations(lnp.matmul, (6, 5, 2, 3), (6, 5, 3, 4)) == ["dot"]
    assert operations(lnp.matmul, (2, 3), (5, 3, 4)) == ["dot", "transpose"]
    assert operations(lnp.matmul, (1, 2, 3), (5, 3, 4)) == ["reshape", "dot", "transpose"]
    for subscripts in ("ij,jk->ik", "ij,jk->ki", "ji,kj->ki"):
        assert operations(lambda x, y: lnp.einsum(subscripts, x, y), (3, 3), (3, 3)) == ["dot"]  # noqa: B023
    assert operations(lambda q, k: lnp.einsum("bhqd,bhkd->bhqk", q, k), (2, 3, 4, 5), (2, 3, 6, 5)) == ["dot"]
    assert operations(lambda x, y: lnp.einsum("bi,bi->bi", x, y), (2, 3), (2, 3)) == ["multiply"]


def test_several_operands_take_the_cheap_way() -> None:
    """(x y) z would make a matrix of 50 × 50 first; x (y z) does not."""
    graph = traced(lambda x, y, z: lnp.einsum("ij,jk,kl->il", x, y, z), *map(sample, [(50, 2), (2, 50), (50, 1)]))
    assert [node.shape for node in graph.nodes if node.op == "dot"] == [(2, 1), (50, 1)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: lnp.matmul(x, x), ["matmul: shapes (2, 3) and (2, 3) do not fit", "axis -1 of the left has 3"]),
        (lambda x: x @ x, ["matmul", "(2, 3) and (2, 3)"]),
        (lambda x: lnp.matmul(x, 2), ["matmul", "at least one axis"]),
        (lambda x: lnp.matmul(np.ones((2, 4, 3)), np.ones((5, 3, 4))), ["matmul", "axis -3 has 2 and 5"]),
        (lambda x: lnp.dot(x, x), ["dot: shapes (2, 3) and (2, 3)"]),
        (lambda x: lnp.inner(x, x.T), ["inner: shapes (2, 3) and (3, 2)"]),
        (lambda x: lnp.vdot(x, x[0]), ["vdot"]),
        (lambda x: lnp.tensordot(x, x, 1), ["tensordot", "axis 1 of the left has 3, axis 0 of the right 2"]),
        (lambda x: lnp.tensordot(x, x, 3), ["no 3 axes"]),
        (lambda x: lnp.tensordot(x, x, ((0, 1), (0,))), ["axes name 2 and 1 axes"]),
        (lambda x: lnp.einsum("ij,jk", x, x), ["einsum 'ij,jk'", "'j' is both 3 and 2"]),
        (lambda x: lnp.einsum("ij", x, x), ["1 terms for 2 operands"]),
        (lambda x: lnp.einsum("ijk", x), ["'ijk' does not label 2 axes"]),
        (lambda x: lnp.einsum("ij->ik", x), ["'k' is in no term"]),
        (lambda x: lnp.einsum("ij->ii", x), ["twice"]),
        (lambda x: lnp.einsum("i$", x), ["may have letters"]),
        (lambda x: lnp.einsum("..."), ["1 terms for 0 operands"]),
        (lambda x: lnp.einsum(x, "ij"), ["einsum: 'ij' is not a list of labels", "'ij,jk->ik'"]),
        (lambda x: lnp.einsum(x, [0, -1]), ["[0, -1] is not a list of labels", "from 0 to 51"]),
        (lambda x: lnp.einsum(x, x), ["is not a list of labels"]),
    ],
)
def test_shapes_that_do_not_fit(call: Callable[[lnp.ndarray], Any], words: list[str]) -> None:
    with pytest.raises(ShapeError) as found:
        call(lnp.array(sample((2, 3))))
    for word in [*words, "test_linear_algebra.py:"]:
        assert word in str(found.value)
