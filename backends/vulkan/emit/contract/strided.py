"""Contractions of arrays in strides by broadcast tiles: one shader for all of them that a program has.

The tile is that of broadcast.py, with four rows to a lane, so that a lane's four vectors of either operand
are four by four elements along the free axis and the sum. Which of both their components lie along is the array's own;
turned round in registers where it is the sum, they are the same for all, and strides are numbers that the shader is
given. So are the functions that apply: all are written, and each result chosen, which takes less of a driver's time
than one more large tile to compile.

Arrays are accessed in vectors where they and the extents allow it, else element by element, in texels of one word where
they are seen in windows: of a sum that is no multiple of four, the rest is set to zero, and beyond the last row or
column the last one is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from lavax.backends.vulkan.emit.contract.strided_product import Function, Strided, StridedProduct
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch
from lavax.backends.vulkan.glsl.shader import REST_WORD, Parameters, ShaderText, assemble, word
from lavax.backends.vulkan.plan.plan import Shader
from lavax.ir.types import float32

_MOST_TILES = 65535  # of a grid of one dimension
# What a function may cost that is computed for all products of a shader, though it is one's alone: of operands for each
# that is loaded, of results once an element.
_CHEAP_OPERAND, _CHEAP_RESULT = 2, 16
# Bits of the word that says which functions apply, for each place of them, and those that say where neighbours are.
_FUNCTION_BITS, _ALONG_SUM = 8, 24
_PLACES = ("left", "right", "result")
_MOST_FUNCTIONS = 4  # of a place of one shader
_SMALL = 1 << 20  # products of so few multiplications take less than a millisecond, however they read


@dataclass(frozen=True)
class Access:
    """Which arrays are accessed in vectors: the left operand, the right one, and all others with the result."""

    left: bool
    right: bool
    rest: bool


_ELEMENTS, _VECTORS = Access(False, False, False), Access(True, True, True)


def access_of(product: StridedProduct, tile: BroadcastTile) -> Access:
    """How a product's arrays are accessed. A small one goes by elements if any of its arrays does, to share that."""
    sizes = product.sizes
    whole_sum = sizes.k % VECTOR == 0
    left = whole_sum and sizes.m >= tile.rows and _has_vectors(product.left, sizes.m)
    right = whole_sum and sizes.n >= tile.columns and _has_vectors(product.right, sizes.n)
    rest = sizes.n >= tile.columns and sizes.n % VECTOR == 0 and all(
        array.second == 1 and all(step % VECTOR == 0 for step in (array.first, array.batch, array.inner))
        for array in (*product.others, product.result)
    )
    small = sizes.b * sizes.m * sizes.n * sizes.k < _SMALL or not (whole_sum or product.windowed)
    return _ELEMENTS if small and not (left and right and rest) else Access(left, right, rest)


def _has_vectors(operand: Strided, extent: int) -> bool:
    """Whether neighbours of an operand lie along one of its axes, and lines of them begin at multiples of four."""
    along, across = sorted((operand.first, operand.second))
    whole = operand.second == 1 or extent % VECTOR == 0
    aligned = all(step % VECTOR == 0 for step in (across, operand.batch, operand.inner, operand.begin))
    return along == 1 and aligned and whole


def fits_strided(product: StridedProduct, tile: BroadcastTile) -> bool:
    """Whether a product can be computed so by a tile."""
    possible = tile.rows == VECTOR * tile.lanes and tile.tiles(product.sizes) <= _MOST_TILES
    return possible and _fits(product, tile, product.is_nested)


def _fits(product: StridedProduct, tile: BroadcastTile, nested: bool) -> bool:
    """Whether there is room for all numbers."""
    return len(product.order) + len(_words(product, tile, nested)) <= REST_WORD


@dataclass(frozen=True)
class _Key:
    """What products share that share a shader: how they are accessed, how many arrays the sum meets, and functions that
    cost much, of each place the one that there is."""

    tile: BroadcastTile
    access: Access
    others: int
    windowed: bool
    nested: bool  # whether there are numbers for a batch in two axes, and for where operands begin
    dear: tuple[Function | None, ...]


def _key(product: StridedProduct, tile: BroadcastTile, nested: bool) -> _Key:
    limits = (_CHEAP_OPERAND, _CHEAP_OPERAND, _CHEAP_RESULT)
    dear = (own if own.cost > most else None for own, most in zip(product.functions, limits, strict=True))
    access = access_of(product, tile)
    nests = nested and _fits(product, tile, True)
    return _Key(tile, access, len(product.others), product.windowed, nests, tuple(dear))


@dataclass
class _Sharing:
    """Products that share a shader, by number, and the functions of each place."""

    numbers: list[int] = field(default_factory=list)
    functions: tuple[dict[Function, None], ...] = field(default_factory=lambda: tuple({} for _ in _PLACES))

    def takes(self, product: StridedProduct) -> bool:
        """Whether there is room for its functions."""
        pairs = zip(self.functions, product.functions, strict=True)
        return all(function in own or len(own) < _MOST_FUNCTIONS for own, function in pairs)

    def add(self, number: int, product: StridedProduct) -> None:
        self.numbers.append(number)
        for own, function in zip(self.functions, product.functions, strict=True):
            own[function] = None


def emit_strided(products: Sequence[tuple[StridedProduct, BroadcastTile]], paired: bool) -> list[Launch]:
    """The launches of a program's products by these tiles, with as few shaders as they can share."""
    groups: dict[_Key, list[_Sharing]] = {}
    nested = any(product.is_nested for product, _ in products)  # then all that can are, to share a shader
    for number, (product, tile) in enumerate(products):
        own = groups.setdefault(_key(product, tile, nested), [_Sharing()])
        if not own[-1].takes(product):
            own.append(_Sharing())
        own[-1].add(number, product)
    launches: dict[int, Launch] = {}
    for key, own in groups.items():
        for sharing in own:
            emitted = _emit_sharing([products[number][0] for number in sharing.numbers], key, sharing, paired)
            launches.update(zip(sharing.numbers, emitted, strict=True))
    return [launches[number] for number in range(len(products))]


def _emit_sharing(products: Sequence[StridedProduct], key: _Key, sharing: _Sharing, paired: bool) -> Iterator[Launch]:
    functions = tuple(tuple(own) for own in sharing.functions)
    shader = _StridedTile(products[0], key.tile, key.access, functions, paired, key.nested).shader()
    for product in products:
        words = _words(product, key.tile, key.nested)
        for place, (own, function) in enumerate(zip(functions, product.functions, strict=True)):
            words["functions"] |= own.index(function) << place * _FUNCTION_BITS
        groups = (key.tile.tiles(product.sizes), 1, 1)
        windowed = _windowed(product, key.access)
        yield Launch(shader, tuple(words.values()), groups, windowed=windowed, order=product.order)


def _windowed(product: StridedProduct, access: Access) -> int:
    """How many of its arrays are seen in windows: not a result that is written by elements, which is the last."""
    return len(product.order) - (not access.rest) if product.windowed else 0


def _words(product: StridedProduct, tile: BroadcastTile, nested: bool) -> dict[str, int]:
    """The numbers that the shader is given, by their names there: strides of elements, or of vectors."""
    sizes, access = product.sizes, access_of(product, tile)
    words = {
        "functions": 0,
        "across": -(-sizes.n // tile.columns),
        "down": -(-sizes.m // tile.rows),
        "last_row": max(sizes.m - tile.rows, 0),
        "last_column": max(sizes.n - tile.columns, 0),
        "rows": min(tile.rows, sizes.m),
        "sum_end": sizes.k,
        "parts": VECTOR * tile.vectors,  # so that drivers do not know how often a loop runs, and leave it one
    }
    words |= {} if access.left else {"left_end": sizes.m}
    words |= {} if access.right and access.rest else {"right_end": sizes.n}
    operands = ((product.left, access.left), (product.right, access.right))
    for side, (operand, in_vectors) in enumerate(operands):
        name, along_sum = _PLACES[side], operand.second == 1
        words |= {f"{name}_batch": operand.batch, f"{name}_free": operand.first if along_sum or not in_vectors else 1}
        if in_vectors:  # to the vectors of the next lane, from one of a lane's four to the next, and from turn to turn
            words["functions"] |= along_sum << _ALONG_SUM + side
            words[f"{name}_lane"] = operand.first if along_sum else 1
            words[f"{name}_next"] = (operand.first if along_sum else operand.second) // VECTOR
            words[f"{name}_turn"] = 1 if along_sum else operand.second
        else:
            words[f"{name}_sum"] = operand.second
    unit = VECTOR if access.rest else 1
    for number, array in enumerate((*product.others, product.result)):
        words |= {f"batch{number}": array.batch // unit, f"row{number}": array.first // unit}
        words |= {} if access.rest else {f"column{number}": array.second}
    if nested:
        words |= {"inner": product.inner, "left_inner": product.left.inner, "right_inner": product.right.inner}
        words |= {"left_begin": product.left.begin, "right_begin": product.right.begin}
        rest = enumerate((*product.others, product.result))
        words |= {f"inner{number}": array.inner // unit for number, array in rest}
    return words


@dataclass(frozen=True)
class _StridedTile:
    """What is needed to write the shader of some products."""

    product: StridedProduct  # any of them
    tile: BroadcastTile
    access: Access
    functions: tuple[tuple[Function, ...], ...]  # of each place those that there are
    paired: bool
    nested: bool
    body: Body = field(default_factory=lambda: Body({}, Parameters(0, lifted=False)))

    def shader(self) -> Shader:
        self.body.paired = self.paired
        if self.product.windowed:
            *read, written = range(len(self.product.order))
            self.body.read_windows = {f"p{number}": number for number in read}
            self.body.write_windows = {f"p{written}": written} if self.access.rest else {}
        uses, lanes, main, functions = self.body.uses, self.tile.lanes, list(self._main()), list(self._functions())
        for function in chain.from_iterable(self.functions):
            uses.include(function.uses)
        return assemble(ShaderText(uses, main, (lanes, 1), functions, lanes, shuffles=True))

    def _functions(self) -> Iterator[str]:
        for place, own in zip(_PLACES, self.functions, strict=True):
            others = range(1, len(self.product.others) + 1) if place == "result" else ()
            parameters = ", ".join(f"vec4 x{number}" for number in (0, *others))
            for number, function in enumerate(own):
                yield f"vec4 {place}_{number}({parameters}) {{"
                yield from _indented(function.lines)
                yield "}"

    def _main(self) -> Iterator[str]:
        tile, slots, windowed = self.tile, len(self.product.order), _windowed(self.product, self.access)
        given = partial(word, uses=self.body.uses)
        yield from (f"int w{number} = int(table.address[{given(number)}]);" for number in range(windowed))
        yield from (f"uint64_t p{number} = table.address[{given(number)}];" for number in range(windowed, slots))
        names = enumerate(_words(self.product, tile, self.nested), slots)
        yield from (f"int {name} = int({given(number)});" for number, name in names)
        yield f"int t = int({WORKGROUP}), member = int(gl_LocalInvocationID.x);"
        yield "int across_at = int(uint(t) % uint(across)), others = int(uint(t) / uint(across));"
        yield "int down_at = int(uint(others) % uint(down)), batch = int(uint(others) / uint(down));"
        if self.nested:
            yield "int outer = int(uint(batch) / uint(inner)), inside = int(uint(batch) % uint(inner));"
        yield f"int own_row = down_at * {tile.rows}, row = min(own_row, last_row);"
        yield f"int own_column = across_at * {tile.columns}, column = min(own_column, last_column);"
        yield from self._choices()
        yield from self._places_of_operands()
        yield from self._sum_loop()
        yield from self._write_tile()

    def _choices(self) -> Iterator[str]:
        """Which functions apply, each but the first as truths, and along what neighbours of operands lie."""
        for place, (name, own) in enumerate(zip(_PLACES, self.functions, strict=True)):
            chosen = f"bitfieldExtract(functions, {place * _FUNCTION_BITS}, {_FUNCTION_BITS})"
            yield from (f"bvec4 is_{name}_{number} = bvec4({chosen} == {number});" for number in range(1, len(own)))
        for side, in_vectors in enumerate((self.access.left, self.access.right)):
            if in_vectors:
                yield f"bvec4 {_PLACES[side]}_along_sum = bvec4((functions & {1 << _ALONG_SUM + side}) != 0);"

    def _applied(self, place: int, arguments: str) -> str:
        """The result of the function that applies there."""
        name = _PLACES[place]
        text = f"{name}_0({arguments})"
        for number in range(1, len(self.functions[place])):
            text = f"mix({text}, {name}_{number}({arguments}), is_{name}_{number})"
        return text

    # -- the sum ------------------------------------------------------------------------------------------------------

    def _places_of_operands(self) -> Iterator[str]:
        """Where the first vector of a lane's is, or the first elements of each."""
        sides = (("row", 1, self.access.left), ("column", self.tile.vectors, self.access.right))
        for name, (start, vectors, in_vectors) in zip(_PLACES, sides, strict=False):
            base = self._batch(f"{name}_batch", f"{name}_inner") + (f" + {name}_begin" if self.nested else "")
            if in_vectors:
                yield f"int {name}_at = ({base} + {start} * {name}_free) / {VECTOR} + member * {name}_lane;"
                continue
            for element in range(VECTOR * vectors):
                vector, component = divmod(element, VECTOR)
                offset = f"{VECTOR} * (member + {vector * self.tile.lanes}) + {component}"
                yield f"int {name}_at{element} = {base} + min({start} + {offset}, {name}_end - 1) * {name}_free;"

    def _sum_loop(self) -> Iterator[str]:
        """Sums go from turn to turn component by component: a driver reads all of a vector that a loop carries for each
        use of a component, and takes a fifth longer to compile that."""
        sums = [f"{row}_{vector}" for row in range(self.tile.rows) for vector in range(self.tile.vectors)]
        for name in sums:
            yield f"float {', '.join(f'c{name}{component} = 0.0' for component in COMPONENTS)};"
        vectors = [f"vec4 s{name} = vec4({', '.join(f'c{name}{c}' for c in COMPONENTS)});" for name in sums]
        yield f"for (int k = 0; k < sum_end; k += {VECTOR}) {{"
        yield from _indented(vectors)
        yield from _indented(self._turn())
        yield from (f"    {' '.join(f'c{name}{c} = s{name}.{c};' for c in COMPONENTS)}" for name in sums)
        yield "}"
        yield from vectors

    def _turn(self) -> Iterator[str]:
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
        """A lane's four vectors along the free axis, one for each step of the sum."""
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
                yield f"vec4 {name}{number} = mix({made[number]}, {turned}, {_PLACES[side]}_along_sum);"
            else:
                yield f"vec4 {name}{number} = mix(vec4(0), {made[number]}, bvec4(k + {number} < sum_end));"

    def _vector(self, side: int, vector: int, number: int) -> str:
        name = _PLACES[side]
        lane = f"{name}_at + {vector * self.tile.lanes} * {name}_lane" if vector else f"{name}_at"
        place = f"({lane} + (k >> 2) * {name}_turn + {number} * {name}_next)"
        return self.body.four(float32, f"p{side}", place)

    def _elements(self, side: int, vector: int, step: int) -> str:
        name = _PLACES[side]
        summed = f"min(k + {step}, sum_end - 1) * {name}_sum"
        places = (f"{name}_at{VECTOR * vector + component} + {summed}" for component in range(VECTOR))
        return f"vec4({', '.join(self.body.loaded(float32, f'p{side}', place) for place in places)})"

    # -- the result ---------------------------------------------------------------------------------------------------

    def _write_tile(self) -> Iterator[str]:
        """In a loop over lanes' rows, one inside over these four and their vectors: functions stand in the shader once.

        The sums of a turn are chosen one after the other, since drivers compile an array that is read at a variable
        place far more slowly.
        """
        tile = self.tile
        parts = [(row, vector) for row in range(VECTOR) for vector in range(tile.vectors)]
        yield f"for (int line = 0; {VECTOR} * line < rows; ++line) {{"
        for number, (row, vector) in enumerate(parts):
            yield f"    vec4 sum{number} = s{row}_{vector};"
            for lane in range(1, tile.lanes):
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
        """What becomes of four columns of a row."""
        tile, count = self.tile, len(self.product.others)
        yield f"int at = {VECTOR} * line + part / {tile.vectors}, at_row = row + min(at, rows - 1);"
        yield f"int first = column + {VECTOR} * (member + {tile.lanes} * (part % {tile.vectors}));"
        for number in range(count):
            yield f"vec4 x{number} = {self._other(2 + number, number)};"
        arguments = ", ".join(("sum", *(f"x{number}" for number in range(count))))
        yield f"vec4 result = {self._applied(2, arguments)};"
        address, own = f"p{2 + count}", "at < rows && at_row >= own_row"
        if self.access.rest:
            stored = self.body.stored_four(float32, address, self._place(count, f"first / {VECTOR}"), "result")
            yield from _guarded(f"{own} && first >= own_column", stored)
            return
        for number, component in enumerate(COMPONENTS):
            column = f"(first + {number})"
            place = self._place(count, f"{column} * column{count}")
            stored = self.body.stored(float32, address, place, f"result.{component}")
            yield from _guarded(f"{own} && {column} >= own_column && {column} < right_end", stored)

    def _other(self, address: int, number: int) -> str:
        """Four columns of an array that the sum meets."""
        if self.access.rest:
            return self.body.four(float32, f"p{address}", self._place(number, f"first / {VECTOR}"))
        columns = (f"min(first + {component}, right_end - 1) * column{number}" for component in range(VECTOR))
        places = (self._place(number, column) for column in columns)
        return f"vec4({', '.join(self.body.loaded(float32, f'p{address}', place) for place in places)})"

    def _place(self, number: int, column: str) -> str:
        return f"({self._batch(f'batch{number}', f'inner{number}')} + at_row * row{number} + {column})"

    def _batch(self, step: str, inner_step: str) -> str:
        """Where the batch's own part of an array begins."""
        return f"outer * {step} + inside * {inner_step}" if self.nested else f"batch * {step}"


def _guarded(condition: str, statement: str) -> Iterator[str]:
    yield from (f"if ({condition}) {{", f"    {statement}", "}")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
