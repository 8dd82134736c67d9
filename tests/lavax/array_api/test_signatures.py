"""Every function of the standard takes the arguments that the standard names, by position and by keyword."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.lavax.array_api import standard

FUNCTIONS: list[tuple[Any, str, inspect.Signature]] = [
    (owner, name, signature)
    for owner, table in (
        (lnp, standard.MAIN),
        (lnp.linalg, standard.LINALG),
        (lnp.__array_namespace_info__(), standard.INFO),
        (lx.Array, standard.ARRAY),
    )
    for name, signature in table.items()
]


def calls(signature: inspect.Signature) -> list[tuple[list[str], dict[str, Any]]]:
    """The ways to call: all that may be by position, and all that may be by keyword."""
    kinds = inspect.Parameter
    by_position, least, named = [], [], {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is kinds.VAR_POSITIONAL:
            by_position += [name, name, name]
        elif parameter.kind is not kinds.KEYWORD_ONLY:
            by_position.append(name)
        if parameter.kind is kinds.POSITIONAL_ONLY:
            least.append(name)
        elif parameter.kind is not kinds.VAR_POSITIONAL:
            named[name] = parameter.default
    only_named = {name: p.default for name, p in signature.parameters.items() if p.kind is kinds.KEYWORD_ONLY}
    return [(by_position, {}), (by_position, only_named), (least, named)]


@pytest.mark.parametrize(("owner", "name", "signature"), FUNCTIONS, ids=[name for _, name, _ in FUNCTIONS])
def test_signature(owner: Any, name: str, signature: inspect.Signature) -> None:
    function: Callable[..., Any] = getattr(owner, name)
    held = inspect.signature(function)
    for positional, named in calls(signature):
        held.bind(*positional, **named)
    for key, parameter in signature.parameters.items():
        if key == "correction":
            continue  # None: 0, or NumPy's name ddof
        if parameter.default is not parameter.empty and parameter.kind is parameter.KEYWORD_ONLY:
            assert held.parameters[key].default == parameter.default, f"{key} is {held.parameters[key].default}"
