"""Which kernels' shaders are written before all others: those that a driver compiles longest.

Pipelines are made in other threads while further shaders are written (compile/ahead.py). A shader that takes a GPU's
driver a second, as the gradients of attention do, is best begun at once: else a first call waits for it alone at the
end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.ops.attention import GRADIENTS, PROJECTED
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.passes.kernels.kernel import Kernel, KernelStep

# By operation, how early a routine's shader is written, and the same of products; other shaders come in their order.
_ROUTINES = dict.fromkeys((*ATTENTION, *PROJECTED), 1) | dict.fromkeys(GRADIENTS, 0)
_PRODUCTS, _IN_ORDER = 2, 3


def compiles_ahead(profile: DeviceProfile) -> bool:
    """Whether it matters which shaders come first: CPU drivers compile when a kernel first runs."""
    return profile.kind == "gpu"


def written_first(steps: Iterable[KernelStep], profile: DeviceProfile) -> Sequence[KernelStep]:
    """The steps to write before all others, in this order: the first of those that have equal kernels."""
    if not compiles_ahead(profile):
        return ()
    distinct: dict[Sequence[Kernel], KernelStep] = {}
    for step in steps:
        distinct.setdefault(step.kernels, step)
    early = [(rank, step) for step in distinct.values() if (rank := how_early(step.kernel)) < _IN_ORDER]
    return [step for _, step in sorted(early, key=lambda found: found[0])]


def how_early(kernel: Kernel) -> int:
    """The rank of a kernel's shader: the lowest is written first."""
    if kernel.kind == "contract":
        return _PRODUCTS
    return min((_ROUTINES.get(node.op, _IN_ORDER) for node in kernel.graph.nodes), default=_IN_ORDER)
