"""Constants that shaders get when they run, so that kernels which differ in nothing else share one.

Long programs have many such kernels: the steps of a loop that was written out, with a number per step. A driver takes
as long to compile one of their shaders as to compile each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lavax.ir.exact_text import exact_text
from lavax.ir.graph import Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.printer import format_attribute, value_names
from lavax.ir.types import float32, int32, uint32
from lavax.passes.kernels.kernel import Kernel

# From so many kernels on that differ in constants alone; for fewer, literals are what drivers optimize best.
LEAST_KERNELS = 4

_DTYPES = (float32, int32, uint32)


def given_constants(kernels: Iterable[Kernel]) -> dict[Kernel, frozenset[Node]]:
    """For kernels that share a shader but for their constants: the constants that differ among them."""
    groups: dict[str, list[Kernel]] = defaultdict(list)
    maps = [kernel for kernel in kernels if kernel.kind == "map"]
    if len(maps) < LEAST_KERNELS:
        return {}
    for kernel in maps:
        if all(map(_is_elementwise, kernel.graph.nodes)):
            groups[_form(kernel.graph)].append(kernel)
    return {kernel: of_kernel for alike in groups.values() for kernel, of_kernel in _differing(alike).items()}


def _differing(alike: list[Kernel]) -> dict[Kernel, frozenset[Node]]:
    """The constants of each of these kernels, of one form, that are not the same in all of them."""
    constants = [[node for node in kernel.graph.nodes if _may_differ(node)] for kernel in alike]
    values = [[exact_text(node.attrs["value"]) for node in of_kernel] for of_kernel in constants]
    if len(set(map(tuple, values))) < LEAST_KERNELS:
        return {}
    differ = [len(set(column)) > 1 for column in zip(*values, strict=True)]
    return {
        kernel: frozenset(node for node, is_given in zip(of_kernel, differ, strict=True) if is_given)
        for kernel, of_kernel in zip(alike, constants, strict=True)
    }


def _form(graph: Graph) -> str:
    """A text that is equal for graphs that differ in nothing but constants."""
    names = value_names(graph)
    names.update((node, f"i{number}") for number, node in enumerate(graph.inputs))
    lines = [f"{names[node]}:{node.type}" for node in graph.inputs]
    for node in graph.nodes:
        attributes = "" if _may_differ(node) else [(key, format_attribute(value)) for key, value in node.attrs.items()]
        operands = ",".join(names[operand] for operand in node.operands)
        lines.append(f"{names[node]}={node.op}({operands}){attributes}:{node.type}")
    return "\n".join([*lines, *(names[output] for output in graph.outputs)])


def _may_differ(node: Node) -> bool:
    """Whether it is a constant of 32 bits. Shaders are simpler where they know a zero."""
    return node.op == "constant" and node.dtype in _DTYPES and node.attrs["value"] != 0


def _is_elementwise(node: Node) -> bool:
    """Whether a node computes each element from those in the same place, or from a scalar."""
    if node.op == "broadcast":
        return node.operands[0].type.size == 1
    return node.op == "constant" or OPERATIONS[node.op].family == "elementwise"
