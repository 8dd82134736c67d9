"""Reductions of the elements that a mask chooses, and from an initial value on."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.lavax.properties.cases import BOOL, NAN, NUMBERS, Arguments, Case, Draw, axes_of, numbers, shapes


@st.composite
def masked(draw: Draw, initial: bool = False, spread: bool = False, special: Sequence[float] = ()) -> Arguments:
    """An array, and a mask that broadcasts to it."""
    shape = draw(shapes(0, 4))
    kept = shape[draw(st.integers(0, len(shape))) :]
    mask = numbers(draw, [draw(st.sampled_from([1, extent])) for extent in kept], (BOOL,))
    options: dict[str, Any] = {"axis": axes_of(draw, len(shape)), "keepdims": draw(st.booleans())}
    if initial:
        options["initial"] = draw(st.integers(-2, 4))
    if spread:
        options["ddof"] = draw(st.integers(0, 1))
    dtypes = NUMBERS[:2] if initial else NUMBERS
    return Arguments((numbers(draw, shape, dtypes, special=special), mask), options)


def _masked(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda namespace: lambda x, mask, **options: getattr(namespace, name)(x, where=mask, **options)


CASES: dict[str, Case] = {
    **{f"{name} where": Case(masked(), _masked(name)) for name in ("mean", "any", "all")},
    **{f"{name} where": Case(masked(spread=True), _masked(name)) for name in ("var", "std")},
    **{f"{name} where, from": Case(masked(initial=True), _masked(name)) for name in ("sum", "prod", "max", "min")},
    "nanmean where": Case(masked(special=NAN), _masked("nanmean")),
    **{f"{name} where": Case(masked(spread=True, special=NAN), _masked(name)) for name in ("nanvar", "nanstd")},
    **{
        f"{name} where, from": Case(masked(initial=True, special=NAN), _masked(name))
        for name in ("nansum", "nanprod", "nanmax", "nanmin")
    },
}
