"""The intermediate representation: graphs of typed operations, their text, type rules and evaluation."""
from lavax.ir import ops  # fills the table of operations
from lavax.ir.graph import Graph, Node
from lavax.ir.interpreter import interpret
from lavax.ir.operation import OPERATIONS, Operation
from lavax.ir.parser import parse
from lavax.ir.types import (
    DType,
    TensorType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from lavax.ir.verifier import verify

__all__ = [
    "OPERATIONS",
    "DType",
    "Graph",
    "Node",
    "Operation",
    "TensorType",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "float16",
    "float32",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "interpret",
    "ops",
    "parse",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "verify",
]
