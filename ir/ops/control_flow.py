"""Operations that hold graphs: branches and loops. They may have several results, which `item` separates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.graph import Graph
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType, TupleType, bool_, int32, tuple_of


def _infer_item(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    if not isinstance(operand, TupleType) or not 0 <= attrs["index"] < len(operand.parts):
        raise ShapeError(f"item: {operand} has no part {attrs['index']}")
    return operand.parts[attrs["index"]]


def _evaluate_item(arrays: Sequence[Any], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.asarray(arrays[0][attrs["index"]])


def input_types(graph: Graph) -> tuple[TensorType, ...]:
    return tuple(node.type for node in graph.inputs)


def output_types(graph: Graph) -> tuple[TensorType, ...]:
    return tuple(node.type for node in graph.outputs)


def _check_inputs(what: str, graph: Graph, given: Sequence[TensorType]) -> None:
    if input_types(graph) != tuple(given):
        expected, got = ", ".join(map(str, input_types(graph))), ", ".join(map(str, given))
        raise ShapeError(f"{what} takes ({expected}), got ({got})")
    names = [node.name for node in graph.inputs]
    if len(set(names)) != len(names):
        raise ValueError(f"{what} has inputs of one name, and a program finds them by their names: {names}")


def _infer_switch(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    index, *arguments = operands
    branches = attrs["branches"]
    if index != TensorType((), int32):
        raise DtypeError(f"switch: the index must be i32[], got {index}")
    if not branches:
        raise ShapeError("switch needs at least one branch")
    for number, branch in enumerate(branches):
        _check_inputs(f"switch: branch {number}", branch, arguments)
        if output_types(branch) != output_types(branches[0]):
            raise ShapeError(
                f"switch: branch {number} gives ({', '.join(map(str, output_types(branch)))}), "
                f"branch 0 gives ({', '.join(map(str, output_types(branches[0])))})"
            )
    return tuple_of(output_types(branches[0]))


def _infer_while(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    """The first operands are carried, as many as the body has outputs; the others are constant."""
    condition, body = attrs["condition"], attrs["body"]
    _check_inputs("while: the condition", condition, operands)
    _check_inputs("while: the body", body, operands)
    if output_types(condition) != (TensorType((), bool_),):
        raise DtypeError(f"while: the condition must give bool[], got ({', '.join(map(str, output_types(condition)))})")
    carried = tuple(operands[: len(body.outputs)])
    if output_types(body) != carried:
        raise ShapeError(
            f"while: the body must give what it carries, ({', '.join(map(str, carried))}), "
            f"got ({', '.join(map(str, output_types(body)))})"
        )
    return tuple_of(carried)


def _infer_scan(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    """Operands: carried values, arrays to iterate over along axis 0, constants. Results: carried, then stacked."""
    body, length, carries, sequences = attrs["body"], attrs["length"], attrs["carries"], attrs["sequences"]
    if carries + sequences > len(operands):
        raise ShapeError(f"scan: {carries} carried values and {sequences} sequences, but {len(operands)} operands")
    carried, gone_through = operands[:carries], operands[carries : carries + sequences]
    for sequence in gone_through:
        if sequence.rank == 0 or sequence.shape[0] != length:
            raise ShapeError(f"scan: {sequence} has no {length} elements along axis 0")
    slices = [sequence.with_shape(sequence.shape[1:]) for sequence in gone_through]
    _check_inputs("scan: the body", body, [*carried, *slices, *operands[carries + sequences :]])
    results = output_types(body)
    if results[:carries] != tuple(carried):
        raise ShapeError(
            f"scan: the body must give what it carries, ({', '.join(map(str, carried))}), "
            f"got ({', '.join(map(str, results[:carries]))})"
        )
    stacked = (type.with_shape((length, *type.shape)) for type in results[carries:])
    return tuple_of((*carried, *stacked))


def _run(graph: Graph, arrays: Sequence[Any], floating: np.dtype) -> list[Any]:
    from lavax.ir.interpreter import run_nodes  # the interpreter runs these operations in turn

    return run_nodes(graph, dict(zip(graph.inputs, arrays, strict=True)), floating)


def _evaluate_switch(arrays: Sequence[Any], attrs: Attributes, type: TensorType, dtype: np.dtype) -> Any:
    """An index outside the range is clamped."""
    index, *arguments = arrays
    branches = attrs["branches"]
    return tuple(_run(branches[min(max(int(index), 0), len(branches) - 1)], arguments, dtype))


def _evaluate_while(arrays: Sequence[Any], attrs: Attributes, type: TensorType, dtype: np.dtype) -> Any:
    condition, body = attrs["condition"], attrs["body"]
    count = len(body.outputs)
    carried, invariant = list(arrays[:count]), list(arrays[count:])
    while bool(_run(condition, [*carried, *invariant], dtype)[0]):
        carried = _run(body, [*carried, *invariant], dtype)
    return tuple(carried)


def _evaluate_scan(arrays: Sequence[Any], attrs: Attributes, type: TensorType, dtype: np.dtype) -> Any:
    from lavax.ir.interpreter import held_as

    body, length, carries, sequences = attrs["body"], attrs["length"], attrs["carries"], attrs["sequences"]
    carried = list(arrays[:carries])
    gone_through, invariant = arrays[carries : carries + sequences], arrays[carries + sequences :]
    assert isinstance(type, TupleType)
    stacked = [
        np.zeros(part.shape, held_as(part.dtype, dtype)) for part in type.parts[carries:]
    ]
    for step in range(length)[:: -1 if attrs["reverse"] else 1]:
        results = _run(body, [*carried, *(array[step] for array in gone_through), *invariant], dtype)
        carried = results[:carries]
        for whole, part in zip(stacked, results[carries:], strict=True):
            whole[step] = part
    return (*carried, *stacked)


define(Operation("item", "region", _infer_item, _evaluate_item, ("index",)))
define(Operation("switch", "region", _infer_switch, _evaluate_switch, ("branches",)))
define(Operation("while", "region", _infer_while, _evaluate_while, ("condition", "body")))
define(
    Operation("scan", "region", _infer_scan, _evaluate_scan, ("carries", "sequences", "length", "reverse", "body"))
)
