"""A graph as it can be written: without calls, complex numbers, and operations that others stand for."""
from __future__ import annotations

from functools import partial
from typing import Any

from lavax.base.errors import ONNXError
from lavax.ir.graph import Graph, Node, graph_of, make_node, with_operands
from lavax.onnx.writing.compositions import COMPOSITIONS, Composition, bitcast
from lavax.onnx.writing.writer import Rule
from lavax.passes.build.attention import composition as attention_composition
from lavax.passes.build.builder import located, set_location
from lavax.passes.build.inline import inline, inline_calls, inner_graphs
from lavax.passes.complex_parts.taking_apart import in_real_parts
from lavax.passes.simplify import remove_stop_gradient, simplify
from lavax.tracer.tracing.tracing import Input, trace_function
from lavax.tracer.values.abstract import abstract

ATTENTION_GRADIENTS = frozenset(
    ("attention_key_gradient", "attention_query_gradient", "attention_value_gradient")
)
# Operations on complex numbers, which real numbers take the place of before anything is written.
OF_COMPLEX = frozenset(("complex", "conjugate", "fft", "imag", "irfft", "real", "rfft", "trigonometric_4", "unit_root"))

_OUTSIDE = "compute it outside of the function, and pass its result as an argument"
_SPECIAL = f"write it with functions that ONNX has (erf, exp, log, …), or {_OUTSIDE}"
_HOST = "a file cannot call Python: leave the call out of what is saved"
# What to do about operations that stay without a form.
REFUSED: dict[str, str] = {
    **dict.fromkeys(("eigh", "svd"), f"{_OUTSIDE}, or use qr, cholesky or solve, which are written"),
    **dict.fromkeys(
        (
            "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "beta", "betainc", "boxcox", "boxcox1p", "erfcx",
            "expi", "expn", "factorial", "gamma", "gammainc", "gammaincc", "kl_div", "ndtri", "poch", "polygamma",
            "zeta",
        ),
        _SPECIAL,
    ),
    "bitcast": "bits are written for float32 and 32-bit integers, and between integers of one width: cast first",
    "host_call": _HOST,
}  # fmt: skip


def portable(graph: Graph, rules: dict[str, Rule]) -> Graph:
    """The graph in operations of `rules`; a complex input or output has its parts along a last axis of 2.

    Raises ONNXError with all operations that stay without a form, and what to do about each.
    """
    plain = in_real_parts(inline_calls(remove_stop_gradient(graph)))
    _refuse(plain, rules)
    return simplify(_composed(plain)) if _is_composed_anywhere(plain) else plain


def _function(node: Node) -> Composition | None:
    """The function that stands for the node, of its operands."""
    if node.op == "bitcast":
        return bitcast(node)
    found = COMPOSITIONS.get(node.op)
    return partial(found, **node.attrs) if found else None


def _is_composed(node: Node) -> bool:
    return node.op in ATTENTION_GRADIENTS or _function(node) is not None


def _is_composed_anywhere(graph: Graph) -> bool:
    return any(_is_composed(node) or any(map(_is_composed_anywhere, inner_graphs(node))) for node in graph.nodes)


def _composed(graph: Graph) -> Graph:
    """The graph with the functions in the place of the nodes, in bodies of loops and branches, too."""
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            if node.op in ATTENTION_GRADIENTS:
                found[node] = attention_composition(with_operands(node, operands))
            elif (function := _function(node)) is not None:
                found[node] = _called(function, node, operands)
            else:
                attrs = {name: _composed_within(value) for name, value in node.attrs.items()}
                found[node] = make_node(node.op, operands, attrs, node.type, node.location)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _composed_within(value: Any) -> Any:
    if isinstance(value, Graph):
        return _composed(value)
    return tuple(map(_composed_within, value)) if isinstance(value, tuple) else value


def _called(function: Composition, node: Node, operands: tuple[Node, ...]) -> Node:
    """The result of a function of arrays on nodes."""
    inputs = [Input(f"x{k}", abstract(operand.type)) for k, operand in enumerate(operands)]
    traced = trace_function(lambda values: function(*values), inputs, f"onnx.save of {node.op}")
    (result,) = inline(inline_calls(traced.graph), operands)
    return result


def _refuse(graph: Graph, rules: dict[str, Rule]) -> None:
    missing: dict[str, str] = {}
    waiting = [graph]
    while waiting:
        for node in waiting.pop().nodes:
            waiting += inner_graphs(node)
            if node.op not in rules and not _is_composed(node):
                place = f" ({node.location})" if node.location else ""
                missing.setdefault(node.op, f"{node.op}{place}: {REFUSED[node.op]}")
    if missing:
        listed = "".join(f"\n  {each}" for each in missing.values())
        raise ONNXError(f"onnx.save: these operations have no form in ONNX yet; nothing was written{listed}")
