"""Errors of branches that differ and of bodies that change their carry: which leaf, which types, where."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ControlFlowTypeError

X = np.ones(3, "f")
PAIR = {"a": X, "b": X}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lx.cond(True, lambda x: x, lambda x: x > 0, X), r"branch 1 gives f32\[3\], .* branch 0 has bool\[3\]"),
        (lambda: lx.cond(True, lambda x: x, lambda x: (x, x), X), "gives the structure"),
        (lambda: lx.switch(1, [lambda x: PAIR, lambda x: {"a": x, "b": x[:2]}], X), r"branch 1 gives f32\[2\] at b"),
        (lambda: lx.scan(lambda c, x: (c[:2], None), X, X), r"body gives f32\[2\], but its argument has f32\[3\]"),
        (lambda: lx.scan(lambda c, x: c, X, X), "must give a pair"),
        (lambda: lx.scan(lambda c, x: (c.astype("int32"), x), 1.5, X), r"body gives i32\[\], .* argument has f32\[\]"),
        (lambda: lx.fori_loop(0, 3, lambda i, c: (c * 2) > 1, 1.5), r"body gives bool\[\]"),
        (lambda: lx.while_loop(lambda x: x, lambda x: x, X), r"scalar bool, got f32\[3\]"),
        (lambda: lx.associative_scan(lambda a, b: (a, b), X), "associative_scan: fn gives the structure"),
    ],
)
def test_the_message(call: Any, said: str) -> None:
    with pytest.raises(ControlFlowTypeError, match=said) as caught:
        call()
    assert "test_control_flow_errors.py:" in str(caught.value)
    with pytest.raises(ControlFlowTypeError, match=said):
        lx.compile(lambda x: lnp.sum(x) + call())(X)


def _to_and_from_16_bits(carry: Any, _: Any) -> tuple[Any, Any]:
    return carry.astype("uint16" if carry.dtype == "uint32" else "uint32"), carry


@pytest.mark.parametrize("unroll", [1, 3, True])
def test_every_step_of_an_unrolled_scan_keeps_the_types_of_the_carry(unroll: int | bool) -> None:
    """Not the last one alone: what the first one gives is carried into the second."""
    message = r"scan: the body gives u16\[5\], but its argument has u32\[5\]"
    for step in (lambda carry, _: (carry.astype("uint16"), carry), _to_and_from_16_bits):
        with pytest.raises(lx.ControlFlowTypeError, match=message):
            lx.lax.scan(step, lnp.ones(5, "uint32"), lnp.arange(4), length=4, unroll=unroll)
        with pytest.raises(lx.ControlFlowTypeError, match=message):
            lx.lax.scan(step, lnp.ones(5, "uint32"), lnp.arange(6), unroll=unroll)
    # A weak number becomes a float in the first step.
    total, partial = lx.lax.scan(lambda carry, x: (carry + x, carry), 0, lnp.arange(3.0), unroll=unroll)
    assert total == 3.0 and partial.dtype == "float32" and partial.tolist() == [0.0, 0.0, 1.0]
