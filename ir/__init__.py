"""The intermediate representation: graphs of typed operations, their text, their rules and their meaning."""
from lavax.ir import ops  # fills the table of operations
from lavax.ir.graph import Graph, Node
from lavax.ir.interpreter import interpret
from lavax.ir.operation import OPERATIONS, Operation
from lavax.ir.parser import parse
from lavax.ir.types import DType, TensorType, bool_, float32, int32, uint32
from lavax.ir.verifier import verify

__all__ = [
    "OPERATIONS",
    "DType",
    "Graph",
    "Node",
    "Operation",
    "TensorType",
    "bool_",
    "float32",
    "int32",
    "interpret",
    "ops",
    "parse",
    "uint32",
    "verify",
]
