"""Every operation on the device against the interpreter, with sizes as literals and as push constants."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from lavax.ir import OPERATIONS
from tests.backends.vulkan.run.execution import assert_agrees
from tests.operation_cases import Case, cases_of, covering_cases

# Nearly every case costs the driver the compilation of a shader, of tens of milliseconds. Compiled programs, which have
# their sizes in their shaders, run all special values and a few of the other cases; eager ones meet every dtype, and
# every shape with every attribute.
_EVERY = 5


def _few_compiled(op: str) -> Iterator[Case]:
    return (case for number, case in enumerate(cases_of(op)) if case.special or number % _EVERY == 0)


_FEW = {"compiled": _few_compiled, "eager": covering_cases}


@pytest.mark.parametrize("kind", _FEW)
@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_operation_agrees_with_the_interpreter(op: str, kind: str) -> None:
    for case in _FEW[kind](op):
        _check(case, kind == "eager")


@pytest.mark.long
@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_operation_agrees_with_the_interpreter_in_every_case(op: str, eager: bool) -> None:
    for case in cases_of(op):
        _check(case, eager)


def _check(case: Case, eager: bool) -> None:
    try:
        assert_agrees(case.graph, case.arrays, eager=eager)
    except Exception as error:
        raise AssertionError(f"{case}\n{case.graph}") from error
