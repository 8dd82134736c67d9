"""Which values a checkpoint keeps for its gradient, and the names of values by which policies choose them."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Literal, TypeAlias

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import user_error
from lavax.tracer.pytrees.pytree import leaves
from lavax.tracer.tracing.trace import Trace, active_trace
from lavax.tracer.tracing.tracer import Tracer
from lavax.tracer.values.value import Value

Values: TypeAlias = Literal["nothing", "dots", "everything"]
_IN_ORDER: tuple[Values, ...] = ("nothing", "dots", "everything")


@dataclass(frozen=True)
class Policy:
    """What is kept: `values` of themselves, and those whose name is among `names`, or is none of `all_names_but`."""

    values: Values = "nothing"
    names: frozenset[str] = frozenset()
    all_names_but: frozenset[str] | None = None

    def keeps(self, name: str) -> bool:
        """Whether values of this name are kept."""
        return name in self.names or (self.all_names_but is not None and name not in self.all_names_but)


def policy_of(given: Any) -> Policy:
    """A policy, or one by the word for its values; None keeps nothing. Raises ValueError for anything else."""
    if isinstance(given, Policy):
        return given
    word = "nothing" if given is None else given
    if word not in _IN_ORDER:
        raise user_error(
            ValueError,
            f"checkpoint: policy {given!r} is none of {', '.join(_IN_ORDER)}, nor one of checkpoint_policies",
        )
    return Policy(word)


class CheckpointPolicies:
    """The policies of `checkpoint` by JAX's names: `checkpoint_policies.dots_saveable`.

    Products with batch axes count as products. The gradient is the same in any case: only its memory and its work
    differ.
    """

    everything_saveable: Values = "everything"
    nothing_saveable: Values = "nothing"
    dots_saveable: Values = "dots"
    checkpoint_dots: Values = "dots"
    dots_with_no_batch_dims_saveable: Values = "dots"
    checkpoint_dots_with_no_batch_dims: Values = "dots"

    @staticmethod
    def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
        """Keeps the values that `checkpoint_name` gave one of these names."""
        return Policy(names=_texts("save_only_these_names", names_which_can_be_saved))

    @staticmethod
    def save_any_names_but_these(*names_not_to_save: str) -> Policy:
        """Keeps the values that have a name, unless it is one of these."""
        return Policy(all_names_but=_texts("save_any_names_but_these", names_not_to_save))

    @staticmethod
    def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
        """Keeps everything: what a value of one of these names is made of is kept, and the value is that."""
        _texts("save_anything_except_these_names", names_not_to_save)
        return Policy("everything")

    @staticmethod
    def save_from_both_policies(policy_1: Any, policy_2: Any) -> Policy:
        """Keeps what either of two policies keeps."""
        one, other = policy_of(policy_1), policy_of(policy_2)
        exceptions = [each.all_names_but for each in (one, other) if each.all_names_but is not None]
        return Policy(
            max(one.values, other.values, key=_IN_ORDER.index),
            one.names | other.names,
            frozenset.intersection(*exceptions) if exceptions else None,
        )


def _texts(function: str, names: tuple[str, ...]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise user_error(TypeError, f"{function}: names are text, got {name!r:.80}")
    return frozenset(names)


checkpoint_policies = CheckpointPolicies()


@dataclass(frozen=True, eq=False)
class _Named:
    """The values that are kept of a function that is being traced."""

    policy: Policy
    trace: Trace | None
    kept: list[Value] = field(default_factory=list)


_named: ContextVar[_Named | None] = ContextVar("named", default=None)


@contextmanager
def keeping_names(policy: Policy) -> Iterator[list[Value]]:
    """The values of the active trace that are given a name inside, if `policy` keeps that."""
    found = _Named(policy, active_trace())
    token = _named.set(found)
    try:
        yield found.kept
    finally:
        _named.reset(token)


def checkpoint_name(x: Any, name: str) -> Any:
    """`x`, an array or a tree of arrays, under a name by which policies of `checkpoint` keep it for the gradient.

    Names count in the checkpoint around them, not in its loops and branches, which keep values of their own. Raises
    TypeError for a name that is not text.
    """
    _texts("checkpoint_name", (name,))
    around = _named.get()
    if around is not None and around.policy.keeps(name) and active_trace() is around.trace:
        around.kept.extend(leaf for leaf in leaves(x) if isinstance(leaf, Tracer))
    return x
