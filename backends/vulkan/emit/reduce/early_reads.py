"""A row kernel's reads of one value per row that depend on no reduction, such as a row's label and the score at it.

A workgroup that keeps a row in registers is often alone on its processor: a load between its walks, or after them,
stalls all of it. So these loads come before the first walk, or right after it if they wait for other loads.
"""

from __future__ import annotations

from lavax.ir.graph import INPUT, Node
from lavax.passes.kernels.accesses import roots_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import READS, Coordinates

_Instance = tuple[Node, Coordinates]


def waits_for_none(instance: _Instance) -> bool:
    """Whether it is an array's element whose position is known without another read."""
    node, at = instance
    return node.op == INPUT and not any(index.reads_array for index in at)


def early_reads(kernel: Kernel) -> list[_Instance]:
    """Elements of arrays, and the integers that give some of their positions, in an order in which they can be read.

    They have one value per row and depend on no reduction.
    """
    known = _known(kernel)
    within = {name for index in kernel.domain.reduced_variables for name in index.variables}
    found: dict[_Instance, None] = {}
    seen: set[_Instance] = set()
    stack = list(reversed(roots_of(kernel)))
    while stack:
        node, at = instance = stack.pop()
        if instance in seen:
            continue
        seen.add(instance)
        is_single = all(index.variables.isdisjoint(within) for index in at)
        if node.op == INPUT and is_single:
            found[instance] = None
        if node.op not in READS:
            continue
        reads = READS[node.op](node, at)
        if node.op == "gather":
            coordinates = reads[:-1]
            if not all(place in known for place in coordinates):
                stack += coordinates
                continue
            found |= dict.fromkeys(place for place in coordinates if is_single)
        stack += reversed(reads)
    return list(found)


def _known(kernel: Kernel) -> set[_Instance]:
    """The instances that depend on no reduction."""
    known: set[_Instance] = set()
    done: set[_Instance] = set()
    stack = [(instance, False) for instance in roots_of(kernel)]
    while stack:
        instance, ready = stack.pop()
        node, at = instance
        if instance in done and not ready:
            continue
        done.add(instance)
        if node.op == INPUT:
            known.add(instance)
        elif node.op in READS:
            reads = READS[node.op](node, at)
            if not ready:
                stack.append((instance, True))
                stack += [(read, False) for read in reads]
            elif all(read in known for read in reads):
                known.add(instance)
    return known
