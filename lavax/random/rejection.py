"""Loops that draw until the number of every element is found."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import lavax.numpy as lnp
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.pytrees import pytree
from lavax.tracer.values.value import Value

State = TypeVar("State")


def until_each_ends(is_open: Callable[[State], Value], turn: Callable[[State], State], start: State) -> State:
    """`turn` again and again for every element while its own `is_open` holds.

    All arrays of a state have the shape of the elements. A loop that keeps what is found can be one kernel, in which
    each element ends by itself (passes/build/ended_lanes.py).
    """

    def kept(state: State) -> State:
        goes_on = is_open(state)
        changed: State = pytree.map(lambda new, old: lnp.where(goes_on, new, old), turn(state), state)
        return changed

    ended: State = while_loop(lambda state: lnp.any(is_open(state)), kept, start)
    return ended


