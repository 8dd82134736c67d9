"""What a case is, and what cases are made of."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from lavax.base.errors import DtypeError
from lavax.ir import OPERATIONS, Graph, Node, TensorType, bool_, float32, float64, int32, uint32
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.interpreter import interpret
from lavax.ir.types import DTYPES, DType

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One operation on sample operands; `arrays` has one array an input, in the dtype's NumPy form."""

    op: str
    label: str
    graph: Graph
    arrays: tuple[np.ndarray, ...]
    special: bool = False

    @property
    def node(self) -> Node:
        return self.graph.outputs[0]

    @property
    def only_float32(self) -> bool:
        """Whether no floats of other widths come in: rules of calculus do not depend on the width."""
        return all(node.dtype == float32 for node in (*self.graph.inputs, self.node) if node.dtype.is_float)

    @property
    def in_float64(self) -> bool:
        return any(node.dtype == float64 for node in (*self.graph.inputs, self.node))

    def __str__(self) -> str:
        return f"{self.op}-{self.label}"


SHAPES: tuple[Shape, ...] = ((), (1,), (3,), (17,), (41,), (3, 17), (41, 1), (2, 3, 5), (2, 1, 3, 2), (0,), (3, 0, 2))

# Where the floats of an operand lie, by operation; two intervals are for values away from zero.
POSITIVE, AWAY_FROM_ZERO, ANYWHERE = ((0.2, 3.0),), ((-3.0, -0.4), (0.4, 3.0)), ((-3.0, 3.0),)
_ORDERS = ((0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (5.0, 5.0))
DOMAINS: Mapping[str, Sequence[Any]] = {
    "log": [POSITIVE],
    "sqrt": [POSITIVE],
    "rsqrt": [POSITIVE],
    "log1p": [((-0.8, 3.0),)],
    "abs": [AWAY_FROM_ZERO],
    "sign": [AWAY_FROM_ZERO],
    "divide": [ANYWHERE, AWAY_FROM_ZERO],
    "remainder": [ANYWHERE, AWAY_FROM_ZERO],
    "modulo": [ANYWHERE, AWAY_FROM_ZERO],
    "power": [POSITIVE, ANYWHERE],
    "log2": [POSITIVE],
    "cbrt": [AWAY_FROM_ZERO],
    "tan": [((-1.2, 1.2),)],
    "asin": [((-0.9, 0.9),)],
    "acos": [((-0.9, 0.9),)],
    "acosh": [((1.1, 4.0),)],
    "atanh": [((-0.9, 0.9),)],
    "atan2": [AWAY_FROM_ZERO, AWAY_FROM_ZERO],
    "erfinv": [((-0.9, 0.9),)],
    "ndtri": [((0.05, 0.95),)],
    "lgamma": [((0.3, 4.0), (-0.8, -0.3))],
    "digamma": [((0.3, 4.0), (-0.8, -0.3))],
    "bessel_i0e": [AWAY_FROM_ZERO],
    "bessel_i1e": [AWAY_FROM_ZERO],
    "expi": [((-3.0, -0.4), (0.6, 3.0))],
    "gammainc": [POSITIVE, POSITIVE],
    "gammaincc": [POSITIVE, POSITIVE],
    "beta": [POSITIVE, POSITIVE],
    "betainc": [POSITIVE, POSITIVE, ((0.05, 0.95),)],
    "boxcox": [POSITIVE, ANYWHERE],
    "boxcox1p": [((-0.8, 3.0),), ANYWHERE],
    "factorial": [POSITIVE],
    "gamma": [((0.3, 4.0), (-0.8, -0.3))],
    "kl_div": [POSITIVE, POSITIVE],
    "poch": [POSITIVE, POSITIVE],
    "expn": [_ORDERS, POSITIVE],
    "polygamma": [_ORDERS, POSITIVE],
    "zeta": [((1.2, 3.0),), POSITIVE],
}
_SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))
# bfloat16, which NumPy lacks, and complex numbers have tests of their own.
SAMPLED_DTYPES = tuple(dtype for dtype in DTYPES.values() if dtype.name != "bf16" and not dtype.is_complex)
# Dtypes that all cases are made for; of those of the others a few.
THOROUGH = frozenset((float32, int32, uint32, bool_))


def _special_integers(dtype: DType) -> tuple[int, ...]:
    if dtype.kind == "bool":
        return 0, 1
    if dtype.kind == "int":
        return 0, 1, -1, 2, -3, 7, dtype.highest, dtype.lowest
    return 0, 1, 2, 3, 7, 1 << dtype.bits - 1, dtype.highest




def generator(label: str) -> np.random.Generator:
    return np.random.default_rng(crc32(label.encode()))


def sample(random: np.random.Generator, type: TensorType, domain: Any = ANYWHERE) -> np.ndarray:
    if type.dtype.kind == "bool":
        return np.asarray(random.integers(0, 2, type.shape)).astype(np.bool_)
    if type.dtype.is_integer:
        low = -9 if type.dtype.kind == "int" else 0
        return np.asarray(random.integers(low, 10, type.shape)).astype(type.dtype.numpy)
    chosen = np.asarray(random.integers(0, len(domain), type.shape))
    lows, highs = (np.array(ends)[chosen] for ends in zip(*domain, strict=True))
    return np.asarray(random.uniform(lows, highs)).astype(np.float32).astype(type.dtype.numpy)


def case_of(
    op: str,
    label: str,
    arrays: Sequence[np.ndarray],
    attrs: Mapping[str, Any] | None = None,
    type: TensorType | None = None,
    special: bool = False,
) -> Case:
    dtypes = {dtype.numpy: dtype for dtype in SAMPLED_DTYPES}
    inputs = [
        input_node(f"x{number}", TensorType(array.shape, dtypes[array.dtype])) for number, array in enumerate(arrays)
    ]
    node = make_node(op, inputs, attrs or {}, type)
    return Case(op, label, graph_of(inputs, [node]), tuple(arrays), special)


def accepts(op: str, types: Sequence[TensorType], declared: TensorType | None = None) -> bool:
    try:
        OPERATIONS[op].infer(types, {}, declared)
    except DtypeError:
        return False
    return True


def special_values(dtype: DType) -> np.ndarray:
    values = _SPECIAL_FLOATS if dtype.is_float else _special_integers(dtype)
    with np.errstate(over="ignore", under="ignore"):
        return np.array(values, dtype.numpy)


def input_like(name: str, array: np.ndarray) -> Node:
    dtypes = {dtype.numpy: dtype for dtype in SAMPLED_DTYPES}
    return input_node(name, TensorType(array.shape, dtypes[array.dtype]))


def evaluated(node: Node, *arrays: np.ndarray) -> np.ndarray:
    return interpret(graph_of(node.operands, [node]), *arrays)[0]
