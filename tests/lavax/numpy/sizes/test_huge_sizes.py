"""Sizes that nothing can hold are refused by name, before any work begins."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DeviceError, LavaxError, ShapeError, VerificationError
from lavax.nn import one_hot
from lavax.passes.target.kernel_limits import MOST_ELEMENTS

HUGE = 2**70  # more than 64 bits count
LARGE = 2**45  # more than any memory holds
THREE = np.ones(3, np.float32)

# What makes an array of a size, and the start of the error's message for HUGE.
CREATORS: dict[str, tuple[Callable[[int], Any], str]] = {
    "zeros": (lambda n: lnp.zeros(n) + 1, "zeros: "),
    "ones": (lambda n: lnp.ones((n, 2)) + 1, "ones: "),
    "empty": (lambda n: lnp.empty(n) + 1, "empty: "),
    "full": (lambda n: lnp.full(n, 2.0) + 1, "full: "),
    "full of an array": (lambda n: lnp.full(n, THREE[:1] * lnp.ones(1)), "full: "),
    "zeros_like": (lambda n: lnp.zeros_like(THREE, shape=(n,)) + 1, "zeros_like: "),
    "arange": (lnp.arange, "arange: "),
    "arange of small steps": (lambda n: lnp.arange(0.0, 1.0, 1 / n), "arange: "),
    "linspace": (lambda n: lnp.linspace(0, 1, n), "linspace: "),
    "logspace": (lambda n: lnp.logspace(0, 1, n), "linspace: "),
    "geomspace": (lambda n: lnp.geomspace(1, 2, n), "linspace: "),
    "eye": (lnp.eye, "eye: "),
    "identity": (lnp.identity, "eye: "),
    "tri": (lnp.tri, "tri: "),
    "diag": (lambda n: lnp.diag(THREE, n), "pad"),
    "tril_indices": (lnp.tril_indices, "tril_indices: "),
    "triu_indices": (lambda n: lnp.triu_indices(n, 1, 3), "triu_indices: "),
    "indices": (lambda n: lnp.indices((n, 2)), "indices: "),
    "repeat": (lambda n: lnp.repeat(THREE, n), ""),
    "tile": (lambda n: lnp.tile(THREE, n), ""),
    "broadcast_to": (lambda n: lnp.broadcast_to(THREE, (n, 3)), ""),
    "pad": (lambda n: lnp.pad(THREE, n), ""),
    "one_hot": (lambda n: one_hot(lnp.arange(3), n), ""),
    "vander": (lambda n: lnp.vander(THREE, n), ""),
    "hanning": (lnp.hanning, ""),
    "resize": (lambda n: lnp.resize(THREE, n), ""),
    "bincount": (lambda n: lnp.bincount(lnp.arange(3), length=n), ""),
    "nonzero": (lambda n: lnp.nonzero(THREE, size=n), ""),
    "normal": (lambda n: lx.random.normal(lx.random.key(0), (n,)), ""),
    "uniform": (lambda n: lx.random.uniform(lx.random.key(0), (3, n)), ""),
    "randint": (lambda n: lx.random.randint(lx.random.key(0), (n,), 0, 3), ""),
    "bits": (lambda n: lx.random.bits(lx.random.key(0), (n,)), ""),
    "split": (lambda n: lx.random.split(lx.random.key(0), n), ""),
    "iota": (lambda n: lx.lax.iota(lnp.int32, n), ""),
    "broadcasted_iota": (lambda n: lx.lax.broadcasted_iota(lnp.int32, (n, 3), 0), ""),
    "outer": (lambda n: lnp.zeros((min(n, LARGE), 1)) * lnp.zeros(LARGE), ""),
}


@pytest.mark.parametrize("name", CREATORS)
@pytest.mark.parametrize("size", [HUGE, LARGE], ids=["huge", "large"])
def test_creators_refuse(name: str, size: int) -> None:
    function, start = CREATORS[name]
    with pytest.raises(LavaxError) as caught:
        function(size)
    if size == HUGE:
        assert start in str(caught.value)
    # Where every pass is verified, as in tests, the verifier is asked before the device.
    assert isinstance(caught.value, (ShapeError, DeviceError, VerificationError))


@pytest.mark.parametrize(
    "arguments", [(0, np.inf), (-np.inf, 0), (0, np.nan), (0, 1, np.nan), (np.nan,), (0, 5, np.inf)], ids=str
)
def test_arange_of_what_is_not_finite(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ShapeError, match="arange: start, stop and step must be finite, got"):
        lnp.arange(*arguments)


def test_arange_counts_integers_exactly() -> None:
    assert lx.eval_shape(lambda: lnp.arange(0, 2**60 + 1, 2**30)).shape == (2**30 + 1,)
    assert lx.eval_shape(lambda: lnp.arange(10, 0, -3)).shape == (4,)
    assert lx.eval_shape(lambda: lnp.arange(0, -3)).shape == (0,)


@pytest.mark.parametrize("search", [lnp.argmax, lnp.argmin, lnp.nanargmax, lx.lax.argmax], ids=lambda f: f.__name__)
def test_positions_that_int32_does_not_count(search: Callable[..., Any]) -> None:
    beyond = lx.ShapeDtype((2, MOST_ELEMENTS + 1), "int8")
    arguments = {"axis": 1, "index_dtype": lnp.int32} if search is lx.lax.argmax else {"axis": 1}
    message = r"arg(max|min): i8\[2,2147483648\] has 2147483648 elements to search, more than"
    with pytest.raises(ShapeError, match=message):
        lx.eval_shape(lambda x: search(x, **arguments), beyond)
    assert lx.eval_shape(lambda x: lnp.argmax(x, axis=0), beyond).shape == (MOST_ELEMENTS + 1,)
