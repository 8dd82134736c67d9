"""Checks of functions: what failed is the same in every transform, loop and branch, and as JAX says it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.base.errors import CheckError
from lavax.experimental import checkify as ck


def message(f: Callable[..., Any], *args: Any, errors: Any = ck.user_checks) -> str | None:
    """What fails, alone and in a compiled function."""
    checked = ck.checkify(f, errors=errors)
    alone = checked(*args)[0].get()
    assert lx.jit(checked)(*args)[0].get() == alone
    return alone


def positive(x: Any) -> Any:
    ck.check(x > 0, "x must be positive, got {x} and {}", 3, x=x)
    return x * 2


def test_a_check_has_a_message_and_the_result_stays() -> None:
    error, result = lx.jit(ck.checkify(positive))(-1.0)
    assert error.get() == "x must be positive, got -1.0 and 3 (`check` failed)"
    assert float(result) == -2.0
    with pytest.raises(ck.JaxRuntimeError, match="x must be positive"):
        error.throw()
    error, result = lx.jit(ck.checkify(positive))(1.0)
    assert error.get() is None
    assert error.throw() is None
    assert (repr(error), float(result)) == ("Error(None)", 2.0)


def test_the_first_check_that_fails_counts() -> None:
    def two(x: Any) -> Any:
        ck.check(x > 5, "first")
        ck.check(x > 3, "second")

    assert message(two, 1.0) == "first (`check` failed)"
    assert message(lambda x: (ck.check(x < 9, "before"), two(x))[1], 4.0) == "first (`check` failed)"
    assert message(two, 6.0) is None


def test_without_checkify_it_is_raised() -> None:
    with pytest.raises(CheckError, match=r"got -1\.0"):
        positive(np.float32(-1.0))
    with pytest.raises(CheckError, match=r"got -1\.0"):
        lx.jit(positive)(-1.0)
    assert float(lx.jit(positive)(1.0)) == 2.0
    ck.debug_check(False, "nothing")
    assert message(lambda x: ck.debug_check(x > 0, "debug"), -1.0) == "debug (`check` failed)"


@pytest.mark.parametrize("pred", [1, 1.0, np.ones(2, bool), "x"])
def test_only_a_truth_value_is_checked(pred: Any) -> None:
    with pytest.raises(TypeError, match="a scalar truth value"):
        ck.check(pred, "no")


def stepwise(x: Any) -> Any:
    def body(carry: Any, x: Any) -> Any:
        ck.check(x < 3, "bad {x}", x=x)
        return carry + x, carry

    return lax.scan(body, 0.0, x)


def backwards(x: Any) -> Any:
    return lax.scan(lambda c, x: (ck.check(x < 3, "bad {}", x), (c, c))[1], 0.0, x, reverse=True)


def counted(x: Any) -> Any:
    def body(count: Any) -> Any:
        ck.check(count < 2990, "bad {}", count)
        return count + 1

    return lax.while_loop(lambda count: count < 3000, body, x)


def conditioned(x: Any) -> Any:
    def running(count: Any) -> Any:
        ck.check(count != 5, "condition {}", count)
        return count < 6

    return lax.while_loop(running, lambda count: count + 1, x)


def chosen(x: Any) -> Any:
    return lax.cond(x > 0, lambda x: (ck.check(x < 3, "bad {}", x), x)[1], lambda x: -x, x)


def switched(number: Any, x: Any) -> Any:
    def branch(bound: int) -> Callable[[Any], Any]:
        return lambda x: (ck.check(x < bound, "branch {} with {}", bound, x), x)[1]

    return lax.switch(number, [branch(1), branch(2), branch(3)], x)


def nested(x: Any) -> Any:
    def inner(count: Any) -> Any:
        ck.check(count != 4, "four {}", count)
        return count + 1

    return lax.scan(lambda c, _: (lax.while_loop(lambda n: n < 5, inner, c), c), x, None, 2)


def printing(x: Any) -> Any:
    def body(carry: Any, x: Any) -> Any:
        lx.debug.print("x {}", x)
        ck.check(x < 1, "bad {}", x)
        return carry, carry

    return lax.scan(body, 0.0, x)


IN_REGIONS: list[tuple[Callable[..., Any], tuple[Any, ...], str | None]] = [
    (stepwise, (np.arange(6.0, dtype="f"),), "bad 3.0"),
    (stepwise, (np.arange(3.0, dtype="f"),), None),
    (stepwise, (np.zeros(0, "f"),), None),
    (backwards, (np.arange(6.0, dtype="f"),), "bad 5.0"),
    (counted, (0,), "bad 2990"),
    (conditioned, (0,), "condition 5"),
    (conditioned, (6,), None),
    (chosen, (-4.0,), None),
    (chosen, (1.0,), None),
    (chosen, (4.0,), "bad 4.0"),
    (switched, (-1, 0.0), None),
    (switched, (-1, 1.5), "branch 1 with 1.5"),
    (switched, (1, 1.5), None),
    (switched, (1, 2.5), "branch 2 with 2.5"),
    (switched, (7, 2.5), None),
    (switched, (7, 3.5), "branch 3 with 3.5"),
    (nested, (1,), "four 4"),
    (printing, (np.arange(2.0, dtype="f"),), "bad 1.0"),
    (lambda x: lx.vmap(chosen)(x), (np.array([1.0, 5.0, 4.0], "f"),), "bad 5.0"),
    (lx.value_and_grad(chosen), (4.0,), "bad 4.0"),
    (lx.checkpoint(chosen), (4.0,), "bad 4.0"),
    (lx.jit(chosen), (4.0,), "bad 4.0"),
]


@pytest.mark.parametrize(("f", "args", "expected"), IN_REGIONS)
def test_checks_in_loops_branches_and_transforms(f: Callable[..., Any], args: Any, expected: str | None) -> None:
    given = [np.asarray(arg, np.float32 if isinstance(arg, float) else None) for arg in args]
    assert message(f, *given) == (expected and f"{expected} (`check` failed)")


def test_prints_beside_checks_are_done_once(capsys: pytest.CaptureFixture[str]) -> None:
    ck.checkify(printing)(np.arange(2.0, dtype="f"))[0].get()
    assert capsys.readouterr().out == "x 0.0\nx 1.0\n"


def test_of_many_elements_each_has_its_error() -> None:
    error, _ = lx.jit(lx.vmap(ck.checkify(positive)))(np.array([-1.0, 2.0, -3.0], "f"))
    assert error.get() == (
        "at mapped index 0: x must be positive, got -1.0 and 3 (`check` failed)\n"
        "at mapped index 2: x must be positive, got -3.0 and 3 (`check` failed)"
    )
    both = lx.vmap(lx.vmap(ck.checkify(stepwise)))(np.arange(12.0, dtype="f").reshape(2, 2, 3))[0].get()
    assert both == "\n".join(
        f"at mapped index {row}, {column}: bad {value} (`check` failed)"
        for row, column, value in [(0, 1, 3.0), (1, 0, 6.0), (1, 1, 9.0)]
    )


def test_an_error_becomes_a_check_again() -> None:
    def outer(x: Any) -> Any:
        error, result = ck.checkify(positive)(x)
        ck.check_error(error)
        return result

    assert message(outer, -1.0) == "x must be positive, got -1.0 and 3 (`check` failed)"
    assert ck.init_error.get() is None
    with pytest.raises(CheckError, match="positive"):
        ck.check_error(ck.checkify(positive)(-1.0)[0])


def nan_in_a_loop(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: lnp.log(c - 1), x)


OUTSIDE = "out-of-bounds indexing for array of shape {}: index {} is out of bounds for axis {} with size {}. "
AUTOMATIC: list[tuple[Any, Callable[..., Any], tuple[Any, ...], str | None]] = [
    (ck.nan_checks, lnp.log, (-1.0,), "nan generated by primitive: log."),
    (ck.nan_checks, lnp.log, (1.0,), None),
    (ck.user_checks, lnp.log, (-1.0,), None),
    (ck.nan_checks, lambda x: lnp.where(x > 0, x, lnp.nan), (-1.0,), None),
    (ck.nan_checks, lx.jit(lambda x: lnp.sqrt(x) + lnp.log(x)), (-1.0,), "nan generated by primitive: sqrt."),
    (ck.nan_checks, nan_in_a_loop, (1.0,), "nan generated by primitive: subtract."),
    (ck.nan_checks, lx.grad(lambda x: lnp.sqrt(x) * 0), (0.0,), "nan generated by primitive: divide."),
    (ck.float_checks, lambda x: 1 / x, (0.0,), "division by zero"),
    (ck.nan_checks, lambda x: 1 / x, (0.0,), None),
    (ck.div_checks, lambda x: 7 // x, (0,), "division by zero"),
    (ck.div_checks, lambda x: lax.div(np.int32(7), x), (0,), "division by zero"),
    (ck.index_checks, lambda i: lnp.arange(3.0)[i], (5,), OUTSIDE.format("(3,)", 5, 0, 3)),
    (ck.index_checks, lambda i: lnp.arange(3.0)[i], (-3,), None),
    (ck.index_checks, lambda i: lnp.ones((3, 7))[i, i], (4,), OUTSIDE.format("(3, 7)", 4, 0, 3)),
    (ck.index_checks, lambda i: lnp.ones((3, 7))[:, i], (-8,), OUTSIDE.format("(3, 7)", -1, 1, 7)),
    (ck.index_checks, lambda i: lnp.ones(3).at[i].set(2), (np.array([1, 5]),), OUTSIDE.format("(3,)", 5, 0, 3)),
    (ck.index_checks, lx.vmap(lambda i: lnp.arange(3.0)[i]), (np.array([0, 7]),), OUTSIDE.format("(3,)", 7, 0, 3)),
    (ck.all_checks, lambda x: (positive(x), lnp.log(x)), (-1.0,), "nan generated by primitive: log."),
]


@pytest.mark.parametrize(("errors", "f", "args", "expected"), AUTOMATIC)
def test_checks_of_every_operation(errors: Any, f: Callable[..., Any], args: Any, expected: str | None) -> None:
    given = [np.asarray(arg, np.float32 if isinstance(arg, float) else np.int32) for arg in args]
    found = message(f, *given, errors=errors)
    if errors is ck.all_checks:  # a check of the function comes first
        assert found is not None and found.startswith("x must be positive")
        return
    assert found == expected


def _logarithms(limit: Any, x: Any) -> Any:
    return lax.while_loop(lambda state: state[0] < limit, lambda state: (state[0] + 1, lnp.log(state[1])), (0, x))


def test_while_loops_check_every_operation_of_their_bodies_and_conditions() -> None:
    assert message(_logarithms, 2, 20.0, errors=ck.all_checks) is None
    assert message(_logarithms, 5, 20.0, errors=ck.all_checks) == "nan generated by primitive: log."

    def descended(x: Any) -> Any:
        return lax.while_loop(lambda y: lnp.log(y) > 0, lambda y: y - 3, x)

    assert message(descended, 3.5, errors=ck.nan_checks) is None
    assert message(descended, 2.0, errors=ck.nan_checks) == "nan generated by primitive: log."  # by the last condition

    def read(count: Any) -> Any:
        return lax.fori_loop(0, count, lambda i, total: total + lnp.arange(4.0)[i], 0.0)

    assert message(read, 4, errors=ck.all_checks) is None
    assert "index 4 is out of bounds for axis 0" in str(message(read, 6, errors=ck.all_checks))


def test_checks_of_a_body_come_behind_those_before_it() -> None:
    def loop(x: Any) -> Any:
        def body(state: Any) -> Any:
            ck.check(state[0] < 3, "step {}", state[0])
            return state[0] + 1, _logarithms(1, state[1])[1] + 2.5

        return lax.while_loop(lambda state: state[0] < 5, body, (0, x))

    assert message(loop, 1.0, errors=ck.all_checks) == "step 3 (`check` failed)"
    assert message(loop, 1.0, errors=ck.nan_checks) is None
    assert message(loop, -1.0, errors=ck.nan_checks) == "nan generated by primitive: log."


def test_loops_in_rules_for_derivatives_are_not_checked() -> None:
    def drawn(x: Any) -> Any:
        return lx.grad(lambda shape: lx.random.gamma(lx.random.key(0), shape))(x)

    assert message(drawn, 2.0, errors=ck.all_checks) is None
    assert message(lambda rate: lx.random.poisson(lx.random.key(0), rate), 2.0, errors=ck.all_checks) is None
