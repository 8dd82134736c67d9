"""Keywords that JAX's programs pass: those that change nothing here, and the dtypes of products."""
from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.arange(12, dtype="f").reshape(3, 4) / 7


class Precision(Enum):
    DEFAULT = 0
    HIGHEST = 2


PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": lambda x, **k: lnp.matmul(x, x.T, **k),
    "dot": lambda x, **k: lnp.dot(x, x.T, **k),
    "inner": lambda x, **k: lnp.inner(x, x, **k),
    "vdot": lambda x, **k: lnp.vdot(x, x, **k),
    "vecdot": lambda x, **k: lnp.vecdot(x, x, **k),
    "tensordot": lambda x, **k: lnp.tensordot(x, x.T, 1, **k),
    "einsum": lambda x, **k: lnp.einsum("ij,kj->ik", x, x, **k),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_are_kept_in_the_preferred_dtype(name: str) -> None:
    product, narrow = PRODUCTS[name], lnp.asarray(X, dtype=lnp.bfloat16)
    wide = product(narrow, preferred_element_type=lnp.float32)
    assert wide.dtype == np.float32
    np.testing.assert_allclose(np.asarray(wide), np.asarray(product(narrow.astype("float32"))), rtol=1e-6)
    assert np.abs(np.asarray(wide) - np.asarray(product(narrow).astype("float32"))).max() > 0
    assert product(lnp.asarray(X), preferred_element_type="float16").dtype == np.float16
    whole = lnp.asarray(np.full((3, 4), 100), dtype="int8")
    assert int(np.max(np.asarray(product(whole, preferred_element_type=lnp.int32)))) == (
        120000 if name == "vdot" else 40000
    )
    gradient = lx.grad(lambda x: lnp.sum(product(x, preferred_element_type=lnp.float32)))(narrow)
    assert gradient.dtype == narrow.dtype


def test_products_of_few_bits_stay_those() -> None:
    text = lx.jit(PRODUCTS["matmul"]).lower(X).as_text("ir")
    assert "precision" not in text
    narrow = lnp.asarray(X, dtype=lnp.bfloat16)
    text = lx.jit(lambda x: PRODUCTS["matmul"](x, preferred_element_type="float32")).lower(narrow).as_text("ir")
    assert 'precision="bf16"' in text


@pytest.mark.parametrize("precision", ["highest", "high", Precision.HIGHEST])
def test_precisions_by_the_names_of_jax(precision: Any) -> None:
    with lx.matmul_precision("bfloat16"):
        text = lx.jit(lambda x: PRODUCTS["matmul"](x, precision=precision)).lower(X).as_text("ir")
        assert 'precision="bf16"' not in text
        for default in ("default", Precision.DEFAULT, None):
            text = lx.jit(lambda x, p=default: PRODUCTS["matmul"](x, precision=p), static_argnames="p").lower(X)
            assert 'precision="bf16"' in text.as_text("ir")


CONVOLUTIONS: list[Any] = [
    lambda lax, p: lax.conv_general_dilated(np.ones((1, 3, 8), "f"), np.ones((2, 3, 3), "f"), [1], "SAME", precision=p),
    lambda lax, p: lax.conv(np.ones((1, 3, 8), "f"), np.ones((2, 3, 3), "f"), (1,), "VALID", precision=p),
    lambda lax, p: lax.conv_transpose(np.ones((1, 8, 3), "f"), np.ones((3, 3, 2), "f"), (1,), "VALID", precision=p),
    lambda lax, p: lax.conv_general_dilated_patches(np.ones((1, 3, 8), "f"), (2,), (1,), "VALID", precision=p),
    lambda lax, p: lax.dot(np.ones((2, 2), "f"), np.ones((2, 2), "f"), precision=p),
    lambda lax, p: lnp.einsum("ij,jk", np.ones((2, 2), "f"), np.ones((2, 2), "f"), precision=p),
]  # fmt: skip
HIGHEST = lx.lax.Precision.HIGHEST
OF_CONTEXT = [lx.lax.Precision.DEFAULT, "default", "fastest", None]
NAMED = [HIGHEST, (HIGHEST, HIGHEST), "high", "highest", "tensorfloat32", "float32", "bfloat16_3x", *OF_CONTEXT]


@pytest.mark.parametrize("product", CONVOLUTIONS)
def test_precisions_of_all_products(product: Any) -> None:
    with lx.matmul_precision("bfloat16"):
        for named in NAMED:
            text = lx.jit(lambda p=named: product(lx.lax, p), static_argnames="p").lower().as_text("ir")
            assert ('precision="bf16"' in text) == (named in OF_CONTEXT)
    assert 'precision="bf16"' in lx.jit(lambda: product(lx.lax, "bfloat16")).lower().as_text("ir")
    for wrong in ("low", 3, (HIGHEST,)):
        with pytest.raises(ValueError, match="precision must be one of"):
            product(lx.lax, wrong)


def test_contexts_that_change_nothing() -> None:
    for name, value in {
        "numpy_dtype_promotion": "strict", "numpy_rank_promotion": "raise", "default_prng_impl": "threefry2x32",
        "transfer_guard": "disallow", "transfer_guard_host_to_device": "log", "transfer_guard_device_to_host": "allow",
        "transfer_guard_device_to_device": "disallow_explicit",
    }.items():  # fmt: skip
        context = getattr(lx, name)
        with context(value):
            assert (lnp.ones((2, 2)) + lnp.ones(2, "bfloat16")).dtype == np.float32
        with pytest.raises(ValueError, match=f"{name}: must be one of"), context("of another kind"):
            pass


def test_hints() -> None:
    x, places = lnp.asarray(X), np.array([0, 2])
    hints = {"indices_are_sorted": True, "unique_indices": True}
    for method in ("set", "add", "multiply", "min", "max", "divide", "power", "subtract"):
        plain = getattr(x.at[places], method)(2.0)
        assert np.array_equal(getattr(x.at[places], method)(2.0, **hints), plain)
    assert np.array_equal(x.at[places].get(**hints), X[places])
    assert np.array_equal(x.at[places].apply(lnp.negative, **hints), x.at[places].apply(lnp.negative))
    assert np.array_equal(lnp.take(x, places, axis=0, **hints), X[places])
    assert np.array_equal(lnp.sort(x, kind="stable"), X) and lnp.argsort(x, kind="stable", order=None).shape == X.shape
    assert bool(lx.random.key(1, impl="threefry2x32") == lx.random.key(1))
    with pytest.raises(ValueError, match="impl must be"):
        lx.random.key(1, impl="rbg")


def test_products_of_einsum_may_be_of_a_given_function() -> None:
    """What flax's attention passes: `lax.dot_general`, or a function of the same arguments."""
    called = []

    def halved(lhs: Any, rhs: Any, numbers: Any, precision: Any, preferred_element_type: Any) -> Any:
        called.append((numbers, precision, preferred_element_type))
        return lax.dot_general(lhs, rhs, numbers) / 2

    x = lnp.asarray(X)
    for given in (None, lax.dot_general):
        same = lnp.einsum("ij,kj->ik", x, x, _dot_general=given)
        np.testing.assert_array_equal(same, lnp.einsum("ij,kj->ik", x, x))
    product = lnp.einsum("bi,bj,kj->bki", x, x, x, _dot_general=halved, precision="highest", optimize=[(1, 2), (0, 1)])
    np.testing.assert_allclose(product, np.einsum("bi,bj,kj->bki", X, X, X) / 4, rtol=1e-6)
    assert called == [
        ((((1,), (1,)), ((), ())), "highest", lnp.float32),
        ((((), ()), ((0,), (0,))), "highest", lnp.float32),
    ]
    wide = lnp.einsum("ij,kj->ik", x.astype("float16"), x, _dot_general=halved, preferred_element_type="float16")
    assert wide.dtype == np.float16
    gradient = lx.grad(lambda x: lnp.sum(lnp.einsum("ij,kj->ik", x, x, _dot_general=halved)))(x)
    np.testing.assert_allclose(gradient, np.broadcast_to(X.sum(0), (3, 4)), rtol=1e-6)
    with pytest.raises(lx.ShapeError, match="_dot_general gave"):
        lnp.einsum("ij,kj->ik", x, x, _dot_general=lambda *_, **__: x)
