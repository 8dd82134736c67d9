"""Functions that transformations return with what they computed, as containers that compiled functions take."""

from __future__ import annotations

from typing import Any

from lavax.tracer.pytrees.keys import GetAttrKey
from lavax.tracer.pytrees.pytree import NodeKind, register


def register_linear_function(cls: type) -> None:
    """A class of a `rule`, which compares and hashes, and of a tuple `residuals`, which are the children."""
    register(
        cls,
        NodeKind(
            cls.__name__,
            _residuals_and_rule,
            lambda rule, children: cls(rule, tuple(children[0])),
            lambda rule, count: (GetAttrKey("residuals"),),
            cls,
        ),
    )


def _residuals_and_rule(function: Any) -> tuple[tuple[Any], Any]:
    return (function.residuals,), function.rule
