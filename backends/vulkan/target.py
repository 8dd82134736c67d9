"""The target of the passes for a device: the emitter answers the questions of passes/target."""

from __future__ import annotations

from lavax.backends.vulkan.emit.abreast import abreast_key
from lavax.backends.vulkan.emit.attention.choose import block_of_parts, suits_rows
from lavax.backends.vulkan.emit.attention.cooperative_shape import cooperative_shapes
from lavax.backends.vulkan.emit.attention.few_queries_shape import leaves_heads, suits_one_kernel
from lavax.backends.vulkan.emit.attention.scores import (
    SCORE_COSTS,
    has_few_keys,
    pays_in_parts,
    stores_scores,
    stores_short_scores,
    suits_products,
)
from lavax.backends.vulkan.emit.contract.choose import (
    choose_parts,
    leaves_idle,
    line_of,
    parts_for_maps,
    precision_of_bytes,
    shares_shader,
    stores_rounded,
)
from lavax.backends.vulkan.emit.contract.parts_for_rows import parts_for_rows
from lavax.backends.vulkan.emit.contract.windows import windows_as_rows
from lavax.backends.vulkan.emit.fourier.beside import are_kept_beside
from lavax.backends.vulkan.emit.fourier.choose import (
    few_steps_of,
    folded_order_of,
    folds,
    largest_prime,
    mirrored_steps_of,
    odd_steps_of,
    paired_steps_of,
    steps_of,
)
from lavax.backends.vulkan.emit.fourier.real_steps import cosine_steps_of, joined_steps_of
from lavax.backends.vulkan.emit.fourier.steps.convolutions import convolved_steps_of
from lavax.backends.vulkan.emit.fourier.steps.reals_across import across_steps_of
from lavax.backends.vulkan.emit.gates.choose import are_gates
from lavax.backends.vulkan.emit.linalg.jacobi import corrects_rotations, most_rotated
from lavax.backends.vulkan.emit.linalg.lu_in_registers import most_columns
from lavax.backends.vulkan.emit.linalg.matrices import is_one_subgroup
from lavax.backends.vulkan.emit.linalg.reflected_panel import panel_width
from lavax.backends.vulkan.emit.linalg.triangular_solve_ahead import most_solved_ahead
from lavax.backends.vulkan.emit.linalg.triangular_solve_in_shared_memory import most_solved
from lavax.backends.vulkan.emit.lines_in_turn import lines_at_a_time
from lavax.backends.vulkan.emit.loop.registers.choose import in_registers
from lavax.backends.vulkan.emit.loop.slices_choice import slices_of
from lavax.backends.vulkan.emit.loop.work import has_large_kernel
from lavax.backends.vulkan.emit.loop.workgroup import WORKGROUP_LOOPS, most_work
from lavax.backends.vulkan.emit.reduce.choose import long_column, longest_row, turned_values
from lavax.backends.vulkan.emit.same_shader import same_shader_key
from lavax.backends.vulkan.emit.scan.choose import chunk_of
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir import Node
from lavax.passes.prepare.small_products import is_written_out
from lavax.passes.target.kernel_limits import (
    MATRICES,
    MAX_LOOP_ITERATIONS,
    SELECTION,
    SELECTION_BY_WORKGROUP,
)
from lavax.passes.target.target import (
    ARRAYS_TOGETHER,
    Attention,
    Dispatches,
    FusionLimits,
    Loops,
    Matrices,
    Products,
    Rows,
    Scatters,
    Sorting,
    Target,
    Transforms,
)

RECORDED_TURNS = 16  # of a loop, one after the other: a command buffer, and a dispatch of counters, for so many
# In a workgroup's loop, where what a turn writes is stored and read by address, lane by lane.
_OPERATIONS_PER_BYTE = 1.0
JOINED_TURNS = (4, 3, 2)  # on CPU drivers: eight gain no more, and are compiled for a second
_ARRAYS_IN_TABLES = 1 << 10  # of kernels in one dispatch whose slots stand in a table

# A function and some operations: SiLU's derivative costs 23, GELU's by erf 55 (docs/performance/training_bfloat16.md).
_OPERAND_COST = 32

# Of up to 128 numbers that an invocation of a CPU driver reads (docs/performance/transforms_first_calls.md).
_TRANSFORMED_COST = 48


def target_of(profile: DeviceProfile, memory_bytes: int, largest_allocation: int) -> Target:
    """The target for a device with that profile and memory, which allocates at most so many bytes at once."""
    for_scores = min(memory_bytes, largest_allocation * SCORE_COSTS.part_of_memory)  # they are one array
    return Target(
        products=_products(profile),
        attention=_attention(profile, for_scores),
        rows=_rows(profile),
        sorting=_sorting(profile),
        matrices=_matrices(profile),
        scatters=_scatters(profile),
        transforms=Transforms(
            steps=lambda points, behind, part: steps_of(points, behind, part, profile),
            mirrored_steps=lambda points, inverse, part: mirrored_steps_of(points, inverse, part, profile),
            cosine_steps=lambda points, part: cosine_steps_of(points, part, profile),
            joined_steps=lambda points, part: joined_steps_of(points, part, profile),
            few_steps=lambda points, numbers: few_steps_of(points, numbers, profile),
            across_steps=lambda points, behind, numbers, inverse, cosines: across_steps_of(
                points, behind, numbers, inverse, cosines, profile
            ),
            beside=lambda points, neighbours, lines: are_kept_beside(points, neighbours, lines, profile),
            paired_steps=lambda points, behind: paired_steps_of(points, behind, profile),
            convolved_steps=lambda least, lines: convolved_steps_of(least, lines, profile),
            odd_steps=lambda points: odd_steps_of(points, profile),
            cosines=profile.kind == "cpu",
            folds=lambda points, rest, behind, inverse: folds(points, rest, behind, inverse, profile),
            folded_order=lambda steps, inverse: folded_order_of(steps, inverse, profile),
            largest_prime=largest_prime(profile),
        ),
        fusion=_fusion(profile),
        dispatches=_dispatches(profile),
        loops=_loops(profile),
        narrow_functions=profile.kind == "gpu",
        vector=VECTOR if profile.kind == "cpu" else 1,
        largest_allocation=largest_allocation,
    )


def _sorting(profile: DeviceProfile) -> Sorting:
    if profile.kind == "gpu":
        most, longest = SELECTION_BY_WORKGROUP.most, SELECTION_BY_WORKGROUP.longest_row
        return Sorting(profile.int64, most_selected=most, longest_selected=longest)
    if not is_one_subgroup(profile, profile.subgroup_size):
        return Sorting(profile.int64)
    return Sorting(profile.int64, most_selected=SELECTION.most, longest_selected=SELECTION.longest_row)


def _fusion(profile: DeviceProfile) -> FusionLimits:
    return FusionLimits(
        operations_per_byte=profile.operations_per_byte,
        epilogue_operand_cost=_OPERAND_COST if profile.kind == "gpu" else None,
        transformed_cost=_TRANSFORMED_COST if profile.kind == "cpu" else None,
        stores_places=profile.kind == "cpu",
    )


def _matrices(profile: DeviceProfile) -> Matrices:
    """Fewer lanes than a matrix's least number of invocations would make more loop iterations than drivers allow."""
    lanes = profile.subgroup_size
    one_subgroup = is_one_subgroup(profile, lanes) and lanes >= MATRICES.least_invocations
    cholesky = MATRICES.cholesky_by_columns if one_subgroup else MATRICES.cholesky
    if profile.kind == "gpu":
        return Matrices(
            cholesky=cholesky,
            solved=lambda right: most_solved_ahead(right, profile) or most_solved(right.dtype, profile),
            eliminated=lambda rows, dtype: most_columns(rows, dtype, profile),
            cuts_by_kernels=True,
            rotated=lambda dtype: most_rotated(dtype, profile),
            orthonormal_rotations=corrects_rotations(profile),
            reflected_in_registers=lambda rows, dtype: panel_width(rows, dtype, profile),
        )
    return Matrices(tridiagonal=one_subgroup, bidiagonal=one_subgroup, cholesky=cholesky)


def _rows(profile: DeviceProfile) -> Rows:
    return Rows(
        longest=longest_row(profile),
        long_column=long_column(profile),
        turned=turned_values(profile),
        chunk=lambda cumulative: chunk_of(cumulative, profile),
    )


def _products(profile: DeviceProfile) -> Products:
    return Products(
        parts=lambda dot: choose_parts(dot, profile),
        of_bytes=lambda dot: precision_of_bytes(dot, profile),
        parts_for_maps=lambda dot, together: parts_for_maps(dot, together, profile),
        parts_for_rows=lambda dot, beside: parts_for_rows(dot, beside, profile),
        stages_operands=profile.kind == "gpu",
        stores_rounded=lambda dot, side: stores_rounded(dot, side, profile),
        line=lambda dot: line_of(dot, profile),
        shares_shader=lambda dot: shares_shader(dot, profile),
        windows_as_rows=lambda rows, columns: windows_as_rows(rows, columns, profile),
        step_of_windows=VECTOR if profile.kind == "cpu" else 1,
        leaves_idle=lambda dot: leaves_idle(dot, profile),
        vectors_as_sums=profile.kind == "gpu",
        writes_out=is_written_out if profile.kind == "cpu" else lambda dot: False,
    )


def _scatters(profile: DeviceProfile) -> Scatters:
    """Atomic operations take less time than the passes of a sort: on a GPU those of integers, in any order.

    A processor is busy with few workgroups; more copies would only have to be cleared and added up. Chosen by
    `python -m benchmarks selection`.
    """
    if profile.kind == "gpu":
        longs = ("i64",) if profile.int64 and profile.adds_longs else ()
        return Scatters(joined_in_place=frozenset(("i32", "u32", *longs)), at_once=True)
    floats = ("f32",) if profile.adds_floats and profile.knows_subgroup_size else ()
    words = ("f32", "i32", "u32") if profile.subgroup_shuffle and profile.knows_subgroup_size else ()
    return Scatters(
        lines=1 << 6,
        elements_per_update=4,
        longest_share=MAX_LOOP_ITERATIONS,
        joined_in_place=frozenset(("i32", "u32", *floats)),
        joined_by_rows=frozenset(words),
        lanes_of_rows=profile.subgroup_size,
        one_by_one=1 << 8,
    )


def _dispatches(profile: DeviceProfile) -> Dispatches:
    in_tables = ("routine",) if profile.kind == "gpu" else ("contract", "row", "routine")
    return Dispatches(
        abreast=lambda kernel: abreast_key(kernel, profile),
        same_shader=lambda kernel: same_shader_key(kernel, profile),
        arrays=lambda kernel: _ARRAYS_IN_TABLES if kernel.kind in in_tables else ARRAYS_TOGETHER,
        in_turn=lambda kernels: lines_at_a_time(kernels, profile),
        overlap=profile.kind == "gpu",
    )


def _loops(profile: DeviceProfile) -> Loops:
    """On a CPU driver a turn whose kernels each read and write less is a workgroup's (emit/loop/workgroup.py)."""
    on_gpu = profile.kind == "gpu"
    return Loops(
        turns=RECORDED_TURNS,
        carried_bytes=0 if on_gpu else WORKGROUP_LOOPS.work // 2,
        has_large_kernel=lambda body, scheduled: has_large_kernel(
            body, scheduled, WORKGROUP_LOOPS.work, most_work
        ),
        joined_turns=() if on_gpu else JOINED_TURNS,
        small_bytes=0 if on_gpu else WORKGROUP_LOOPS.work,
        operations_per_small_byte=0.0 if on_gpu else _OPERATIONS_PER_BYTE,
        write_copies=on_gpu,
        slices=lambda scan: slices_of(scan, profile),
        are_gates=lambda dot: are_gates(dot, profile),
        side_by_side=on_gpu,
        in_registers=lambda loop, prepare: in_registers(loop, prepare, profile),
    )


def _attention(profile: DeviceProfile, memory_bytes: int) -> Attention:
    def has_matrices(node: Node) -> bool:
        return bool(cooperative_shapes(profile, {node.op: node}))

    def stores(derivative: Node) -> bool:
        if has_matrices(derivative):
            return has_few_keys(derivative, profile.processors, memory_bytes)
        return stores_short_scores(derivative) if profile.kind == "cpu" else stores_scores(derivative, memory_bytes)

    def query_parts(gradient: Node) -> int | None:
        block = block_of_parts(gradient, profile)
        return block if block is not None and pays_in_parts(gradient, block, memory_bytes) else None

    return Attention(
        stores_scores=stores,
        by_products=lambda node: suits_products(node, profile, memory_bytes),
        kept_bytes=memory_bytes // SCORE_COSTS.part_of_memory,
        scores_by_rows=profile.kind == "cpu",
        query_parts=query_parts,
        rounds_results=has_matrices,
        by_rows=lambda node: suits_rows(node, profile),
        in_one_kernel=lambda node: suits_one_kernel(node, profile),
        leaves_heads=lambda node, rows: leaves_heads(node, rows, profile),
    )
