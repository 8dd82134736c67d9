"""Every operation on the device against the interpreter, with sizes as literals and as push constants."""
from __future__ import annotations

import pytest

from lavax.ir import OPERATIONS
from tests.backends.vulkan.run.execution import assert_agrees
from tests.operation_cases import Case, cases_of

# A compiled program has its sizes in its shaders, so that each case costs the driver a compilation: of those only a few
# are run every time, and more of the eager ones, of which some share a shader.
_EVERY = {False: 5, True: 2}


@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_operation_agrees_with_the_interpreter(op: str, eager: bool) -> None:
    for number, case in enumerate(cases_of(op)):
        if case.special or number % _EVERY[eager] == 0:
            _check(case, eager)


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
