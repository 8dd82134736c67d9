"""The frame of the shader that strided products share: its parameters, its functions, and where elements are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import chain
from typing import Generic, TypeVar

from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.emit.strided.element_tile import ElementTile
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
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP
from lavax.backends.vulkan.glsl.shader import Parameters, ShaderText, word
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32

_Tile = TypeVar("_Tile", BroadcastTile, ElementTile)
OWN_ROW = "at < rows && at_row >= own_row"


def descriptor_slots(product: StridedProduct, tile: BroadcastTile | ElementTile, access: OperandAccess) -> int:
    """How many of the arrays go through descriptors: all, but of broadcast tiles the result, the last one, only if it
    is written in vectors.
    """
    by_address = not access.rest and isinstance(tile, BroadcastTile)
    return len(product.order) - by_address if product.by_descriptor else 0


@dataclass(frozen=True)
class ProductShader(ABC, Generic[_Tile]):
    """The shader of a group of products, while it is written."""

    product: StridedProduct  # any of them
    tile: _Tile
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
            count = 1 + len(self.product.others) * (role == "result")
            arguments = ", ".join(f"vec4 x{number}" for number in range(count))
            for number, function in enumerate(own):
                yield f"vec4 {role}_{number}({arguments}) {{"
                yield from indented(function.lines)
                yield "}"

    def _main(self) -> Iterator[str]:
        tile, slots = self.tile, len(self.product.order)
        by_descriptor = descriptor_slots(self.product, tile, self.access)
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

    @abstractmethod
    def _starts_of_operands(self) -> Iterator[str]:
        """Where a lane's parts of the operands start."""

    @abstractmethod
    def _sum_loop(self) -> Iterator[str]:
        """Declares the sums, and adds to them all products."""

    @abstractmethod
    def _write_tile(self) -> Iterator[str]:
        """Writes the results of the sums."""

    def _stored(self, column: str, result: str) -> tuple[str, str]:
        """When a result is to be written, and the statement that writes it."""
        count = len(self.product.others)
        place = self._position(count, f"{column} * column{count}")
        stored = self.body.memory.stored(float32, f"p{2 + count}", place, result)
        return f"{OWN_ROW} && {column} >= own_column && {column} < right_end", stored

    def _other(self, address: int, number: int, columns: Sequence[str]) -> str:
        """Four columns, the next ones to the first or, if the array is read by elements, any."""
        if one_per_row(self.product, self.access)[number]:
            place = f"({self._batch(f'batch{number}', f'inner{number}')} + at_row * row{number})"
            return f"vec4({self.body.memory.loaded(float32, f'p{address}', place)})"
        if self.access.rest:
            return self.body.memory.four(float32, f"p{address}", self._position(number, f"first / {VECTOR}"))
        inside = (f"min({column}, right_end - 1) * column{number}" for column in columns)
        places = (self._position(number, column) for column in inside)
        return f"vec4({', '.join(self.body.memory.loaded(float32, f'p{address}', place) for place in places)})"

    def _position(self, number: int, column: str) -> str:
        return f"({self._batch(f'batch{number}', f'inner{number}')} + at_row * row{number} + {column})"

    def _start_of_operand(self, name: str) -> str:
        """Where a batch element's part of an operand starts."""
        return self._batch(f"{name}_batch", f"{name}_inner") + (f" + {name}_begin" if self.nested else "")

    def _batch(self, step: str, inner_step: str) -> str:
        """Where a batch element's part of an array starts."""
        return f"outer * {step} + inside * {inner_step}" if self.nested else f"batch * {step}"


def guarded(condition: str, statement: str) -> Iterator[str]:
    yield from (f"if ({condition}) {{", f"    {statement}", "}")


def indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
