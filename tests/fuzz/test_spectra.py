"""Drawn Fourier transforms against NumPy, their derivatives and batches."""
from __future__ import annotations

import pytest

from tests.fuzz.spectra import OF_AXES, OF_ONE_AXIS, Call, check, drawn


@pytest.mark.usefixtures("reference_backend")
def test_drawn_transforms() -> None:
    for number in range(80):
        check(drawn(number))


def test_a_drawn_transform_on_the_device() -> None:
    check(drawn(0))


def test_all_functions_are_drawn() -> None:
    calls = [drawn(number) for number in range(80)]
    assert {call.name for call in calls} == {*OF_ONE_AXIS, *OF_AXES}
    assert {call.under for call in calls} == {"vmap", "scan", "checkpoint", "compile"}
    assert {call.double for call in calls} == {True, False}


@pytest.mark.usefixtures("reference_backend")
def test_a_wrong_scale_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    call = next(call for call in map(drawn, range(80)) if call.settings["norm"] == "ortho" and call.points > 1)
    right = call.expected(call.x)
    monkeypatch.setattr(Call, "expected", lambda call, x: right * 1.001)
    with pytest.raises(AssertionError, match=f"{call.name} of .*value"):
        check(call)


@pytest.mark.long
@pytest.mark.usefixtures("reference_backend")
def test_many_drawn_transforms() -> None:
    for number in range(100, 3000):
        check(drawn(number))


@pytest.mark.long
def test_many_drawn_transforms_on_the_device() -> None:
    for number in range(3000, 3060):
        check(drawn(number))
