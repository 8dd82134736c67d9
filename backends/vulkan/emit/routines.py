"""Routines -> shaders: one emitter per operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from lavax.backends.vulkan.emit.attention.choose import attention_candidates
from lavax.backends.vulkan.emit.attention.kernel import emit_attention
from lavax.backends.vulkan.emit.depthwise import emit_depthwise
from lavax.backends.vulkan.emit.fourier.kernel import emit_fourier_step
from lavax.backends.vulkan.emit.fourier.lines.convolved_lines import emit_cut, emit_filtered, emit_padded
from lavax.backends.vulkan.emit.fourier.lines.odd_lines import (
    emit_from_half,
    emit_from_reals,
    emit_to_half,
    emit_to_reals,
)
from lavax.backends.vulkan.emit.fourier.lines.paired_lines import emit_from_paired, emit_paired, emit_to_paired
from lavax.backends.vulkan.emit.fourier.lines.whole_spectra import emit_whole
from lavax.backends.vulkan.emit.fourier.lines_across import (
    emit_across_from_half,
    emit_across_from_reals,
    emit_across_to_half,
    emit_across_to_reals,
)
from lavax.backends.vulkan.emit.fourier.real_lines import emit_join, emit_spectrum
from lavax.backends.vulkan.emit.linalg.bidiagonal import emit_bidiagonal
from lavax.backends.vulkan.emit.linalg.bidiagonal_singular_values import emit_bidiagonal_svd
from lavax.backends.vulkan.emit.linalg.cholesky import emit_cholesky
from lavax.backends.vulkan.emit.linalg.eigenvalues import emit_eigh
from lavax.backends.vulkan.emit.linalg.householder import emit_householder, emit_qr
from lavax.backends.vulkan.emit.linalg.jacobi import emit_jacobi
from lavax.backends.vulkan.emit.linalg.lu import emit_lu
from lavax.backends.vulkan.emit.linalg.singular_values import emit_svd
from lavax.backends.vulkan.emit.linalg.small import (
    emit_small_cholesky,
    emit_small_lu,
    emit_small_triangular_solve,
    is_small,
)
from lavax.backends.vulkan.emit.linalg.triangular_solve import emit_triangular_solve
from lavax.backends.vulkan.emit.linalg.tridiagonal import emit_tridiagonal
from lavax.backends.vulkan.emit.linalg.tridiagonal_eigenvalues import emit_tridiagonal_eigh
from lavax.backends.vulkan.emit.scan.kernel import emit_cumulative
from lavax.backends.vulkan.emit.scan.lines import FOLDS
from lavax.backends.vulkan.emit.scatter.lines import emit_scatter
from lavax.backends.vulkan.emit.scatter.lists import emit_join_lists, emit_link_rows
from lavax.backends.vulkan.emit.scatter.places_at_once import emit_join_places
from lavax.backends.vulkan.emit.scatter.rows import emit_join_rows
from lavax.backends.vulkan.emit.scatter.segments import emit_fold_runs, emit_join_runs
from lavax.backends.vulkan.emit.sort.merge_runs import emit_merge_runs
from lavax.backends.vulkan.emit.sort.radix_pass import emit_count_digits, emit_move_by_digit
from lavax.backends.vulkan.emit.sort.search_sorted import emit_search_sorted
from lavax.backends.vulkan.emit.sort.select_greatest import emit_select_greatest
from lavax.backends.vulkan.emit.sort.sort_runs import emit_sort_runs
from lavax.backends.vulkan.emit.sort.unsort import emit_unsort
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.ops.attention import PROJECTED
from lavax.ir.ops.indexing import SCATTERS
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class RoutineEmitter:
    """The emitter of an operation, and the schedules among which it has a choice, as in candidates.py."""

    emit: Callable[..., Launch]
    candidates: Callable[[Kernel, DeviceProfile], Sequence[Hashable]] = lambda kernel, profile: ()


def _unless_small(
    small: Callable[[Kernel, DeviceProfile], Launch], large: Callable[[Kernel, DeviceProfile, bool], Launch]
) -> RoutineEmitter:
    """The emitter of small matrices, or of larger ones and other devices."""

    def emit(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
        return small(kernel, profile) if is_small(kernel, profile, lifted) else large(kernel, profile, lifted)

    return RoutineEmitter(emit)


ROUTINES: dict[str, RoutineEmitter] = {
    **dict.fromkeys((*ATTENTION, *PROJECTED), RoutineEmitter(emit_attention, attention_candidates)),
    **dict.fromkeys((*FOLDS, "chunk_totals", "cumulative_chunks"), RoutineEmitter(emit_cumulative)),
    **dict.fromkeys(SCATTERS, RoutineEmitter(emit_scatter)),
    "bidiagonal": RoutineEmitter(emit_bidiagonal),
    "bidiagonal_svd": RoutineEmitter(emit_bidiagonal_svd),
    "cholesky": _unless_small(emit_small_cholesky, emit_cholesky),
    "count_digits": RoutineEmitter(emit_count_digits),
    "depthwise_conv": RoutineEmitter(emit_depthwise),
    "eigh": RoutineEmitter(emit_eigh),
    "fourier_across_from_half": RoutineEmitter(emit_across_from_half),
    "fourier_across_from_reals": RoutineEmitter(emit_across_from_reals),
    "fourier_across_to_half": RoutineEmitter(emit_across_to_half),
    "fourier_across_to_reals": RoutineEmitter(emit_across_to_reals),
    "fourier_cosines": RoutineEmitter(emit_spectrum),
    "fourier_from_cosines": RoutineEmitter(emit_join),
    "fourier_cut": RoutineEmitter(emit_cut),
    "fourier_filtered": RoutineEmitter(emit_filtered),
    "fourier_from_half": RoutineEmitter(emit_from_half),
    "fourier_from_paired": RoutineEmitter(emit_from_paired),
    "fourier_from_reals": RoutineEmitter(emit_from_reals),
    "fourier_join": RoutineEmitter(emit_join),
    "fourier_padded": RoutineEmitter(emit_padded),
    "fourier_paired": RoutineEmitter(emit_paired),
    "fourier_spectrum": RoutineEmitter(emit_spectrum),
    "fourier_step": RoutineEmitter(emit_fourier_step),
    "fourier_to_half": RoutineEmitter(emit_to_half),
    "fourier_to_paired": RoutineEmitter(emit_to_paired),
    "fourier_to_reals": RoutineEmitter(emit_to_reals),
    "fold_runs": RoutineEmitter(emit_fold_runs),
    "householder": RoutineEmitter(emit_householder),
    "jacobi": RoutineEmitter(emit_jacobi),
    "join_lists": RoutineEmitter(emit_join_lists),
    "join_places": RoutineEmitter(emit_join_places),
    "join_rows": RoutineEmitter(emit_join_rows),
    "join_runs": RoutineEmitter(emit_join_runs),
    "link_rows": RoutineEmitter(emit_link_rows),
    "lu": _unless_small(emit_small_lu, emit_lu),
    "merge_runs": RoutineEmitter(emit_merge_runs),
    "move_by_digit": RoutineEmitter(emit_move_by_digit),
    "qr": RoutineEmitter(emit_qr),
    "search_sorted": RoutineEmitter(emit_search_sorted),
    "select_greatest": RoutineEmitter(emit_select_greatest),
    "sort_runs": RoutineEmitter(emit_sort_runs),
    "svd": RoutineEmitter(emit_svd),
    "triangular_solve": _unless_small(emit_small_triangular_solve, emit_triangular_solve),
    "tridiagonal": RoutineEmitter(emit_tridiagonal),
    "tridiagonal_eigh": RoutineEmitter(emit_tridiagonal_eigh),
    "unsort": RoutineEmitter(emit_unsort),
    "whole_spectrum": RoutineEmitter(emit_whole),
}

# Whose shaders on GPUs get sizes when they run, so that the parts of a large matrix share them.
_GET_SIZES = frozenset(("cholesky", "householder", "triangular_solve"))


def gets_sizes(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether the shader may get more numbers than push constants hold."""
    return profile.kind == "gpu" and kernel.kind == "routine" and kernel.graph.outputs[0].op in _GET_SIZES


def routine_candidates(kernel: Kernel, profile: DeviceProfile) -> Sequence[Hashable]:
    """The schedules worth timing, first the one that is chosen without timing; () if there is no choice."""
    return _routine_of(kernel).candidates(kernel, profile)


def emit_routine(kernel: Kernel, profile: DeviceProfile, lifted: bool, *schedule: Hashable) -> Launch:
    """The shader of the kernel's one node, or of several that one emitter computes together."""
    return _routine_of(kernel).emit(kernel, profile, lifted, *schedule)


def _routine_of(kernel: Kernel) -> RoutineEmitter:
    return ROUTINES[kernel.graph.outputs[0].op]
