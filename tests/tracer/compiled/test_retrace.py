"""What is logged of traces and compiles, when, and to whom."""
from __future__ import annotations

import logging
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base import config

X = np.ones(3, "f")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setenv("LAVAX_LOG_COMPILES", "1")
    return caplog


def reasons(said: pytest.LogCaptureFixture) -> list[str]:
    """Why functions were traced, since the last time."""
    texts = [record.getMessage() for record in said.records if " is traced" in record.getMessage()]
    said.clear()
    return texts


def text(said: pytest.LogCaptureFixture) -> str:
    (found,) = reasons(said)
    return found


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((X, 1.0), (np.ones(4, "f"), 1.0), "2nd time: the shape of x was (3,), now (4,)"),
        ((X, 1.0), (np.ones(3, "i"), 1.0), "the dtype of x was f32, now i32"),
        ((X, 1.0), (np.ones(4, "i"), 1.0), "shape and dtype of x were f32[3], now i32[4]"),
        ((X, 1.0), (X, np.float32(1)), "y (f32[]) was a Python number (weak), now an array or NumPy number"),
        ((X, 1.0), (X, {"a": 1.0}), "the structure of y was *, now dict(a=*)"),
        ((X, 1.0), (X,), "the structure of y was *, now left out"),
        ((X, 1.0, "up"), (X, 1.0, "down"), "the static argument mode was 'up', now 'down'"),
        ((X, 1.0), (X, 1.0, "down"), "the static argument mode was left out, now 'down'"),
    ],
)
def test_what_changed(
    first: tuple[Any, ...], second: tuple[Any, ...], expected: str, said: pytest.LogCaptureFixture
) -> None:
    f = lx.compile(lambda x, y=1.0, mode="up": x, static_argnames="mode")
    f(*first)
    assert " is traced for the 1st time: " in text(said)
    f(*first)
    assert said.records == []
    f(*second)
    assert text(said).endswith(expected)
    f(*first)
    f(*second)
    assert said.records == []


def test_the_nearest_of_the_earlier_calls_counts(said: pytest.LogCaptureFixture) -> None:
    f = lx.compile(lambda x, y, z: x)
    f(X, X, X)
    f(1.0, 1.0, 1.0)
    said.clear()
    f(1.0, 1.0, X)
    assert text(said).split(": ", 1)[1] == "the shape of z was (), now (3,)"


def test_a_function_made_again(said: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        said.clear()
        lx.compile(lambda x: x + 1)(X)
    assert "another function object" in (message := text(said))
    assert "test_retrace.py" in message


def test_a_first_call_names_its_arguments(said: pytest.LogCaptureFixture) -> None:
    def step(w: Any, batch: Any) -> Any:
        return w * batch["x"]

    lx.compile(step)(X, {"x": X})
    message = text(said)
    assert "step, called at " in message and "test_retrace.py:" in message
    assert message.endswith("is traced for the 1st time: its first call, with w: f32[3], batch.x: f32[3]")


def test_many_arguments_are_not_all_named(said: pytest.LogCaptureFixture) -> None:
    lx.compile(lambda xs: xs[0])([X] * 20)
    assert text(said).endswith("xs.7: f32[3] and 12 more")


def test_settings_that_a_trace_depends_on(said: pytest.LogCaptureFixture) -> None:
    f = lx.compile(lambda x: x + 1)
    f(X)
    said.clear()
    with lx.matmul_precision("bfloat16"):
        f(X)
    assert text(said).endswith("the precision of products and of their gradients was f32 and f32, now bf16 and f32")


def test_lowering_traces_too(said: pytest.LogCaptureFixture) -> None:
    lx.compile(lambda x: x + 1).lower(X)
    assert "is traced by lower, with x: f32[3]" in text(said)


def test_transformed_functions_outside_compile_are_traced_at_every_call(said: pytest.LogCaptureFixture) -> None:
    def loss(x: Any) -> Any:
        return lx.cond(x > 0, lnp.sin, lnp.cos, x)

    for _ in range(2):
        lx.grad(lx.grad(loss))(1.0)
        assert re.fullmatch(
            r"grad of .*loss, called at .*test_retrace.py:\d+, is traced, as at every call outside compile", text(said)
        )
    lx.compile(lx.grad(loss))(1.0)
    assert "for the 1st time" in text(said)


def test_compiles_are_logged(said: pytest.LogCaptureFixture) -> None:
    def first(x: Any) -> Any:
        return x * 3.25 + 1

    def second(x: Any) -> Any:
        return x * 3.25 + 1

    lx.compile(first)(X)
    assert [record.name for record in said.records] == ["lavax.trace", "lavax.trace", "lavax.compile"]
    assert re.search(r"first: 4 operations traced in [\d.]+ ms$", said.messages[1])
    assert re.search(
        r"first: 4 operations compiled in [\d.]+ ms: \d shaders? new, of which \d \w+ not in the cache on disk$",
        said.messages[2],
    )
    said.clear()
    lx.compile(second)(X)
    assert said.messages[-1].endswith("second: nothing to compile, the program of an equal graph is used")


def test_compiles_outside_of_functions_are_logged(said: pytest.LogCaptureFixture) -> None:
    lnp.tanh(lnp.ones((3, 5, 7)) + X[0])
    pattern = r"tanh, called at .*test_retrace.py:\d+, outside compile: 1 operation compiled"
    assert any(re.match(pattern, message) for message in said.messages)


def test_the_context_and_the_settings_of_jax(caplog: pytest.LogCaptureFixture) -> None:
    with lx.log_compiles():
        lx.compile(lambda x: x)(X)
        with lx.explain_cache_misses(False):
            lx.compile(lambda x: x)(X)
    assert len(reasons(caplog)) == 1
    try:
        lx.config.update("jax_explain_cache_misses", True)
        assert lx.config.jax_log_compiles
        lx.compile(lambda x: x)(X)
    finally:
        config._process_logs_compiles.clear()
    assert len(reasons(caplog)) == 1


def test_nothing_is_said_unasked(caplog: pytest.LogCaptureFixture) -> None:
    f = lx.compile(lambda x: x)
    f(X)
    f(1.0)
    assert caplog.records == []


def test_whoever_listens_hears_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lavax"):
        lx.compile(lambda x: x)(X)
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    assert len(reasons(caplog)) == 1


PROGRAM = """
import sys, logging, lavax as lx
if "root" in sys.argv: logging.basicConfig(format="root %(message)s")
f = lx.compile(lambda x: x)
f(1.0); f(2)
logging.getLogger("lavax.other").warning("quiet")
"""


@pytest.mark.parametrize(
    ("setting", "words", "expected"),
    [
        ("0", [], r""),
        ("1", [], r"lavax\.trace: <lambda>, called at <string>:5, is traced for the 1st time(.|\n)*2nd time: the "),
        ("1", ["root"], r"root <lambda>, called at <string>:5, is traced for the 1st time(.|\n)*2nd time(.|\n)*quiet"),
        ("0", ["root"], r"root quiet\n"),
    ],
)
def test_who_writes(setting: str, words: list[str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody; lavax, to standard error; the program's own handler, and then lavax no more."""
    monkeypatch.setenv("LAVAX_LOG_COMPILES", setting)
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    assert re.match(expected or "$", done.stderr), done.stderr
    assert done.stderr.count("1st time") <= 1
