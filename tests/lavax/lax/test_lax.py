"""lavax.lax against jax.lax, where that is installed, and against recorded sums of what it gave."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from tests.lavax.lax.cases import CASES, MAPPED
from tests.lavax.lax.comparing import results, sums

pytestmark = pytest.mark.usefixtures("reference_backend")

# By JAX 0.10.2: of each call, the sums of its results and of its gradients.
RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
NAMES = [*CASES, *MAPPED]


def close(found: Any, expected: Any, tolerance: float) -> None:
    size = np.max(np.abs(np.where(np.isfinite(expected), expected, 0)), initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * size)


@pytest.mark.parametrize("name", NAMES)
def test_results_and_gradients_are_the_recorded_ones(name: str) -> None:
    values, gradients = results(name, lx, lnp.asarray)
    close(sums(values), RECORDED[name][0], 2e-5)
    close(sums(gradients), RECORDED[name][1], 1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_results_and_gradients_are_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")
    ours, theirs = results(name, lx, lnp.asarray), results(name, jax, jax.numpy.asarray)
    for found, expected in zip((*ours[0], *ours[1]), (*theirs[0], *theirs[1]), strict=True):
        assert found.shape == expected.shape and found.dtype == expected.dtype
        close(found, expected, 5e-5)


def test_nothing_is_recorded_that_is_not_compared() -> None:
    assert set(RECORDED) == set(NAMES)


@pytest.mark.parametrize("name", ["dynamic_slice", "gather of windows", "reduce of two", "custom_root", "scan"])
def test_all_of_it_is_compiled_and_mapped(name: str) -> None:
    function, arguments = CASES[name]
    alone = lx.tree.leaves(function(lax, *map(lnp.asarray, arguments)))
    compiled = lx.tree.leaves(lx.jit(lambda *given: function(lax, *given))(*arguments))
    twice = [np.stack([each, each]) for each in map(np.asarray, arguments)]
    mapped = lx.tree.leaves(lx.vmap(lambda *given: function(lax, *given))(*twice))
    for expected, one, many in zip(alone, compiled, mapped, strict=True):
        close(np.asarray(one), np.asarray(expected), 1e-6)
        close(np.asarray(many)[1], np.asarray(expected), 1e-6)


def test_random_bits_follow_the_key() -> None:
    key = np.array([1, 2], np.uint32)
    after, bits = lax.rng_bit_generator(key, (1000,))
    again = lax.rng_bit_generator(key, (1000,))
    assert np.array_equal(bits, again[1]) and np.array_equal(after, again[0]) and not np.array_equal(after, key)
    assert abs(float(lnp.mean(lnp.astype(bits, "float32"))) / 2**32 - 0.5) < 0.05


def test_reduce_takes_trees_of_one_array() -> None:
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    (total,) = lax.reduce((x,), (np.float32(3),), lambda a, b: (a[0] + b[0],), (0,))
    np.testing.assert_array_equal(total, x.sum(0) + 3)
    found = lax.reduce({"x": x}, {"x": np.float32(5)}, lambda a, b: {"x": lax.max(a["x"], b["x"])}, (1,))
    np.testing.assert_array_equal(found["x"], [5, 6])
    (joined,) = lax.reduce([x], [np.float32(0)], lambda a, b: [a[0] + b[0] + a[0] * b[0]], (0,))
    np.testing.assert_allclose(joined, (1 + x).prod(0) - 1, rtol=1e-6)


def test_bits_of_truth_values_are_truth_values() -> None:
    truth = np.array([True, False])
    found = lax.bitcast_convert_type(truth, bool)
    assert found.dtype == bool and np.array_equal(found, truth)


def test_roots_have_second_derivatives() -> None:
    root = lx.grad(lx.grad(lambda a: CASES["custom_root"][0](lax, a)))
    assert float(root(2.0)) == pytest.approx(-2 / 9 * 2 ** (-5 / 3), rel=1e-4)


def test_the_search_for_a_root_may_use_what_is_differentiated() -> None:
    """Its own derivative is not asked for: that of the root of q² = a is 1/(2q)."""

    def root(a: Any) -> Any:
        return lax.custom_root(
            lambda q: q * q - a, lnp.ones_like(a), lambda f, q: lnp.sqrt(a) + 0 * f(q), lambda g, y: y / g(1.0 + 0j)
        )

    a = np.complex64(-3 + 4j)
    assert complex(lx.grad(root, holomorphic=True)(a)) == pytest.approx(0.5 / (1 + 2j), rel=1e-5)
    assert complex(lx.jvp(root, (a,), (np.complex64(2j),))[1]) == pytest.approx(1j / (1 + 2j), rel=1e-5)


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "shapes": (lambda: lax.add(np.ones(3, "f"), np.ones((2, 3), "f")), lx.ShapeError, r"lax\.add: operands have one"),
    "dtypes": (lambda: lax.add(lnp.ones(3), lnp.ones(3, "int32")), lx.DtypeError, r"lax\.add: operands have one dtype"),
    "clamp": (lambda: lax.clamp(np.ones(2), np.ones(3), 2), lx.ShapeError, r"lax\.clamp: bounds are scalars"),
    "slice": (lambda: lax.slice(np.ones(3), (1,), (9,)), lx.ShapeError, r"lax\.slice: .* do not fit f32\[3\]"),
    "dynamic_slice": (lambda: lax.dynamic_slice(np.ones(3), (0,), (4,)), lx.ShapeError, "is not within"),
    "a start": (lambda: lax.dynamic_slice(np.ones(3), (lnp.ones(()),), (2,)), lx.DtypeError, "an integer, got f32"),
    "transpose": (lambda: lax.transpose(np.ones((2, 3)), (0, 0)), lx.AxisError, "does not name each axis"),
    "select_n": (lambda: lax.select_n(np.ones(2), 1.0, 2.0), lx.ShapeError, r"lax\.select_n"),
    "pad": (lambda: lax.pad(np.ones(2), 0.0, ((1, 1, -1),)), lx.ShapeError, "interior not negative"),
    "bits": (lambda: lax.bitcast_convert_type(np.ones((2, 3), "u1"), "f"), lx.ShapeError, "4 elements of u8.2,3."),
    "truth values": (lambda: lax.bitcast_convert_type(np.ones(2, "?"), "u1"), lx.DtypeError, "have no bits to read"),
    "a negative start": (
        lambda: lax.dynamic_slice(np.ones(9), (-3,), (2,), allow_negative_indices=False), lx.ShapeError, "is negative"
    ),
    "places": (lambda: lax.broadcast_in_dim(np.ones((2, 3)), (3, 3), (1, 1)), lx.ShapeError, "must name a place"),
    "mode": (lambda: lax.GatherScatterMode.from_any("near"), ValueError, "a mode is 'clip'"),
    "dot_general": (
        lambda: lax.dot_general(np.ones((2, 3)), np.ones((2, 3)), (((1,), (0,)), ((), ()))), lx.ShapeError, "extents"
    ),
    "reduce": (lambda: lax.reduce_sum(np.ones((2, 3)), (0, 2)), lx.AxisError, "are not different axes"),
    "a complex predicate": (lambda: lax.cond(1j, lambda: 1, lambda: 2), lx.DtypeError, "must be real, got c64"),
    "groups": (lambda: lax.psum(1, "i", axis_index_groups=[[0]]), ValueError, "axis_index_groups must be None"),
}  # fmt: skip


WHOLE, B, H = np.ones(2, np.int32), np.ones(2, bool), np.ones(2, np.float16)
F = np.ones(2, np.float32)
ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))

# JAX refuses all of these, too.
REFUSED_DTYPES: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: getattr(lax, name)(WHOLE) for name in ("exp", "sqrt", "floor", "is_finite", "round")},
    **{name: lambda name=name: getattr(lax, name)(B) for name in ("abs", "neg", "sign", "cumsum", "population_count")},
    **{name: lambda name=name: getattr(lax, name)(B, B) for name in ("add", "mul", "div", "mulhi", "shift_left")},
    **{name: lambda name=name: getattr(lax, name)(F, F) for name in ("bitwise_and", "mulhi", "shift_right_logical")},
    **{name: lambda name=name: getattr(lax, name)(WHOLE, WHOLE) for name in ("atan2", "pow", "nextafter", "igamma")},
    "max of two dtypes": lambda: lax.max(F, H),
    "a float beside integers": lambda: lax.add(WHOLE, 2.5),
    "an integer beside truth values": lambda: lax.max(B, 2),
    "clamp": lambda: lax.clamp(0.0, WHOLE, 3.0),
    "pad": lambda: lax.pad(WHOLE, np.float32(0), ((1, 1, 0),)),
    "concatenate": lambda: lax.concatenate([F, WHOLE], 0),
    "select": lambda: lax.select(B, F, WHOLE),
    "dynamic_update_slice": lambda: lax.dynamic_update_slice(F, WHOLE[:1], (0,)),
    "scatter_add": lambda: lax.scatter_add(F, np.int32([[1]]), WHOLE[:1], ROWS),
    "conv": lambda: lax.conv(np.ones((1, 1, 4), "f"), np.ones((1, 1, 2), np.float16), (1,), "SAME"),
    "reduce_sum": lambda: lax.reduce_sum(B, (0,)),
    "reduce_and": lambda: lax.reduce_and(F, (0,)),
    "argmax": lambda: lax.argmax(F, 0, np.float32),
    "iota": lambda: lax.iota(bool, 2),
}


@pytest.mark.parametrize("name", REFUSED_DTYPES)
def test_dtypes_are_as_strict_as_in_jax(name: str) -> None:
    with pytest.raises(lx.DtypeError, match=r"lax\."):
        REFUSED_DTYPES[name]()


def test_numbers_of_python_take_the_dtype_of_arrays() -> None:
    for found, dtype in ((lax.add(H, 2.5), H), (lax.max(F, 0), F), (lax.mul(np.ones(2, np.int8), 3), np.ones(2, "i1")),
                         (lax.clamp(0, F, 1), F), (lax.concatenate([H, H], 0), H)):
        assert found.dtype == dtype.dtype
    assert lax.add(2.0, 3).dtype == np.float32 and lax.pow(F, 2).dtype == np.float32


COLLECTIVES: dict[str, Callable[[Any, Any], Any]] = {
    "axis_index": lambda lax, x: x * 0 + lax.axis_index(("i", "j")),
    "axis_index the other way": lambda lax, x: x * 0 + lax.axis_index(("j", "i")),
    "all_gather": lambda lax, x: lax.all_gather(x, ("i", "j")),
    "all_gather along 1": lambda lax, x: lax.all_gather(x, ("j", "i"), axis=1),
    "psum": lambda lax, x: x / lax.psum(x, ("i", "j")),
    "axis_size": lambda lax, x: x * lax.axis_size(("i", "j")),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_several_names_of_axes(name: str) -> None:
    """Axis "i" of extent 2 is outside, "j" of 3 inside."""

    def mapped(library: Any) -> np.ndarray:
        inner = library.vmap(lambda x: COLLECTIVES[name](library.lax, x), axis_name="j")
        return np.asarray(library.vmap(inner, axis_name="i")(x))

    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    rows = {"i, j": x.reshape(6, 4), "j, i": x.transpose(1, 0, 2).reshape(6, 4)}
    expected = {
        "axis_index": np.broadcast_to(np.arange(6).reshape(2, 3, 1), x.shape),
        "axis_index the other way": np.broadcast_to(np.arange(6).reshape(3, 2, 1).transpose(1, 0, 2), x.shape),
        "all_gather": np.broadcast_to(rows["i, j"], (2, 3, 6, 4)),
        "all_gather along 1": np.broadcast_to(rows["j, i"].T, (2, 3, 4, 6)),
        "psum": x / x.sum((0, 1)),
        "axis_size": x * 6,
    }[name]
    found = mapped(lx)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()
