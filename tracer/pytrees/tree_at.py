"""Trees with some of their nodes replaced."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.errors import TreeMismatchError
from lavax.ir.location import user_error
from lavax.tracer.pytrees.key_trees import flatten, map
from lavax.tracer.pytrees.pytree import unflatten

_NOTHING = object()


class _Place:
    """Stands at the place of a leaf, or of None, so that no two nodes of a tree are the same object."""

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf


def at(
    where: Callable[[Any], Any],
    tree: Any,
    replacement: Any = _NOTHING,
    *,
    replace_fn: Callable[[Any], Any] | None = None,
) -> Any:
    """`tree` with other nodes at the places that `where` picks: `tree.at(lambda m: m.layers[0].bias, model, bias)`.

    `where` gets a tree of the same form, and returns one node of it, or a tuple or list of nodes; a node is a leaf, a
    subtree or None. `replacement` is the new node, or a sequence of as many; with `replace_fn`, new nodes are that
    function of the old ones. The structure may change. Raises TypeError unless there is one of both, TreeMismatchError
    if `where` returns something else than nodes, or another number of them than there are replacements.
    """
    if (replacement is _NOTHING) == (replace_fn is None):
        raise user_error(TypeError, "tree.at: give either a replacement or replace_fn")
    leaves, treedef = flatten(tree, lambda node: node is None)
    marked = unflatten(treedef, [_Place(leaf) for leaf in leaves])
    picked = where(marked)
    is_single = any(node is picked for node in flatten(marked, lambda node: node is picked)[0])
    chosen = [picked] if is_single else picked
    if not isinstance(chosen, (tuple, list)):
        raise user_error(
            TreeMismatchError, f"tree.at: `where` must return nodes of the tree, got {type(picked).__name__}"
        )
    new = _replacements(chosen, is_single, replacement, replace_fn)
    ids = {id(node): number for number, node in enumerate(chosen)}
    parts, treedef = flatten(marked, lambda node: id(node) in ids)
    found = [ids[id(part)] for part in parts if id(part) in ids]
    if sorted(found) != list(range(len(chosen))):
        raise user_error(
            TreeMismatchError,
            f"tree.at: `where` picked {len(chosen)} nodes, of which {len(set(found))} are at a place of their own; "
            "nodes must be of the tree, all different, and none inside another",
        )
    return unflatten(treedef, [new[ids[id(part)]] if id(part) in ids else part.leaf for part in parts])


def _replacements(
    chosen: Sequence[Any], is_single: bool, replacement: Any, replace_fn: Callable[[Any], Any] | None
) -> list[Any]:
    if replace_fn is not None:
        return [replace_fn(map(lambda place: place.leaf, node)) for node in chosen]
    if is_single:
        return [replacement]
    if not isinstance(replacement, (tuple, list)) or len(replacement) != len(chosen):
        raise user_error(
            TreeMismatchError,
            f"tree.at: `where` picked {len(chosen)} nodes, so the replacement must be a tuple or list of as many",
        )
    return list(replacement)
