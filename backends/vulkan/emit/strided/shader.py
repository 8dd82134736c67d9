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

from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import partial
from itertools import chain

from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.emit.strided.parameters import (
    ALONG_SUM,
    FUNCTION_BITS,
    ROLES,
    OperandAccess,
    one_per_row,
    parameters,
)
from lavax.backends.vulkan.emit.strided.product import Function, StridedProduct
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP
from lavax.backends.vulkan.glsl.shader import Parameters, ShaderText, word
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32


def descriptor_slots(product: StridedProduct, access: OperandAccess) -> int:
    """How many of the arrays go through descriptors: all, but the result, the last one, only if written in vectors."""
    return len(product.order) - (not access.rest) if product.by_descriptor else 0


@dataclass(frozen=True)
class SharedShader:
    """The shader of a group of products, while it is written."""

    product: StridedProduct  # any of them
    tile: BroadcastTile
    access: OperandAccess
    functions: tuple[tuple[Function, ...], ...]  # those of each role
    paired: bool
    nested: bool
    has_rest: bool = False  # whether numbers that push constants have no room for are in an array
    body: Body = field(default_factory=lambda: Body({}, Parameters(0, lifted=False)))

    def text(self) -> ShaderText:
        self.body.memory.paired = self.paired
        if self.product.by_descriptor:
            *read, written = range(len(self.product.order))
            self.body.memory.read_descriptors = {f"p{number}": number for number in read}
            self.body.memory.write_descriptors = {f"p{written}": written} if self.access.rest else {}
        uses, lanes, main, functions = self.body.uses, self.tile.lanes, list(self._main()), list(self._functions())
        for function in chain.from_iterable(self.functions):
            uses.include(function.uses)
        return ShaderText(uses, main, (lanes, 1), functions, lanes, shuffles=True)

    def _functions(self) -> Iterator[str]:
        for role, own in zip(ROLES, self.functions, strict=True):
            others = range(1, len(self.product.others) + 1) if role == "result" else ()
            arguments = ", ".join(f"vec4 x{number}" for number in (0, *others))
            for number, function in enumerate(own):
                yield f"vec4 {role}_{number}({arguments}) {{"
                yield from _indented(function.lines)
                yield "}"

    def _main(self) -> Iterator[str]:
        tile, slots, by_descriptor = self.tile, len(self.product.order), descriptor_slots(self.product, self.access)
        given = partial(word, uses=self.body.uses, has_rest=self.has_rest)
        yield from (f"int w{number} = int(table.address[{given(number)}]);" for number in range(by_descriptor))
        yield from (f"uint64_t p{number} = table.address[{given(number)}];" for number in range(by_descriptor, slots))
        names = enumerate(parameters(self.product, tile, self.nested), slots)
        yield from (f"int {name} = int({given(number)});" for number, name in names)
        yield f"int t = int({WORKGROUP}), member = int(gl_LocalInvocationID.x);"
        yield "int across_at = int(uint(t) % uint(across)), others = int(uint(t) / uint(across));"
        yield "int down_at = int(uint(others) % uint(down)), batch = int(uint(others) / uint(down));"
        if self.nested:
            yield "int outer = int(uint(batch) / uint(inner)), inside = int(uint(batch) % uint(inner));"
        yield f"int own_row = down_at * {tile.rows}, row = min(own_row, last_row);"
        yield f"int own_column = across_at * {tile.columns}, column = min(own_column, last_column);"
        yield from self._choices()
        yield from self._starts_of_operands()
        yield from self._sum_loop()
        yield from self._write_tile()

    def _choices(self) -> Iterator[str]:
        """Which functions apply, each but the first as truths, and which operands have neighbours along the sum."""
        for role, (name, own) in enumerate(zip(ROLES, self.functions, strict=True)):
            chosen = f"bitfieldExtract(functions, {role * FUNCTION_BITS}, {FUNCTION_BITS})"
            yield from (f"bvec4 is_{name}_{number} = bvec4({chosen} == {number});" for number in range(1, len(own)))
        for side, in_vectors in enumerate((self.access.left, self.access.right)):
            if in_vectors:
                yield f"bvec4 {ROLES[side]}_along_sum = bvec4((functions & {1 << ALONG_SUM + side}) != 0);"

    def _applied(self, role: int, arguments: str) -> str:
        """The result of the function that applies in a role."""
        name = ROLES[role]
        text = f"{name}_0({arguments})"
        for number in range(1, len(self.functions[role])):
            text = f"mix({text}, {name}_{number}({arguments}), is_{name}_{number})"
        return text

    # -- the sum ------------------------------------------------------------------------------------------------------

    def _starts_of_operands(self) -> Iterator[str]:
        """Where a lane's first vector starts, or each of its elements."""
        sides = (("row", 1, self.access.left), ("column", self.tile.vectors, self.access.right))
        for name, (start, vectors, in_vectors) in zip(ROLES, sides, strict=False):
            base = self._batch(f"{name}_batch", f"{name}_inner") + (f" + {name}_begin" if self.nested else "")
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
        yield from _indented(vectors)
        yield from _indented(self._iteration())
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
        yield from _indented(_indented(self._write()))
        yield "    }"
        yield "}"

    def _write(self) -> Iterator[str]:
        """Writes the results of four columns of a row."""
        tile, count = self.tile, len(self.product.others)
        yield f"int at = {VECTOR} * line + part / {tile.vectors}, at_row = row + min(at, rows - 1);"
        yield f"int first = column + {VECTOR} * (member + {tile.lanes} * (part % {tile.vectors}));"
        for number in range(count):
            yield f"vec4 x{number} = {self._other(2 + number, number)};"
        arguments = ", ".join(("sum", *(f"x{number}" for number in range(count))))
        yield f"vec4 result = {self._applied(2, arguments)};"
        address, own = f"p{2 + count}", "at < rows && at_row >= own_row"
        if self.access.rest:
            place = self._position(count, f"first / {VECTOR}")
            stored = self.body.memory.stored_four(float32, address, place, "result")
            yield from _guarded(f"{own} && first >= own_column", stored)
            return
        for number, component in enumerate(COMPONENTS):
            column = f"(first + {number})"
            place = self._position(count, f"{column} * column{count}")
            stored = self.body.memory.stored(float32, address, place, f"result.{component}")
            yield from _guarded(f"{own} && {column} >= own_column && {column} < right_end", stored)

    def _other(self, address: int, number: int) -> str:
        """Four columns of an array that the epilogue reads."""
        if one_per_row(self.product, self.access)[number]:
            place = f"({self._batch(f'batch{number}', f'inner{number}')} + at_row * row{number})"
            return f"vec4({self.body.memory.loaded(float32, f'p{address}', place)})"
        if self.access.rest:
            return self.body.memory.four(float32, f"p{address}", self._position(number, f"first / {VECTOR}"))
        columns = (f"min(first + {component}, right_end - 1) * column{number}" for component in range(VECTOR))
        places = (self._position(number, column) for column in columns)
        return f"vec4({', '.join(self.body.memory.loaded(float32, f'p{address}', place) for place in places)})"

    def _position(self, number: int, column: str) -> str:
        return f"({self._batch(f'batch{number}', f'inner{number}')} + at_row * row{number} + {column})"

    def _batch(self, step: str, inner_step: str) -> str:
        """Where a batch element's part of an array starts."""
        return f"outer * {step} + inside * {inner_step}" if self.nested else f"batch * {step}"


def _guarded(condition: str, statement: str) -> Iterator[str]:
    yield from (f"if ({condition}) {{", f"    {statement}", "}")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
