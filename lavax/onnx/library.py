"""What each node is: an entry of the table, or a function of other nodes, from the model or from the standard."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lavax.base.errors import ONNXError
from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.operators.operator import Operator
from lavax.onnx.reading.graph import Graph, Node
from lavax.onnx.reading.package import onnx_package
from lavax.onnx.reading.parsing import function_graph, specialised
from lavax.onnx.table import entry_of

MOST_CALLS = 1 << 14  # of functions, each call counted in each: a file of a few bytes can ask for any number


@dataclass(frozen=True, eq=False)
class Library:
    """A model's own functions, by domain and name, and what has been found for its nodes."""

    functions: Mapping[tuple[str, str], Graph]
    padded: bool = False  # whether results whose extents depend on data have as many elements as there can be
    own: Mapping[tuple[str, str], Operator] = field(default_factory=dict)  # entries that only this model has
    _bodies: dict[int, tuple[Node, Graph | None]] = field(default_factory=dict)

    def entry(self, node: Node) -> Operator | None:
        """The node's entry in the table, unless the model defines its operator."""
        name = (node.domain, node.operator)
        if name in self.own:
            return self.own[name]
        return None if name in self.functions else entry_of(node, self.padded)

    def body(self, node: Node) -> Graph | None:
        """The graph that a node without an entry stands for, if it is a function."""
        found = self._bodies.get(id(node))
        if found is None:
            if len(self._bodies) == MOST_CALLS:
                raise ONNXError(f"onnx.load: the model's functions call one another more than {MOST_CALLS} times")
            own = self.functions.get((node.domain, node.operator))
            graph = _of_standard(node) if own is None else own
            found = node, None if graph is None else specialised(graph, node.attributes)
            self._bodies[id(node)] = found
        return found[1]


def _of_standard(node: Node) -> Graph | None:
    """The graph by which the standard defines an operator, if it does."""
    try:
        schema = onnx_package().defs.get_schema(node.operator, node.opset, node.domain)
    except Exception:  # an operator that the package does not know
        return None
    if not schema.has_function:
        return None
    function = schema.function_body
    opsets = {entry.domain: entry.version for entry in function.opset_import} or {"": node.version}
    graph = function_graph(function, opsets)
    return specialised(graph, {**_defaults(schema), **node.attributes})


def _defaults(schema: Any) -> dict[str, Any]:
    package = onnx_package()
    found = {}
    for name, attribute in schema.attributes.items():
        value = attribute.default_value
        if value.type != package.AttributeProto.UNDEFINED:
            held = package.helper.get_attribute_value(value)
            found[name] = held.decode() if isinstance(held, bytes) else held
    return found
