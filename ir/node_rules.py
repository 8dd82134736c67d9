"""The rules of a single node, which the verifier asks of those in a graph, and the parser of those that it reads."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.attributes import fault_of_attribute
from lavax.ir.limits import fault_of_type
from lavax.ir.operation import OPERATIONS, Attributes
from lavax.ir.types import TensorType, TupleType

# What type rules raise, besides ShapeError and DtypeError, for attributes and numbers of operands that they do not fit.
_MISFITS: tuple[type[Exception], ...] = (
    TypeError,
    ValueError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
)


def broken_rule(
    op: str, operands: Sequence[TensorType], attrs: Attributes, declared: TensorType
) -> str | None:
    """The first rule that an operation with these operands, attributes and result breaks; None if it breaks none."""
    if op not in OPERATIONS:
        return f"unknown operation {op!r}"
    operation = OPERATIONS[op]
    if set(attrs) != set(operation.attributes):
        return f"attributes must be {list(operation.attributes)}, got {list(attrs)}"
    for name, value in attrs.items():
        fault = fault_of_attribute(op, name, value)
        if fault is not None:
            return fault
    if op != "item" and any(isinstance(operand, TupleType) for operand in operands):
        return "only item reads a node with several results"
    return _broken_type_rule(op, operands, attrs, declared) or fault_of_type(declared)


def _broken_type_rule(op: str, operands: Sequence[TensorType], attrs: Attributes, declared: Any) -> str | None:
    try:
        inferred = OPERATIONS[op].infer(operands, attrs, declared)
    except (ShapeError, DtypeError) as error:
        return str(error)
    except _MISFITS as error:
        return f"{op}: its operands and attributes do not fit together: {error}"
    return None if inferred == declared else f"the type must be {inferred}"
