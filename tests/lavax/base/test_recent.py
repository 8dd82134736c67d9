"""What is kept while somebody keeps it, and a little longer."""
from __future__ import annotations

from lavax.base.recent import Recent


class Value:
    pass


def test_the_last_values_stay_and_those_that_are_kept() -> None:
    recent: Recent[Value] = Recent(2)
    kept = Value()
    recent.enter("kept", kept)
    for key in "abc":
        recent.enter(key, Value())
    assert recent.get("a") is None
    assert recent.get("kept") is kept  # the last now, and "b" is out
    assert recent.get("b") is None
    c = recent.get("c")
    assert c is not None and set(recent.values()) == {kept, c}


def test_a_smaller_limit_holds_from_the_next_value_on() -> None:
    recent: Recent[Value] = Recent(8)
    for key in range(8):
        recent.enter(key, Value())
    recent.limit = 1
    recent.enter("last", Value())
    (last,) = recent.values()
    assert recent.get("last") is last


def test_nothing_is_found_that_was_entered_before_it_was_cleared() -> None:
    recent: Recent[Value] = Recent(2)
    kept = Value()
    recent.enter("kept", kept)
    recent.clear()
    assert recent.get("kept") is None and not recent.values()
    recent.enter("kept", kept)
    assert recent.get("kept") is kept
