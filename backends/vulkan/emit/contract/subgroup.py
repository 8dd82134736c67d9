"""Contractions with few rows or columns: the lanes of a subgroup share the sums of a small tile of the result."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.span import Span, both
from lavax.backends.vulkan.emit.contract.tiles import SubgroupTile
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.passes.kernels.index import Index, constant, linear, variable


def emit_subgroup(contraction: Contraction, tile: SubgroupTile) -> Launch:
    """The shader of a contraction by subgroup tiles; every lane ends with all sums, and the first one writes them."""
    body = contraction.body
    rows, columns = contraction.open_tile(tile)
    body.line("int lane_of_sum = int(gl_LocalInvocationID.x);")
    _add_up(contraction, tile, rows, columns)
    _share(contraction, tile)
    with body.block("if (lane_of_sum == 0)"):
        for row, column in _elements(tile):
            m, n = constant(row), constant(column)
            guards = both(rows.guards(body, m), columns.guards(body, n))
            contraction.write(rows.at(m), columns.at(n), GlslValue(f"s{row}_{column}", 1), guards)
    lines, lanes = body.scopes[0].lines, tile.lanes
    text = ShaderText(body.uses, lines, (lanes, 1), subgroup_size=lanes, shuffles=True)
    return Launch(assemble(text), tuple(body.parameters.words), contraction.groups(tile), text=text)


def _elements(tile: SubgroupTile) -> list[tuple[int, int]]:
    return [(row, column) for row in range(tile.rows) for column in range(tile.columns)]


def _add_up(contraction: Contraction, tile: SubgroupTile, rows: Span, columns: Span) -> None:
    """Each lane's part of the sums."""
    body, dtype = contraction.body, contraction.dot.dtype
    width = VECTOR if contraction.sizes.k % VECTOR == 0 else 1
    kind = type_name(dtype, width)
    body.line(f"{kind} {', '.join(f'p{row}_{column} = {kind}(0)' for row, column in _elements(tile))};")
    steps = contraction.sizes.k // width
    step = variable("k", steps)
    summed: Index = linear([(step, VECTOR), (LANE, 1)]) if width == VECTOR else step
    head = f"for (int k = lane_of_sum; k < {body.parameters.integer(steps)}; k += {tile.lanes})"
    with body.block(head, frozenset(("k",))):
        left = [contraction.operand(0, rows.at(constant(row)), summed) for row in range(tile.rows)]
        right = [contraction.operand(1, columns.at(constant(column)), summed) for column in range(tile.columns)]
        for row, column in _elements(tile):
            factors = (widened(value, width, dtype) for value in (left[row], right[column]))
            body.line(f"p{row}_{column} += {' * '.join(factors)};")


def _share(contraction: Contraction, tile: SubgroupTile) -> None:
    """Adds up the lanes' parts, always in the same order."""
    body, kind = contraction.body, type_name(contraction.dot.dtype, 1)
    width = VECTOR if contraction.sizes.k % VECTOR == 0 else 1
    for row, column in _elements(tile):
        part, name = f"p{row}_{column}", f"s{row}_{column}"
        x, y, z, w = (f"{part}.{component}" for component in COMPONENTS)
        body.line(f"{kind} {name} = {f'({x} + {y}) + ({z} + {w})' if width == VECTOR else part};")
    distance = 1
    while distance < tile.lanes:
        for row, column in _elements(tile):
            body.line(f"s{row}_{column} += subgroupShuffleXor(s{row}_{column}, {distance}u);")
        distance *= 2
