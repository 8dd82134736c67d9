"""Updates of tables, which a loop in registers has in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from lavax.backends.vulkan.emit.loop.registers.held import LANES, Held, Statements
from lavax.backends.vulkan.emit.scatter.lines import JOINS
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.ir.graph import Node
from lavax.ir.types import int32


def updated(statements: Statements, node: Node, operands: Sequence[Held]) -> Held:
    """The table after one update after the other. Those that lie outside change nothing."""
    table, updates, *indices = operands
    offsets = _offsets_of_window(node)
    numbers = np.arange(updates.size).reshape(-1, offsets.size)
    statements.meet()  # other lanes have read the table as it was
    for update, elements in enumerate(numbers):
        chosen = [statements.moved([index], np.array([update])).names[0] for index in indices]
        first, fits = _place(statements, node, chosen)
        moved = statements.moved([updates], elements)
        rows = np.concatenate([offsets, np.full(-offsets.size % LANES, offsets[-1])]).reshape(-1, LANES)
        for number, (name, row) in enumerate(zip(moved.names, rows, strict=True)):
            place = statements.declare("int", f"{first} + {statements.numbers(tuple(row.tolist()))}")
            place = statements.select(fits, place, "0", int32)
            own = f"{fits} && lane < {min(offsets.size - number * LANES, LANES)}"
            _store(statements, node, table, place, own, name)
    statements.meet()
    return table


def _store(statements: Statements, node: Node, table: Held, place: str, own: str, name: str) -> None:
    """Lanes of their own join their elements to the table's."""
    memory, dtype, join = statements.body.memory, table.dtype, node.op.removeprefix("scatter_")
    assert table.address is not None, "a table is in memory"
    if join != "set":
        statements.spend_loads(table.address, 1)
        before = statements.variable(type_name(dtype, 1), memory.loaded(dtype, table.address, place))
        name = statements.declare(type_name(dtype, 1), JOINS[join](before, name, dtype, statements.body.uses))
    statements.spend(LANES)
    with statements.block(f"if ({own})"):
        statements.body.line(memory.stored(dtype, table.address, place, name))


def _place(statements: Statements, node: Node, chosen: Sequence[str]) -> tuple[str, str]:
    """Where in the table the window of an update begins, and whether it lies inside."""
    array, axes = node.operands[0], node.attrs["axes"]
    parts, tests = [], []
    for name, axis in zip(chosen, axes, strict=True):
        parts.append(f"int({name}) * {prod(array.shape[axis + 1 :])}")
        tests.append(f"int({name}) >= 0 && int({name}) < {array.shape[axis]}")
    return statements.declare("int", " + ".join(parts)), statements.declare("bool", " && ".join(tests))


def _offsets_of_window(node: Node) -> np.ndarray:
    """Where in the table each element of an update is, from the first one on."""
    shape, axes = node.shape, node.attrs["axes"]
    places = np.arange(prod(shape)).reshape(shape)
    window = tuple(0 if axis in axes else slice(None) for axis in range(len(shape)))
    return np.asarray(places[window]).reshape(-1)
