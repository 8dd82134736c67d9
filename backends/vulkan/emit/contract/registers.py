"""Contractions by register tiles: each invocation computes a tile by itself, its columns in vectors of four."""

from __future__ import annotations

from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.span import both
from lavax.backends.vulkan.emit.contract.tiles import RegisterTile
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch, grid, local_invocations, open_invocations
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.passes.kernels.index import Index, add, constant, linear, variable


class RegisterTileEmitter:
    """The state of writing one contraction by register tiles."""

    def __init__(self, contraction: Contraction, tile: RegisterTile) -> None:
        self.contraction, self.tile = contraction, tile
        self.width = VECTOR if tile.columns % VECTOR == 0 else 1
        self.local = local_invocations(contraction.profile)
        self.count = tile.invocations(contraction.sizes)
        open_invocations(contraction.body, self.count, self.local, "i")
        self.rows, self.columns = contraction.spans(variable("i", self.count), tile.rows, tile.columns)

    def emit(self) -> Launch:
        body = self.contraction.body
        self._declare_sums()
        self._sum_loop(VECTOR if self.contraction.sizes.k % VECTOR == 0 else 1)
        self._write_tile()
        text = ShaderText(body.uses, body.scopes[0].lines, (self.local, 1))
        return Launch(assemble(text), tuple(body.parameters.words), grid(-(-self.count // self.local)), text=text)

    def _vectors(self) -> range:
        return range(self.tile.columns // self.width)

    def _declare_sums(self) -> None:
        kind = type_name(self.contraction.dot.dtype, self.width)
        for row in range(self.tile.rows):
            names = ", ".join(f"s{row}_{vector} = {kind}(0)" for vector in self._vectors())
            self.contraction.body.line(f"{kind} {names};")

    def _sum_loop(self, unrolled: int) -> None:
        body, dtype = self.contraction.body, self.contraction.dot.dtype
        steps = self.contraction.sizes.k // unrolled
        bound = body.parameters.integer(steps)
        with body.block(f"for (int k = 0; k < {bound}; ++k)", frozenset(("k",))):
            start = linear([(variable("k", steps), unrolled)])
            left = [self._left(self.rows.at(constant(row)), start, unrolled) for row in range(self.tile.rows)]
            for step in range(unrolled):
                for vector in self._vectors():
                    column = self.columns.at(constant(vector * self.width), self.width)
                    right = widened(self.contraction.operand(1, column, add(start, step)), self.width, dtype)
                    for row in range(self.tile.rows):
                        body.line(f"s{row}_{vector} += {left[row][step]} * {right};")

    def _left(self, row: Index, start: Index, unrolled: int) -> list[str]:
        """The left operand's elements of a row for `unrolled` steps of the sum, in one load if they are neighbours."""
        if unrolled == 1:
            return [self.contraction.operand(0, row, start).text]
        value = self.contraction.operand(0, row, linear([(start, 1), (LANE, 1)]))
        return [f"{value.text}.{c}" for c in COMPONENTS] if value.width == VECTOR else [value.text] * unrolled

    def _write_tile(self) -> None:
        for row in range(self.tile.rows):
            for vector in self._vectors():
                self._write(constant(row), constant(vector * self.width), GlslValue(f"s{row}_{vector}", self.width))

    def _write(self, row: Index, column: Index, value: GlslValue) -> None:
        body = self.contraction.body
        guards = both(self.rows.guards(body, row), self.columns.guards(body, column, self.width))
        self.contraction.write(self.rows.at(row), self.columns.at(column, self.width), value, guards)


def emit_registers(contraction: Contraction, tile: RegisterTile) -> Launch:
    """The shader of a contraction by register tiles."""
    return RegisterTileEmitter(contraction, tile).emit()
