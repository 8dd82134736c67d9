"""What is logged of traces: which call made one necessary, and what is new about it."""
from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import CodeType
from typing import Any
from weakref import WeakSet

from lavax.base.logs import TRACES
from lavax.ir.location import user_location
from lavax.tracer.calls.call import CallStructure, Static
from lavax.tracer.calls.signature import Signature
from lavax.tracer.pytrees.pytree import TreeDef
from lavax.tracer.tracing.tracing import Traced
from lavax.tracer.values.abstract import Abstract

_MOST_ARGUMENTS = 8  # that are named
_traced_code: WeakSet[CodeType] = WeakSet()  # of functions traced while traces were logged


def log_trace(
    function: Callable[..., Any],
    signature: Signature,
    call: CallStructure,
    kinds: Sequence[Abstract],
    entries: Iterable[Sequence[Any]],
) -> None:
    """Logs to "lavax.trace" that a compiled function is traced for a call, and why.

    `entries` are the keys of earlier traces, the call's own last: each (runtime, settings, structure of the
    positional arguments, structure of the keyword arguments, static arguments, kind of each leaf). The call is compared
    with the nearest of them.
    """
    if not TRACES.is_heard:
        return
    *earlier, own = entries
    differences = [_differences(signature, call, kinds, own, entry) for entry in earlier]
    reason = _reason(function, differences, _arguments(signature, call, kinds))
    TRACES.say("%s is traced for the %s time: %s", _called(signature), _ordinal(len(differences) + 1), reason)


def log_lowering(signature: Signature, call: CallStructure, kinds: Sequence[Abstract]) -> None:
    """Logs that a function is traced to be lowered, which happens at every call of `lower`."""
    if TRACES.is_heard:
        TRACES.say("%s is traced by lower, with %s", _called(signature), _arguments(signature, call, kinds))


def log_traced(signature: Signature, traced: Traced, start: float) -> None:
    """Logs what a trace took, which began at `start` of time.perf_counter."""
    if TRACES.is_heard:
        nodes, seconds = len(traced.graph.nodes), time.perf_counter() - start
        TRACES.say("%s: %d operations traced in %.1f ms", signature.function, nodes, 1e3 * seconds)


def _called(signature: Signature) -> str:
    location = user_location()
    return f"{signature.function}, called at {location}," if location else signature.function


def _reason(function: Callable[..., Any], differences: Sequence[list[str]], arguments: str) -> str:
    """What is new about the call, against the nearest earlier one; of several equally near, the latest."""
    code = getattr(function, "__code__", None)
    is_known = isinstance(code, CodeType) and code in _traced_code
    if isinstance(code, CodeType):
        _traced_code.add(code)
    if differences:
        nearest: list[str] = min(reversed(differences), key=len)
        return "; ".join(nearest)
    if is_known and isinstance(code, CodeType):
        return (
            f"it is another function object, made by the same lines ({code.co_filename}:{code.co_firstlineno}): "
            "compile it once, outside of the loop or function that makes it"
        )
    return f"its first call, with {arguments}"


def _arguments(signature: Signature, call: CallStructure, kinds: Sequence[Abstract]) -> str:
    texts = [f"{name}: {kind.type}" for name, kind in zip(call.names(signature), kinds, strict=True)]
    more = f" and {len(texts) - _MOST_ARGUMENTS} more" if len(texts) > _MOST_ARGUMENTS else ""
    return (", ".join(texts[:_MOST_ARGUMENTS]) or "no arguments") + more


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else endings.get(number % 10, 'th')}"


def _differences(
    signature: Signature, call: CallStructure, kinds: Sequence[Abstract], own: Sequence[Any], entry: Sequence[Any]
) -> list[str]:
    """The differences between a call, whose key is `own`, and an earlier one, one text per difference."""
    runtime, (precision, *settings), positional, keywords, statics, *before = entry
    found = [] if runtime is own[0] else ["another backend is in use"]
    own_precision, *own_settings = own[1]
    if precision != own_precision:
        was, is_now = (" and ".join(name or "f32" for name in each) for each in (precision, own_precision))
        found.append(f"the precision of products and of their gradients was {was}, now {is_now}")
    if settings != own_settings:
        found.append("a setting has changed: whether data keep 64 bits, or whether keys are checked")
    found += _of_statics(signature, statics, call.statics)
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
