"""What LAVAX_EXPLAIN_RETRACE=1 says."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx

X = np.ones(3, "f")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setenv("LAVAX_EXPLAIN_RETRACE", "1")
    return caplog


def text(said: pytest.LogCaptureFixture) -> str:
    (record,) = said.records
    found = str(record.getMessage())
    said.clear()
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
    said.clear()  # the same lines may have made a function before
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


def test_nothing_is_said_unasked(caplog: pytest.LogCaptureFixture) -> None:
    f = lx.compile(lambda x: x)
    f(X)
    f(1.0)
    assert caplog.records == []
