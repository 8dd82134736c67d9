"""Runs that check every value for NaN, and name the operation that made the first one."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import NaNError
from lavax.ir import Graph
from lavax.ir.graph import INPUT, Node, graph_of
from lavax.ir.location import user_error, user_location
from lavax.ir.types import TupleType
from lavax.passes.build.builder import build, concatenate, reshape
from lavax.passes.build.inline import inline_calls
from lavax.passes.simplify import remove_stop_gradient
from lavax.tracer.compiled.stages import executable
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value

_ADVICE = (
    "None of its operands held one. Look for 0/0, inf - inf, 0·inf, and for log, sqrt or power outside their domain; "
    "where a branch of where is not taken, make its operand safe before the operation"
)


class NaNChecked:
    """A graph as a program with one more result: whether each value holds a NaN.

    Called as an Executable, it raises NaNError if one does. Values within branches and loops are not told apart: the
    error names the branch or loop as a whole.
    """

    def __init__(
        self,
        function: str,
        graph: Graph,
        weak: Sequence[bool],
        captured: Sequence[Value] = (),
        donated: Sequence[int] = (),
    ) -> None:
        plain = inline_calls(graph)
        self._function = function
        self._count = len(plain.outputs)
        self._suspects = [node for node in (*plain.inputs, *plain.nodes) if _may_hold_nan(node)]
        flags = _flags(self._suspects)
        whole = remove_stop_gradient(graph_of(plain.inputs, (*plain.outputs, *flags)))
        self._run = executable(whole, [*weak, *[False] * len(flags)], captured, donated)

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs of the graph. Raises NaNError, DonatedArrayError."""
        results = self._run(arrays)
        for flags in results[self._count :]:
            held = np.asarray(flags)
            if held.any():
                raise _error(self._function, self._suspects[int(held.argmax())])
        return results[: self._count]

    @property
    def held_bytes(self) -> int:
        """The device memory that the program holds between calls."""
        return self._run.held_bytes


def _may_hold_nan(node: Node) -> bool:
    return not isinstance(node.type, TupleType) and node.dtype.is_inexact and bool(node.type.size)


def _flags(suspects: Sequence[Node]) -> list[Node]:
    """Whether each value holds a NaN, as one bool vector."""
    found = []
    for node in suspects:
        different = build("not_equal", node, node)
        found.append(reshape(build("max", different, axes=tuple(range(node.type.rank))), (1,)))
    return [concatenate(found, 0)] if found else []


def _error(function: str, node: Node) -> NaNError:
    if node.op == INPUT:
        return user_error(NaNError, f"{function}: its argument or captured value {node.name} ({node.type}) holds NaN")
    made_by = node.operands[0] if node.op == "item" else node
    operands = ", ".join(str(operand.type) for operand in made_by.operands)
    where = f", at {made_by.location}" if made_by.location else ""
    return NaNError(
        f"{function}: the first NaN is a result of {made_by.op}({operands}) : {node.type}{where}. {_ADVICE}"
    )


def refuse_fresh_nan(op: str, operands: Sequence[Array], result: Array) -> None:
    """Raises NaNError if an operation that ran by itself made NaN from operands without any."""
    if not _holds_nan(result) or not operands or any(map(_holds_nan, operands)):
        return
    given = ", ".join(str(operand.type) for operand in operands)
    location = user_location()
    where = f", at {location}" if location else ""
    raise NaNError(f"NaN is a result of {op}({given}) : {result.type}{where}. {_ADVICE}")


def _holds_nan(array: Array) -> bool:
    return array.type.dtype.is_inexact and bool(np.isnan(array.to_host("a check for NaN")).any())
