"""A compiled function that was traced, before it is lowered."""
from __future__ import annotations

from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.tracer.compiled.jaxpr import Jaxpr, jaxpr_of
from lavax.tracer.compiled.lowered import Lowered
from lavax.tracer.pytrees.pytree import TreeDef


@dataclass(frozen=True, eq=False)
class TracedFunction:
    """What `compile(f).trace(*args)` returns, as in jax.stages."""

    lowered: Lowered

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.lowered.signature.function

    @property
    def jaxpr(self) -> Jaxpr:
        """The graph, as `make_jaxpr` returns it."""
        return jaxpr_of(self.lowered.traced)

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the result."""
        return self.lowered.out_tree

    @property
    def out_info(self) -> Any:
        """The result with a ShapeDtype for each array."""
        return self.lowered.out_info

    def lower(self) -> Lowered:
        """The function on its way to a program."""
        return self.lowered
