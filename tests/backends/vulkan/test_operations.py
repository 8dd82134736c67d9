"""Every operation on the device against the interpreter, with sizes as literals and as push constants."""
from __future__ import annotations

import pytest

from lavax.errors import DtypeError
from lavax.ir import OPERATIONS
from tests.backends.vulkan.execution import assert_agrees
from tests.operation_cases import cases_of


@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_operation_agrees_with_the_interpreter(op: str, eager: bool) -> None:
    for case in cases_of(op):
        if case.refused:
            with pytest.raises(DtypeError, match="is not there for f64"):
                assert_agrees(case.graph, case.arrays, eager=eager)
            continue
        try:
            assert_agrees(case.graph, case.arrays, eager=eager)
        except Exception as error:
            raise AssertionError(f"{case}\n{case.graph}") from error
