"""The text of a workgroup's loop: a function per kernel, and the loops that call them.

Addresses stay as they are in all turns, since CPU drivers take twice as long to access memory behind an address that
changes. What moves is the index: by the words from the array's beginning to the row of a counter, or to where a carry
was handed on to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from math import prod

from lavax.backends.vulkan.emit.loop.stopping import MOST_SPENT, cost_of_turn, has_state, is_stoppable
from lavax.backends.vulkan.emit.loop.turns import (
    Branch,
    FirstRow,
    HandedOn,
    Member,
    Place,
    Turn,
    Turns,
    While,
    with_slots,
)
from lavax.backends.vulkan.glsl.launch import WORKGROUP
from lavax.backends.vulkan.glsl.shader import word
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.backends.vulkan.plan.plan import TEXEL_FORMS
from lavax.base.quick_dataclasses import dataclass

_VECTOR_BYTES = 16
_WORD_BYTES = 4
# How far apart two arrays may be, and how long arrays that indices move through, so that 32 bits hold all words.
FARTHEST = 1 << 32
_LONGEST = 1 << 31
# The slots of a loop that may stop: of its flag, and of its state.
SLOTS_OF_STATE = 2
WORDS_OF_STATE = 2  # of each part that has one: the number of the member to go on with, or 0, and the turn
_WORD = re.compile(r"\bwords\[(\d+)\]")
_ADDRESS = re.compile(r"table\.address\[words\[(\d+)\]\]")
_DESCRIPTOR = re.compile(rf"\b({'|'.join(TEXEL_FORMS)})(\d+)\b")
# The accesses that take an index in words, and how they are written with a first word.
_INDEXED = (
    (r"\b((?:F32|I32|U32)\({array}\)\.data\[[^\[\]]* \+) low_bits\({array}\)\]", r"\1 {first}]"),
    (r"\b(read_four|write_four|read_unaligned_four)\({array}, ", r"\1({array}, {first}, "),
)
_FROM_A_WORD = {
    "read_four": """uvec4 read_four(uint64_t address, int first, int position) {
    int pair = 2 * position + (first >> 1);
    return uvec4(unpackUint2x32(U64(address).data[pair]), unpackUint2x32(U64(address).data[pair + 1]));
}""",
    "write_four": """void write_four(uint64_t address, int first, int position, uvec4 words) {
    int pair = 2 * position + (first >> 1);
    U64(address).data[pair] = packUint2x32(words.xy);
    U64(address).data[pair + 1] = packUint2x32(words.zw);
}""",
    "read_unaligned_four": """uvec4 read_unaligned_four(uint64_t address, int first, int position) {
    int word = position + first;
    U32 array = U32(address);
    return uvec4(array.data[word], array.data[word + 1], array.data[word + 2], array.data[word + 3]);
}""",
}
_BETWEEN = """// The words from one array to another; 0 if an index cannot hold them.
int words_between(uint64_t from, uint64_t to) {{
    int64_t bytes = int64_t(to - from);
    return abs(bytes) < {farthest}l ? int(bytes / {word}) : 0;
}}"""

_IN_WORDS = (
    r"\b(?:read_four|write_four|read_unaligned_four)\({array}, {first}, ",
    r"\b(?:F32|I32|U32)\({array}\)\.data\[[^\[\]]* \+ {first}\]",
    r"\blow_bits\({array}\)",  # in an index that is made beforehand: 0
)


def moves_by_words(place: Place) -> bool:
    """Whether an index in words, a multiple of four, reaches all that the array moves through."""
    return place.nbytes < _LONGEST and all(stride % _VECTOR_BYTES == 0 for stride in place.strides)


@dataclass(frozen=True)
class _Stand:
    """Where a kernel finds an array: `words` behind an address, of which `moved` are those that a carry is handed on
    by. Without `by_words` the kernel's shader says where, but for these; `elsewhere` is an array other than it says."""

    address: str
    words: tuple[str, ...]
    moved: str = ""
    by_words: bool = True
    elsewhere: bool = False


class TurnsWriter:
    """The state of writing one shader. Slots and numbers have places among its words; `wait` meets the workgroup."""

    def __init__(
        self, slots: dict[int, int], numbers: dict[int, int], wait: Sequence[str], positions: Mapping[int, int]
    ) -> None:
        self.slots, self.numbers, self.wait, self._positions = slots, numbers, wait, positions
        self.uses = Uses()
        self._functions: list[str] = []
        self._loops = 0
        self._apart: dict[HandedOn, str] = {}  # the variable with the words between its arrays
        self._turn_of: dict[HandedOn, str] = {}  # the variable that counts the turns of its loop
        self._handed: list[int] = []  # slots of arrays that loops around the present place hand on
        self._all_handed: dict[int, None] = {}
        self._states = 0  # the parts that keep where they are
        self._stops = False

    def declarations(self) -> list[str]:
        """What stands before the main function."""
        lines = [f"uint64_t address{place};" for place in self.slots.values()]
        lines += [f"int moved{self.slots[slot]} = 0;" for slot in self._all_handed]
        if self._stops:
            lines.append("int spent = 0;\nbool stopped = false;")
        lines += [f"int next{state}, turn_of{state};" for state in range(self._states)]
        if self._all_handed:
            lines.append(_BETWEEN.format(farthest=FARTHEST, word=_WORD_BYTES))
        text = "\n".join(self._functions)
        lines += [access for name, access in _FROM_A_WORD.items() if re.search(rf"{name}\(p\d+, first\d+", text)]
        return [*lines, *self._functions]

    def loop(self, turns: Turns, count: str) -> list[str]:
        """The loop, which runs this number of turns."""
        if turns.exchanged:
            return self._in_pairs(turns, count)
        turn = f"turn{self._loops}"
        self._loops += 1
        handed = [member for member in turns.members if isinstance(member, HandedOn)]
        self._turn_of |= dict.fromkeys(handed, turn)
        with self._handing(handed) as (before, after):
            lines = [*before, f"for (int {turn} = 0; {turn} < {count}; ++{turn}) {{"]
            for each in handed:
                lines += _indented(self._aim(each, f"{turn} + 1 < {count}"))
            for member in turns.members:
                lines += _indented(self.part(member))
            return [*lines, "}", *after()]

    def _in_pairs(self, turns: Turns, count: str) -> list[str]:
        """The loop by two turns, between which arrays change places, and after which they are where they were."""
        turn = f"turn{self._loops}"
        self._loops += 1
        others = dict[int, int]()
        for pair in turns.exchanged:
            of_positions = [self._positions[slot] for slot in pair if slot in self._positions]
            for one, other in (pair, of_positions) if of_positions else (pair,):
                others |= {one: other, other: one}
        first = [member for member in turns.members if not isinstance(member, HandedOn)]
        second = [with_slots(member, others) for member in first]
        halves = [[line for member in half for line in self.part(member)] for half in (first, second)]
        goes_on = f"if ({turn} + 1 < {count}) {{"
        lines = [*halves[0], goes_on, *_indented(halves[1]), "}"]
        loop = [f"for (int {turn} = 0; {turn} < {count}; {turn} += 2) {{", *_indented(lines), "}"]
        copies = [member.copy for member in turns.members if isinstance(member, HandedOn)]
        behind = [] if copies[0].barrier else [*self.wait]
        behind += [line for copy in copies for line in self._call(copy)]
        return [*loop, f"if (({count} & 1) != 0) {{", *_indented(behind), "}"]

    def _while(self, loop: While) -> list[str]:
        """The loop, which stops before its turns are too many. It then begins with its condition anew."""
        handed = [member for member in loop.members if isinstance(member, HandedOn)]
        begun = f"begun{self._loops}"
        self._loops += 1
        with self._handing(handed) as (before, after):
            members = [line for member in loop.members for line in self.part(member)]
            lines = [
                *before,
                f"for (bool {begun} = false; ; {begun} = true) {{",
                *_indented([f"if ({begun}) {{", *_indented(members), "}", *self._asked(loop)]),
                "}",
            ]
            return [*lines, *after()]

    def _asked(self, loop: While) -> list[str]:
        asked = [line for member in loop.asked for line in self.part(member)]
        return [*asked, *self.wait, f"if ({self._number(loop.holds)} == 0) break;", *_spending(loop)]

    @contextmanager
    def _handing(self, handed: Sequence[HandedOn]) -> Iterator[tuple[list[str], Callable[[], list[str]]]]:
        """The lines before a loop that hands these on, and those after it, to be asked for within."""
        apart = {each: f"apart{len(self._apart) + number}" for number, each in enumerate(handed)}
        self._apart |= apart
        own = [slot for each in handed for slot in self._moving(each)]
        before = [line for each in handed for line in self._measure(each)]
        self._handed += own
        self._all_handed |= dict.fromkeys(own)
        yield before, lambda: [line for each in handed for line in self._copy_back(each)]
        del self._handed[len(self._handed) - len(own) :]

    # -- loops that stop ----------------------------------------------------------------------------------------------

    def stopping(self, loop: Turn) -> tuple[list[str], list[str]]:
        """A loop that may stop: where it stands is read before it. The lines before all, and those of the loop."""
        self._stops = True
        lines, words = self.part(loop), self.uses.reference("u32")
        flag, state = f"{words}(table.address[words[0]]).data[0]", f"{words}(table.address[words[1]])"
        before = [f"if ({flag} == 0u) return;"]
        after = [f"{flag} = uint(stopped);"]
        if self._states:
            before.append(f"{words} state = {state};")
        for number in range(self._states):
            for place, name in enumerate((f"next{number}", f"turn_of{number}"), WORDS_OF_STATE * number):
                before.append(f"{name} = int(state.data[{place}]);")
                after.append(f"state.data[{place}] = uint({name});")
        return before, [*lines, *self.wait, "if (gl_LocalInvocationIndex == 0u) {", *_indented(after), "}"]

    def _stoppable(self, turn: Turns | While | Branch) -> list[str]:
        """A loop or branch with a loop inside that may stop: it goes on with the member that stopped."""
        number = self._states
        self._states += 1
        state = f"next{number}"
        members = self._in_steps(turn.members, state)
        match turn:
            case Branch():
                return [*self.wait, f"if ({state} != 0 || {self._is_taken(turn)}) {{", *_indented(members), "}"]
            case While():
                begun = f"begun{number}_"
                lines = [f"if ({begun}) {{", *_indented([*members, "if (stopped) break;"]), "}", *self._asked(turn)]
                return [f"for (bool {begun} = {state} != 0; ; {begun} = true) {{", *_indented(lines), "}"]
        count = self._count(turn.count)
        lines = [f"if ({state} == 0) {{", *_indented(_spending(turn)), "}", *members, "if (stopped) break;"]
        loop = [f"for (; turn_of{number} < {count}; ++turn_of{number}) {{", *_indented(lines), "}"]
        return [*loop, f"if (!stopped) turn_of{number} = 0;"]

    def _in_steps(self, members: Sequence[Turn], state: str) -> list[str]:
        """The members, of which those are left out that ran before the dispatch."""
        lines: list[str] = []
        numbered = enumerate(members, 1)
        for stops, group in groupby(numbered, key=lambda pair: is_stoppable(pair[1])):
            together = list(group)
            for run in ([pair] for pair in together) if stops else [together]:
                number = run[0][0]
                inner = [line for _, member in run for line in self.part(member)]
                inner += [f"{state} = stopped ? {number} : 0;"] if stops else []
                lines += [f"if (!stopped && {state} <= {number}) {{", *_indented(inner), "}"]
        return lines

    def part(self, turn: Turn) -> list[str]:
        """A part of a turn, or a loop that may stop."""
        if has_state(turn):
            assert isinstance(turn, (Turns, While, Branch))
            return self._stoppable(turn)
        match turn:
            case Member():
                return self._call(turn)
            case HandedOn():
                return self._hand_on(turn)
            case FirstRow():
                first = f"{self._apart[turn.handed]} == 0 || {self._turn_of[turn.handed]} == 0"
                return [f"if ({first}) {{", *_indented(self._call(turn.copy)), "}"]
            case Branch():
                inner = [line for member in turn.members for line in self.part(member)]
                return [*self.wait, f"if ({self._is_taken(turn)}) {{", *_indented(inner), "}"]
            case While():
                return self._while(turn)
            case Turns():
                return self.loop(turn, self._count(turn.count))

    def _is_taken(self, branch: Branch) -> str:
        return f"clamp({self._number(branch.number)}, 0, {branch.cases - 1}) == {branch.equals}"

    def _number(self, place: Place) -> str:
        """The number in an array of one."""
        number = f"{self.uses.reference('i32')}(address{self.slots[place.slot]}).data"
        return f"{number}[{self._moved_by(place)}]" if place.slot in self._handed else f"{number}[0]"

    def _number_at(self, number: int) -> str:
        """A number that the shader gets."""
        return word(self.numbers[number], self.uses)

    def _count(self, turns: int) -> str:
        return f"int({self._number_at(turns)})"

    # -- carries that are handed on -----------------------------------------------------------------------------------

    def _moving(self, handed: HandedOn) -> list[int]:
        """The slots of arrays that move: that of rows stays."""
        return [handed.target.slot] if handed.source.counters else [handed.target.slot, handed.source.slot]

    def _moved_by(self, place: Place) -> str:
        return f"moved{self.slots[place.slot]}"

    def _measure(self, handed: HandedOn) -> list[str]:
        """How far apart the arrays are. If one is too far, all is copied."""
        apart, target, source = self._apart[handed], *map(self._address, (handed.target, handed.source))
        lines = [f"int {apart} = words_between({target}, {source});"]
        if handed.rows is None:
            return lines
        rows = f"rows_of_{apart}"
        lines.append(f"int {rows} = words_between({source}, {self._address(handed.rows)});")
        return [*lines, f"if ({rows} == 0) {apart} = 0;"]

    def _aim(self, handed: HandedOn, goes_on: str) -> list[str]:
        """The source of this turn, where the next turn stacks it; of the last turn, its own place."""
        if handed.rows is None:
            return []
        apart, ((_, stride),) = self._apart[handed], zip(handed.rows.counters, handed.rows.strides, strict=True)
        next_row = f"({self._counter(handed.rows.counters[0])} + {handed.step}) * {stride // _WORD_BYTES}"
        moved = f"{self._moved_by(handed.source)} = {goes_on} ? rows_of_{apart} + {next_row} : 0;"
        return [*self.wait, f"if ({apart} != 0) {moved}"]

    def _address(self, place: Place) -> str:
        return f"address{self.slots[place.slot]}"

    def _hand_on(self, handed: HandedOn) -> list[str]:
        """The target is where the source is. Arrays that are too far apart are copied."""
        apart, target, source = self._apart[handed], self._moved_by(handed.target), self._moved_by(handed.source)
        if handed.rows is not None:
            moves = [f"{target} = {apart} + {source};"]
        elif handed.source.counters:
            moves = [f"{target} = {' + '.join([apart, *self._words_of(handed.source)])};"]
        else:
            before = f"of_{target}"
            moves = [f"int {before} = {target};", f"{target} = {apart} + {source};", f"{source} = {before} - {apart};"]
        copies = self._call(handed.copy)
        return [f"if ({apart} == 0) {{", *_indented(copies), "} else {", *_indented(moves), "}"]

    def _copy_back(self, handed: HandedOn) -> list[str]:
        """The copy to the target's own place from where it is, if that is another."""
        target = self._moved_by(handed.target)
        place = f"address{self.slots[handed.target.slot]}"
        stands = [_Stand(place, (target,), target, elsewhere=True), _Stand(place, ())]
        lines = [*([] if handed.copy.barrier else self.wait), *self._call(handed.copy, stands)]
        lines += [f"moved{self.slots[slot]} = 0;" for slot in self._moving(handed)]
        return [f"if ({target} != 0) {{", *_indented(lines), "}"]

    # -- kernels ------------------------------------------------------------------------------------------------------

    def _call(self, member: Member, stands: Sequence[_Stand] | None = None) -> list[str]:
        """A call of the kernel's function for all its workgroups, with its arrays where they are, or elsewhere."""
        text = member.launch.text
        assert text is not None, "only kernels whose shader has parts are members"
        name, groups = f"kernel{len(self._functions)}", prod(member.launch.groups)
        self.uses.include(text.uses.with_slots([self.slots[slot] for slot in member.slots]))
        lines = [self._moved(line, member) for line in text.main]
        for number, stand in enumerate(stands or [self._stand(place) for place in member.places]):
            if stand.words or stands:
                lines = self._standing(lines, number, stand)
                lines = [_seen_behind(line, number, stand.words) for line in lines]
        self._functions.append("\n".join([f"void {name}(uint group_of_turn) {{", *_indented(lines), "}"]))
        wait = self.wait if member.barrier else []
        if groups == 1:
            return [*wait, f"{name}(0u);"]
        return [*wait, f"for (uint group = 0u; group < {groups}u; ++group) {name}(group);"]

    def _stand(self, place: Place) -> _Stand:
        moved = [self._moved_by(place)] if place.slot in self._handed else []
        words, by_words = (*moved, *self._words_of(place)), moves_by_words(place)
        return _Stand(f"address{self.slots[place.slot]}", words, "".join(moved), by_words)

    def _words_of(self, place: Place) -> list[str]:
        pairs = zip(place.counters, place.strides, strict=True)
        return [f"{self._counter(counter)} * {stride // _WORD_BYTES}" for counter, stride in pairs]

    def _counter(self, slot: int) -> str:
        return self._number(Place(slot, _WORD_BYTES))

    def _standing(self, lines: Sequence[str], number: int, stand: _Stand) -> list[str]:
        """The lines of a kernel, one of whose arrays stands elsewhere: by its indices, if all accesses have one."""
        array, first = f"p{number}", f"first{number}"
        indexed = [_indexed(line, array, first) for line in lines]
        others = [*indexed[:number], *indexed[number + 1 :]]
        if stand.by_words and all(_is_indexed(line, array, first) for line in others):
            self.uses.access("low_bits")
            words = " + ".join([f"low_bits({array})", *stand.words])
            indexed[number] = f"uint64_t {array} = {stand.address}; int {first} = {words};"
            return indexed
        address = stand.address if stand.elsewhere else lines[number].partition(" = ")[2].rstrip(";")
        if stand.moved:
            address = f"{self.uses.access('behind')}({address}, {stand.moved}, {_WORD_BYTES}u)"
        return [*lines[:number], f"uint64_t {array} = {address};", *lines[number + 1 :]]

    def _moved(self, line: str, member: Member) -> str:
        """A line of a kernel's shader as part of one: addresses are known, workgroups and numbers are others."""
        line, slots = line.replace(WORKGROUP, "(group_of_turn)"), member.slots
        line = _ADDRESS.sub(lambda found: f"address{self.slots[slots[int(found[1])]]}", line)
        line = _DESCRIPTOR.sub(lambda found: f"{found[1]}{self.slots[slots[int(found[2])]]}", line)
        numbers = member.launch.words
        return _WORD.sub(lambda found: self._number_at(numbers[int(found[1]) - len(slots)]), line)


def _seen_behind(line: str, number: int, words: Sequence[str]) -> str:
    """The line with the position in a descriptor range of an array that stands so many words behind."""
    if not words or not line.startswith(f"int w{number} = "):
        return line
    return f"{line.removesuffix(';')} + ({' + '.join(words)}) / {_VECTOR_BYTES // _WORD_BYTES};"


def _indexed(line: str, array: str, first: str) -> str:
    """The line with accesses of an array behind its first word."""
    for access, other in _INDEXED:
        line = re.sub(access.format(array=array), other.format(array=array, first=first), line)
    return line


def _is_indexed(line: str, array: str, first: str) -> bool:
    """Whether all that the line does with an array is to access it by an index of words."""
    for access in _IN_WORDS:
        line = re.sub(access.format(array=array, first=first), "", line)
    return not re.search(rf"\b{array}\b", line)


def _spending(turn: Turns | While) -> list[str]:
    """Stops the dispatch or counts what a turn costs."""
    cost = cost_of_turn(turn)
    return [f"if (spent + {cost} > {MOST_SPENT}) {{", "    stopped = true;", "    break;", "}", f"spent += {cost};"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
