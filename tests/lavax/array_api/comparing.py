"""Runs the cases of a library on NumPy's arrays and on lavax's, and prints what differs, as JSON.

    SCIPY_ARRAY_API=1 python -m tests.lavax.array_api.comparing scipy

SciPy reads that variable when it is first imported, so this is a process of its own.
"""
from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np


def numbers(result: Any) -> Iterator[Any]:
    """The arrays and numbers of a result, which may be a tuple of them."""
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from numbers(part)
    else:
        yield result


def difference(expected: Any, found: Any) -> str:
    """What is wrong with `found`, or nothing: its class, its dtype's kind, its numbers."""
    import lavax as lx

    if isinstance(expected, np.ndarray) and not isinstance(found, lx.Array):
        return f"an array became {type(found).__name__}"
    wanted, held = np.asarray(expected), np.asarray(found)
    if (wanted.dtype.kind, wanted.shape) != (held.dtype.kind, held.shape):
        return f"{wanted.dtype} {wanted.shape} became {held.dtype} {held.shape}"
    scale = float(np.abs(wanted, where=np.isfinite(wanted), out=np.zeros(wanted.shape)).max(initial=0))
    try:
        np.testing.assert_allclose(held.astype(float), wanted.astype(float), rtol=2e-4, atol=2e-4 * scale)
    except AssertionError as error:
        return str(error)
    return ""


def outcome(case: Any) -> str:
    """What differs in a case, or nothing."""
    import lavax.numpy as lnp

    try:
        pairs = zip(numbers(case(lambda x: x)), numbers(case(lnp.asarray)), strict=True)
        return next(filter(None, (difference(expected, found) for expected, found in pairs)), "")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    from lavax.tracer.values import backend
    from tests.numpy_backend import NumpyBackend

    assert os.environ["SCIPY_ARRAY_API"] == "1"
    backend.register(NumpyBackend)
    cases = importlib.import_module(f"tests.lavax.array_api.{sys.argv[1]}_cases").CASES
    warnings.simplefilter("ignore")
    import sklearn

    with sklearn.config_context(array_api_dispatch=True):
        json.dump({name: outcome(case) for name, case in cases.items()}, sys.stdout)


if __name__ == "__main__":
    main()
