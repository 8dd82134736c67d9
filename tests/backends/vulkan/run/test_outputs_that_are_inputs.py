"""Preparing a program may find that an output is an input: the arrays have memory of their own nevertheless."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DonatedArrayError


def array(*values: float) -> lx.Array:
    placed: lx.Array = lx.device_put(np.array(values, "f"))
    return placed


NONE = np.zeros(0, np.int32)
UNCHANGED: dict[str, Callable[[Any], Any]] = {
    "array": lnp.array,
    "copy": lnp.copy,
    "updated nowhere": lambda x: x.at[NONE].set(0.0),
    "updated nowhere, compiled": lx.compile(lambda x: x.at[NONE].set(0.0)),
    "cast and back": lx.compile(lambda x: x.astype("float64").astype("float32")),
    "sorted along one element": lambda x: lnp.sort(x[None], axis=0)[0],
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_results_that_equal_an_argument_outlive_its_donation(name: str) -> None:
    x = array(1, 2) + 0
    y = UNCHANGED[name](x)
    assert lx.compile(lambda x: x * 2, donate_argnums=0)(x).tolist() == [2, 4]
    assert y.tolist() == [1, 2]


def test_scalars_that_programs_share_are_never_donated() -> None:
    stopped = lx.lax.stop_gradient(lnp.float32(2))
    nowhere = lnp.float32(3).reshape(1).at[NONE].set(0.0)
    for x, wanted in ((stopped, 4.0), (nowhere, [6.0])):
        assert lx.compile(lambda x: x * 2, donate_argnums=0)(x).tolist() == wanted
    assert [(array(5) * number).tolist() for number in (2.0, 3.0)] == [[10], [15]]


def test_what_is_stopped_says_that_it_was_donated_with_its_array() -> None:
    x = array(1, 2) + 0
    stopped = lx.lax.stop_gradient(x)
    lx.compile(lambda x: x * 2, donate_argnums=0)(x)
    with pytest.raises(DonatedArrayError):
        np.asarray(stopped)
