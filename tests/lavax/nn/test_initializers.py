"""Initializers, against those of JAX and recorded values."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.base.errors import ShapeError
from lavax.nn import initializers

pytestmark = pytest.mark.usefixtures("reference_backend")

SHAPE = (3, 4, 5)
# An initializer's name and arguments; elements 0, 17 and 59 of [3, 4, 5] from key 3, by jax 0.10.2.
CASES: list[tuple[str, dict[str, Any], list[float]]] = [
    ("uniform", {}, [0.00074052572, 0.0058678328, 0.0079199364]),
    ("normal", {"stddev": 0.3}, [-0.43387711, 0.065783456, 0.24400747]),
    ("truncated_normal", {"stddev": 0.2, "lower": -1.0, "upper": 3.0}, [-0.15385905, 0.077901825, 0.18608603]),
    ("glorot_uniform", {}, [-0.4015871, 0.081820071, 0.27529421]),
    ("glorot_normal", {}, [-0.40839285, 0.064713389, 0.23757678]),
    ("he_uniform", {"in_axis": 1, "out_axis": 0}, [-0.46660206, 0.095066331, 0.31986299]),
    ("he_normal", {"in_axis": (0, 1)}, [-0.61258924, 0.097070076, 0.35636517]),
    ("lecun_uniform", {"batch_axis": 0}, [-0.73776257, 0.15031306, 0.5057478]),
    ("lecun_normal", {}, [-0.433166, 0.068638906, 0.2519882]),
    ("variance_scaling", {"scale": 1.5, "mode": "fan_geo_avg", "distribution": "normal"},
     [-0.48358515, 0.073320076, 0.2719627]),
    ("variance_scaling", {"scale": 1.5, "mode": "fan_out", "distribution": "uniform"},
     [-0.46660206, 0.095066331, 0.31986299]),
    ("orthogonal", {"column_axis": 1}, [-0.3376255, -0.16031839, 0.29536283]),
    ("delta_orthogonal", {"scale": 2.0}, [0, 0, 0]),
]  # fmt: skip


def made(name: str, arguments: dict[str, Any]) -> np.ndarray:
    return np.asarray(getattr(initializers, name)(**arguments)(lx.random.key(3), SHAPE))


@pytest.mark.parametrize(("name", "arguments", "recorded"), CASES, ids=str)
def test_numbers_are_those_recorded(name: str, arguments: dict[str, Any], recorded: list[float]) -> None:
    np.testing.assert_allclose(made(name, arguments).ravel()[[0, 17, 59]], recorded, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "arguments", "recorded"), CASES, ids=str)
def test_numbers_are_those_of_jax(name: str, arguments: dict[str, Any], recorded: list[float]) -> None:
    jax = pytest.importorskip("jax", reason="jax is the oracle of initializers")
    expected = getattr(jax.nn.initializers, name)(**arguments)(jax.random.PRNGKey(3), SHAPE)
    np.testing.assert_allclose(made(name, arguments), np.asarray(expected), rtol=1e-5, atol=1e-6)


# The first three of [3, 2] complex numbers from key 7, by jax 0.10.2.
COMPLEX = {
    "truncated_normal": [-0.46435934 - 0.91325116j, 0.30368727 - 0.58528423j, -0.34498772 + 0.27113539j],
    "normal": [0.55702358 + 0.22706676j, 0.07081565 + 0.46958140j, -0.26122711 - 0.13447157j],
    "uniform": [-0.42211691 - 0.83017331j, 0.34351852 - 0.66204941j, -0.43112528 + 0.33883333j],
}


@pytest.mark.parametrize("distribution", COMPLEX)
def test_complex_numbers_are_those_of_jax(distribution: Any) -> None:
    init = initializers.variance_scaling(1.5, "fan_in", distribution)
    found = np.asarray(init(lx.random.key(7), (3, 2), "complex64"))
    np.testing.assert_allclose(found.ravel()[:3], COMPLEX[distribution], rtol=1e-5)
    many = np.asarray(init(lx.random.key(7), (64, 64), "complex64"))
    np.testing.assert_allclose(np.mean(np.abs(many) ** 2), 1.5 / 64, rtol=0.05)


def test_names_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax", reason="jax is the oracle of initializers")
    theirs = {name for name in dir(jax.nn.initializers) if name[0].islower() and name[0] != "_"}
    assert set(initializers.__all__) >= theirs


def test_constants() -> None:
    key = lx.random.key(0)
    np.testing.assert_array_equal(initializers.zeros(key, (2,)), [0, 0])
    np.testing.assert_array_equal(initializers.ones(key, (2,), "float16"), np.ones(2, np.float16))
    np.testing.assert_array_equal(initializers.constant([1, 2])(key, (2, 2)), [[1, 2], [1, 2]])


def test_the_dtype_of_the_call_comes_first() -> None:
    key = lx.random.key(0)
    assert initializers.normal(dtype="float16")(key, (2,)).dtype == np.float16
    for init in (initializers.he_normal(), initializers.orthogonal(), initializers.truncated_normal()):
        assert init(key, (2, 2), "float16").dtype == np.float16


def test_fans_of_weights_as_in_pytorch() -> None:
    init = initializers.variance_scaling(2.0, "fan_in", "uniform", in_axis=1, out_axis=0)
    drawn = np.asarray(init(lx.random.key(0), (64, 32, 3, 3)))
    assert np.abs(drawn).max() == pytest.approx((6 / (32 * 9)) ** 0.5, rel=1e-3)
    assert drawn.std() == pytest.approx((2 / (32 * 9)) ** 0.5, rel=0.02)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("axis", [-1, 0])
def test_orthogonal_rows_or_columns(shape: tuple[int, ...], axis: int) -> None:
    drawn = np.asarray(initializers.orthogonal(2.0, axis)(lx.random.key(1), shape))
    columns = np.moveaxis(drawn, axis, -1).reshape(-1, shape[axis])
    short = columns if columns.shape[0] >= columns.shape[1] else columns.T
    np.testing.assert_allclose(short.T @ short, 4 * np.eye(short.shape[1]), atol=1e-5)


def test_what_does_not_fit() -> None:
    key = lx.random.key(0)
    refused: list[tuple[type[Exception], str, Any]] = [
        (ValueError, "the mode is one of fan_in, .* got 'fan'", lambda: initializers.variance_scaling(
            1.0, "fan", "normal")),  # type: ignore[arg-type]
        (ValueError, "the distribution is one of .* got 'cauchy'", lambda: initializers.variance_scaling(
            1.0, "fan_in", "cauchy")),  # type: ignore[arg-type]
        (ShapeError, r"in_axis=-2 is not an axis of the shape \(3,\)", lambda: initializers.he_normal()(key, (3,))),
        (ShapeError, r"a shape of two axes or more, .* got \(3,\)", lambda: initializers.orthogonal()(key, (3,))),
        (ShapeError, r"in <= out, got \(3, 4, 2\)", lambda: initializers.delta_orthogonal()(key, (3, 4, 2))),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
