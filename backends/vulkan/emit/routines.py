"""Routines -> shaders: one emitter an operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from lavax.backends.vulkan.emit.attention import attention_candidates, emit_attention
from lavax.backends.vulkan.emit.cholesky import emit_cholesky
from lavax.backends.vulkan.emit.cumulative import FOLDS, emit_cumulative
from lavax.backends.vulkan.emit.digits import emit_count_digits, emit_move_by_digit
from lavax.backends.vulkan.emit.eigenvalues import emit_eigh
from lavax.backends.vulkan.emit.householder import emit_householder, emit_qr
from lavax.backends.vulkan.emit.jacobi import emit_jacobi
from lavax.backends.vulkan.emit.launch import Launch
from lavax.backends.vulkan.emit.lu import emit_lu
from lavax.backends.vulkan.emit.merge_runs import emit_merge_runs
from lavax.backends.vulkan.emit.runs import emit_fold_runs, emit_join_runs
from lavax.backends.vulkan.emit.scatter import emit_scatter
from lavax.backends.vulkan.emit.search_sorted import emit_search_sorted
from lavax.backends.vulkan.emit.singular_values import emit_svd
from lavax.backends.vulkan.emit.sort_runs import emit_sort_runs
from lavax.backends.vulkan.emit.triangular_solve import emit_triangular_solve
from lavax.backends.vulkan.emit.unsort import emit_unsort
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.ops.indexing import SCATTERS
from lavax.passes.kernels.kernel import Kernel

EMITTERS: dict[str, Callable[..., Launch]] = {
    **dict.fromkeys(FOLDS, emit_cumulative),
    **dict.fromkeys(SCATTERS, emit_scatter),
    **dict.fromkeys(ATTENTION, emit_attention),
    "cholesky": emit_cholesky,
    "chunk_totals": emit_cumulative,
    "count_digits": emit_count_digits,
    "cumulative_chunks": emit_cumulative,
    "eigh": emit_eigh,
    "fold_runs": emit_fold_runs,
    "householder": emit_householder,
    "jacobi": emit_jacobi,
    "join_runs": emit_join_runs,
    "lu": emit_lu,
    "merge_runs": emit_merge_runs,
    "move_by_digit": emit_move_by_digit,
    "qr": emit_qr,
    "search_sorted": emit_search_sorted,
    "sort_runs": emit_sort_runs,
    "svd": emit_svd,
    "triangular_solve": emit_triangular_solve,
    "unsort": emit_unsort,
}


# Schedules of routines that have a choice, as in candidates.py.
_CANDIDATES: dict[str, Callable[[Kernel, DeviceProfile], Sequence[Hashable]]] = dict.fromkeys(
    ATTENTION, attention_candidates
)


def routine_candidates(kernel: Kernel, profile: DeviceProfile) -> Sequence[Hashable]:
    """The schedules worth a try, first the one that is chosen without trying."""
    op = kernel.graph.outputs[0].op
    return _CANDIDATES[op](kernel, profile) if op in _CANDIDATES else ()


def emit_routine(kernel: Kernel, profile: DeviceProfile, lifted: bool, *schedule: Hashable) -> Launch:
    """The shader of the kernel's one node, or of several that one emitter computes together."""
    return EMITTERS[kernel.graph.outputs[0].op](kernel, profile, lifted, *schedule)
