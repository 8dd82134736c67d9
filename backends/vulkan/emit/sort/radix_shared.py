"""A pass of radix sort with one workgroup per tile.

Each subgroup takes a piece of the tile and numbers equal digits among its lanes by ballots. If the tile fits shared
memory it is put in order there first, so that neighbours write neighbours within equal digits.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from lavax.backends.vulkan.emit.sort.radix_schedule import SHARED_TILES, RadixPass
from lavax.backends.vulkan.emit.sort.radix_tiles import RadixTiles
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import variable
from lavax.passes.kernels.kernel import Kernel


class SharedPass(RadixPass):
    """Writes the kernels of a pass whose tiles have a workgroup each."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.lanes = profile.subgroup_size
        self.local = SHARED_TILES.subgroups * self.lanes
        self.routine = open_routine(kernel, profile, lifted, self.local)
        self.tiles, self.body = RadixTiles(self.routine), self.routine.body
        self.steps = max(self.tiles.tile // self.local, 1)
        tile_bytes = self.tiles.tile * self.tiles.values.dtype.storage.itemsize
        counter_bytes = 4 * (SHARED_TILES.subgroups + 1) * self.tiles.digits
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
        """Counts values per digit and subgroup's piece, then turns the counts into positions of next values."""
        body, tiles = self.body, self.tiles
        counters = SHARED_TILES.subgroups * tiles.digits
        shared = [f"shared uint counters[{counters}];"]
        body.line("int lane = int(gl_SubgroupInvocationID);")
        body.line(f"int own = int(gl_SubgroupID) * {tiles.digits};")
        body.line("int count = end - first;")
        body.line(f"first += int(gl_SubgroupID) * (size / {SHARED_TILES.subgroups}) + lane;")
        body.line(f"end = min(first - lane + size / {SHARED_TILES.subgroups}, end);")
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
            if self.in_order:  # from now on, the distance from a value's position in the tile
                body.line(f"starts[d] = {tiles.start()} - next;")
            with body.block(f"for (int c = d; c < {counters}; c += {tiles.digits})"):
                body.line("uint number = counters[c];")
                body.line("counters[c] = next;")
                body.line("next += number;")
        body.line("barrier();")
        with self._loop():
            self._move_neighbours(body, tiles)
        if self.in_order:
            self._write_tile()
        return self._close(shared)

    def _loop(self) -> AbstractContextManager[None]:
        """A loop over the values of an invocation, unrolled if registers hold them."""
        unrolled = self.body.uses.unroll if self.steps <= SHARED_TILES.held else ""
        return self.body.block(f"{unrolled}for (int turn = 0; turn < {self.steps}; ++turn)")

    def _read(self, apart: int) -> str:
        self.routine.position("at", f"min(first + turn * {apart}, end - 1)", self.tiles.length)
        return self.routine.read(self.tiles.values, (*self.tiles.row, variable("at", self.tiles.length)))

    def _hold(self, apart: int) -> None:
        """Loads all values before the first use of one, so that the loads are in flight together."""
        self.body.line(f"{type_name(self.tiles.values.dtype, 1)} held[{self.steps}];")
        with self._loop():
            self.body.line(f"held[turn] = {self._read(apart)};")

    def _count_digits(self, apart: int, counter: str) -> None:
        """Adds the invocation's values to the counters of their digits."""
        if self.steps <= SHARED_TILES.held:
            self._hold(apart)
        with self._loop():
            self._value_of_step(apart)
            self.body.line(f"if (inside) atomicAdd({counter}, 1u);")

    def _value_of_step(self, apart: int) -> str:
        """The invocation's value of this iteration; declares its `digit`, and whether it lies `inside` the tile."""
        self.body.line(f"bool inside = first + turn * {apart} < end;")
        value = "held[turn]" if self.steps <= SHARED_TILES.held else self._read(apart)
        self.tiles.write_digit(value)
        return value

    def _find_starts(self, counters: int) -> None:
        """Finds where each digit's values begin in the tile: the first subgroup's lanes add up neighbouring digits."""
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
        """Writes the ordered tile: neighbouring invocations write neighbouring values, mostly side by side."""
        body = self.body
        body.line("barrier();")
        with body.block(f"for (int k = thread; k < count; k += {self.local})"):
            body.line(f"{type_name(self.tiles.values.dtype, 1)} value = moved[k];")
            self.tiles.write_digit("value")
            body.line(f"{self.routine.element('row + int(starts[digit] + uint(k))')} = value;")

    def _move_neighbours(self, body: Body, tiles: RadixTiles) -> None:
        """Moves one value per lane, as far behind the next free position as there are equal digits before it."""
        value = self._value_of_step(self.lanes)
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
        """Lets the lanes of a subgroup see what the others have written."""
        self.body.line("subgroupMemoryBarrierShared();")
        self.body.line("subgroupBarrier();")

    def _close(self, shared: list[str]) -> Launch:
        uses, lines, local = self.body.uses, self.body.scopes[0].lines, (self.local, 1)
        shader = assemble(ShaderText(uses, lines, local, shared, self.lanes, shuffles=self.in_order))
        return Launch(shader, tuple(self.body.parameters.words), grid(self.tiles.count))
