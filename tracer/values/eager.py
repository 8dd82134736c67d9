"""Eager operations: each runs at once as a graph of one node, compiled as all others."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lavax.ir import OPERATIONS, TensorType
from lavax.ir.exact_text import exact_text
from lavax.ir.graph import Node, graph_of, input_node, make_node
from lavax.tracer.values.abstract import Abstract, abstract
from lavax.tracer.values.array import Array, shared_scalar, splat_array
from lavax.tracer.values.backend import Program, runtime
from lavax.tracer.values.program_cache import CachedProgram, now
from lavax.tracer.values.programs import program_for
from lavax.tracer.values.value import PythonScalar

_KEEP_SPLATS = frozenset({"broadcast", "reshape"})  # equal elements stay equal


class EagerOperation(CachedProgram):
    """The program of an operation, and the kind of its result."""

    __slots__ = ("kind", "run")

    def __init__(self, program: Program, kind: Abstract) -> None:
        super().__init__(held_bytes=0)
        self.run = program.run
        self.kind = kind


def run_operation(
    op: str, operands: Sequence[Array], attrs: Mapping[str, Any], type: TensorType | None = None
) -> Array:
    """The result of one operation on concrete arrays.

    Raises ShapeError or DtypeError if the operands do not fit, and NaNError if NaNs are refused and the result has one.
    """
    if op == "constant":
        return splat_array(attrs["value"], abstract(make_node(op, (), attrs, type).type))
    splats = [operand.splat for operand in operands]
    if op in _KEEP_SPLATS and splats[0] is not None:
        return splat_array(splats[0], abstract(OPERATIONS[op].infer([operands[0].type], attrs, type)))
    current = runtime()
    scalars = [position for position, splat in enumerate(splats) if splat is not None]
    # Texts distinguish 0.0 from -0.0 and 1 from True; == does not.
    written = f"{attrs!r}{exact_text(attrs.get('value'))}" if attrs else ""
    key = (op, written, type and abstract(type), *scalars, *[operand.abstract for operand in operands])
    found = current.operations.get(key)
    if found is None:
        found = current.operations.keep(key, _compiled(op, operands, splats, attrs, type))
    found.used = now()
    buffers = [
        operand._buffer or operand.buffer if splat is None else shared_scalar(splat, operand.type.dtype)
        for operand, splat in zip(operands, splats, strict=True)
    ]
    result = Array(found.kind, found.run(buffers)[0])
    if current.refuses_nans:
        from lavax.tracer.compiled.nan_check import refuse_fresh_nan  # which imports this module

        refuse_fresh_nan(op, operands, result)
    return result


def _compiled(
    op: str,
    operands: Sequence[Array],
    splats: Sequence[PythonScalar | None],
    attrs: Mapping[str, Any],
    type: TensorType | None,
) -> EagerOperation:
    """A program that takes operands of equal elements as scalars and repeats them, so that no memory is filled."""
    inputs: list[Node] = []
    nodes: list[Node] = []
    for position, (operand, splat) in enumerate(zip(operands, splats, strict=True)):
        scalar = splat is not None and operand.shape != ()
        node = input_node(f"x{position}", operand.type.with_shape(()) if scalar else operand.type)
        inputs.append(node)
        nodes.append(make_node("broadcast", (node,), {"axes": ()}, operand.type) if scalar else node)
    output = make_node(op, nodes, attrs, type)
    return EagerOperation(program_for(graph_of(inputs, (output,)), eager=True), abstract(output.type))
