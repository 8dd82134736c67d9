"""Sizes that no kernel can handle, refused by name before anything is allocated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.base.errors import DeviceError
from lavax.ir.graph import INPUT, Node
from lavax.passes.fuse.extract import Piece
from lavax.passes.kernels.accesses import roots_of
from lavax.passes.kernels.index import Atom, Clamped, Index, Lookup, Quotient, Remainder
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import READS, Coordinates
from lavax.passes.target.kernel_limits import MOST_ELEMENTS


def refuse_too_large(names: Mapping[Node, str], largest: int) -> None:
    """Raises DeviceError for an array that is larger than any allocation."""
    for node, name in names.items():
        if node.type.nbytes > largest:
            raise DeviceError(
                f"{node.type} needs {node.type.nbytes} bytes, but this device allocates at most {largest} for one "
                f"array: {_origin(node, name)}. Use smaller batches, or split the array; if only a gradient keeps it, "
                "use lx.checkpoint."
            )


def refuse_uncountable(pieces: Sequence[Piece], names: Mapping[Node, str]) -> None:
    """Raises DeviceError for an array with more elements than kernels count.

    Arrays that exist only in a kernel may have more, unless the kernel must count them one by one: a reshape may need
    an element's number, and a reduction counts the elements of a row.
    """
    for node, name in names.items():
        if node.type.size > MOST_ELEMENTS:
            raise _uncountable(node, name)
    for piece in pieces:
        large = [node for node in piece.kernel.graph.nodes if node.op == "reshape" and node.type.size > MOST_ELEMENTS]
        if piece.kind != "region" and (large or piece.kernel.domain.length > MOST_ELEMENTS):
            counted = _counted_node(piece.kernel)
            if counted is not None:
                raise _uncountable(counted, counted.name)


def _counted_node(kernel: Kernel) -> Node | None:
    """A value whose elements the kernel would count with too large numbers."""
    if kernel.domain.length > MOST_ELEMENTS:
        return max((node for root in kernel.coordinates for node in root.operands), key=lambda node: node.type.size)
    seen: set[tuple[Node, Coordinates]] = set()
    stack = roots_of(kernel)
    while stack:
        node, at = stack.pop()
        if (node, at) in seen:
            continue
        seen.add((node, at))
        if any(map(_is_too_large, at)):
            return node
        if node.op in READS:
            stack.extend(READS[node.op](node, at))
    return None


def _is_too_large(index: Index) -> bool:
    """Whether computing an index takes numbers that are too large, also within quotients and remainders."""
    inner = (part for atom, _ in index.terms for part in _parts(atom))
    return index.high > MOST_ELEMENTS or any(map(_is_too_large, inner))


def _parts(atom: Atom) -> tuple[Index, ...]:
    match atom:
        case Quotient() | Remainder():
            return (atom.dividend,)
        case Clamped():
            return (atom.index,)
        case Lookup():
            return atom.coordinates
    return ()


def _uncountable(node: Node, name: str) -> DeviceError:
    return DeviceError(
        f"{node.type} has {node.type.size} elements, more than the {MOST_ELEMENTS} that kernels count: "
        f"{_origin(node, name)}. Compute it in parts, and combine their results."
    )


def _origin(node: Node, name: str) -> str:
    maker = node.operands[0] if node.op == "item" else node
    made = f"the argument {name}" if node.op == INPUT else f"the result of {maker.op}"
    return f"{made}, at {maker.location}" if maker.location else made
