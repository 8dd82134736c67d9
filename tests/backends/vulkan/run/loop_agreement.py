"""A compiled function's results on the device, against the interpreter's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lavax as lx
from lavax.ir.interpreter import interpret
from lavax.ir.parser import parse


def agree(function: Callable[..., Any], *arguments: Any) -> str:
    """Checks the results, and gives the kernels."""
    compiled = lx.compile(lambda *given: function(*given))
    lowered = compiled.lower(*arguments)
    captured = map(np.asarray, lowered.traced.captured)
    expected = interpret(parse(lowered.as_text("ir")), *arguments, *captured)
    for found, wanted in zip(lx.tree.leaves(compiled(*arguments)), expected, strict=True):
        scale = max(float(np.max(np.abs(np.asarray(wanted, "d")))), 1.0)
        np.testing.assert_allclose(np.asarray(found).astype("d"), wanted, rtol=0, atol=2e-5 * scale)
    return str(lowered.as_text("kernels"))
