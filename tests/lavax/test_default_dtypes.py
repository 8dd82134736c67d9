"""Numbers without a dtype: 32 bits, and where 64 bits are enabled the dtypes that JAX gives them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
import lavax.scipy as scipy
from lavax import nn, random
from lavax.backends.vulkan.device.device import get_device
from lavax.scipy import signal

I32, I8, B = np.array([3, 1, 2], np.int32), np.array([3, 1, 2], np.int8), np.array([True, False, True])
U32, F32, F64 = I32.astype(np.uint32), I32.astype(np.float32), I32.astype(np.float64)
KEY = np.array([0, 42], np.uint32)

# What is called, and its dtypes without and with 64 bits; the latter are those of JAX 0.10.
CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "zeros": (lambda: lnp.zeros(3), "float32", "float64"),
    "ones": (lambda: lnp.ones(3), "float32", "float64"),
    "full of floats": (lambda: lnp.full(3, 0.5), "float32", "float64"),
    "full of integers": (lambda: lnp.full(3, 2), "int32", "int64"),
    "eye": (lambda: lnp.eye(3), "float32", "float64"),
    "tri": (lambda: lnp.tri(3), "float32", "float32"),
    "arange": (lambda: lnp.arange(3), "int32", "int64"),
    "arange of floats": (lambda: lnp.arange(0.0, 1.0, 0.1), "float32", "float64"),
    "arange of int32": (lambda: lnp.arange(np.int32(3)), "int32", "int32"),
    "arange of float32": (lambda: lnp.arange(np.float32(3)), "float32", "float32"),
    "linspace": (lambda: lnp.linspace(0, 1, 5), "float32", "float64"),
    "linspace of float32": (lambda: lnp.linspace(F32, 2 * F32, 5), "float32", "float32"),
    "logspace": (lambda: lnp.logspace(0, 1, 5), "float32", "float64"),
    "geomspace": (lambda: lnp.geomspace(1, 10, 5), "float32", "float64"),
    "array of floats": (lambda: lnp.array([1.0, 2.0]), "float32", "float64"),
    "array of integers": (lambda: lnp.array([1, 2]), "int32", "int64"),
    "complex": (lambda: lnp.asarray(1j), "complex64", "complex128"),
    "float": (lambda: lnp.zeros(1, float), "float32", "float64"),
    "int": (lambda: lnp.zeros(1, int), "int32", "int64"),
    "float_": (lambda: lnp.zeros(1, lnp.float_), "float32", "float64"),
    "int_": (lambda: lnp.zeros(1, lnp.int_), "int32", "int64"),
    "uint": (lambda: lnp.uint(1), "uint32", "uint64"),
    "complex_": (lambda: lnp.complex_(1), "complex64", "complex128"),
    "indices": (lambda: lnp.indices((2, 2)), "int32", "int64"),
    "mgrid": (lambda: lnp.mgrid[0:2, 0:2], "int32", "int64"),
    "tril_indices": (lambda: lnp.tril_indices(3)[0], "int32", "int64"),
    "unravel_index": (lambda: lnp.unravel_index(I32, (2, 3))[0], "int32", "int64"),
    "fftfreq": (lambda: lnp.fft.fftfreq(4), "float32", "float64"),
    "hanning": (lambda: lnp.hanning(5), "float32", "float64"),
    "windows": (lambda: signal.windows.hann(5), "float32", "float64"),
    "float32 by a number": (lambda: lnp.asarray(F32) * 0.1, "float32", "float32"),
    "int32 by a number": (lambda: lnp.asarray(I32) * 0.1, "float32", "float64"),
    "int32 and a number": (lambda: lnp.asarray(I32) + 1, "int32", "int32"),
    "int32 by a complex number": (lambda: lnp.asarray(I32) * 1j, "complex64", "complex128"),
    "float32 by a complex number": (lambda: lnp.asarray(F32) * 1j, "complex64", "complex64"),
    "int32 and uint32": (lambda: lnp.asarray(I32) + U32, "int32", "int64"),
    "int64 and uint64": (lambda: lnp.asarray(I32, "int64") + lnp.asarray(U32, "uint64"), "int64", "float64"),
    "sum of int32": (lambda: lnp.sum(I32), "int32", "int64"),
    "sum of uint32": (lambda: lnp.sum(U32), "uint32", "uint64"),
    "sum of bool": (lambda: lnp.sum(B), "int32", "int64"),
    "prod of int8": (lambda: lnp.prod(I8), "int32", "int64"),
    "cumsum of int32": (lambda: lnp.cumsum(I32), "int32", "int32"),
    "cumsum of bool": (lambda: lnp.cumsum(B), "int32", "int64"),
    "cumulative_sum": (lambda: lnp.cumulative_sum(I32), "int32", "int64"),
    "cumulative_prod of int8": (lambda: lnp.cumulative_prod(I8), "int32", "int64"),  # int8 in JAX
    "cumulative_prod of uint32": (lambda: lnp.cumulative_prod(U32), "uint32", "uint64"),  # uint32 in JAX
    "mean of int32": (lambda: lnp.mean(I32), "float32", "float32"),
    "mean of integers": (lambda: lnp.mean(lnp.arange(3)), "float32", "float64"),
    "quotient of integers": (lambda: lnp.arange(3) / 2, "float32", "float64"),
    "sin of int32": (lambda: lnp.sin(I32), "float32", "float32"),
    "sin of a number": (lambda: lnp.sin(1), "float32", "float64"),
    "rint of int32": (lambda: lnp.rint(I32), "float32", "float64"),
    "count_nonzero": (lambda: lnp.count_nonzero(I32), "int32", "int64"),
    "argmax": (lambda: lnp.argmax(F32), "int32", "int64"),
    "argsort": (lambda: lnp.argsort(F32), "int32", "int64"),
    "argpartition": (lambda: lnp.argpartition(F32, 1), "int32", "int32"),
    "searchsorted": (lambda: lnp.searchsorted(F32, F32), "int32", "int64"),  # int32 in JAX
    "top_k": (lambda: lx.lax.top_k(F32, 1)[1], "int32", "int32"),
    "nonzero": (lambda: lnp.nonzero(I32, size=3)[0], "int32", "int64"),
    "unique": (lambda: lnp.unique(I32, size=3, return_counts=True)[1], "int32", "int64"),
    "bincount": (lambda: lnp.bincount(I32, length=4), "int32", "int64"),
    "result_type": (lambda: lnp.zeros(1, lnp.result_type(np.int32, float)), "float32", "float64"),
    "promote_types": (lambda: lnp.zeros(1, lnp.promote_types("float32", float)), "float32", "float32"),
    "fori_loop": (lambda: lx.lax.fori_loop(0, 3, lambda i, x: x + i, 0), "int32", "int64"),
    "while_loop": (lambda: lx.lax.while_loop(lambda x: x < 9, lambda x: x * 2, 1.0), "float32", "float64"),
    "one_hot": (lambda: nn.one_hot(I32, 4), "float32", "float64"),
    "softmax of float32": (lambda: nn.softmax(F32), "float32", "float32"),
    "glorot_normal": (lambda: nn.initializers.glorot_normal()(KEY, (2, 2)), "float32", "float64"),
    "initial zeros": (lambda: nn.initializers.zeros(KEY, (2,)), "float32", "float64"),
    "constant": (lambda: nn.initializers.constant(2)(KEY, (2,)), "float32", "float64"),
    "orthogonal": (lambda: nn.initializers.orthogonal()(KEY, (2, 2)), "float32", "float64"),
    "normal": (lambda: random.normal(KEY), "float32", "float64"),
    "uniform": (lambda: random.uniform(KEY), "float32", "float64"),
    "bits": (lambda: random.bits(KEY), "uint32", "uint64"),
    "randint": (lambda: random.randint(KEY, (), 0, 9), "int32", "int64"),
    "poisson": (lambda: random.poisson(KEY, 2.0), "int32", "int64"),
    "gamma": (lambda: random.gamma(KEY, 2.0), "float32", "float64"),
    "categorical": (lambda: random.categorical(KEY, F32), "int32", "int64"),
    "keys": (lambda: random.split(KEY), "uint32", "uint32"),
    "gammaln of a number": (lambda: scipy.special.gammaln(3.0), "float32", "float64"),
    "logpdf of a number": (lambda: scipy.stats.norm.logpdf(0.5), "float32", "float64"),
    "hilbert": (lambda: scipy.linalg.hilbert(3), "float32", "float64"),
    "grad": (lambda: lx.grad(lambda x: x**2)(3.0), "float32", "float64"),
}


def _dtype(function: Callable[[], Any]) -> str:
    return str(np.dtype(lx.eval_shape(function).dtype))


@pytest.mark.parametrize("name", CASES)
def test_dtypes_without_and_with_64_bits(name: str) -> None:
    function, narrow, wide = CASES[name]
    assert _dtype(function) == narrow
    with lx.enable_x64():
        assert _dtype(function) == wide
    assert _dtype(function) == narrow


def test_names_of_dtypes_follow_the_setting() -> None:
    assert lnp.float_ == lnp.float32 and lnp.int_ != lnp.int64
    with lx.enable_x64():
        assert lnp.float_ == lnp.float64 and lnp.int_ == np.int64 and lnp.uint.name == "uint64"
        assert lnp.finfo(float).eps == 2.0**-52 and lnp.iinfo(int).max == 2**63 - 1
        assert lnp.__array_namespace_info__().default_dtypes()["real floating"] == np.float64


@pytest.fixture
def _device_with_float64() -> None:
    if not get_device().profile.float64:
        pytest.skip("the device has no float64")


@pytest.mark.usefixtures("_device_with_float64")
class TestPrograms:
    """Compiled functions, which are kept apart by the setting."""

    def test_a_compiled_function_is_traced_for_each_setting(self) -> None:
        traced = []

        @lx.compile
        def third(x: Any) -> Any:
            traced.append(1)
            return lnp.ones(2) / 3 + 0 * x

        for _ in range(2):
            assert third(np.float32(1)).dtype == np.float32
            with lx.enable_x64():
                found = third(np.float32(1))
                assert found.dtype == np.float64 and float(found[0]) == 1 / 3
        assert len(traced) == 2

    def test_numbers_as_arguments(self) -> None:
        tenfold = lx.compile(lambda x: x * 10)
        assert float(tenfold(0.1)) == np.float32(0.1) * np.float32(10)
        with lx.enable_x64():
            assert float(tenfold(0.1)) == 0.1 * 10 and int(tenfold(2**40)) == 10 * 2**40
        assert tenfold(0.1).dtype == np.float32

    def test_functions_of_the_library_outside_of_traces(self) -> None:
        for _ in range(2):
            assert lnp.linspace(0, 1, 4).dtype == np.float32 and lnp.mean(lnp.arange(4)).dtype == np.float32
            with lx.enable_x64():
                np.testing.assert_array_equal(np.asarray(lnp.linspace(0, 1, 4)), np.linspace(0, 1, 4))
                assert lnp.mean(lnp.arange(4)).dtype == np.float64
                assert float(lnp.clip(lnp.asarray(0.3), 0.1, 0.2)) == 0.2

    def test_other_views_of_a_function(self) -> None:
        def function(x: Any) -> Any:
            return x * lnp.ones(2)

        kept = lx.compile(function)
        for enabled, dtype in ((False, "f32"), (True, "f64"), (False, "f32")):
            with lx.enable_x64(enabled):
                assert f"{dtype}[2]" in str(lx.make_jaxpr(function)(1.0))
                assert f"{dtype}[2]" in kept.lower(1.0).as_text("ir")
                assert f"{dtype}[2]" in str(lx.trace(function)(1.0))
                assert str(lx.eval_shape(kept, 1.0).dtype) == {"f32": "float32", "f64": "float64"}[dtype]
                assert lx.vmap(lx.grad(lambda x: lnp.sum(kept(x))))(lnp.arange(3.0)).type.dtype.name == dtype

    def test_a_loop_counts_beyond_32_bits(self) -> None:
        with lx.enable_x64():
            first = 2**40
            assert int(lx.fori_loop(first, first + 3, lambda i, x: x + i, 0)) == 3 * first + 3
            assert int(lx.compile(lambda n: lx.fori_loop(0, n, lambda i, x: x + i, 0))(np.int32(4))) == 6

    def test_seeds_of_64_bits(self) -> None:
        seed = 3 * 2**32 + 5
        np.testing.assert_array_equal(np.asarray(random.PRNGKey(seed)), [0, 5])
        with lx.enable_x64():
            for given in (seed, np.int64(seed), lnp.asarray(seed)):
                np.testing.assert_array_equal(np.asarray(random.PRNGKey(given)), [3, 5])
            np.testing.assert_array_equal(np.asarray(random.PRNGKey(-3)), [2**32 - 1, 2**32 - 3])
            np.testing.assert_array_equal(np.asarray(random.PRNGKey(np.int32(-3))), [0, 2**32 - 3])

    def test_states_of_layers_stay_float32(self) -> None:
        """As their weights do."""
        x, rates = np.ones((1, 2, 3), np.float32), -np.ones((3, 2), np.float32)
        with lx.enable_x64():
            states = nn.BatchNorm(3).initial_state()
            last = nn.selective_scan(x, x, rates, x[..., :2], x[..., :2])[1]
        assert {leaf.dtype for leaf in lx.tree.leaves((states, last))} == {np.dtype("float32")}

    def test_reduced_precision(self) -> None:
        x = np.array([np.pi, -1e300, 1e-300, 1 + 2.0**-30, 65519.0, np.inf, np.nan])
        with lx.enable_x64():
            same = lx.lax.reduce_precision(x, 11, 52)
            single = lx.lax.reduce_precision(x, 8, 23)
            half = lx.lax.reduce_precision(x, 5, 10)
        np.testing.assert_array_equal(np.asarray(same), x)
        with np.errstate(over="ignore", under="ignore"):
            np.testing.assert_array_equal(np.asarray(single), x.astype(np.float32).astype(np.float64))
            np.testing.assert_array_equal(np.asarray(half), x.astype(np.float16).astype(np.float64))
