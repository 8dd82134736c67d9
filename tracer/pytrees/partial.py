"""Functions with arguments as containers."""
from __future__ import annotations

import functools
from typing import Any

from lavax.tracer.pytrees.keys import GetAttrKey
from lavax.tracer.pytrees.pytree import NodeKind, register


class Partial(functools.partial[Any]):
    """`functools.partial` that is a container: its arguments are children, and the function is part of the structure.

    So it can be passed to compiled functions, and returned from them. They are traced once per function: keep one
    function rather than make a new one for each call.
    """


register(
    Partial,
    NodeKind(
        "Partial",
        lambda partial: ((partial.args, partial.keywords), partial.func),
        lambda function, children: Partial(function, *children[0], **children[1]),
        lambda function, count: (GetAttrKey("args"), GetAttrKey("keywords")),
        Partial,
    ),
)
