"""Writes the statements that compute values of a kernel's graph at coordinates.

`Body.value` asks for a value at coordinates, and in turn for its operands at the coordinates that `reads` gives, down
to loads from memory and the registers that hold reductions. Each value is written once, in the outermost loop in which
its coordinates are known.

Coordinates use the kernel's own loop variables, in which fusion found each value's coordinates; `Body.at` maps those to
the shader's variables. Where an index contains the variable "lane", the value is a vector of four (`lanes`), and four
neighbours in memory are one load; so are some that are asked for one by one (`neighbours`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from operator import attrgetter
from typing import Any, TypeVar

from lavax.backends.vulkan.glsl import end_to_end, neighbours
from lavax.backends.vulkan.glsl.accesses import WORD_BYTES, element_types
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, EXPRESSIONS, VECTOR, Call, literal, type_name
from lavax.backends.vulkan.glsl.given import ConstantTexts
from lavax.backends.vulkan.glsl.lanes import (
    LANE_NAME,
    GlslValue,
    is_multiple,
    lane_step,
    quotient_exact,
    widen,
    widened,
)
from lavax.backends.vulkan.glsl.memory import Memory
from lavax.backends.vulkan.glsl.shader import Parameters
from lavax.base.often_made import often_made
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.ir.types import DType
from lavax.passes.kernels.index import (
    Atom,
    Clamped,
    Index,
    Lookup,
    Quotient,
    Remainder,
    Variable,
    add,
    constant,
    flatten,
    lookups_of,
    of_atom,
    substitute,
)
from lavax.passes.kernels.reads import (
    READS,
    Coordinates,
    Read,
    Within,
    concatenate_starts,
    inside_pad,
    inside_unshear,
)
from lavax.passes.kernels.runs import reads_in_one


@often_made()
class Place:
    """Coordinates in the shader's variables, and those. Equal coordinates of a meaning have the same object."""

    real: Coordinates
    variables: frozenset[str]
    lookups: tuple[Lookup, ...]


@often_made()
class Asked:
    """Coordinates in the kernel's variables: what names them, and the variables they depend on, in order.

    `at` is held, because what is found out about coordinates is kept by its identity.
    """

    at: Coordinates
    keys: tuple[str, ...]
    names: tuple[str, ...]


Instance = tuple[Node, Place]
_Found = TypeVar("_Found")
_KEY = attrgetter("key")
_LANES = frozenset((LANE_NAME,))


@dataclass
class Scope:
    """A block of statements, the shader's variables that it declares, and the values that have names in it."""

    variables: frozenset[str]
    lines: list[str] = field(default_factory=list)
    values: dict[Instance, GlslValue] = field(default_factory=dict)
    lookups: dict[tuple[Node, Coordinates], str] = field(default_factory=dict)
    loads: dict[tuple[Node, str], GlslValue] = field(default_factory=dict)  # by the positions' keys
    runs: dict[tuple[Node, Index], str] = field(default_factory=dict)  # of neighbours that are one load
    atoms: dict[str, str] = field(default_factory=dict)


class Body:
    """The state of writing a shader's main."""

    def __init__(self, addresses: dict[Node, str], parameters: Parameters) -> None:
        self.addresses = addresses
        self.unaligned: set[Node] = set()  # arrays that may not begin at a multiple of 16 bytes
        # Whether neighbours that are read one after the other are one load: two vectors of narrow elements, or up to
        # four single elements of 32 bits.
        self.loads_runs = False
        # Whether real and imaginary parts side by side are read one after the other, and are one texel.
        self.loads_numbers = False
        # The positions of aligned vectors that vectors between them are put together of, by node and key.
        self.aligned_reads: Mapping[tuple[Node, str], Index] = {}
        self.parameters, self.uses = parameters, parameters.uses
        self.memory = Memory(self.uses)
        self.constants = ConstantTexts(parameters)
        self.scopes = [Scope(frozenset())]
        self.provided: set[Node] = set()  # arrays that some elements are known of
        self.pinned = 0  # values are written in this block or one inside it, whatever they depend on
        self._meaning: Mapping[str, Index] = {}
        self._places: dict[tuple[tuple[str, ...], tuple[str, ...]], Place] = {}
        # By the identity of coordinates, which `_asked` holds: of all meanings, and of the present one.
        self._asked: dict[int, Asked] = {}
        self._read: dict[tuple[Node, int], tuple[Read, ...]] = {}
        self._positions: dict[tuple[Node, int], Index] = {}
        self._known: dict[tuple[Node, int], Any] = {}
        self._places_here: dict[int, Place] = {}
        self._names = 0

    # -- statements ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """A statement in the innermost block."""
        self.scopes[-1].lines.append(text)

    def lines(self, texts: Iterable[str]) -> None:
        """Statements in the innermost block."""
        self.scopes[-1].lines += texts

    def name(self) -> str:
        """A name not used before."""
        self._names += 1
        return f"v{self._names}"

    @contextmanager
    def block(self, head: str, variables: frozenset[str] = frozenset()) -> Iterator[None]:
        """A nested block after `head`, such as a loop that declares `variables`."""
        self.scopes.append(Scope(variables))
        yield
        inner = self.scopes.pop()
        self.scopes[-1].lines += [f"{head} {{".lstrip(), *(f"    {line}" for line in inner.lines), "}"]

    @contextmanager
    def pinned_block(self, head: str, variables: frozenset[str] = frozenset()) -> Iterator[None]:
        """A nested block that keeps the values first used in it, also those that do not depend on its variables."""
        before, self.pinned = self.pinned, len(self.scopes)
        with self.block(head, variables):
            yield
        self.pinned = before

    def scope_for(self, variables: frozenset[str], lookups: Iterable[Lookup] = (), first: int = 0) -> Scope:
        """The outermost block in which the loop variables and the numbers of `lookups` are known, from the pinned one
        or that of number `first` inwards. A number may be written further inwards than its variables need: as a
        component of a vector."""
        first = max(first, self.pinned, *map(self._depth_of, lookups))
        missing = variables - _LANES
        for number, scope in enumerate(self.scopes):
            if missing:
                missing = missing - scope.variables
            if not missing and number >= first:
                return scope
        raise KeyError(f"no loop brings {', '.join(sorted(missing))}")

    def _depth_of(self, lookup: Lookup) -> int:
        """The number of the innermost block that a number was written in: what was computed of it there is known only
        there, also if it was written once more further outwards."""
        sought = lookup.array, lookup.coordinates
        return max((number for number, scope in enumerate(self.scopes) if sought in scope.lookups), default=0)

    def declare(self, scope: Scope, kind: str, text: str) -> str:
        name = self.name()
        scope.lines.append(f"{kind} {name} = {text};")
        return name

    @contextmanager
    def at(self, meaning: Mapping[str, Index]) -> Iterator[None]:
        """The context in which the kernel's loop variables stand for these indices in the shader's variables."""
        before = self._meaning, self._places_here
        self._meaning, self._places_here = meaning, {}
        yield
        self._meaning, self._places_here = before

    def real(self, index: Index) -> Index:
        """An index in the shader's variables."""
        return substitute(index, self._meaning)

    # -- indices ------------------------------------------------------------------------------------------------------

    def index(self, index: Index) -> str:
        """An index without lanes as a GLSL int."""
        parts = []
        for atom, coefficient in index.terms:
            text = self._atom(atom)
            parts.append(text if coefficient == 1 else f"{text} * {self.parameters.integer(coefficient)}")
        if index.constant or not parts:
            parts.append(self.parameters.integer(index.constant))
        return parts[0] if len(parts) == 1 and "*" not in parts[0] else f"({' + '.join(parts)})"

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Variable):
            return atom.name
        for scope in self.scopes:
            if atom.key in scope.atoms:
                return scope.atoms[atom.key]
        scope = self.scope_for(atom.variables, lookups_of(of_atom(atom)))
        scope.atoms[atom.key] = self.declare(scope, "int", self._atom_text(atom))
        return scope.atoms[atom.key]

    def _atom_text(self, atom: Atom) -> str:
        integer = self.parameters.integer
        match atom:
            case Quotient(dividend=dividend, divisor=divisor):
                return f"int(uint({self.index(dividend)}) / uint({integer(divisor)}))"
            case Remainder(dividend=dividend, divisor=divisor):
                return f"int(uint({self.index(dividend)}) % uint({integer(divisor)}))"
            case Clamped(index=index, low=low, high=high):
                return f"clamp({self.index(index)}, {integer(low)}, {integer(high)})"
            case Lookup(array=array, coordinates=coordinates, high=high):
                return f"clamp({self._lookup(array, coordinates)}, 0, {integer(high)})"
        raise TypeError(f"unknown atom {atom!r}")

    def _lookup(self, array: Node, at: Coordinates) -> str:
        for scope in self.scopes:
            if (array, at) in scope.lookups:
                return scope.lookups[array, at]
        raise KeyError(f"the index {array!r} was not computed before its use")

    def _components(self, index: Index) -> list[str]:
        """An index with lanes, as four ints."""
        return [self.index(substitute(index, {LANE_NAME: constant(c)})) for c in range(VECTOR)]

    def index_value(self, index: Index) -> GlslValue:
        """An index as a value: an int, or four."""
        if LANE_NAME not in index.variables:
            return GlslValue(self.index(index), 1)
        step = lane_step(index)
        if step is None:
            return GlslValue(f"ivec4({', '.join(self._components(index))})", VECTOR)
        base = self.index(substitute(index, {LANE_NAME: constant(0)}))
        return GlslValue(f"(ivec4({base}) + ivec4({', '.join(str(step * c) for c in range(VECTOR))}))", VECTOR)

    # -- values -------------------------------------------------------------------------------------------------------

    def define(self, node: Node, at: Coordinates, value: GlslValue) -> None:
        """Records that a register of the current block holds the node's element at these coordinates."""
        self.uses.doubles |= node.dtype.name == "f64"
        place = self._place(at)
        self.scopes[-1].values[node, place] = value
        if node.dtype.name == "i32":
            self._offer_as_index(self.scopes[-1], node, place.real, value)

    def _place(self, at: Coordinates) -> Place:
        found = self._places_here.get(id(at))
        if found is not None:
            return found
        asked, meaning = self._asked_of(at), self._meaning
        key = asked.keys, tuple([meaning[name].key for name in asked.names if name in meaning])
        found = self._places.get(key)
        if found is None:
            real = tuple([self.real(index) for index in at])
            variables: frozenset[str] = frozenset().union(*[index.variables for index in real])
            lookups = tuple([lookup for index in real for lookup in lookups_of(index)])
            found = self._places[key] = Place(real, variables, lookups)
        self._places_here[id(at)] = found
        return found

    def _asked_of(self, at: Coordinates) -> Asked:
        found = self._asked.get(id(at))
        if found is None:
            names = frozenset().union(*[index.variables for index in at])
            found = self._asked[id(at)] = Asked(at, tuple(map(_KEY, at)), tuple(sorted(names)))
        return found

    def _find(self, instance: Instance) -> GlslValue | None:
        for scope in self.scopes:
            found = scope.values.get(instance)
            if found is not None:
                return found
        return None

    def value(self, node: Node, at: Coordinates) -> GlslValue:
        """The node's element at the coordinates; its operands are written first."""
        stack: list[tuple[Node, Coordinates, tuple[Read, ...] | None]] = [(node, at, None)]
        while stack:
            wanted, there, reads = stack.pop()
            place = self._place(there)
            if self._find((wanted, place)) is not None:
                continue
            if wanted.op == INPUT:
                self._write(wanted, place, self._load(wanted, there))
            elif reads is not None:
                self._write(wanted, place, self._expression(wanted, there, reads), self._depth_of_reads(reads))
            else:
                joined = end_to_end.element(self, wanted, there) if wanted.op == "concatenate" else None
                if joined is not None:
                    self._write(wanted, place, joined)
                    continue
                reads = self._reads(wanted, there)
                stack.append((wanted, there, reads))
                stack.extend([(read, where, None) for read, where in reversed(reads)])
        return self._found(node, at)

    def _depth_of_reads(self, reads: Sequence[Read]) -> int:
        """The number of the innermost block that one of these values was written in."""
        if len(self.scopes) == 1:
            return 0
        read = [(node, self._place(at)) for node, at in reads]
        for number in range(len(self.scopes) - 1, 0, -1):
            if not self.scopes[number].values.keys().isdisjoint(read):
                return number
        return 0

    def _write(self, node: Node, place: Place, value: GlslValue, first: int = 0) -> None:
        self.uses.doubles |= node.dtype.name == "f64"
        scope = self.scope_for(place.variables, place.lookups, first)
        if not value.text.isidentifier() and node.op != "constant":
            value = GlslValue(self.declare(scope, type_name(node.dtype, value.width), value.text), value.width)
        scope.values[node, place] = value
        if node.dtype.name == "i32":
            self._offer_as_index(scope, node, place.real, value)

    def _offer_as_index(self, scope: Scope, node: Node, at: Coordinates, value: GlslValue) -> None:
        """Records, per lane, the name under which a gather's coordinates find an index."""
        if not any(LANE_NAME in index.variables for index in at):
            scope.lookups[node, at] = value.text
            return
        for number, component in enumerate(COMPONENTS):
            place = tuple(substitute(index, {LANE_NAME: constant(number)}) for index in at)
            scope.lookups[node, place] = f"{value.text}.{component}" if value.width == VECTOR else value.text

    def _expression(self, node: Node, at: Coordinates, reads: tuple[Read, ...]) -> GlslValue:
        operands = [self._found(read, place) for read, place in reads]
        match node.op:
            case "constant":
                return GlslValue(self.constants.of(node), 1)
            case "iota":
                counted = self.index_value(self.real(at[node.attrs["axis"]]))
                return GlslValue(f"{type_name(node.dtype, counted.width)}({counted.text})", counted.width)
            case "pad":
                return self._pad(node, at, operands[0])
            case "unshear":
                conditions = [self.within(condition) for condition in inside_unshear(node, at)]
                return self._select(conditions, operands[0], GlslValue(literal(0, node.dtype), 1), node.dtype)
            case "concatenate":
                return self._concatenate(node, at, operands)
            case "reshape" | "transpose" | "broadcast" | "slice" | "flip" | "shear" | "gather":
                return operands[-1]
        width = max((operand.width for operand in operands), default=1)
        arguments = [widened(operand, width, read.dtype) for operand, (read, _) in zip(operands, reads, strict=True)]
        return GlslValue(EXPRESSIONS[node.op](Call(node, arguments, width, self.uses)), width)

    def _reads(self, node: Node, at: Coordinates) -> tuple[Read, ...]:
        """What an element is computed from. A shader for every shape does not know where runs begin."""
        found = self._read.get((node, id(at)))
        if found is None:
            self._asked_of(at)
            reads = READS[node.op] if self.parameters.lifted else reads_in_one
            found = self._read[node, id(at)] = reads(node, at)
        return found

    def once(self, node: Node, at: Coordinates, find: Callable[[], _Found]) -> _Found:
        """What is found out about a node at coordinates of the kernel, once for all steps of its loops."""
        key = node, id(at)
        if key not in self._known:
            self._asked_of(at)
            self._known[key] = find()
        found: _Found = self._known[key]
        return found

    def _position(self, node: Node, at: Coordinates) -> Index:
        """The place of an element in its array, in the shader's variables."""
        found = self._positions.get((node, id(at)))
        if found is None:
            self._asked_of(at)
            found = self._positions[node, id(at)] = flatten(at, node.shape)
        return self.real(found)

    def _found(self, node: Node, at: Coordinates) -> GlslValue:
        found = self._find((node, self._place(at)))
        assert found is not None, f"{node!r} was not computed at {at}"
        return found

    def _pad(self, node: Node, at: Coordinates, inside: GlslValue) -> GlslValue:
        outside = GlslValue(literal(node.attrs["value"], node.dtype), 1)
        conditions = [self.within(condition) for condition in inside_pad(node, at)]
        return self._select(conditions, inside, outside, node.dtype)

    def _concatenate(self, node: Node, at: Coordinates, operands: list[GlslValue]) -> GlslValue:
        if len(operands) == 1:
            return operands[0]
        along = at[node.attrs["axis"]]
        result = operands[-1]
        starts = concatenate_starts(node)
        for operand, end in reversed(list(zip(operands[:-1], starts[1:], strict=True))):
            condition = Within(along, -(1 << 31), end - 1)
            result = (
                operand if condition.always else self._select([self.within(condition)], operand, result, node.dtype)
            )
        return result

    def within(self, condition: Within) -> GlslValue:
        """A condition on an index, as a bool or four."""
        index = self.real(condition.index)
        if LANE_NAME not in index.variables:
            return GlslValue(self._within_text(condition, self.index(index)), 1)
        base = substitute(index, {LANE_NAME: constant(0)})
        begins = is_multiple(base, VECTOR) and condition.low % VECTOR == 0 == (condition.high + 1) % VECTOR
        if begins and condition.step == 1 and lane_step(index) == 1:  # all four are within, or none
            return GlslValue(self._within_text(condition, self.index(base)), 1)
        texts = [self._within_text(condition, text) for text in self._components(index)]
        return GlslValue(f"bvec4({', '.join(texts)})", VECTOR)

    def _within_text(self, condition: Within, index: str) -> str:
        integer = self.parameters.integer
        tests = []
        if condition.index.low < condition.low:
            tests.append(f"{index} >= {integer(condition.low)}")
        if condition.index.high > condition.high:
            tests.append(f"{index} <= {integer(condition.high)}")
        if condition.step > 1:
            tests.append(f"({index} - {integer(condition.low)}) % {integer(condition.step)} == 0")
        return f"({' && '.join(tests) or 'true'})"

    def _select(self, conditions: list[GlslValue], chosen: GlslValue, other: GlslValue, dtype: DType) -> GlslValue:
        """`chosen` if all conditions hold, else `other`."""
        result = chosen
        for condition in conditions:
            width = max(condition.width, result.width, other.width)
            yes, no = widened(result, width, dtype), widened(other, width, dtype)
            result = GlslValue(f"mix({no}, {yes}, {widen(condition.text, condition.width, width, 'bvec4')})", width)
        return result

    # -- memory -------------------------------------------------------------------------------------------------------

    def _load(self, node: Node, at: Coordinates) -> GlslValue:
        return self.load_once(node, self._position(node, at))

    def load_once(self, node: Node, position: Index) -> GlslValue:
        """What `load_at` gives, read where its position is first known, as is what is made of it."""
        load = node, position.key
        for known in self.scopes:
            found = known.loads.get(load)
            if found is not None:
                return found
        scope = self.scope_for(position.variables, lookups_of(position))
        value = self.load_at(node, position)
        name = self.declare(scope, type_name(node.dtype, value.width), value.text)
        found = scope.loads[load] = GlslValue(name, value.width)
        return found

    def is_in_memory(self, array: Node) -> bool:
        """Whether an array is loaded by address, and no elements of it are in registers or shared memory already."""
        return array in self.addresses and array not in self.provided

    def loads(self) -> int:
        """The number of loads from memory in the open blocks."""
        return sum(len(scope.loads) for scope in self.scopes)

    def provide(self, node: Node, position: Index, value: GlslValue) -> None:
        """Records an array's element at a position, in the shader's variables, so that it is not loaded."""
        self.provided.add(node)
        self.scopes[-1].loads[node, position.key] = value

    def load_at(self, node: Node, position: Index) -> GlslValue:
        """The array's element, or four, at a position in the shader's variables; inside the array in any case."""
        position = inside(position, node.type.size)
        address, kind = self.addresses[node], node.dtype.name
        if LANE_NAME not in position.variables:
            element = neighbours.element_of_run(self, node, position) or neighbours.part_of_number(self, node, position)
            return GlslValue(element or self.memory.loaded(node.dtype, address, self.index(position)), 1)
        base = substitute(position, {LANE_NAME: constant(0)})
        if self.is_aligned(node, position):
            half = neighbours.half_of_pair(self, node, base)
            if half is not None:
                return self._as_read(half, VECTOR, node.dtype)
            aligned = self.index(quotient_exact(base, VECTOR))
            return self._as_read(self.memory.four(node.dtype, address, aligned), VECTOR, node.dtype)
        joined = neighbours.joined(self, node, position)
        if joined is not None:
            return joined
        swizzled = neighbours.within_vector(self, node, position)
        if swizzled is not None:
            return self._as_read(swizzled, VECTOR, node.dtype)
        if lane_step(position) == 1 and node.dtype.bits not in self.memory.packed:
            return self._as_read(self.memory.unaligned_four(node.dtype, address, self.index(base)), VECTOR, node.dtype)
        if node.dtype.storage.itemsize < 4:  # GLSL builds no such vectors from scalars
            parts = (self.memory.loaded(node.dtype, address, text) for text in self._components(position))
            return GlslValue(f"{type_name(node.dtype, VECTOR)}({', '.join(parts)})", VECTOR)
        loads = (self.memory.read(node.dtype, address, text) for text in self._components(position))
        vector = element_types(kind)[1]
        return self._as_read(f"{vector}({', '.join(loads)})", VECTOR, node.dtype)

    def is_aligned(self, node: Node, position: Index) -> bool:
        """Whether the lanes of a position are four elements that begin at a multiple of four."""
        base = substitute(position, {LANE_NAME: constant(0)})
        return lane_step(position) == 1 and is_multiple(base, VECTOR) and node not in self.unaligned

    def _as_read(self, text: str, width: int, dtype: DType) -> GlslValue:
        return GlslValue(self.memory.as_read(text, width, dtype), width)

    def store(self, node: Node, at: Coordinates, value: GlslValue, address: str) -> None:
        """Writes a value to the node's array in memory, inside it in any case."""
        position, is_held = inside(self._position(node, at), node.type.size), node.op == "cast"
        if LANE_NAME not in position.variables:
            self.line(self.memory.stored(node.dtype, address, self.index(position), value.text, is_held))
            return
        if self.is_aligned(node, position):
            base = substitute(position, {LANE_NAME: constant(0)})
            wide = self.memory.as_stored(widened(value, VECTOR, node.dtype), VECTOR, node.dtype, is_held)
            self.line(self.memory.stored_four(node.dtype, address, self.index(quotient_exact(base, VECTOR)), wide))
            return
        if self._is_shifted(node, position, address):
            base = substitute(position, {LANE_NAME: constant(0)})
            words, shift = self.words_of(node, value), base.constant % VECTOR
            number = self.index(quotient_exact(add(base, -shift), VECTOR))
            self.line(self.memory.stored_behind(address, number, words, shift))
            return
        name = self.name()
        self.line(f"{type_name(node.dtype, VECTOR)} {name} = {widened(value, VECTOR, node.dtype)};")
        for component, text in zip(COMPONENTS, self._components(position), strict=True):
            self.line(self.memory.stored(node.dtype, address, text, f"{name}.{component}", is_held))

    def _is_shifted(self, node: Node, position: Index, address: str) -> bool:
        """Whether four words begin a known number of words behind a multiple of four, seen through a descriptor."""
        if address not in self.memory.write_descriptors or node.dtype.storage.itemsize != WORD_BYTES:
            return False
        base = substitute(position, {LANE_NAME: constant(0)})
        return lane_step(position) == 1 and is_multiple(add(base, -(base.constant % VECTOR)), VECTOR)

    def words_of(self, node: Node, value: GlslValue) -> str:
        """The words in which the node's array holds four elements of up to 32 bits."""
        text = widened(value, VECTOR, node.dtype)
        wide = self.memory.as_stored(text, VECTOR, node.dtype, is_held=node.op == "cast")
        return self.memory.words_of_four(node.dtype, wide)

    def store_words(self, number: Index, fours: Sequence[Sequence[str]], address: str) -> None:
        """Writes four words, given in parts, or twice as many to an array that is seen through a descriptor."""
        self.line(self.memory.stored_words(address, self.index(number), fours))
