"""Registration in JAX's form: data that need not be hashable, keys that come with the children, static classes."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from lavax.tracer.pytrees.keys import FlattenedIndexKey, is_known
from lavax.tracer.pytrees.pytree import NodeKind, register
from lavax.tracer.pytrees.settings import hashable, plain

_Class = TypeVar("_Class", bound=type)
KeyedChildren = tuple[Iterable[tuple[Any, Any]], Any]


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], KeyedChildren] | None = None,
) -> None:
    """Makes `nodetype` a container.

    `flatten_func(instance)` returns its children and data, `unflatten_func(data, children)` rebuilds it. Data are
    compared by ==, dicts and lists also by the classes of their parts; a hash makes that fast.
    `flatten_with_keys_func(instance)` returns pairs of a key and a child instead of children, for paths. Raises
    ValueError if the class is registered already.
    """

    def flatten(tree: Any) -> tuple[Sequence[Any], Hashable]:
        children, data = flatten_func(tree)
        return tuple(children), hashable(data)

    def tree_keys(tree: Any) -> Iterable[Any]:
        assert flatten_with_keys_func is not None
        return [key for key, _ in flatten_with_keys_func(tree)[0]]

    register(
        nodetype,
        NodeKind(
            nodetype.__name__,
            flatten,
            lambda data, children: unflatten_func(plain(data), tuple(children)),
            lambda data, count: map(FlattenedIndexKey, range(count)),
            nodetype,
            tree_keys if flatten_with_keys_func is not None else None,
        ),
    )


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], KeyedChildren],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """As `register_pytree_node`, with keys: `flatten_with_keys(instance)` returns pairs of a key and a child, and data.

    Dumps and messages name the children by keys of the classes in `tree_util`; children with other keys have numbers
    there. `flatten_func` is not needed: keys are part of the structure.
    """

    def flatten(tree: Any) -> tuple[Sequence[Any], Hashable]:
        pairs, data = flatten_with_keys(tree)
        keys, children = [], []
        for number, (key, child) in enumerate(pairs):
            keys.append(key if is_known(key) else FlattenedIndexKey(number))
            children.append(child)
        return children, (hashable(data), tuple(keys))

    register(
        nodetype,
        NodeKind(
            nodetype.__name__,
            flatten,
            lambda data, children: unflatten_func(plain(data[0]), tuple(children)),
            lambda data, count: data[1],
            nodetype,
            lambda tree: [key for key, _ in flatten_with_keys(tree)[0]],
        ),
    )


def register_pytree_node_class(cls: _Class) -> _Class:
    """Class decorator: a container by its methods `tree_flatten` and `tree_unflatten` (a class method)."""
    made: Any = cls
    register_pytree_node(cls, made.tree_flatten, made.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Class decorator: a container by its methods `tree_flatten_with_keys` and `tree_unflatten` (a class method)."""
    made: Any = cls
    register_pytree_with_keys(cls, made.tree_flatten_with_keys, made.tree_unflatten)
    return cls


def register_static(cls: _Class) -> _Class:
    """Class decorator: instances, which must be hashable, are containers without leaves: part of the structure."""
    register(cls, NodeKind(cls.__name__, lambda tree: ((), tree), lambda tree, children: tree, lambda d, c: (), cls))
    return cls
