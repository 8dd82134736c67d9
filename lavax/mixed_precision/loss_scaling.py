"""Losses scaled so that gradients keep within float16's range (Micikevicius et al. 2018, section 3.2).

A scale is a pytree: pass it to the compiled step with the parameters, and return the adjusted one.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.conditions import all_finite
from lavax.optim.tree.arithmetic import where
from lavax.optim.tree.precision import wide
from lavax.tracer.pytrees import pytree

__all__ = ["DynamicLossScale", "NoLossScale", "StaticLossScale", "all_finite", "select_tree"]


class NoLossScale(NamedTuple):
    """Leaves losses and gradients as they are, for float32 and bfloat16."""

    @property
    def loss_scale(self) -> float:
        """1."""
        return 1.0

    def scale(self, tree: Any) -> Any:
        """`tree`."""
        return tree

    def unscale(self, tree: Any) -> Any:
        """`tree`."""
        return tree

    def adjust(self, grads_finite: Any) -> NoLossScale:
        """The same."""
        return self


class StaticLossScale(NamedTuple):
    """One scale for all steps: a number, or a float32 array of rank 0."""

    loss_scale: Any

    def scale(self, tree: Any) -> Any:
        """`tree` times the scale, in float32 at least."""
        return pytree.map(lambda leaf: wide(leaf) * self.loss_scale, tree)

    def unscale(self, tree: Any) -> Any:
        """`tree` over the scale, in float32 at least."""
        return pytree.map(lambda leaf: wide(leaf) / self.loss_scale, tree)

    def adjust(self, grads_finite: Any) -> StaticLossScale:
        """The same."""
        return self


class DynamicLossScale(NamedTuple):
    """A scale that grows `factor` times after `period` finite steps in a row, and shrinks so after any other.

    `loss_scale` is float32, `counter` (finite steps since the last change) int32; all fields may be arrays. It never
    goes below `min_loss_scale`, nor out of float32's range. Powers of two scale without rounding.
    """

    loss_scale: Any
    counter: Any
    period: Any
    factor: Any
    min_loss_scale: Any

    @classmethod
    def create(
        cls, loss_scale: float = 2.0**15, period: int = 2000, factor: float = 2.0, min_loss_scale: float = 1.0
    ) -> DynamicLossScale:
        """A scale at its beginning. Raises ValueError for numbers by which it could not work."""
        if not (loss_scale >= min_loss_scale > 0 and factor > 1 and period >= 1):
            raise ValueError(
                "DynamicLossScale.create: loss_scale >= min_loss_scale > 0, factor > 1 and period >= 1 must hold, got "
                f"{loss_scale=}, {min_loss_scale=}, {factor=}, {period=}"
            )
        numbers = (lnp.asarray(number, lnp.float32) for number in (loss_scale, factor, min_loss_scale))
        start, growth, least = numbers
        return cls(start, lnp.zeros((), lnp.int32), lnp.asarray(period, lnp.int32), growth, least)

    def scale(self, tree: Any) -> Any:
        """`tree` times the scale, in float32 at least."""
        return pytree.map(lambda leaf: wide(leaf) * self.loss_scale, tree)

    def unscale(self, tree: Any) -> Any:
        """`tree` over the scale, in float32 at least."""
        return pytree.map(lambda leaf: wide(leaf) / self.loss_scale, tree)

    def adjust(self, grads_finite: Any) -> DynamicLossScale:
        """The scale for the next step; `grads_finite` is a boolean array of rank 0, from `all_finite`."""
        grown = self.loss_scale * self.factor
        is_due = self.counter >= self.period - 1
        after_finite = lnp.where(is_due & lnp.isfinite(grown), grown, self.loss_scale)
        after_overflow = lnp.maximum(self.loss_scale / self.factor, self.min_loss_scale)
        counter = lnp.where(grads_finite & ~is_due, self.counter + 1, 0)
        return self._replace(loss_scale=lnp.where(grads_finite, after_finite, after_overflow), counter=counter)


def select_tree(condition: Any, if_true: Any, if_false: Any) -> Any:
    """`if_true` where `condition`, a boolean array of rank 0, holds, else `if_false`, bit for bit."""
    return where(condition, if_true, if_false)
