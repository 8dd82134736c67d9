"""Householder's reflections of a panel of few columns, whose rows a workgroup of a GPU keeps in registers.

An invocation has whole rows, each as many columns as the panel is wide. What is left of the panel starts at column 0:
as a column is reflected, those behind it move one place to the left, so that one loop's code serves every column. Rows
whose triangle is written are zero, and so take no part in what follows. Three meetings a column: for its largest
element, for its square and its products with all columns behind it, and for what these are reflected with. Sizes are
words that the shader gets, so that panels of other lengths share it. Golub and Van Loan, 5.1 and 5.2.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.expressions import literal
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType, TensorType
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class PanelLimits:
    """What one workgroup keeps. docs/performance/linear_algebra_on_gpus.md, "Reflections"."""

    invocations: int = 256  # at most: with twice as many, an invocation would have half of the registers
    words: int = 128  # of an invocation's rows: half of the registers that it may have
    widths: tuple[int, ...] = (32, 16, 8, 4)  # in columns


PANEL = PanelLimits()

_DECLARATIONS = """
shared real highs[GROUPS];
shared real sums[NUMBERS];
shared real pivot[WIDTH];
shared real weights[WIDTH];
"""
# `weights[0]` is what the column's rows are divided by, which is zero if they stay as they are.
_REFLECT = """
for (int e = lane; e < columns * columns; e += LOCAL)
    if (e % columns < e / columns) x.data[r_begin + e] = 0.0;
for (int k = 0; k < columns; ++k) {
    real high = 0.0;
    UNROLL for (int j = 0; j < HEIGHT; ++j) high = max(high, abs(own[j * WIDTH]));
    UNROLL for (uint width = LANESu / 2u; width > 0u; width /= 2u) high = max(high, subgroupShuffleXor(high, width));
    if (gl_SubgroupInvocationID == 0u) highs[gl_SubgroupID] = high;
    if (lane == k) {
        UNROLL for (int c = 0; c < WIDTH; ++c) {
            pivot[c] = own[c];
            own[c] = 0.0;
        }
    }
    barrier();
    real highest = highs[0];
    for (int g = 1; g < GROUPS; ++g) highest = max(highest, highs[g]);
    real divisor = highest > 0.0 ? highest : 1.0;
    real part[WIDTH];
    UNROLL for (int c = 0; c < WIDTH; ++c) part[c] = 0.0;
    UNROLL for (int j = 0; j < HEIGHT; ++j) {
        real scaled = own[j * WIDTH] / divisor;
        part[0] += scaled * scaled;
        UNROLL for (int c = 1; c < WIDTH; ++c) part[c] += scaled * own[j * WIDTH + c];
    }
    FOLD
    barrier();
    if (lane < WIDTH) {
        real below = 0.0, product = 0.0;
        for (int g = 0; g < GROUPS; ++g) {
            below += sums[g * WIDTH];
            product += sums[g * WIDTH + lane];
        }
        real alpha = pivot[0], before = pivot[lane], corner = alpha, away = 0.0, weight = 0.0;
        if (!(below <= LEAST)) {
            real first = alpha / highest;
            corner = highest * sqrt(first * first + below) * (alpha < 0.0 ? 1.0 : -1.0);
            away = alpha - corner;
            weight = (corner - alpha) / corner * (before + product * (highest / away));
        }
        weights[lane] = lane == 0 ? away : weight;
        if (lane < columns - k)
            x.data[r_begin + k * columns + k + lane] = lane == 0 ? corner : before - weight;
    }
    barrier();
    real away = weights[0];
    UNROLL for (int j = 0; j < HEIGHT; ++j) {
        int r = j * LOCAL + lane;
        real element = away == 0.0 ? 0.0 : own[j * WIDTH] / away;
        UNROLL for (int c = 1; c < WIDTH; ++c) own[j * WIDTH + c - 1] = own[j * WIDTH + c] - weights[c] * element;
        own[j * WIDTH + WIDTH - 1] = 0.0;
        if (r == k) element = away == 0.0 ? 0.0 : 1.0;
        if (r < rows) x.data[r * columns + k] = r < k ? 0.0 : element;
    }
}
"""


def panel_width(rows: int, dtype: DType, profile: DeviceProfile) -> int:
    """The most columns of a panel of so many rows; 0 if no workgroup keeps them."""
    if profile.kind != "gpu" or not (profile.knows_subgroup_size and profile.subgroup_shuffle):
        return 0
    most = min(PANEL.invocations, profile.max_workgroup_invocations)
    of_column = -(-rows // most) * dtype.bits // 32
    widths = [width for width in PANEL.widths if width <= most and width * of_column <= PANEL.words]
    return widths[0] if widths else 0


def suits_panel(matrix: TensorType, profile: DeviceProfile) -> bool:
    """Whether the matrix is such a panel."""
    rows, columns = matrix.shape[-2:]
    return columns <= panel_width(rows, matrix.dtype, profile)


def _fold(width: int, lanes: int) -> str:
    """Adds up all lanes' numbers for each column, by halves: a lane keeps half of its columns, and adds to them those
    of another. Then lanes write what they have kept."""
    shared, lines = min(width, lanes), []
    count, distance = width, shared // 2
    while distance:
        count //= 2
        for n in range(count):
            is_upper, low, high = f"(gl_SubgroupInvocationID & {distance}u) != 0u", f"part[{n}]", f"part[{n + count}]"
            away = f"subgroupShuffleXor({is_upper} ? {low} : {high}, {distance}u)"
            lines.append(f"{low} = ({is_upper} ? {high} : {low}) + {away};")
        distance //= 2
    distance = shared
    while distance < lanes:
        lines.append(f"part[0] += subgroupShuffleXor(part[0], {distance}u);")
        distance *= 2
    first = f"sums[gl_SubgroupID * {width}u + gl_SubgroupInvocationID * {count}u"
    stores = " ".join(f"{first} + {n}u] = part[{n}];" for n in range(count))
    lines.append(f"if (gl_SubgroupInvocationID < {shared}u) {{ {stores} }}")
    return "\n    ".join(lines)


def _local(rows: int, width: int, profile: DeviceProfile) -> int:
    """Invocations: whole subgroups, a power of two, at least one for each column and if possible for each row."""
    most = min(PANEL.invocations, profile.max_workgroup_invocations)
    return min(most, max(profile.subgroup_size, width, 1 << (rows - 1).bit_length()))


def _load(routine: MatrixRoutine, width: int, height: int) -> None:
    """Declares and fills an invocation's rows; rows beyond the panel are zero, columns beyond it any numbers."""
    body, unroll, zero = routine.body, routine.body.uses.unroll, literal(0.0, routine.dtype)
    body.line(f"real own[{height * width}];")
    with body.block(f"{unroll}for (int j = 0; j < {height}; ++j)"):
        row = routine.routine.position("r", "min(j * LOCAL + lane, rows - 1)", routine.rows)
        body.line("bool is_row = j * LOCAL + lane < rows;")
        with body.block(f"{unroll}for (int each = 0; each < {width}; ++each)"):
            column = routine.routine.position("c", "min(each, columns - 1)", routine.columns)
            element = routine.at(row, column)
            body.line(f"own[j * {width} + each] = is_row ? {element} : {zero};")


def emit_panel(kernel: Kernel, profile: DeviceProfile, least_square: float) -> Launch:
    """The shader of householder for a panel. Squares of at most `least_square`, of elements divided by the largest one,
    are zero."""
    (node,) = kernel.graph.outputs
    rows, columns = node.operands[0].shape[-2:]
    width = next(width for width in reversed(PANEL.widths) if width >= columns)
    local, lanes = _local(rows, width, profile), profile.subgroup_size
    height = -(-rows // local)
    routine = MatrixRoutine(kernel, profile, lifted=True, invocations=local)
    routine.lanes = lanes
    routine.integer("r_begin", rows * columns)
    _load(routine, width, height)
    parts = {
        "FOLD": _fold(width, lanes),
        "UNROLL ": routine.body.uses.unroll,
        "LEAST": literal(least_square, routine.dtype),
        "NUMBERS": str(local // lanes * width),
        "HEIGHT": str(height),
        "WIDTH": str(width),
        "GROUPS": str(local // lanes),
        "LANES": str(lanes),
    }
    text, declarations = _REFLECT, _DECLARATIONS
    for name, part in parts.items():
        text, declarations = text.replace(name, part), declarations.replace(name, part)
    routine.declare(declarations)
    routine.write(text)
    return routine.close()
