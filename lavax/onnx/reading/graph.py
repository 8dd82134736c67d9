"""A model as plain Python data: what parsing gives, and all that the rest of this package reads."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass

Dimension = int | str | None  # a number, the name of one, or any


@dataclass(frozen=True)
class Input:
    """An input of a graph: a tensor, a sequence of tensors, or either one that may be absent."""

    name: str
    dtype: np.dtype | None  # of the tensor or the sequence's tensors; None if the file does not say
    shape: tuple[Dimension, ...] | None = None  # None: of any rank
    is_sequence: bool = False
    is_optional: bool = False


@dataclass(frozen=True, eq=False)
class Node:
    """A node. `version` is the opset in which its operator got the meaning that it has in the model's `opset`."""

    name: str
    domain: str
    operator: str
    opset: int
    version: int
    inputs: tuple[str, ...]  # "" for one that is left out
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        owner = f"{self.domain}." if self.domain else ""
        return f"node {self.name!r} ({owner}{self.operator}, opset {self.opset})"

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graphs among its attributes."""
        return tuple(value for value in self.attributes.values() if isinstance(value, Graph))


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes, each after those it reads. A graph in an attribute also reads names of the graphs around it."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    initializers: Mapping[str, np.ndarray]
    nodes: tuple[Node, ...]

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.outputs)

    @property
    def own_names(self) -> frozenset[str]:
        """The names that are defined in this graph, not around it."""
        made = {name for node in self.nodes for name in node.outputs if name}
        return frozenset(made | {given.name for given in self.inputs} | set(self.initializers))
