"""Einstein's summation convention: any contraction, by labels of axes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from string import ascii_lowercase, ascii_uppercase
from typing import Any, TypeGuard

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType, TensorType, bool_, int32
from lavax.numpy._core.application import as_truth
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.arrays.creation import iota
from lavax.numpy.elementwise.arithmetic import multiply
from lavax.numpy.indexing.advanced_indexing import AxisPositions, gathered
from lavax.numpy.products.contraction_order import Extents, Label, Pair, after, cheapest_path
from lavax.numpy.products.element_types import in_element_type
from lavax.numpy.products.linear_algebra import contracted
from lavax.numpy.reductions.reductions import fold
from lavax.tracer import dtype_of
from lavax.tracer.values.value import Value

__all__ = ["einsum", "einsum_path"]

_LETTERS = ascii_uppercase + ascii_lowercase  # the letters of numbers, in order
# An ellipsis becomes numbers as labels, counted from the last axis; they differ from all letters.
Labels = tuple[Label, ...]
Optimize = bool | str | Sequence[Any]
DotGeneral = Callable[..., Any]  # called as `lax.dot_general` is


@dataclass(frozen=True)
class _Term:
    """A value whose axes have labels, each once."""

    value: Value
    labels: Labels

    def extent(self, label: Label) -> int:
        return self.value.shape[self.labels.index(label)]

    @property
    def extents(self) -> dict[Label, int]:
        return dict(zip(self.labels, self.value.shape, strict=True))


# The product of two terms, with the labels that are wanted afterwards and those of the result.
Product = Callable[[_Term, _Term, set[Label], Labels], _Term]


def einsum(
    subscripts: Any,
    *operands: Any,
    optimize: Optimize = True,
    precision: str | None = None,
    preferred_element_type: Any = None,
    _dot_general: DotGeneral | None = None,
    out_sharding: Any = None,
) -> Value:
    """The sum of products that `subscripts` describes: `einsum("ij,jk->ik", x, y)` is the matrix product.

    Labels are letters or digits. A label that is not in the result is summed over; one that occurs twice in a term
    takes the diagonal; `...` means further axes, which broadcast, and are summed over if the result lacks it. Without
    `->` the result has the labels that occur once, in alphabetical order. Labels may also be numbers below 52, in a
    list after each operand and one for the result, which may be omitted: `einsum(x, [0, 1], y, [1, 2], [0, 2])`.
    Several operands are combined two at a time, in the order of fewest multiplications (of eight and more, the pair
    first that adds the fewest elements); with `optimize` False from left to right, or by a path from `einsum_path`.
    `precision` and `preferred_element_type` are as in `matmul`. `_dot_general` is called in the place of
    `lax.dot_general` for every product of two operands, with its arguments. Raises ShapeError if the labels do not fit
    the operands, ValueError for a path that does not.
    """
    text, values = _in_letters(subscripts, operands)
    if values and _is_custom(_dot_general):
        wanted = dtype_of(preferred_element_type or common_dtype(values)[0].dtype)
        terms, output, _ = _terms(text, values)
        combined = _product_by(_dot_general, precision, wanted)
        return cast(_contract_all(terms, output, _chosen_path(text, terms, output, optimize), combined), wanted)
    if preferred_element_type is not None and values:
        held = common_dtype(values)
        as_given = _are_factors(*_terms(text, held)[:2])

        def product(given: Sequence[Value], exact: Any) -> Value:
            return einsum(text, *given, optimize=optimize, precision=exact if as_given else precision)

        return in_element_type(product, held, preferred_element_type, precision)
    terms, output, of_truth = _terms(text, values)
    path = _chosen_path(text, terms, output, optimize)
    result = _contract_all(terms, output, path, partial(_combined, precision=precision))
    return as_truth(result) if of_truth else result


def einsum_path(
    subscripts: Any, *operands: Any, optimize: Optimize = True
) -> tuple[list[str | tuple[int, ...]], str]:
    """The order in which `einsum` combines operands, and a description.

    The order is "einsum_path" and pairs of positions: a pair's product is appended to the remaining operands.
    """
    text, values = _in_letters(subscripts, operands)
    terms, output, _ = _terms(text, values)
    path = _chosen_path(text, terms, output, optimize)
    remaining: Sequence[Extents] = [term.extents for term in terms]
    lines = [text]
    for first, second in path:
        remaining = after(remaining, (first, second), output)
        lines.append(f"({first}, {second}): {prod(remaining[-1].values())} elements")
    steps: list[tuple[int, ...]] = [*path] or [(0,)]
    return ["einsum_path", *steps], "\n".join(lines)


def _in_letters(subscripts: Any, operands: Sequence[Any]) -> tuple[str, Sequence[ArrayLike]]:
    """The subscripts as text, and the operands, from calls with lists of labels too."""
    if isinstance(subscripts, str):
        return subscripts, operands
    given = [subscripts, *operands]
    terms = ",".join(map(_term_of, given[1::2]))
    result = f"->{_term_of(given[-1])}" if len(given) % 2 else ""
    return terms + result, given[: len(given) // 2 * 2 : 2]


def _term_of(labels: Any) -> str:
    """A list of labels as text. Raises ShapeError for anything else."""
    if isinstance(labels, Sequence) and all(label is Ellipsis or label in range(len(_LETTERS)) for label in labels):
        return "".join("..." if label is Ellipsis else _LETTERS[label] for label in labels)
    raise shape_error(
        f"einsum: {labels!r:.60} is not a list of labels: begin with a text such as 'ij,jk->ik', or give a list of "
        f"integers from 0 to {len(_LETTERS) - 1} behind each operand"
    )


def _terms(subscripts: str, operands: Sequence[ArrayLike]) -> tuple[list[_Term], Labels, bool]:
    """The operands with each label once, the labels of the result, and whether they are truth values."""
    if not isinstance(subscripts, str):
        raise dtype_error(f"einsum takes a text such as 'ij,jk->ik' and then its operands, got {subscripts!r:.40}")
    values = common_dtype(operands) if operands else []
    inputs, output = _parse(subscripts, values)
    extents = _extents(subscripts, inputs, values)
    missing = [label for label in output if label not in extents]
    if missing:
        raise _subscript_error(subscripts, f"{missing[0]!r} is in no term")
    if len(set(output)) != len(output):
        raise _subscript_error(subscripts, "the result has a label twice")
    of_truth = values[0].type.dtype == bool_
    if of_truth:
        values = [cast(value, int32) for value in values]
    terms = [_simple_term(value, labels, extents) for value, labels in zip(values, inputs, strict=True)]
    return terms, output, of_truth


def _subscript_error(subscripts: str, reason: str) -> Exception:
    return shape_error(f"einsum {subscripts!r}: {reason}")


def _parse(subscripts: str, values: Sequence[Value]) -> tuple[list[Labels], Labels]:
    """The labels of each term and of the result."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if not values or len(terms) != len(values):
        raise _subscript_error(subscripts, f"{len(terms)} terms for {len(values)} operands")
    inputs = [_labels(subscripts, term, value.ndim) for term, value in zip(terms, values, strict=True)]
    broadcast = sorted({label for labels in inputs for label in labels if isinstance(label, int)})
    if arrow:
        further = len(broadcast) if "..." in right else 0
        return inputs, _labels(subscripts, right, len(right.replace("...", "")) + further)
    letters = left.replace(",", "").replace(".", "")
    return inputs, (*broadcast, *sorted(letter for letter in set(letters) if letters.count(letter) == 1))


def _labels(subscripts: str, term: str, rank: int) -> Labels:
    """One label per axis; the axes of an ellipsis are -1, -2, … from the last."""
    before, ellipsis, after = term.partition("...")
    letters = before + after
    if not all(letter.isalnum() for letter in letters):
        raise _subscript_error(subscripts, f"{term!r} may have letters, digits and one '...'")
    rest = rank - len(letters)
    if rest < 0 or (rest and not ellipsis):
        raise _subscript_error(subscripts, f"{term!r} does not label {rank} axes")
    return (*before, *range(-rest, 0), *after)


def _extents(subscripts: str, inputs: Sequence[Labels], values: Sequence[Value]) -> dict[Label, int]:
    """Each label's extent; an extent of 1 fits any other."""
    extents: dict[Label, int] = {}
    for labels, value in zip(inputs, values, strict=True):
        for label, extent in zip(labels, value.shape, strict=True):
            known = extents.get(label, 1)
            if 1 not in (known, extent) and known != extent:
                types = ", ".join(str(value.type) for value in values)
                raise _subscript_error(subscripts, f"{label!r} is both {known} and {extent} in the operands {types}")
            extents[label] = extent if known == 1 else known
    return extents


def _simple_term(value: Value, labels: Labels, extents: dict[Label, int]) -> _Term:
    """Each label once, with its full extent: diagonals are taken, axes of 1 against larger ones are dropped."""
    kept = [axis for axis, label in enumerate(labels) if value.shape[axis] == extents[label]]
    value = reshaped(value, tuple(value.shape[axis] for axis in kept))
    term = _Term(value, tuple(labels[axis] for axis in kept))
    for label in dict.fromkeys(term.labels):
        if term.labels.count(label) > 1:
            term = _diagonal(term, label)
    return term


def _diagonal(term: _Term, label: Label) -> _Term:
    axes = [axis for axis, other in enumerate(term.labels) if other == label]
    places = AxisPositions(iota(TensorType((term.value.shape[axes[0]],), int32), 0))
    found = gathered(term.value, [places] * len(axes), axes)
    return _Term(found, (label, *(other for other in term.labels if other != label)))


def _contract_all(terms: list[_Term], output: Labels, path: Sequence[Pair], product: Product) -> Value:
    """Combines the terms two at a time until one is left, with the axes of the result."""
    for first, second in path:
        others = [term for place, term in enumerate(terms) if place not in (first, second)]
        wanted = set(output).union(*(term.labels for term in others))
        left = _summed(terms[first], wanted.union(terms[second].labels))
        right = _summed(terms[second], wanted.union(terms[first].labels))
        terms = [*others, product(left, right, wanted, output)]
    last = _summed(terms[0], set(output))
    return transposed(last.value, [last.labels.index(label) for label in output])


def _chosen_path(subscripts: str, terms: Sequence[_Term], output: Labels, optimize: Optimize) -> list[Pair]:
    """The pairs of positions, in the order in which they are combined."""
    if optimize is False:
        return [(0, 1), *((0, rest) for rest in range(len(terms) - 2, 0, -1))] if len(terms) > 1 else []
    if not isinstance(optimize, (bool, str)):
        return _given_path(subscripts, len(terms), optimize)
    return cheapest_path([term.extents for term in terms], output)


def _given_path(subscripts: str, count: int, steps: Sequence[Any]) -> list[Pair]:
    pairs = [step for step in steps if step not in ("einsum_path", (0,))]
    fits = len(pairs) == count - 1 and all(
        len(pair) == 2 and 0 <= min(pair) < max(pair) < count - number for number, pair in enumerate(pairs)
    )
    if not fits:
        raise ValueError(f"einsum {subscripts!r}: {list(steps)} is not a path through {count} operands, two at a time")
    return [(min(pair), max(pair)) for pair in pairs]


def _are_factors(terms: Sequence[_Term], output: Labels) -> bool:
    """Whether the terms as they are given are multiplied: sums of them, or products, have more bits than they have."""
    labels = [set(term.labels) for term in terms]
    kept = set.intersection(*labels).union(output)
    return len(labels) <= 2 and all(kept.issuperset(of_term) for of_term in labels)


def _summed(term: _Term, wanted: set[Label]) -> _Term:
    """The term, summed over the labels that nothing else uses."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in wanted)
    if not axes:
        return term
    return _Term(fold("sum", term.value, axes, keepdims=False), tuple(x for x in term.labels if x in wanted))


def _combined(left: _Term, right: _Term, wanted: set[Label], output: Labels, precision: str | None) -> _Term:
    """The product of two terms, summed over the labels that they share and nothing else uses."""
    shared = [label for label in left.labels if label in right.labels]
    contract = [label for label in shared if label not in wanted]
    if not contract:
        return _multiplied(left, right, output)
    batch = sorted((label for label in shared if label in wanted), key=_order_in(output))
    if _result_labels(left, right, batch, contract) != output == _result_labels(right, left, batch, contract):
        left, right = right, left
    value = contracted(left.value, right.value, _axes(left, right, contract), _axes(left, right, batch), precision)
    return _Term(value, _result_labels(left, right, batch, contract))


def _is_custom(dot_general: DotGeneral | None) -> TypeGuard[DotGeneral]:
    from lavax.numpy.products.dot_general import dot_general as ordinary  # late: it is written by `einsum`

    return dot_general is not None and dot_general is not ordinary


def _product_by(dot_general: DotGeneral, precision: Any, wanted: DType) -> Product:
    """`_combined` by a function that is called as `lax.dot_general` is, also where nothing is summed."""

    def combined(left: _Term, right: _Term, wanted_labels: set[Label], output: Labels) -> _Term:
        shared = [label for label in left.labels if label in right.labels]
        contract = [label for label in shared if label not in wanted_labels]
        batch = [label for label in shared if label in wanted_labels]
        numbers = tuple(tuple(map(tuple, _axes(left, right, labels))) for labels in (contract, batch))
        value = as_value(dot_general(left.value, right.value, numbers, precision, preferred_element_type=wanted))
        labels = _result_labels(left, right, batch, contract)
        extents = tuple((left if label in left.labels else right).extent(label) for label in labels)
        if value.shape != extents:
            raise shape_error(f"einsum: _dot_general gave {value.type} for a product of shape {list(extents)}")
        return _Term(value, labels)

    return combined


def _order_in(output: Labels) -> Callable[[Label], int]:
    return lambda label: output.index(label) if label in output else len(output)


def _axes(left: _Term, right: _Term, labels: Sequence[Label]) -> tuple[list[int], list[int]]:
    return [left.labels.index(label) for label in labels], [right.labels.index(label) for label in labels]


def _result_labels(left: _Term, right: _Term, batch: Sequence[Label], contract: Sequence[Label]) -> Labels:
    used = {*batch, *contract}
    free = [label for label in (*left.labels, *right.labels) if label not in used]
    return (*batch, *free)


def _multiplied(left: _Term, right: _Term, output: Labels) -> _Term:
    """The product without a sum: an elementwise operation, with the axes in the order of the result."""
    labels = tuple(sorted(dict.fromkeys((*left.labels, *right.labels)), key=_order_in(output)))
    return _Term(multiply(_aligned(left, labels), _aligned(right, labels)), labels)


def _aligned(term: _Term, labels: Labels) -> Value:
    """The term's value with an axis for each of `labels`, of extent 1 where the term has none."""
    own = [label for label in labels if label in term.labels]
    ordered = transposed(term.value, [term.labels.index(label) for label in own])
    return reshaped(ordered, tuple(term.extent(label) if label in own else 1 for label in labels))
