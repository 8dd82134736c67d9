from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DonatedArrayError
from tests.numpy_backend import NumpyBackend


def array(*values: float) -> lx.Array:
    placed: lx.Array = lx.device_put(np.array(values, "f"))
    return placed


def test_a_donated_array_cannot_be_used_again() -> None:
    step = lx.compile(lambda p, x: p + x, donate_argnums=0)
    p, x = array(1, 2), array(3, 4)
    assert step(p, x).tolist() == [4, 6]
    assert "donated" in repr(p)
    for use in (lambda: np.asarray(p), lambda: p + 1, lambda: step(p, x), lambda: step(x, p)):
        with pytest.raises(DonatedArrayError, match="donate_argnums"):
            use()
    assert x.tolist() == [3, 4]


def test_the_backend_is_told_which_inputs_it_may_overwrite(backend: NumpyBackend) -> None:
    step = lx.compile(lambda x, p: {k: v + x for k, v in p.items()}, donate_argnums=1)
    p = {"a": array(1), "b": array(2)}
    step(array(5), p)
    assert all(part.is_donated for part in p.values())
    lowered = step.lower(array(5), {"a": array(1), "b": array(2)})
    assert lowered.donated == [1, 2]


def test_donation_by_keyword() -> None:
    p = array(1)
    lx.compile(lambda x, p: p + x, donate_argnums=1)(1.0, p=p)
    assert p.is_donated


@pytest.mark.parametrize("names", ["p", ("p",)])
def test_donation_by_name(names: Any) -> None:
    p, q = array(1), array(2)
    step = lx.compile(lambda x, p: p + x, donate_argnames=names)
    step(1.0, p)
    step(1.0, p=q)
    assert p.is_donated and q.is_donated
    r = array(3)
    lx.compile(lambda x, *, p: p + x, donate_argnames=names)(1.0, p=r)
    assert r.is_donated
    with pytest.raises(ValueError, match="donate_argnames='q'"):
        lx.compile(lambda x: x, donate_argnames="q")
    with pytest.raises(ValueError, match=r"p of .* both static and donated"):
        lx.compile(lambda x, *, p: x, donate_argnames="p", static_argnames="p")


def test_training_in_place() -> None:
    step = lx.compile(lambda p, g: lx.tree.map(lambda a, b: a - 0.5 * b, p, g), donate_argnums=0)
    p: Any = {"w": np.ones(2, "f"), "b": 1.0}
    for _ in range(3):
        p = step(p, {"w": np.ones(2, "f"), "b": np.float32(1)})
    assert p["w"].tolist() == [-0.5, -0.5]


def test_numbers_that_calls_share_are_not_given_away(backend: NumpyBackend) -> None:
    """A Python number is on the device once for all who only read it; whoever is given one gets it in other memory."""
    step = lx.compile(lambda p, q, r: (p + q, p * r), donate_argnums=0)
    reads = lx.compile(lambda p, q: p * 10 + q)
    scalar = lnp.array(2.0)
    for _ in range(3):
        assert [float(part) for part in step(2.0, 2.0, 3.0)] == [4, 6]
        assert [float(part) for part in step(np.float32(2), np.float32(2), 3.0)] == [4, 6]
        assert float(reads(2.0, 3.0)) == 23 and float(scalar + 1) == 3
    uploads = backend.uploads
    reads(3.0, 2.0)
    assert backend.uploads == uploads
    assert [float(part) for part in step(scalar, 2.0, 3.0)] == [4, 6]
    assert scalar.is_donated
    assert float(reads(2.0, 3.0)) == 23 and float(reads(-0.0, 0.0)) == 0
    assert np.signbit(lx.compile(lambda x: -x)(0.0)) and not np.signbit(lx.compile(lambda x: -x)(-0.0))


@pytest.mark.parametrize("donate", [(0,), (1,), (0, 1)])
def test_one_array_donated_and_used_at_once_is_refused_before_anything_changes(donate: tuple[int, ...]) -> None:
    step = lx.compile(lambda p, q: p + q, donate_argnums=donate)
    p = array(1, 2)
    with pytest.raises(DonatedArrayError, match=r"as p and as q"):
        step(p, p)
    assert p.tolist() == [1, 2]
    assert step(p, copy.copy(p)).tolist() == [2, 4]


def test_an_array_donated_while_closed_over_is_refused() -> None:
    p = array(1, 2)
    with pytest.raises(DonatedArrayError, match="captured0"):
        lx.compile(lambda x: x * p, donate_argnums=0)(p)
    assert p.tolist() == [1, 2]


def test_what_is_passed_through_is_not_given_away() -> None:
    step = lx.compile(lambda p, q: (p, q + 1), donate_argnums=(0, 1))
    p, q = array(1), array(2)
    same, _ = step(p, q)
    assert same.tolist() == [1] and not p.is_donated
    assert q.is_donated


def test_constants_may_be_donated() -> None:
    step = lx.compile(lambda p: p + 1, donate_argnums=0)
    zeros, scalar = lnp.zeros(2), lx.device_put(1.0)
    assert (scalar + zeros).tolist() == [1, 1]
    assert step(zeros).tolist() == [1, 1]
    assert float(step(scalar)) == 2
    assert (lnp.zeros(2) + 1).tolist() == [1, 1]
    with pytest.raises(DonatedArrayError):
        zeros + 1


def test_equal_results_can_be_donated_together() -> None:
    twice = lx.compile(lambda x: (x + 1, x + 1))
    assert "reshape" in str(twice.lower(array(1)).as_text("kernels")), "each result has memory of its own"
    first, second = twice(array(1))
    step = lx.compile(lambda p, q: (p * 2, q * 3), donate_argnums=(0, 1))
    assert [part.tolist() for part in step(first, second)] == [[4], [6]]


def test_donated_arguments_inside_a_trace_are_ordinary() -> None:
    step = lx.compile(lambda p: p * 2, donate_argnums=0)
    p = array(1)
    assert lx.compile(lambda p: step(p) + p)(p).tolist() == [3]
    assert not p.is_donated
