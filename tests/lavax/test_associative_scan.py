"""associative_scan against the same thing one element after the other."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ControlFlowTypeError, ShapeError
from tests.closeness import close

RANDOM = np.random.default_rng(0)


def affine(first: Any, second: Any) -> Any:
    """x -> a x + b after another: associative, but not commutative."""
    (a, b), (c, d) = first["f"], second["f"]
    return {"f": (a * c, c * b + d)}


def one_by_one(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = [(a[0], b[0])]
    for c, d in zip(a[1:], b[1:], strict=True):
        p, q = found[-1]
        found.append((p * c, c * q + d))
    return np.stack([x for x, _ in found]), np.stack([y for _, y in found])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 16, 21])
@pytest.mark.parametrize("reverse", [False, True])
def test_an_operation_that_does_not_commute(count: int, reverse: bool) -> None:
    a, b = RANDOM.normal(size=(2, count, 3))
    expected = one_by_one(a[::-1], b[::-1]) if reverse else one_by_one(a, b)
    for run in (lx.associative_scan, lx.compile(lx.associative_scan, static_argnames=("fn", "reverse"))):
        found = run(affine, {"f": (a.astype("f"), b.astype("f"))}, reverse=reverse)["f"]
        for one, other in zip(found, expected, strict=True):
            close(one, other[::-1] if reverse else other)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_an_axis(axis: int) -> None:
    x = RANDOM.normal(size=(3, 5, 4)).astype("f")
    close(lx.associative_scan(lnp.add, x, axis=axis), np.cumsum(x, axis))
    from_the_end = np.flip(np.maximum.accumulate(np.flip(x, axis), axis), axis)
    close(lx.associative_scan(lnp.maximum, x, reverse=True, axis=axis), from_the_end)


def test_matrices_and_nothing() -> None:
    m = RANDOM.normal(size=(6, 2, 2)).astype("f")
    expected = m[0].astype("d")
    for position, found in enumerate(np.asarray(lx.associative_scan(lambda a, b: b @ a, m))):
        expected = m[position] @ expected if position else expected
        close(found, expected)
    assert lx.associative_scan(lnp.add, np.zeros((0, 2), "f")).shape == (0, 2)
    assert lx.associative_scan(lnp.add, ()) == ()


def test_derivatives_and_batches() -> None:
    x, w = RANDOM.normal(size=(2, 5)).astype("f")

    def weighted(x: Any) -> Any:
        return lnp.sum(lx.associative_scan(lambda a, b: a * b, x) * w)

    def reference(x: np.ndarray) -> Any:
        return np.sum(np.cumprod(x) * w)

    step = 1e-5 * np.eye(5)
    expected = [(reference(x + e) - reference(x - e)) / 2e-5 for e in step]
    close(lx.grad(weighted)(x), expected)
    close(lx.jvp(weighted, (x,), (w,))[1], np.dot(expected, w))
    close(lx.hessian(weighted)(x), np.asarray(lx.jacfwd(lx.jacfwd(weighted))(x)), 1e-3)
    both = np.stack([x, w])
    close(lx.vmap(lambda x: lx.associative_scan(lnp.multiply, x))(both), np.cumprod(both, 1))
    close(lx.compile(lx.vmap(lx.grad(weighted)))(both)[0], expected)


def test_its_depth_grows_with_the_logarithm() -> None:
    def size(count: int) -> int:
        graph = lx.trace(lambda x: lx.associative_scan(lambda a, b: a * b + a + b, x))(np.zeros(count, "f"))
        return sum(node.op == "multiply" for node in graph.nodes)

    assert [size(2**power) for power in (1, 4, 10)] == [1, 7, 19]


# Arrays of fewer numbers are scanned by halves. Blocks of 32 of 64, of 40, with a rest, and one of all elements.
BLOCKS = ((2048,), (5000,), (2053,), (20_011,), (300, 40), (70, 2500), (32, 64))


@pytest.mark.parametrize("shape", BLOCKS, ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_many_elements_are_scanned_by_blocks(shape: tuple[int, ...], reverse: bool) -> None:
    a, b = RANDOM.uniform(-1, 1, shape), RANDOM.normal(size=shape)
    expected = one_by_one(a[::-1], b[::-1]) if reverse else one_by_one(a, b)
    given = {"f": (a.astype("f"), b.astype("f"))}
    scan = lx.compile(lambda x: lx.associative_scan(affine, x, reverse=reverse)["f"])
    assert "scan(" in scan.lower(given).as_text("ir")
    for one, other in zip(scan(given), expected, strict=True):
        np.testing.assert_allclose(one, other[::-1] if reverse else other, rtol=1e-4, atol=1e-5)


def test_derivatives_and_batches_of_blocks() -> None:
    """Of s[t] = a[t] s[t - 1] + b[t] by both, weighted; against the recurrence from the last one on."""
    a, b, w = RANDOM.uniform(-1, 1, (3, 3, 2053))

    def weighted(a: Any, b: Any, w: Any) -> Any:
        return lnp.sum(lx.associative_scan(affine, {"f": (a, b)})["f"][1] * w)

    given = [x.astype("f") for x in (a, b, w)]
    found = lx.compile(lx.vmap(lx.grad(weighted, argnums=(0, 1))))(*given)
    for row in range(3):
        sums, by_b = one_by_one(a[row], b[row])[1], w[row].copy()
        for place in reversed(range(2052)):
            by_b[place] += a[row, place + 1] * by_b[place + 1]
        by_a = by_b * np.concatenate([[0.0], sums[:-1]])
        for one, other in zip(found, (by_a, by_b), strict=True):
            np.testing.assert_allclose(one[row], other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(4096,), (100, 64)])
def test_derivatives_are_finite_where_only_an_element_with_itself_has_none(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).uniform(0.5, 1, shape).astype(np.float32)
    x[0] = 0

    def length(a: Any, b: Any) -> Any:
        return lnp.sqrt(a * a + b * b)

    slope = lx.compile(lx.grad(lambda x: lnp.sum(lx.lax.associative_scan(length, x))))(x)
    lengths = np.sqrt(np.cumsum(np.square(x.astype(np.float64)), 0))
    lengths[0] = 1
    exact = x * np.cumsum((1 / lengths)[::-1], 0)[::-1]
    np.testing.assert_allclose(np.asarray(slope)[1:], exact[1:], rtol=1e-4)
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("shape", [(4096,), (100, 64)])
def test_derivatives_are_finite_where_elements_have_none_the_other_way_around(shape: tuple[int, ...]) -> None:
    """Sums of roots of the gaps between intervals: in another order gaps are negative."""
    start = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def roots(a: Any, b: Any) -> Any:
        return a[0], b[1], a[2] + b[2] + lnp.sqrt(b[0] - a[1])

    def total(start: Any) -> Any:
        return lnp.sum(lx.lax.associative_scan(roots, (start, start + 0.75, lnp.zeros_like(start)))[2])

    steps = np.diff(start.astype(np.float64), axis=0) - 0.75
    slope = np.arange(shape[0] - 1, 0, -1).reshape(-1, *(1,) * (len(shape) - 1)) * 0.5 / np.sqrt(steps)
    exact = np.concatenate([np.zeros_like(slope[:1]), slope]) - np.concatenate([slope, np.zeros_like(slope[:1])])
    np.testing.assert_allclose(lx.compile(lx.grad(total))(start), exact, rtol=1e-3, atol=1e-3)


def test_nothing_is_computed_beyond_the_elements() -> None:
    """Numbers that fill a last block up would be divided by, and gradients would be NaN."""

    def last(x: Any) -> Any:
        return lx.associative_scan(lambda a, b: 1 / (1 / a + 1 / b), x)[-1]

    np.testing.assert_allclose(lx.grad(last)(np.ones(2053, "f")), np.full(2053, 2053.0**-2), rtol=1e-4)


@pytest.mark.parametrize(
    ("join", "op", "along"),
    [
        (lnp.add, "cumulative_sum", np.add), (lambda a, b: b * a, "cumulative_prod", np.multiply),
        (lnp.maximum, "cumulative_max", np.maximum), (lnp.minimum, "cumulative_min", np.minimum),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_one_operation_is_cumulative(join: Any, op: str, along: np.ufunc, dtype: str) -> None:
    x = RANDOM.integers(-2, 4, (3, 7)).astype(dtype)
    graph = lx.trace(lambda x: lx.associative_scan(join, x, axis=1))(x)
    has_routine = dtype != "complex64" or op in ("cumulative_sum", "cumulative_prod")
    assert (op in [node.op for node in graph.nodes]) == has_routine
    close(lx.associative_scan(join, x, axis=1), along.accumulate(x, 1))
    close(lx.associative_scan(join, x, axis=1, reverse=True), np.flip(along.accumulate(np.flip(x, 1), 1), 1))


@pytest.mark.parametrize("count", [5, 3000])
def test_functions_of_one_element_alone_and_with_prints(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    x = RANDOM.normal(size=count).astype("f")
    close(lx.associative_scan(lambda a, b: b, x), x)
    close(lx.associative_scan(lambda a, b: a, x), np.full(count, x[0]))

    def shown(a: Any, b: Any) -> Any:
        lx.debug.print("joined {}", a.shape[0])
        return a + b

    close(lx.compile(lambda x: lx.associative_scan(shown, x))(x), np.cumsum(x.astype("d")), 1e-4)
    assert f"joined {count // 2}\n" in capsys.readouterr().out


def test_mistakes() -> None:
    with pytest.raises(ShapeError, match=r"must agree, got \[3, 4\]"):
        lx.associative_scan(affine, (np.zeros(3, "f"), np.zeros(4, "f")))
    with pytest.raises(ShapeError, match="axis 1 is not an axis"):
        lx.associative_scan(lnp.add, np.zeros(3, "f"), axis=1)
    with pytest.raises(ControlFlowTypeError, match="structure"):
        lx.associative_scan(lambda a, b: (a, b), np.zeros(3, "f"))
    with pytest.raises(ControlFlowTypeError, match=r"gives bool\[1\], it was given f32\[1\]"):
        lx.associative_scan(lambda a, b: a < b, np.zeros(3, "f"))


@pytest.mark.parametrize(
    ("fn", "form"), [(lnp.matmul, "scan"), (lambda a, b: a + lnp.swapaxes(b, 1, 2), "cumulative_sum")]
)
def test_functions_that_have_no_such_form(fn: Any, form: str) -> None:
    """By halves products of matrices fit the registers of a loop around them. A transpose is not added in place."""
    x = np.zeros((1000, 2, 2), "f")
    assert form not in [node.op for node in lx.trace(lambda x: lx.associative_scan(fn, x))(x).nodes]
