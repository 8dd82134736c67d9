"""Routines -> shaders: one emitter an operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from lavax.backends.vulkan.emit.attention.attention import attention_candidates, emit_attention
from lavax.backends.vulkan.emit.linalg.cholesky import emit_cholesky
from lavax.backends.vulkan.emit.linalg.eigenvalues import emit_eigh
from lavax.backends.vulkan.emit.linalg.householder import emit_householder, emit_qr
from lavax.backends.vulkan.emit.linalg.jacobi import emit_jacobi
from lavax.backends.vulkan.emit.linalg.lu import emit_lu
from lavax.backends.vulkan.emit.linalg.singular_values import emit_svd
from lavax.backends.vulkan.emit.linalg.triangular_solve import emit_triangular_solve
from lavax.backends.vulkan.emit.scan.kernel import emit_cumulative
from lavax.backends.vulkan.emit.scan.lines import FOLDS
from lavax.backends.vulkan.emit.scatter.lines import emit_scatter
from lavax.backends.vulkan.emit.scatter.segments import emit_fold_runs, emit_join_runs
from lavax.backends.vulkan.emit.sort.merge_runs import emit_merge_runs
from lavax.backends.vulkan.emit.sort.radix_pass import emit_count_digits, emit_move_by_digit
from lavax.backends.vulkan.emit.sort.search_sorted import emit_search_sorted
from lavax.backends.vulkan.emit.sort.sort_runs import emit_sort_runs
from lavax.backends.vulkan.emit.sort.unsort import emit_unsort
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
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
