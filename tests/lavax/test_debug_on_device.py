"""What loops and branches show of their numbers when they run on the device."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_prints_in_loops_and_branches_come_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    def small(x: Any) -> Any:
        lx.debug.print("small {}", x)
        return 3 * x + 1

    def halved(x: Any) -> Any:
        lx.debug.print("even {} of {}", x, lnp.stack([x, x + 1]))
        return x // 2

    @lx.compile
    def f(n: Any, w: Any) -> Any:
        last = lx.while_loop(lambda n: n != 1, lambda n: lx.cond(n % 2 == 0, halved, small, n), n)
        lx.debug.print("last {}", last)

        def step(carry: Any, row: Any) -> Any:
            carry = lnp.tanh(w @ carry + row)
            lx.debug.print("norm {:.4f}", lnp.sum(carry * carry))
            return carry, None

        return lx.scan(step, lnp.ones(3), w)[0]

    w = np.random.default_rng(3).normal(size=(3, 3)).astype("f")
    for n in (6, 1):
        f(np.int32(n), w)
        expected, norms = [], []
        while n != 1:
            expected.append(f"even {n} of [{n} {n + 1}]" if n % 2 == 0 else f"small {n}")
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        carry = np.ones(3)
        for row in w:
            carry = np.tanh(w @ carry + row)
            norms.append((carry * carry).sum())
        lines = shown(capsys)
        assert [re.sub(r" +", " ", line) for line in lines[:-3]] == [*expected, "last 1"]
        np.testing.assert_allclose([float(line.removeprefix("norm ")) for line in lines[-3:]], norms, atol=1e-3)


def test_a_batch_of_loops_shows_the_iterations_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    def body(state: Any) -> Any:
        left, x = state
        lx.debug.print("{} {}", left, x)
        return left - 1, x * 2

    run = lambda n, x: lx.while_loop(lambda s: s[0] > 0, body, (n, x))[1]  # noqa: E731
    found = lx.compile(lx.vmap(run))(np.array([2, 0, 3], "i"), np.array([1.0, 5.0, 0.5], "f"))
    np.testing.assert_array_equal(found, [4, 5, 4])
    assert shown(capsys) == ["2 1.0", "1 2.0", "3 0.5", "2 1.0", "1 2.0"]


def test_more_iterations_than_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any) -> Any:
        lx.debug.print("{}", x)
        return x + 1

    with pytest.warns(RuntimeWarning, match="ran 1500 iterations"):
        assert int(lx.compile(lambda x: lx.while_loop(lambda x: x < 1500, body, x))(0)) == 1500
    assert shown(capsys) == [str(number) for number in range(1024)]
