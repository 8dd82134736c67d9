"""The dtype, and the numbers, that functions give for all dtypes and pairs of them, against what JAX 0.10.2 gave."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from tests.lavax.numpy.sweeps.functions import (
    LETTERS,
    NARROW,
    REFUSED,
    array,
    binary,
    creation,
    letters,
    pairs,
    unary,
    values,
)

pytestmark = pytest.mark.usefixtures("reference_backend")

# By JAX: for dtypes of up to 32 bits, and for all with 64 bits enabled, letters by function; and values.
RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
MODES = {"32": NARROW, "64": list(LETTERS)}

def _agrees(found: str, expected: str) -> bool:
    """What JAX refuses, lavax may take."""
    return expected in (REFUSED, found)


def _table(mode: str, kind: str, name: str) -> list[str]:
    table: dict[str, str] = RECORDED[mode][kind]
    return RECORDED[mode]["tables"][table[name]].split()  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", binary(lx))
def test_pairs_of_dtypes(name: str) -> None:
    for given, wanted in zip(pairs(name, NARROW), _table("32", "binary", name), strict=True):
        found = letters(lx, binary(lx)[name], *given)
        assert _agrees(found, wanted), ([getattr(each, "dtype", each) for each in given], found, wanted)


@pytest.mark.parametrize("name", RECORDED["64"]["binary"])
def test_pairs_with_64_bits(name: str) -> None:
    """Functions that give the dtype of the arrays: other defaults have 32 bits, and JAX makes i64 and u64 a float."""
    with lx.enable_x64():
        for given, wanted in zip(pairs(name, MODES["64"]), _table("64", "binary", name), strict=False):
            kinds = [each.dtype.kind for each in given]
            is_mixed = "u8" in [each.dtype.str[1:] for each in given] and "i" in kinds
            if not is_mixed and any(each.dtype.itemsize == 8 for each in given):
                found = letters(lx, binary(lx)[name], *given)
                assert _agrees(found, wanted), ([each.dtype for each in given], found, wanted)


@pytest.mark.parametrize("name", unary(lx))
def test_dtypes(name: str) -> None:
    for dtype, wanted in zip(NARROW, _table("32", "unary", name), strict=False):
        found = letters(lx, unary(lx)[name], array(dtype, 1))
        assert _agrees(found, wanted), (dtype, found, wanted)


@pytest.mark.parametrize("name", creation(lx))
def test_arrays_of_a_dtype(name: str) -> None:
    for mode, dtypes in MODES.items():
        with lx.enable_x64(mode == "64"):
            for dtype, wanted in zip(dtypes, _table(mode, "creation", name), strict=True):
                found = letters(lx, creation(lx)[name], dtype)
                assert _agrees(found, wanted), (mode, dtype, found, wanted)


# Of one number, relative to the greatest; sums of six are compared.
ROUNDING = {"float16": 4e-3, "bfloat16": 3e-2}


@pytest.mark.parametrize("name", RECORDED["values"])
def test_values(name: str) -> None:
    found, expected = values(lx, name, NARROW), RECORDED["values"][name]
    for dtype, sums in expected.items():
        scale = max(1.0, *map(abs, sums))
        np.testing.assert_allclose(found[dtype], sums, rtol=0, atol=ROUNDING.get(dtype, 3e-5) * scale, err_msg=dtype)
