"""The shader that strided products share whose arrays are accessed element by element.

Lanes stand side by side along columns: each has every eighth column of the tile, of all its rows, so that tiles of few
columns waste none. The lanes share the reads of the left operand: each reads every eighth row, and passes it to the
others. Reads are texels of a word, which are gathers there.
"""

from __future__ import annotations

from collections.abc import Iterator

from lavax.backends.vulkan.emit.strided.element_tile import ElementTile
from lavax.backends.vulkan.emit.strided.product_shader import ProductShader, guarded, indented
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32


@dataclass(frozen=True)
class ElementShader(ProductShader[ElementTile]):
    """The shader of a group of products in element tiles, while it is written."""

    def _starts_of_operands(self) -> Iterator[str]:
        """Where each of a lane's rows and columns starts."""
        sides = (("row", self.tile.shares), ("column", self.tile.own_columns))
        for name, (start, count) in zip(("left", "right"), sides, strict=True):
            base = self._start_of_operand(name)
            for number in range(count):
                offset = f"{start} + member + {number * self.tile.lanes}"
                yield f"int {name}_at{number} = {base} + min({offset}, {name}_end - 1) * {name}_free;"

    def _sum_loop(self) -> Iterator[str]:
        for row in range(self.tile.rows):
            yield f"float {', '.join(f's{row}_{column} = 0.0' for column in range(self.tile.own_columns))};"
        yield f"for (int k = 0; k < sum_end; k += {VECTOR}) {{"
        yield from indented(self._iteration())
        yield "}"

    def _iteration(self) -> Iterator[str]:
        """Four steps of the sum."""
        for side, count in enumerate((self.tile.shares, self.tile.own_columns)):
            for number in range(count):
                yield f"vec4 {'lr'[side]}{number} = {self._applied(side, self._steps(side, number))};"
                inside = ", ".join(f"k + {step} < sum_end" for step in range(VECTOR))
                yield f"{'lr'[side]}{number} = mix(vec4(0), {'lr'[side]}{number}, bvec4({inside}));"
        for row in range(self.tile.rows):
            share, lane = divmod(row, self.tile.lanes)
            for step in COMPONENTS:
                yield f"float f{row}_{step} = subgroupShuffle(l{share}.{step}, {lane}u);"
                yield from (
                    f"s{row}_{column} += f{row}_{step} * r{column}.{step};" for column in range(self.tile.own_columns)
                )

    def _steps(self, side: int, number: int) -> str:
        """An element of an operand at each step of an iteration; beyond the sum's end, the last one."""
        name = ("left", "right")[side]
        places = (f"{name}_at{number} + min(k + {step}, sum_end - 1) * {name}_sum" for step in range(VECTOR))
        return f"vec4({', '.join(self.body.memory.loaded(float32, f'p{side}', place) for place in places)})"

    def _stored(self, column: str, result: str) -> tuple[str, str]:
        """As of all shaders; through a descriptor, if there is one."""
        condition, statement = super()._stored(column, result)
        if not self.product.by_descriptor:
            return condition, statement
        count = len(self.product.others)
        place = self._position(count, f"{column} * column{count}")
        words = self.body.uses.descriptor("singles", 2 + count)
        return condition, f"{words}.data[{VECTOR} * w{2 + count} + {place}] = floatBitsToUint({result});"

    # -- the result ---------------------------------------------------------------------------------------------------

    def _write_tile(self) -> Iterator[str]:
        """Two loops, over fours of rows and over these rows, so that the shader has each function once."""
        columns = range(self.tile.own_columns)
        yield f"for (int line = 0; {VECTOR} * line < rows; ++line) {{"
        for row in range(VECTOR):
            for column in columns:
                name = f"sum{row}_{column}"
                yield f"    float {name} = s{row}_{column};"
                for line in range(1, self.tile.rows // VECTOR):
                    yield f"    {name} = mix({name}, s{VECTOR * line + row}_{column}, line == {line});"
        yield "    for (int part = 0; part < parts; ++part) {"
        for column in columns:
            yield f"        float sum{column} = sum0_{column};"
            for row in range(1, VECTOR):
                yield f"        sum{column} = mix(sum{column}, sum{row}_{column}, part == {row});"
        yield from indented(indented(self._write()))
        yield "    }"
        yield "}"

    def _write(self) -> Iterator[str]:
        """Writes the results of a row, of which functions take four at once."""
        yield f"int at = {VECTOR} * line + part, at_row = row + min(at, rows - 1);"
        for first in range(0, self.tile.own_columns, VECTOR):
            columns = [min(first + number, self.tile.own_columns - 1) for number in range(VECTOR)]
            places = [f"(column + member + {column * self.tile.lanes})" for column in columns]
            for number in range(len(self.product.others)):
                yield f"vec4 x{number}_{first} = {self._other(2 + number, number, places)};"
            others = (f"x{number}_{first}" for number in range(len(self.product.others)))
            sums = f"vec4({', '.join(f'sum{column}' for column in columns)})"
            yield f"vec4 result{first} = {self._applied(2, ', '.join((sums, *others)))};"
            own = self.tile.own_columns - first
            for place, component in list(zip(places, COMPONENTS, strict=True))[:own]:
                yield from guarded(*self._stored(place, f"result{first}.{component}"))
