"""A row kernel's reads and functions that depend on no reduction, to be done before they are needed.

A workgroup that keeps a row in registers is often alone on its processor: a load between its walks, or after them,
stalls all of it. So loads of one value per row, such as its label and the score at it, come before the first walk, or
right after it if they wait for other loads. And the first walk loads elements that only later walks need, where
barriers between the walks would keep a compiler from doing so. Functions of one value per row, such as the sine of its
position, are computed while members' sums of the first walk are on their way.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.reduce.shared_results import TRANSPARENT
from lavax.ir.graph import INPUT, Node
from lavax.passes.fuse.costs import FUNCTION_COST, cost_of
from lavax.passes.kernels.accesses import roots_of
from lavax.passes.kernels.index import lookups_of
from lavax.passes.kernels.kernel import Kernel, once_a_kernel
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
    found: dict[_Instance, None] = {}
    seen: set[_Instance] = set()
    stack = list(reversed(roots_of(kernel)))
    while stack:
        node, at = instance = stack.pop()
        if instance in seen:
            continue
        seen.add(instance)
        is_single = _is_single(instance, kernel)
        if node.op == INPUT and is_single:
            _add(found, instance)
        if node.op not in READS:
            continue
        reads = READS[node.op](node, at)
        if node.op == "gather":
            coordinates = reads[:-1]
            if not all(place in known for place in coordinates):
                stack += coordinates
                continue
            for place in coordinates if is_single else ():
                _add(found, place)
        stack += reversed(reads)
    return list(found)


def early_functions(kernel: Kernel) -> list[_Instance]:
    """Values of functions that take long, with one value per row, and that depend on no reduction.

    Before them the integers that give their positions.
    """
    found: dict[_Instance, None] = {}
    for instance in _known(kernel):
        if instance[0].op != INPUT and cost_of(instance[0]) >= FUNCTION_COST and _is_single(instance, kernel):
            _add(found, instance)
    return list(found)


def _add(found: dict[_Instance, None], instance: _Instance) -> None:
    """Adds the instance behind the integers that give its position."""
    for place in _places(instance):
        _add(found, place)
    found[instance] = None


def _places(instance: _Instance) -> list[_Instance]:
    """The integers that give the instance's position."""
    return [(lookup.array, lookup.coordinates) for index in instance[1] for lookup in lookups_of(index)]


def reads_of_elements(kernel: Kernel, common: bool = False) -> list[_Instance]:
    """Elements of arrays with an element of its own for each row and each of its elements, at known positions.

    With `common`, also of arrays whose elements all rows share.
    """
    outer, within = (
        frozenset().union(*(index.variables for index in variables))
        for variables in (kernel.domain.outer_variables, kernel.domain.reduced_variables)
    )
    found: dict[_Instance, None] = {}
    stack = list(reversed(roots_of(kernel)))
    seen = set(stack)
    while stack:
        node, at = stack.pop()
        if node.op == INPUT:
            variables = frozenset[str]().union(*(index.variables for index in at))
            is_own = common or not variables.isdisjoint(outer)
            if is_own and not variables.isdisjoint(within) and waits_for_none((node, at)):
                found[node, at] = None
        elif node.op in TRANSPARENT:
            ahead = [read for read in READS[node.op](node, at) if read not in seen]
            seen.update(ahead)
            stack += reversed(ahead)
    return list(found)


def _is_single(instance: _Instance, kernel: Kernel) -> bool:
    """Whether a row has one value of it."""
    within = _within(kernel)
    return all(index.variables.isdisjoint(within) for index in instance[1])


@once_a_kernel
def _within(kernel: Kernel) -> frozenset[str]:
    """The variables that number a row's elements."""
    return frozenset().union(*(index.variables for index in kernel.domain.reduced_variables))


@once_a_kernel
def _known(kernel: Kernel) -> dict[_Instance, None]:
    """The instances that depend on no reduction, each after those that it is computed from.

    Also what gives its coordinates, which a result of a reduction may do.
    """
    known: dict[_Instance, None] = {}
    done: set[_Instance] = set()
    stack = [(instance, False) for instance in roots_of(kernel)]
    while stack:
        instance, ready = stack.pop()
        node, at = instance
        if (instance in done and not ready) or (node.op != INPUT and node.op not in READS):
            continue
        done.add(instance)
        before = [] if node.op == INPUT else list(READS[node.op](node, at))
        before += _places(instance)
        if not ready:
            stack.append((instance, True))
            stack += [(each, False) for each in before]
        elif all(each in known for each in before):
            known[instance] = None
    return known
