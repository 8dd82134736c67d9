"""The two kernels of a pass of radix sort: how many values of each tile have each digit, and the values moved by it.

Two schedules: *serial*, an invocation a tile, which has counters of its own; and *shared*, a workgroup a tile, whose
subgroups each take a piece and number equal digits among their lanes by ballots. Where a tile finds room in shared
memory it is put in order there first: neighbours then write neighbours, as far as equal digits go.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from math import prod

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import Routine, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import ZERO, flatten, unflatten, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# Subgroups a workgroup; every tile is a multiple of their lanes.
_SUBGROUPS = 8
_WIDEST_SUBGROUP = 64
# Values of a tile that a lane keeps in registers.
_MOST_HELD = 16


class _Tiles:
    """A shader over the tiles of values[…,n], which goes along a tile from `first` to `end`."""

    def __init__(self, routine: Routine) -> None:
        self.routine, self.body = routine, routine.body
        self.values = routine.operands[0]
        *self.batch, self.length = self.values.shape
        attrs = routine.node.attrs
        self.shift, self.bits, self.tile = attrs["shift"], attrs["bits"], attrs["tile"]
        self.digits = 1 << self.bits
        self.extents = (*self.batch, -(-self.length // self.tile))
        self.count = prod(self.extents)

    def open(self, number: str) -> None:
        *self.row, self.place = unflatten(variable(number, self.count), self.extents)
        self.routine.integer("size", self.tile)
        self.body.line(f"int first = {self.body.index(self.place)} * size;")
        self.body.line(f"int end = min(first + size, {self.body.parameters.integer(self.length)});")
        self.body.line(f"int row = {self.body.index(flatten((*self.row, ZERO), self.values.shape))};")

    def value(self, at: str) -> str:
        """The value at a place of the row; also its `digit`."""
        text = self.routine.read(self.values, (*self.row, variable(at, self.length)))
        self.write_digit(text)
        return text

    def write_digit(self, value: str) -> None:
        self.body.line(f"uint digit = uint({value} >> {self.shift}u) & {self.digits - 1}u;")

    def along(self, start: str, step: str) -> AbstractContextManager[None]:
        return self.body.block(f"for (int k = {start}; k < end; k += {step})", frozenset(("k",)))

    def every_digit(self, start: str = "0", step: str = "1") -> AbstractContextManager[None]:
        return self.body.block(f"for (int d = {start}; d < {self.digits}; d += {step})", frozenset(("d",)))

    def start(self) -> str:
        """Where the values of the digit d begin."""
        return f"uint({self.routine.read(self.routine.operands[1], self._counter())})"

    def write_count(self) -> None:
        target = self.body.index(flatten(self._counter(), self.routine.node.shape))
        self.body.line(f"{self.routine.element(target)} = int(counters[d]);")

    def _counter(self) -> Coordinates:
        return (*self.row, variable("d", self.digits), self.place)


class _Serial:
    """The serial schedule."""

    def __init__(self, routine: Routine) -> None:
        self.tiles, self.body, self.routine = _Tiles(routine), routine.body, routine
        routine.open(self.tiles.count)
        self.tiles.open("i")
        self.body.line(f"uint counters[{self.tiles.digits}];")

    def count(self) -> Launch:
        with self.tiles.every_digit():
            self.body.line("counters[d] = 0u;")
        with self.tiles.along("first", "1"):
            self.tiles.value("k")
            self.body.line("++counters[digit];")
        with self.tiles.every_digit():
            self.tiles.write_count()
        return self.routine.close(self.tiles.count)

    def move(self) -> Launch:
        with self.tiles.every_digit():
            self.body.line(f"counters[d] = {self.tiles.start()};")
        with self.tiles.along("first", "1"):
            value = self.tiles.value("k")
            self.body.line(f"{self.routine.element('row + int(counters[digit])')} = {value};")
            self.body.line("++counters[digit];")
        return self.routine.close(self.tiles.count)


class _Shared:
    """The shared schedule."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.lanes = profile.subgroup_size
        self.local = _SUBGROUPS * self.lanes
        self.routine = open_routine(kernel, profile, lifted, self.local)
        self.tiles, self.body = _Tiles(self.routine), self.routine.body
        self.turns = max(self.tiles.tile // self.local, 1)
        tile_bytes = self.tiles.tile * self.tiles.values.dtype.storage.itemsize
        counter_bytes = 4 * (_SUBGROUPS + 1) * self.tiles.digits
        self.in_order = profile.subgroup_shuffle and tile_bytes + counter_bytes <= profile.shared_memory_bytes
        self.routine.open(self.tiles.count * self.local)
        self.routine.position("part", f"i / {self.local}", self.tiles.count)
        self.body.line(f"int thread = i % {self.local};")
        self.tiles.open("part")

    def count(self) -> Launch:
        body, tiles = self.body, self.tiles
        with tiles.every_digit("thread", str(self.local)):
            body.line("counters[d] = 0u;")
        body.line("barrier();")
        body.line("first += thread;")
        self._count_digits(self.local, "counters[digit]")
        body.line("barrier();")
        with tiles.every_digit("thread", str(self.local)):
            tiles.write_count()
        return self._close([f"shared uint counters[{tiles.digits}];"])

    def move(self) -> Launch:
        """Of each subgroup's piece and digit: how many values there are, then where the next one goes."""
        body, tiles = self.body, self.tiles
        counters = _SUBGROUPS * tiles.digits
        shared = [f"shared uint counters[{counters}];"]
        body.line("int lane = int(gl_SubgroupInvocationID);")
        body.line(f"int own = int(gl_SubgroupID) * {tiles.digits};")
        body.line("int count = end - first;")
        body.line(f"first += int(gl_SubgroupID) * (size / {_SUBGROUPS}) + lane;")
        body.line(f"end = min(first - lane + size / {_SUBGROUPS}, end);")
        body.line(f"for (int c = thread; c < {counters}; c += {self.local}) counters[c] = 0u;")
        body.line("barrier();")
        self._count_digits(self.lanes, "counters[own + int(digit)]")
        body.line("barrier();")
        if self.in_order:
            shared.append(f"shared uint starts[{tiles.digits}];")
            shared.append(f"shared {type_name(tiles.values.dtype, 1)} moved[{tiles.tile}];")
            self._find_starts(counters)
        with tiles.every_digit("thread", str(self.local)):
            body.line(f"uint next = {'starts[d]' if self.in_order else tiles.start()};")
            if self.in_order:  # from now on what is added to a place in the tile
                body.line(f"starts[d] = {tiles.start()} - next;")
            with body.block(f"for (int c = d; c < {counters}; c += {tiles.digits})"):
                body.line("uint number = counters[c];")
                body.line("counters[c] = next;")
                body.line("next += number;")
        body.line("barrier();")
        with self._turns():
            self._move_neighbours(body, tiles)
        if self.in_order:
            self._write_tile()
        return self._close(shared)

    def _turns(self) -> AbstractContextManager[None]:
        """A loop over the values of an invocation, written out where registers hold them."""
        unrolled = self.body.uses.unroll if self.turns <= _MOST_HELD else ""
        return self.body.block(f"{unrolled}for (int turn = 0; turn < {self.turns}; ++turn)")

    def _read(self, apart: int) -> str:
        self.routine.position("at", f"min(first + turn * {apart}, end - 1)", self.tiles.length)
        return self.routine.read(self.tiles.values, (*self.tiles.row, variable("at", self.tiles.length)))

    def _hold(self, apart: int) -> None:
        """All loads come before the first use of one, so that they are under way together."""
        self.body.line(f"{type_name(self.tiles.values.dtype, 1)} held[{self.turns}];")
        with self._turns():
            self.body.line(f"held[turn] = {self._read(apart)};")

    def _count_digits(self, apart: int, counter: str) -> None:
        """Adds the invocation's values to the counters of their digits."""
        if self.turns <= _MOST_HELD:
            self._hold(apart)
        with self._turns():
            self._value_of_turn(apart)
            self.body.line(f"if (inside) atomicAdd({counter}, 1u);")

    def _value_of_turn(self, apart: int) -> str:
        """The invocation's value of this turn, its `digit`, and whether it is one."""
        self.body.line(f"bool inside = first + turn * {apart} < end;")
        value = "held[turn]" if self.turns <= _MOST_HELD else self._read(apart)
        self.tiles.write_digit(value)
        return value

    def _find_starts(self, counters: int) -> None:
        """Where the values of each digit begin in the tile: the first subgroup's lanes add up neighbouring digits."""
        body, digits = self.body, self.tiles.digits
        with self.tiles.every_digit("thread", str(self.local)):
            body.line("uint number = 0u;")
            body.line(f"for (int c = d; c < {counters}; c += {digits}) number += counters[c];")
            body.line("starts[d] = number;")
        body.line("barrier();")
        with body.block("if (gl_SubgroupID == 0u)"):
            share = -(-digits // self.lanes)
            body.line(f"int low = min(lane * {share}, {digits}), high = min(low + {share}, {digits});")
            body.line("uint own_sum = 0u;")
            body.line("for (int d = low; d < high; ++d) own_sum += starts[d];")
            body.line("uint next = own_sum;")
            with body.block(f"for (int distance = 1; distance < {self.lanes}; distance *= 2)"):
                body.line("uint earlier = subgroupShuffle(next, uint(max(lane - distance, 0)));")
                body.line("next += lane >= distance ? earlier : 0u;")
            body.line("next -= own_sum;")
            with body.block("for (int d = low; d < high; ++d)"):
                body.line("uint number = starts[d];")
                body.line("starts[d] = next;")
                body.line("next += number;")
        body.line("barrier();")

    def _write_tile(self) -> None:
        """The tile in its order: neighbouring invocations have neighbouring values, and so, mostly, places."""
        body = self.body
        body.line("barrier();")
        with body.block(f"for (int k = thread; k < count; k += {self.local})"):
            body.line(f"{type_name(self.tiles.values.dtype, 1)} value = moved[k];")
            self.tiles.write_digit("value")
            body.line(f"{self.routine.element('row + int(starts[digit] + uint(k))')} = value;")

    def _move_neighbours(self, body: Body, tiles: _Tiles) -> None:
        """One value a lane: its equals in lanes before it tell how far behind the next free place it goes."""
        value = self._value_of_turn(self.lanes)
        body.uses.extension("ballot")
        body.line("uvec4 equals = subgroupBallot(inside);")
        with body.block(f"for (int b = 0; b < {tiles.bits}; ++b)"):
            body.line("bool one = (digit >> b & 1u) != 0u;")
            body.line("uvec4 ones = subgroupBallot(one);")
            body.line("equals &= one ? ones : ~ones;")
        body.line("uint rank = subgroupBallotExclusiveBitCount(equals);")
        body.line("uint next = counters[own + int(digit)];")
        self._meet()
        place = "moved[next + rank]" if self.in_order else self.routine.element("row + int(next + rank)")
        with body.block("if (inside)"):
            body.line(f"{place} = {value};")
            body.line("if (rank == 0u) counters[own + int(digit)] = next + subgroupBallotBitCount(equals);")
        self._meet()

    def _meet(self) -> None:
        """What a lane of the subgroup reads afterwards is what the others have written before."""
        self.body.line("subgroupMemoryBarrierShared();")
        self.body.line("subgroupBarrier();")

    def _close(self, shared: list[str]) -> Launch:
        uses, lines, local = self.body.uses, self.body.scopes[0].lines, (self.local, 1)
        shader = assemble(ShaderText(uses, lines, local, shared, self.lanes, shuffles=self.in_order))
        return Launch(shader, tuple(self.body.parameters.words), grid(self.tiles.count))


def _is_shared(profile: DeviceProfile) -> bool:
    fits = _SUBGROUPS * profile.subgroup_size <= profile.max_workgroup_invocations
    return profile.kind == "gpu" and profile.subgroup_ballot and profile.subgroup_size <= _WIDEST_SUBGROUP and fits


def emit_count_digits(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of count_digits."""
    if _is_shared(profile):
        return _Shared(kernel, profile, lifted).count()
    return _Serial(open_routine(kernel, profile, lifted)).count()


def emit_move_by_digit(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of move_by_digit."""
    if _is_shared(profile):
        return _Shared(kernel, profile, lifted).move()
    return _Serial(open_routine(kernel, profile, lifted)).move()
