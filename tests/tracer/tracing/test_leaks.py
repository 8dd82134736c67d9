from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import TracerLeakError


def leaked_from(transform: Callable[[Any], Any]) -> Any:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(lnp.sin(x))
        return lnp.sum(x)

    transform(f)(np.ones(3, "f"))
    return kept[0]


@pytest.mark.parametrize("transform", [lx.compile, lx.grad, lx.trace, lambda f: lambda x: lx.vjp(f, x)])
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: np.asarray(x),
        lambda x: lx.compile(lambda y: y)(x),
        lambda x: lx.compile(lambda y: y + x)(1.0),
        lambda x: lx.grad(lambda y: lnp.sum(y * x))(1.0),
        lambda x: lx.compile(lambda y: x)(1.0),
        lambda x: lx.device_put([1.0, x])[1] + 1,
    ],
)
def test_a_tracer_after_its_trace(transform: Callable[[Any], Any], use: Callable[[Any], Any]) -> None:
    leaked = leaked_from(transform)
    assert "Tracer(f32[3]" in repr(leaked)
    with pytest.raises(TracerLeakError, match=rf"sin at {re.escape(__file__)}:\d+") as caught:
        use(leaked)
    message = str(caught.value)
    assert len(message) > 80
    assert "ended" in message and "Return it" in message and "f32[3]" in message


def test_a_compiled_function_refuses_it_on_the_fast_road_too() -> None:
    f = lx.compile(lambda y: y * 2)
    f(np.ones(3, "f"))
    with pytest.raises(TracerLeakError):
        f(leaked_from(lx.compile))


def test_an_inner_tracer_used_in_the_outer_trace() -> None:
    def outer(x: Any) -> Any:
        kept: list[Any] = []
        lx.grad(lambda y: (kept.append(y), y * y)[1])(x)
        return kept[0] * x

    for transform in (lx.compile, lx.grad):
        with pytest.raises(TracerLeakError):
            transform(outer)(2.0)


def test_a_tracer_in_another_thread() -> None:
    errors: list[BaseException] = []

    def f(x: Any) -> Any:
        def use() -> None:
            try:
                x + 1
            except TracerLeakError as error:
                errors.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return x

    lx.compile(f)(1.0)
    assert "thread" in str(errors[0])


def test_threads_trace_at_the_same_time() -> None:
    barrier = threading.Barrier(2, timeout=10)
    results: dict[float, float] = {}

    def work(value: float) -> None:
        def f(x: Any) -> Any:
            barrier.wait()
            y = lnp.sin(x) * value
            barrier.wait()
            return y

        results[value] = float(lx.grad(f)(0.0))

    threads = [threading.Thread(target=work, args=(value,)) for value in (2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {2.0: 2.0, 3.0: 3.0}
