"""Nested containers of arrays, flattened and rebuilt.

Containers are tuples, lists, dicts and defaultdicts (by sorted key), OrderedDicts (in their order), None, named tuples,
and registered classes; everything else is a leaf. The structure of a container is a TreeDef, and equal structures are
one object: comparison and hash are by identity, so that a TreeDef is a fast key on every call of a compiled function.
"""
from __future__ import annotations

import builtins
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from lavax.base.errors import TreeMismatchError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import user_error
from lavax.tracer.pytrees.keys import DictKey, GetAttrKey, SequenceKey, name_of


@dataclass(frozen=True, eq=False)
class NodeKind:
    """How containers of one class are split into children and hashable data, from which they are rebuilt.

    `child_keys(data, count)` are the keys of the children; `tree_keys(tree)`, if given, those that paths show instead,
    which need not be hashable. `is_fixed` says that an instance always has the same children and data; `keeps_leaves`
    that it also has a slot named `_flattened`, for its leaves and structure, so that large models are flattened once;
    `is_one_leaf` that users see a leaf in it: in arrays of random keys and of float0 (key_trees.py).
    """

    name: str
    flatten: Callable[[Any], tuple[Sequence[Any], Hashable]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    child_keys: Callable[[Any, int], Iterable[Any]]
    cls: type | None = None
    tree_keys: Callable[[Any], Iterable[Any]] | None = None
    is_fixed: bool = False
    keeps_leaves: bool = False
    is_one_leaf: bool = False

    def child_names(self, data: Any, count: int) -> Iterable[str]:
        """The names of the children, in dumps and messages."""
        return builtins.map(name_of, self.child_keys(data, count))


class Children(tuple["TreeDef", ...]):
    """The structures of a container's children: a tuple, which is a list when called, as in JAX."""

    __slots__ = ()

    def __call__(self) -> list[TreeDef]:
        return list(self)


class TreeDef:
    """The structure of a container, without its leaves. Made by `flatten`; equal ones are the same object."""

    __slots__ = ("children", "data", "holds_keys", "is_fixed", "kind", "leaf_count", "only_leaves")

    def __init__(self, kind: NodeKind | None, data: Any, children: tuple[TreeDef, ...]) -> None:
        self.kind = kind  # None: a leaf
        self.data = data
        self.children = Children(children)
        self.only_leaves = all(child.kind is None for child in children)
        self.is_fixed: bool = kind is None or (kind.is_fixed and all(child.is_fixed for child in children))
        self.leaf_count: int = 1 if kind is None else sum(child.leaf_count for child in children)
        self.holds_keys: bool = kind is not None and (kind.is_one_leaf or any(child.holds_keys for child in children))

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return self.leaf_count

    @property
    def num_nodes(self) -> int:
        """The number of leaves and containers."""
        return 1 + sum(child.num_nodes for child in self.children)

    def node_data(self) -> tuple[type | None, Any] | None:
        """The class of the container and the data that it is rebuilt with; None for a leaf."""
        return None if self.kind is None else (self.kind.cls, self.data)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves. Raises TreeMismatchError if their number differs."""
        return unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` at the leaves of this structure. Raises TreeMismatchError if it does not fit."""
        return flatten_up_to(self, tree)

    def compose(self, inner: TreeDef) -> TreeDef:
        """This structure with `inner` at each leaf."""
        return structure(unflatten(self, [unflatten(inner, range(inner.leaf_count))] * self.leaf_count))

    def __repr__(self) -> str:
        """`dict(w=*, b=*)`, with a star for each leaf."""
        if self.kind is None:
            return "*"
        names = self.kind.child_names(self.data, len(self.children))
        return f"{self.kind.name}({', '.join(f'{n}={c!r}' for n, c in zip(names, self.children, strict=True))})"

    def __reduce__(self) -> tuple[Callable[..., TreeDef], tuple[Any]]:
        return structure, (unflatten(self, range(self.leaf_count)),)

    def __copy__(self) -> TreeDef:
        return self

    def __deepcopy__(self, memo: Any) -> TreeDef:
        return self


LEAF = TreeDef(None, None, ())
_interned: dict[Any, TreeDef] = {}
_flat: dict[Any, TreeDef] = {}  # those whose children are all leaves, by their number


def _intern(kind: NodeKind, data: Any, children: tuple[TreeDef, ...]) -> TreeDef:
    key = (kind, data, children)
    try:
        found = _interned.get(key)
    except TypeError as error:
        raise TypeError(f"the static parts of a {kind.name} must be hashable: {error}") from None
    if found is None:
        found = _interned.setdefault(key, TreeDef(kind, data, children))
    return found


def _intern_flat(kind: NodeKind, data: Any, count: int) -> TreeDef:
    """The structure whose `count` children are leaves."""
    key = (kind, data, count)
    try:
        return _flat[key]
    except (KeyError, TypeError):  # new, or not hashable: _intern raises the error
        return _flat.setdefault(key, _intern(kind, data, (LEAF,) * count))


_sorted_keys: dict[tuple[Any, ...], tuple[tuple[Any, ...], Callable[[Any], Any]]] = {}


def _sort_keys(keys: tuple[Any, ...]) -> tuple[tuple[Any, ...], Callable[[Any], Any]]:
    """The keys in order, and the function that gets their values from a dict; mixed keys are sorted by type first."""
    try:
        ordered = tuple(sorted(keys))
    except TypeError:
        ordered = tuple(sorted(keys, key=lambda key: (type(key).__qualname__, key)))
    many = itemgetter(*ordered) if len(ordered) > 1 else lambda tree: tuple(tree[key] for key in ordered)
    return _sorted_keys.setdefault(keys, (ordered, many))


def _flatten_dict(tree: dict[Any, Any]) -> tuple[Sequence[Any], Hashable]:
    keys = tuple(tree)
    ordered, values_of = _sorted_keys.get(keys) or _sort_keys(keys)
    return values_of(tree), ordered


def _flatten_default_dict(tree: defaultdict[Any, Any]) -> tuple[Sequence[Any], Hashable]:
    values, keys = _flatten_dict(tree)
    return values, (tree.default_factory, keys)


def _positions(data: Any, count: int) -> Iterable[Any]:
    return builtins.map(SequenceKey, range(count))


def _keys(data: Any, count: int) -> Iterable[Any]:
    return builtins.map(DictKey, data)


_DEFAULT_DICT = NodeKind(
    "defaultdict",
    _flatten_default_dict,
    lambda data, children: defaultdict(data[0], zip(data[1], children, strict=True)),
    lambda data, count: _keys(data[1], count),
    defaultdict,
)
_ORDERED_DICT = NodeKind(
    "OrderedDict",
    lambda tree: (tuple(tree.values()), tuple(tree)),
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
    _keys,
    OrderedDict,
)
_NONE = NodeKind("None", lambda tree: ((), None), lambda data, children: None, _positions, type(None), is_fixed=True)
_TUPLE = NodeKind(
    "tuple", lambda tree: (tree, None), lambda data, children: tuple(children), _positions, tuple, is_fixed=True
)


class _Kinds(dict[type, "NodeKind | None"]):
    """Class -> its kind, or None for a class of leaves; a class is examined when it is first met."""

    def __missing__(self, cls: type) -> NodeKind | None:
        is_named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
        kind = self[cls] = _named_tuple_kind(cls) if is_named_tuple else None
        return kind


def _named_tuple_kind(cls: Any) -> NodeKind:
    keys = tuple(builtins.map(GetAttrKey, cls._fields))
    return NodeKind(
        cls.__name__, lambda tree: (tree, None), lambda data, c: cls(*c), lambda data, count: keys, cls, is_fixed=True
    )


_kinds = _Kinds(
    {
        tuple: _TUPLE,
        list: NodeKind("list", lambda tree: (tree, None), lambda data, children: list(children), _positions, list),
        dict: NodeKind("dict", _flatten_dict, lambda keys, c: dict(zip(keys, c, strict=True)), _keys, dict),
        defaultdict: _DEFAULT_DICT,
        OrderedDict: _ORDERED_DICT,
        type(None): _NONE,
    }
)


def register(cls: type, kind: NodeKind) -> None:
    """Makes instances of `cls` containers. Raises ValueError if they are already."""
    if _kinds.get(cls) is not None:
        raise ValueError(f"{cls.__name__} is registered as a pytree already")
    _kinds[cls] = kind


def kind_of(tree: Any) -> NodeKind | None:
    """How `tree` is split, or None if it is a leaf to users."""
    kind = _kinds[type(tree)]
    return None if kind is None or kind.is_one_leaf else kind


def is_tree_node(typ: type) -> bool:
    """Whether instances of `typ` are containers to users."""
    kind = _kinds[typ]
    return kind is not None and not kind.is_one_leaf


def is_one_leaf(tree: Any) -> bool:
    """Whether `tree` is a container in which users see a leaf."""
    kind = _kinds[type(tree)]
    return kind is not None and kind.is_one_leaf


def key_leaves(treedef: TreeDef) -> list[bool]:
    """For each leaf whether it has the words of keys."""
    if not treedef.holds_keys:
        return [False] * treedef.leaf_count
    if treedef.kind is not None and treedef.kind.is_one_leaf:
        return [True] * treedef.leaf_count
    return [found for child in treedef.children for found in key_leaves(child)]


def composed(kind: NodeKind, data: Any, children: Sequence[TreeDef]) -> TreeDef:
    """The structure of a container of that kind and data, whose children have these structures."""
    return _intern(kind, data, tuple(children))


IsLeaf = Callable[[Any], bool] | None


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeDef]:
    """The leaves of `tree` in order, and its structure. A subtree for which `is_leaf` returns True is a leaf."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves) if is_leaf is None else _flatten_until(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kinds = _kinds
    kind = kinds[type(tree)]
    if kind is None:
        leaves.append(tree)
        return LEAF
    if kind.keeps_leaves:
        return _flatten_once(kind, tree, leaves)
    children, data = kind.flatten(tree)
    for cls in set(builtins.map(type, children)):
        if kinds[cls] is not None:
            return _intern(kind, data, tuple([_flatten(child, leaves) for child in children]))
    leaves.extend(children)
    return _intern_flat(kind, data, len(children))


def _flatten_once(kind: NodeKind, tree: Any, leaves: list[Any]) -> TreeDef:
    """As `_flatten`; what it finds is kept in the instance, if nothing in it can change."""
    held = getattr(tree, "_flattened", None)
    if held is None:
        children, data = kind.flatten(tree)
        found: list[Any] = []
        held = found, _intern(kind, data, tuple([_flatten(child, found) for child in children]))
        if held[1].is_fixed:
            object.__setattr__(tree, "_flattened", held)
    leaves += held[0]
    treedef: TreeDef = held[1]
    return treedef


def _flatten_until(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool]) -> TreeDef:
    kind = None if is_leaf(tree) else _kinds[type(tree)]
    if kind is None:
        leaves.append(tree)
        return LEAF
    children, data = kind.flatten(tree)
    return _intern(kind, data, tuple([_flatten_until(child, leaves, is_leaf) for child in children]))


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with these leaves. Raises TreeMismatchError if their number differs."""
    if not isinstance(treedef, TreeDef):
        raise user_error(TypeError, f"unflatten: the first argument must be a TreeDef, got {type(treedef).__name__}")
    given = list(leaves)
    if len(given) != treedef.leaf_count:
        raise user_error(TreeMismatchError, f"{treedef!r} has {treedef.leaf_count} leaves, got {len(given)}")
    kinds = _kinds
    are_leaves = all(kinds[cls] is None for cls in set(builtins.map(type, given)))
    return _build(treedef, given, 0, are_leaves)


def _build(treedef: TreeDef, leaves: list[Any], start: int, keeps: bool) -> Any:
    """The tree of the leaves from `start` on; with `keeps`, instances whose kind keeps leaves get theirs."""
    kind = treedef.kind
    if kind is None:
        return leaves[start]
    end = start + treedef.leaf_count
    keeps_these = keeps and kind.keeps_leaves and treedef.is_fixed
    if treedef.only_leaves:
        children = leaves[start:end]
    else:
        children, first, below = [], start, keeps and not keeps_these
        for child in treedef.children:
            children.append(_build(child, leaves, first, below))
            first += child.leaf_count
    made = kind.unflatten(treedef.data, children)
    if keeps_these:
        object.__setattr__(made, "_flattened", (leaves[start:end], treedef))
    return made


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree`, in order."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> TreeDef:
    """The structure of `tree`."""
    return flatten(tree, is_leaf)[1]


def flatten_up_to(treedef: TreeDef, tree: Any, allow_none: bool = False) -> list[Any]:
    """The subtrees of `tree` at the leaves of `treedef`.

    With `allow_none`, a None in `tree` stands for a None at each leaf below it. Raises TreeMismatchError, with the
    path, if `tree` does not begin with the structure `treedef`.
    """
    parts: list[Any] = []
    _collect(treedef, tree, parts, "", allow_none)
    return parts


def _collect(treedef: TreeDef, tree: Any, parts: list[Any], path: str, allow_none: bool) -> None:
    kind = treedef.kind
    if kind is None:
        parts.append(tree)
        return
    if allow_none and tree is None:
        parts += [None] * treedef.leaf_count
        return
    if _kinds[type(tree)] is not kind:
        if kind.is_one_leaf and _kinds[type(tree)] is None:  # what stands for keys stands for their words
            parts += [tree] * treedef.leaf_count
            return
        raise user_error(
            TreeMismatchError, f"at {path or 'the top'}: expected {treedef!r}, got a {type(tree).__name__}"
        )
    children, data = kind.flatten(tree)
    if data != treedef.data or len(children) != len(treedef.children):
        raise user_error(TreeMismatchError, f"at {path or 'the top'}: expected {treedef!r}, got {structure(tree)!r}")
    names = kind.child_names(data, len(children))
    for name, child_def, child in zip(names, treedef.children, children, strict=True):
        _collect(child_def, child, parts, f"{path}.{name}" if path else name, allow_none)


def broadcast_prefix(prefix: Any, treedef: TreeDef, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """For each leaf of `treedef`, the leaf of `prefix` at the same path or above it.

    `is_leaf` says what leaves of `prefix` are. Raises TreeMismatchError, with the path, if `treedef` does not begin
    with the structure of `prefix`.
    """
    found: list[Any] = []
    _spread(prefix, treedef, is_leaf, found, "")
    return found


def _prefix_error(prefix: Any, treedef: TreeDef, path: str) -> TreeMismatchError:
    where = path or "the top"
    return user_error(TreeMismatchError, f"at {where}: expected a prefix of {treedef!r}, got {prefix!r:.60}")


def _spread(prefix: Any, treedef: TreeDef, is_leaf: Callable[[Any], bool], found: list[Any], path: str) -> None:
    if is_leaf(prefix):
        found += [prefix] * treedef.leaf_count
        return
    kind = _kinds[type(prefix)]
    if kind is None or kind is not treedef.kind:
        raise _prefix_error(prefix, treedef, path)
    children, data = kind.flatten(prefix)
    if data != treedef.data or len(children) != len(treedef.children):
        raise _prefix_error(prefix, treedef, path)
    names = kind.child_names(data, len(children))
    for name, child, child_def in zip(names, children, treedef.children, strict=True):
        _spread(child, child_def, is_leaf, found, f"{path}.{name}" if path else name)


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of `f(leaf, *subtrees)` for each leaf of `tree`, with the subtrees of `rest` at the same path.

    Raises TreeMismatchError if one of `rest` does not begin with the structure of `tree`.
    """
    found, treedef = flatten(tree, is_leaf)
    columns = [flatten_up_to(treedef, other) for other in rest]
    return unflatten(treedef, [f(*row) for row in zip(found, *columns, strict=True)])


def paths(treedef: TreeDef, prefix: str = "") -> list[str]:
    """The path of each leaf, as in `layers.0.w`."""
    if treedef.kind is None or treedef.kind.is_one_leaf:
        return [prefix] * treedef.leaf_count
    found: list[str] = []
    names = treedef.kind.child_names(treedef.data, len(treedef.children))
    for name, child in zip(names, treedef.children, strict=True):
        found += paths(child, f"{prefix}.{name}" if prefix else name)
    return found
