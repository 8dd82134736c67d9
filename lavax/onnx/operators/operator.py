"""What the table has for each operator: where it applies, what it needs to know beforehand, and what it computes."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.errors import ONNXError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import dtype_of_data
from lavax.numpy._core.operands import cast
from lavax.onnx.reading.graph import Graph, Node
from lavax.tracer import lift
from lavax.tracer.tracing.convert import dtype_of
from lavax.tracer.values.value import Value

REQUIRED = object()
OF_DATA = "inputs that are not known before the model runs: the result's shape depends on them"  # as `lacking`
# Known numbers above this count are made on the device: a file of a few bytes can ask for any shape.
MOST_KNOWN = 1 << 20
NEWEST = 1000  # an entry that holds for all later versions that the onnx package knows
NARROW = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}
EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Call:
    """A node at work: its attributes, and how it reaches what its inputs do not hold.

    `np` is NumPy if all inputs are known numbers, else lavax.numpy. `branch` runs a graph of the node on values;
    `needs` gives the names in such a graph whose values must be known.
    """

    node: Node
    attributes: Mapping[str, Any]
    np: Any
    branch: Callable[..., list[Any]]
    needs: Callable[[Graph], frozenset[str]]
    declared: Mapping[str, np.dtype] = field(default_factory=dict)  # the element types of the graph's inputs

    def __getattr__(self, name: str) -> Any:
        """An attribute of the node."""
        try:
            return self.attributes[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def is_known(self) -> bool:
        """Whether NumPy computes the node."""
        return self.np is np

    @property
    def outputs(self) -> int:
        """How many outputs are asked for."""
        return len(self.node.outputs)

    def wants(self, index: int) -> bool:
        """Whether an output is asked for."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index])

    def error(self, message: str) -> ONNXError:
        """An error that names the node."""
        return ONNXError(f"{self.node}: {message}")

    def known(self, value: Any, what: str) -> np.ndarray:
        """The numbers of an input that must be known before the model runs."""
        if isinstance(value, np.ndarray):
            return value
        raise self.error(f"{what} depends on data, but must be known before the model runs")

    def dtype_of(self, place: int, value: Any) -> np.dtype:
        """The element type of an input in the model, which the device may hold in a wider one."""
        return self.declared.get(self.node.inputs[place], np.dtype(value.dtype))

    def integers(self, value: Any, what: str) -> tuple[int, ...]:
        """A known input as Python integers."""
        return tuple(int(number) for number in self.known(value, what).reshape(-1))


Evaluation = Callable[..., Any]
Refusal = Callable[[Node], str | None]


@dataclass(frozen=True)
class Operator:
    """An entry: an operator in the versions `since` to `through`.

    `evaluate(call, *inputs)` gives the output, or a tuple of outputs; inputs that are left out are None. `attributes`
    have defaults, or are REQUIRED; others are refused. `known` are the places of inputs that must be known beforehand,
    or a function of the node that gives them. With `folds` it also computes with NumPy. Inputs at the places `keeps`
    stay NumPy arrays if they are known, even where others are not; None stands for all. With `of_shape` the numbers of
    its inputs do not matter. `refuse` gives the reason why a node cannot be run. `lacking` says what the table does not
    do, for the page of completeness.
    """

    name: str
    evaluate: Evaluation
    attributes: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    known: Sequence[int] | Callable[[Node], Sequence[int]] = ()
    folds: bool = False
    keeps: Sequence[int] | None = ()
    of_shape: bool = False
    since: int = 1
    through: int = NEWEST
    domain: str = ""
    refuse: Refusal | None = None
    lacking: str = ""

    def known_inputs(self, node: Node) -> list[str]:
        """The names of the node's inputs that must be known before it runs."""
        places = self.known(node) if callable(self.known) else self.known
        return [node.inputs[place] for place in places if place < len(node.inputs) and node.inputs[place]]

    def attributes_of(self, node: Node) -> dict[str, Any]:
        """The node's attributes, with defaults for those that are left out."""
        return {name: node.attributes.get(name, default) for name, default in self.attributes.items()}

    def objection(self, node: Node) -> str | None:
        """Why the node cannot be run, if it cannot."""
        unknown = sorted(set(node.attributes) - set(self.attributes))
        if unknown:
            return f"the attribute {', '.join(unknown)} is not supported"
        missing = [n for n, v in self.attributes.items() if v is REQUIRED and n not in node.attributes]
        if missing:
            return f"the attribute {', '.join(missing)} is missing"
        return self.refuse(node) if self.refuse else None


def on_device(value: Any) -> Any:
    """Known numbers as an array of the device; anything else unchanged. 64 bits become 32, unless they are enabled.

    Where all numbers are one, it is a constant of the program, which rules of the compiler look for.
    """
    if isinstance(value, Value) or value is None:
        return value
    if isinstance(value, tuple):
        return tuple(map(on_device, value))
    numbers = _storable(np.asarray(value))
    if numbers.size and numbers.tobytes() == numbers.reshape(-1)[:1].tobytes() * numbers.size:
        return lnp.full(numbers.shape, numbers.reshape(-1)[0].item(), dtype_of(numbers.dtype).user)
    return lift(numbers)


def as_array(numbers: np.ndarray) -> Any:
    """Numbers as an array on the device, for an argument of the program."""
    return lift(_storable(numbers))


def _storable(numbers: np.ndarray) -> np.ndarray:
    """Numbers in a dtype that a device has: 4-bit integers in 8 bits; 64-bit integers kept within 32, if they must."""
    name = numbers.dtype.name
    if name in NARROW:
        return numbers.astype(NARROW[name])
    if dtype_of_data(numbers.dtype) is None and name.startswith("float"):  # the kinds of float8 and float4
        return numbers.astype(np.float32)
    held = dtype_of(numbers.dtype).numpy
    if numbers.dtype.kind in "iu" and held.itemsize < numbers.dtype.itemsize:
        limits = np.iinfo(held)
        clipped: np.ndarray = np.clip(numbers, limits.min, limits.max).astype(held)
        return clipped
    return numbers


def device_dtype(dtype: np.dtype) -> Any:
    """The dtype in which a device holds numbers of `dtype`."""
    return dtype_of(NARROW.get(dtype.name, dtype)).user


def converted(value: Any, dtype: Any) -> Any:
    """A value in another dtype."""
    return value.astype(dtype) if isinstance(value, (np.ndarray, np.generic)) else cast(lift(value), dtype_of(dtype))


def subgraph(call: Call, name: str) -> Graph:
    """The graph in an attribute of the node."""
    found: Graph = call.attributes[name]
    return found


def is_float(value: Any) -> bool:
    """Whether a known or a traced array has floats."""
    held = dtype_of_data(value.dtype)
    return held is not None and held.is_float
