"""Explains, on request, why a compiled function is traced again."""
from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import CodeType
from typing import Any
from weakref import WeakSet

from lavax.base import config
from lavax.ir.location import user_location
from lavax.tracer.calls.call import CallStructure, Static
from lavax.tracer.calls.signature import Signature
from lavax.tracer.pytrees.pytree import TreeDef
from lavax.tracer.values.abstract import Abstract

_logger = logging.getLogger("lavax.retrace")
_traced_code: WeakSet[CodeType] = WeakSet()  # of functions traced while retraces were explained


def log_retrace(
    function: Callable[..., Any],
    signature: Signature,
    call: CallStructure,
    kinds: Sequence[Abstract],
    entries: Iterable[Sequence[Any]],
) -> None:
    """With LAVAX_EXPLAIN_RETRACE=1, logs as a warning of "lavax.retrace" which argument changed and how.

    `entries` are the keys of earlier traces: each (structure of the positional arguments, structure of the keyword
    arguments, static arguments, kind of each leaf). The call is compared with the nearest of them.
    """
    if not config.explain_retrace():
        return
    earlier = [_differences(signature, call, kinds, entry) for entry in entries]
    if earlier:
        changes = min(reversed(earlier), key=len)  # the latest of several equally near
        number = len(earlier) + 1
        location = user_location()
        _logger.warning(
            "%s%s is traced for the %s time: %s",
            signature.function,
            f", called at {location}," if location else "",
            _ordinal(number),
            "; ".join(changes),
        )
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        if not earlier and code in _traced_code:
            _logger.warning(
                "%s is traced again because it is another function object, made by the same lines (%s:%d): compile it "
                "once, outside of the loop or function that makes it",
                signature.function,
                code.co_filename,
                code.co_firstlineno,
            )
        _traced_code.add(code)


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else endings.get(number % 10, 'th')}"


def _differences(
    signature: Signature, call: CallStructure, kinds: Sequence[Abstract], entry: Sequence[Any]
) -> list[str]:
    """The differences between a call and an earlier one, one text per difference."""
    positional, keywords, statics, *before = entry
    found = [*_of_statics(signature, statics, call.statics)]
    if positional is call.positional and keywords is call.keywords:
        names = call.names(signature)
        found += [_of_kinds(*row) for row in zip(names, before, kinds, strict=True) if row[1] is not row[2]]
    else:
        found += _of_structures(signature, CallStructure(positional, keywords, statics), call)
    return found


def _of_statics(signature: Signature, before: Sequence[Static], now: Sequence[Static]) -> list[str]:
    """Differences between values of static arguments."""
    old, new = ({place: (cls, value) for place, cls, value in statics} for statics in (before, now))
    found = []
    for place in dict.fromkeys([*old, *new]):
        if old.get(place) != new.get(place):
            name = signature.name_at(place) if isinstance(place, int) else place
            was, is_now = (repr(side[place][1])[:80] if place in side else "left out" for side in (old, new))
            found.append(f"the static argument {name} was {was}, now {is_now}")
    return found


def _of_structures(signature: Signature, before: CallStructure, now: CallStructure) -> list[str]:
    """Differences between structures of arguments."""
    old, new = _named_structures(signature, before), _named_structures(signature, now)
    return [
        f"the structure of {name} was {old.get(name, 'left out')}, now {new.get(name, 'left out')}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) is not new.get(name)
    ]


def _named_structures(signature: Signature, call: CallStructure) -> dict[Hashable, TreeDef]:
    found: dict[Hashable, TreeDef] = dict(
        zip(map(signature.name_at, call.positions()), call.positional.children, strict=True)
    )
    if call.keywords is not None:
        found.update(zip(call.keywords.data, call.keywords.children, strict=True))
    return found


def _of_kinds(name: str, before: Abstract, now: Abstract) -> str:
    """The difference in shape, dtype or weakness of a leaf."""
    if before.type.shape != now.type.shape:
        if before.type.dtype != now.type.dtype:
            return f"shape and dtype of {name} were {before.type}, now {now.type}"
        return f"the shape of {name} was {before.type.shape}, now {now.type.shape}"
    if before.type.dtype != now.type.dtype:
        return f"the dtype of {name} was {before.type.dtype}, now {now.type.dtype}"
    weak, strong = "a Python number (weak)", "an array or NumPy number"
    was, is_now = (weak if kind.weak else strong for kind in (before, now))
    return f"{name} ({now.type}) was {was}, now {is_now}"
