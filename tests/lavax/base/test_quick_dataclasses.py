"""Dataclasses made by lavax are those that the standard library makes."""
from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from typing import Any, ClassVar

import pytest

from lavax.base.quick_dataclasses import dataclass


class Plain:
    """Fields with and without values, and methods."""

    name: str
    size: float = 0.5
    parts: tuple[int, ...] = ()

    @property
    def both(self) -> tuple[str, float]:
        return self.name, self.size


class One:
    other: float


class Checked:
    field_1: int
    field_0: int = 3

    def __post_init__(self) -> None:
        if self.field_1 < 0:
            raise ValueError("below 0")


class WithFactory:
    items: list[int] = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(default=1, repr=False, compare=False)


class WithConstant:
    limit: ClassVar[int] = 4
    value: int = 1


class OwnText:
    value: int = 2

    def __repr__(self) -> str:
        return "own"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 5


class Empty:
    pass


CLASSES = (Plain, One, Checked, WithFactory, WithConstant, OwnText, Empty)
FROZEN = {"frozen": True}
SETTINGS: tuple[dict[str, bool], ...] = ({}, FROZEN, {**FROZEN, "eq": False}, {"eq": False}, {"order": True})


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", CLASSES)
def test_classes_behave_as_those_of_the_standard_library(kind: type, settings: dict[str, bool]) -> None:
    quick, standard = (_copied(kind, make, settings) for make in (dataclass, dataclasses.dataclass))
    arguments = [("a", 1.0, (2,)), (1, 2), ([4],), (7,), ()]
    for some in [(), *arguments, ("a",), ("a", 2.0), (1, 2, 3, 4, 5)]:
        assert _outcome(quick, some) == _outcome(standard, some)
    assert [field.name for field in dataclasses.fields(quick)] == [field.name for field in dataclasses.fields(standard)]
    assert inspect.signature(quick) == inspect.signature(standard)
    assert (quick.__hash__ is None) == (standard.__hash__ is None)
    assert quick.__match_args__ == standard.__match_args__
    assert str(vars(quick)["__dataclass_params__"]).partition("match")[0] == str(
        vars(standard)["__dataclass_params__"]
    ).partition("match")[0]


def test_one_nan_equals_itself() -> None:
    """On every version of Python; the standard library says so up to 3.12."""
    nan = float("nan")
    quick, standard = (_copied(One, make, FROZEN) for make in (dataclass, dataclasses.dataclass))
    assert quick(nan) == quick(nan) and hash(quick(nan)) == hash(quick(nan)) and quick(nan) != quick(float("nan"))
    assert (standard(nan) == standard(nan)) == (sys.version_info < (3, 13))


def _copied(kind: type, make: Any, settings: dict[str, bool]) -> Any:
    """A dataclass of the same contents."""
    own = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
    return make(**settings)(type(kind.__name__, (), own))


def _outcome(kind: Any, arguments: tuple[Any, ...]) -> Any:
    """What a program can see of an object with these arguments, and of another one that is equal."""
    try:
        made, again = kind(*arguments), kind(*arguments)
    except (TypeError, ValueError) as error:
        return str(error).replace("__create_fn__.<locals>.", "")
    seen = [repr(made), vars(made), made == again, made == object(), made != again, dataclasses.asdict(made)]
    for ask in (hash, lambda it: setattr(it, "name", 1), lambda it: delattr(it, "size"), lambda it: it < again):
        try:
            found = ask(made)
            seen.append(None if kind.__eq__ is object.__eq__ else found)
        except (TypeError, AttributeError) as error:
            seen.append((type(error), str(error)))
    changed = dataclasses.replace(again, **{field.name: 9 for field in dataclasses.fields(kind)})
    return [*seen, vars(changed), vars(copy.deepcopy(changed))]


@dataclass(frozen=True)
class Module:
    first: int
    second: str = "b"


class Child(Module):
    extra: int = 0


def test_objects_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Module(1))) == Module(1)


def test_classes_that_inherit_keep_the_fields_and_may_have_attributes() -> None:
    child = Child(1)
    child.extra = 4
    assert (child.first, child.extra) == (1, 4)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'first'"):
        child.first = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'first'"):
        del child.first  # type: ignore[misc]


def test_dataclasses_inherit_fields() -> None:
    @dataclass(frozen=True)
    class Wider(Module):
        third: float = 1.0

    assert Wider(1, "c", 2.0) == Wider(1, "c", third=2.0) != Wider(1, "c")
    assert repr(Wider(1)).endswith("Wider(first=1, second='b', third=1.0)")


def test_an_object_that_holds_itself_has_a_text() -> None:
    @dataclass
    class Knot:
        inside: Any = None

    knot = Knot()
    knot.inside = knot
    assert repr(knot).endswith("Knot(inside=...)")


def test_missing_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"Module.__init__\(\) missing 1 required positional argument: 'first'"):
        Module()  # type: ignore[call-arg]


def test_functions_of_classes_with_as_many_fields_stay_apart() -> None:
    @dataclass(frozen=True)
    class Other:
        left: int
        right: int

    assert vars(Other(1, 2)) == {"left": 1, "right": 2}
    assert vars(Module(1, "x")) == {"first": 1, "second": "x"}
