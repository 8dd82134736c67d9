"""A few loops as users write them; `python -m tests.fuzz.written_loops` runs others."""
from __future__ import annotations

import pytest

from tests.fuzz.written_loops import differences_of, function_of


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("number", [2, 3, 7, 31])
def test_loops_are_their_steps_written_out(number: int) -> None:
    assert list(differences_of(number)) == []


def test_programs_hang_on_their_number_alone() -> None:
    assert function_of(5, False)[1] == function_of(5, True)[1]
