"""What rules of derivatives get and give for derivatives that are known to be zero, when they ask for them."""
from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import TensorType
from lavax.tracer.pytrees.pytree import flatten, unflatten
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, typeof
from lavax.tracer.tracing.convert import abstract_of


@dataclass(frozen=True)
class SymbolicZero:
    """A tangent or cotangent that is zero whatever the arguments are; `aval` is its shape and dtype."""

    aval: ShapeDtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self.aval.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the derivative: float0 where the value is of integers."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The derivative of a value that does not change."""
        return SymbolicZero(typeof(val).to_tangent_aval())


@dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument of a forward rule, and whether derivatives by it may be asked for."""

    value: Any
    perturbed: bool


def zero_of(type: TensorType) -> SymbolicZero:
    """The derivative of a value of this type that does not change."""
    return SymbolicZero(ShapeDtype(type.shape, type.dtype.user).to_tangent_aval())


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The tree with the value of each CustomVJPPrimal in its place."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf for leaf in leaves])


def with_primals(rule: Callable[..., Any], fixed: Collection[int]) -> Callable[..., Any]:
    """A forward rule whose arguments, but those at the positions `fixed`, come as trees of CustomVJPPrimal.

    All floats count as perturbed: the rule is traced before it is known by what derivatives are taken.
    """

    def forward(*args: Any) -> Any:
        return rule(*(arg if position in fixed else _as_primals(arg) for position, arg in enumerate(args)))

    return forward


def _as_primals(tree: Any) -> Any:
    leaves, structure = flatten(tree)
    primals = [CustomVJPPrimal(leaf, abstract_of(leaf).type.dtype.is_inexact) for leaf in leaves]
    return unflatten(structure, primals)
