"""The shader that strided products share: broadcast tiles of arrays whose strides and functions are parameters.

The tile is that of contract/broadcast.py with four rows per lane, so that a lane's four vectors of either operand are
four by four elements along the free axis and the sum. Arrays differ in which of the two axes has neighbours in memory.
The shader transposes the four vectors in registers if that is the sum, so the code is the same for all arrays. It also
computes every function that one of the products has, and chooses a result: a driver takes less time for that than to
compile one more large tile.

Arrays are accessed in vectors if they and the extents allow it, else element by element, in texels of one word if they
are read through descriptors. If the sum is no multiple of four, the elements beyond its end are set to zero; beyond the
last row or column the last one is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.emit.strided.parameters import ROLES
from lavax.backends.vulkan.emit.strided.product_shader import OWN_ROW, ProductShader, guarded, indented
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32


@dataclass(frozen=True)
class VectorShader(ProductShader[BroadcastTile]):
    """The shader of a group of products in broadcast tiles."""

    # -- the sum ------------------------------------------------------------------------------------------------------

    def _starts_of_operands(self) -> Iterator[str]:
        """Where a lane's first vector starts, or each of its elements."""
        sides = (("row", 1, self.access.left), ("column", self.tile.vectors, self.access.right))
        for name, (start, vectors, in_vectors) in zip(ROLES, sides, strict=False):
            base = self._start_of_operand(name)
            if in_vectors:
                yield f"int {name}_at = ({base} + {start} * {name}_free) / {VECTOR} + member * {name}_lane;"
                continue
            for element in range(VECTOR * vectors):
                vector, component = divmod(element, VECTOR)
                offset = f"{VECTOR} * (member + {vector * self.tile.lanes}) + {component}"
                yield f"int {name}_at{element} = {base} + min({start} + {offset}, {name}_end - 1) * {name}_free;"

    def _sum_loop(self) -> Iterator[str]:
        """Carries the sums through the loop by component.

        If a loop carries a vector, a driver reads all of it for each use of a component, and compiles a fifth longer.
        """
        sums = [f"{row}_{vector}" for row in range(self.tile.rows) for vector in range(self.tile.vectors)]
        for name in sums:
            yield f"float {', '.join(f'c{name}{component} = 0.0' for component in COMPONENTS)};"
        vectors = [f"vec4 s{name} = vec4({', '.join(f'c{name}{c}' for c in COMPONENTS)});" for name in sums]
        yield f"for (int k = 0; k < sum_end; k += {VECTOR}) {{"
        yield from indented(vectors)
        yield from indented(self._iteration())
        yield from (f"    {' '.join(f'c{name}{c} = s{name}.{c};' for c in COMPONENTS)}" for name in sums)
        yield "}"
        yield from vectors

    def _iteration(self) -> Iterator[str]:
        """Four steps of the sum."""
        yield from self._operand(0, 0)
        for vector in range(self.tile.vectors):
            yield from self._operand(1, vector)
        for row in range(self.tile.rows):
            lane, component = divmod(row, VECTOR)
            for step in range(VECTOR):
                factor = f"f{row}_{step}"
                yield f"float {factor} = subgroupShuffle(l0_{step}.{COMPONENTS[component]}, {lane}u);"
                yield from (f"s{row}_{v} += {factor} * r{v}_{step};" for v in range(self.tile.vectors))

    def _operand(self, side: int, vector: int) -> Iterator[str]:
        """A lane's four vectors along the free axis, one per step of the sum."""
        name, in_vectors = f"{'lr'[side]}{vector}_", (self.access.left, self.access.right)[side]
        read, made = ([f"{name}{what}{number}" for number in range(VECTOR)] for what in ("read", "made"))
        for number in range(VECTOR):
            load = self._vector if in_vectors else self._elements
            yield f"vec4 {read[number]} = {load(side, vector, number)};"
        for number in range(VECTOR):
            yield f"vec4 {made[number]} = {self._applied(side, read[number])};"
        for number, component in enumerate(COMPONENTS):
            if in_vectors:
                turned = f"vec4({', '.join(f'{other}.{component}' for other in made)})"
                yield f"vec4 {name}{number} = mix({made[number]}, {turned}, {ROLES[side]}_along_sum);"
            else:
                yield f"vec4 {name}{number} = mix(vec4(0), {made[number]}, bvec4(k + {number} < sum_end));"

    def _vector(self, side: int, vector: int, number: int) -> str:
        name = ROLES[side]
        lane = f"{name}_at + {vector * self.tile.lanes} * {name}_lane" if vector else f"{name}_at"
        place = f"({lane} + (k >> 2) * {name}_turn + {number} * {name}_next)"
        return self.body.memory.four(float32, f"p{side}", place)

    def _elements(self, side: int, vector: int, step: int) -> str:
        name = ROLES[side]
        summed = f"min(k + {step}, sum_end - 1) * {name}_sum"
        places = (f"{name}_at{VECTOR * vector + component} + {summed}" for component in range(VECTOR))
        return f"vec4({', '.join(self.body.memory.loaded(float32, f'p{side}', place) for place in places)})"

    # -- the result ---------------------------------------------------------------------------------------------------

    def _write_tile(self) -> Iterator[str]:
        """Two loops, over lanes' rows and over these four rows' vectors, so that the shader has each function once.

        The sums of an iteration are chosen one after the other, because drivers compile an array with a variable index
        far more slowly.
        """
        tile = self.tile
        parts = [(row, vector) for row in range(VECTOR) for vector in range(tile.vectors)]
        yield f"for (int line = 0; {VECTOR} * line < rows; ++line) {{"
        for number, (row, vector) in enumerate(parts):
            yield f"    vec4 sum{number} = s{row}_{vector};"
            for lane in range(1, tile.rows // VECTOR):
                own = f"s{VECTOR * lane + row}_{vector}"
                yield f"    sum{number} = mix(sum{number}, {own}, bvec4(line == {lane}));"
        yield "    for (int part = 0; part < parts; ++part) {"
        yield "        vec4 sum = sum0;"
        for number in range(1, len(parts)):
            yield f"        sum = mix(sum, sum{number}, bvec4(part == {number}));"
        yield from indented(indented(self._write()))
        yield "    }"
        yield "}"

    def _write(self) -> Iterator[str]:
        """Writes the results of four columns of a row."""
        tile, count = self.tile, len(self.product.others)
        yield f"int at = {VECTOR} * line + part / {tile.vectors}, at_row = row + min(at, rows - 1);"
        yield f"int first = column + {VECTOR} * (member + {tile.lanes} * (part % {tile.vectors}));"
        columns = [f"(first + {number})" for number in range(VECTOR)]
        for number in range(count):
            yield f"vec4 x{number} = {self._other(2 + number, number, columns)};"
        arguments = ", ".join(("sum", *(f"x{number}" for number in range(count))))
        yield f"vec4 result = {self._applied(2, arguments)};"
        if self.access.rest:
            place = self._position(count, f"first / {VECTOR}")
            stored = self.body.memory.stored_four(float32, f"p{2 + count}", place, "result")
            yield from guarded(f"{OWN_ROW} && first >= own_column", stored)
            return
        for column, component in zip(columns, COMPONENTS, strict=True):
            yield from guarded(*self._stored(column, f"result.{component}"))
