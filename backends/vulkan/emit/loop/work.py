"""How much work the kernels of a turn are, before it is known whether a workgroup runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lavax.ir.graph import Graph
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.reports.counting import cost_of_step, operations_of_node


def has_large_kernel(
    body: Graph, scheduled: Callable[[], KernelProgram], work: int, most: Callable[[Kernel], int]
) -> bool:
    """Whether a kernel of the body has more operations and bytes than such a kernel may have.

    Bodies of less than `work`, which any kernel may have, are not scheduled for this.
    """
    if _most_work(body) <= work:
        return False
    steps = steps_of(scheduled().steps)
    return any(_work_of(step, number) > most(kernel) for step in steps for number, kernel in enumerate(step.kernels))


def _most_work(body: Graph) -> int:
    """No less than what any kernel does, unless one computes a value several times: of each value all operations, with
    its bytes and those of what it is computed of."""
    operations = sum(operations_of_node(node, node.type.size) for node in body.nodes)
    return operations + sum(value.type.nbytes for node in body.nodes for value in (node, *node.operands))


def _work_of(step: KernelStep, number: int) -> int:
    alone = replace(
        step,
        kernels=(step.kernels[number],),
        reads=(step.reads[number],),
        writes=(step.writes[number],),
    )
    cost = cost_of_step(alone, {})
    return cost.operations + cost.bytes_moved
