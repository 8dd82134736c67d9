"""Integer index expressions with known bounds, kept in one normal form so that equal indices look equal.

An `Index` is a sum of integer multiples of atoms and a constant. An atom is a loop variable, a quotient or a
remainder of an Index, an Index held within bounds, or a number read from an array. Quotients and remainders
divide non-negative numbers only; bounds decide which of them vanish, so that an index that is taken apart and
put together again (a reshape and its inverse, say) comes out as it went in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import count
from math import gcd
from typing import TypeVar

from lavax.base.kept import kept
from lavax.base.often_made import often_made
from lavax.ir.graph import Node

_Asked = TypeVar("_Asked")
_Found = TypeVar("_Found")
# A loop variable's name, its least and its greatest value.
Range = tuple[str, int, int]

# Begins the key of a number that is read from an array; no variable's name has it.
_LOOKUP = "@"
# Shaders compute indices as 32-bit integers.
_INT_LIMIT = 1 << 31


@often_made()
class Index:
    """constant + Σ coefficient · atom; `terms` are sorted by `order_of_atom`."""

    terms: tuple[tuple[Atom, int], ...]
    constant: int

    @kept
    def key(self) -> str:
        parts = [f"{coefficient}*{atom.key}" if coefficient != 1 else atom.key for atom, coefficient in self.terms]
        constant = [str(self.constant)] if self.constant or not parts else []
        text = "+".join(parts + constant)
        return text if _LOOKUP not in text else "+".join(sorted(parts) + constant)

    @kept
    def low(self) -> int:
        return self.constant + sum(c * (a.low if c > 0 else a.high) for a, c in self.terms)

    @kept
    def high(self) -> int:
        return self.constant + sum(c * (a.high if c > 0 else a.low) for a, c in self.terms)

    @kept
    def ranges(self) -> frozenset[Range]:
        """The loop variables that it depends on."""
        if len(self.terms) == 1:
            return self.terms[0][0].ranges
        return frozenset().union(*(atom.ranges for atom, _ in self.terms))

    @kept
    def variables(self) -> frozenset[str]:
        """The names of all loop variables it depends on."""
        return frozenset([name for name, _, _ in self.ranges])

    @kept
    def names(self) -> tuple[str, ...]:
        """The same in order."""
        return tuple(sorted(self.variables))

    @kept
    def number(self) -> int:
        """Equal for indices with the same text whose variables have the same bounds."""
        return _number_of(self.key, self.ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return self.key

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @kept
    def reads_array(self) -> bool:
        """Whether a number that is read from an array is a part of it, at whatever depth."""
        return _LOOKUP in self.key


@often_made()
class Atom:
    """What an Index is a sum of. Atoms with equal keys are the same number.

    Keys of lookups contain addresses, which differ between processes, so they are not suited for sorting.
    """

    @kept
    def key(self) -> str:
        raise NotImplementedError

    @kept
    def ranges(self) -> frozenset[Range]:
        raise NotImplementedError

    @kept
    def variables(self) -> frozenset[str]:
        """The names of all loop variables it depends on."""
        return frozenset([name for name, _, _ in self.ranges])

    low: int
    high: int


@often_made()
class Variable(Atom):
    """A loop variable that runs from `low` to `high`."""

    name: str

    @kept
    def key(self) -> str:
        return self.name

    @kept
    def ranges(self) -> frozenset[Range]:
        return frozenset(((self.name, self.low, self.high),))


@often_made()
class Quotient(Atom):
    """dividend // divisor, of a dividend that is never negative."""

    dividend: Index
    divisor: int

    @kept
    def key(self) -> str:
        return f"({self.dividend.key})/{self.divisor}"

    @kept
    def ranges(self) -> frozenset[Range]:
        return self.dividend.ranges


@often_made()
class Remainder(Atom):
    """dividend % divisor, of a dividend that is never negative."""

    dividend: Index
    divisor: int

    @kept
    def whole(self) -> Index:
        """dividend // divisor."""
        return quotient(self.dividend, self.divisor)

    @kept
    def key(self) -> str:
        return f"({self.dividend.key})%{self.divisor}"

    @kept
    def ranges(self) -> frozenset[Range]:
        return self.dividend.ranges


@often_made()
class Clamped(Atom):
    """An Index moved to the nearest number from `low` to `high`."""

    index: Index

    @kept
    def key(self) -> str:
        return f"clamp({self.index.key},{self.low},{self.high})"

    @kept
    def ranges(self) -> frozenset[Range]:
        return self.index.ranges


@often_made()
class Near(Clamped):
    """An Index where it is a number from `low` to `high`, and some number of those elsewhere."""

    @kept
    def key(self) -> str:
        return f"near({self.index.key},{self.low},{self.high})"


@often_made()
class Lookup(Atom):
    """The element of an integer array at some coordinates, clamped to the range from `low` to `high`."""

    array: Node
    coordinates: tuple[Index, ...]

    @kept
    def key(self) -> str:
        return f"{_LOOKUP}{id(self.array)}[{','.join(index.key for index in self.coordinates)}]<{self.high}"

    @kept
    def ranges(self) -> frozenset[Range]:
        return frozenset().union(*(index.ranges for index in self.coordinates))


# Results by the numbers of indices: kernels ask for few, over and over. A table that is full is emptied.
_MOST_ENTRIES = 1 << 14
_QUOTIENTS: dict[tuple[int, int], Index] = {}
_REMAINDERS: dict[tuple[int, int], Index] = {}
_SUBSTITUTED: dict[tuple[int | None, ...], Index] = {}
_FLATTENED: dict[tuple[Hashable, ...], Index] = {}
_UNFLATTENED: dict[tuple[int, tuple[int, ...]], tuple[Index, ...]] = {}
_INDICES: dict[tuple[tuple[tuple[Atom, int], ...], int], Index] = {}
_NUMBERS: dict[tuple[str, frozenset[Range]], int] = {}
_new_numbers = count()  # none comes again, so that an index may keep its number when the table is emptied


def _number_of(key: str, ranges: frozenset[Range]) -> int:
    found = _NUMBERS.get((key, ranges))
    return _entered(_NUMBERS, (key, ranges), next(_new_numbers)) if found is None else found


def _entered(table: dict[_Asked, _Found], asked: _Asked, found: _Found) -> _Found:
    if len(table) >= _MOST_ENTRIES:
        table.clear()
    return table.setdefault(asked, found)


def index_of(terms: tuple[tuple[Atom, int], ...], constant: int) -> Index:
    """The index of terms in order: one object, so that what is found out about it is found out once."""
    asked = terms, constant
    found = _INDICES.get(asked)
    if found is None:
        found = Index(terms, constant)
        if not found.reads_array:  # a table would keep the array's graph
            return _entered(_INDICES, asked, found)
    return found


def constant(value: int) -> Index:
    return index_of((), value)


ZERO = constant(0)


def of_atom(atom: Atom) -> Index:
    return constant(atom.low) if atom.low == atom.high else index_of(((atom, 1),), 0)


@lru_cache(maxsize=1 << 12)
def variable(name: str, extent: int) -> Index:
    """A loop variable from 0 to extent - 1; one of a single value is that value."""
    return of_atom(Variable(0, max(extent - 1, 0), name))


def linear(parts: Iterable[tuple[Index, int]], offset: int = 0) -> Index:
    """offset + Σ factor · index."""
    total, varying = offset, []
    for index, factor in parts:
        total += factor * index.constant
        if index.terms and factor:
            varying.append((index, factor))
    if len(varying) < 2:  # most often: nothing can be joined
        return _scaled(*varying[0], total) if varying else constant(total)
    atoms: dict[str, Atom] = {}
    coefficients: dict[str, int] = {}
    for index, factor in varying:
        for atom, coefficient in index.terms:
            atoms[atom.key] = atom
            coefficients[atom.key] = coefficients.get(atom.key, 0) + factor * coefficient
    if any(isinstance(atom, Remainder) for atom in atoms.values()):
        total += _join_quotients_and_remainders(atoms, coefficients)
    ordered = sorted(atoms)
    if len(ordered) > 1 and _LOOKUP in "".join(ordered):
        ordered = sorted(atoms, key=lambda key: order_of_atom(atoms[key]))
    return index_of(tuple((atoms[key], coefficients[key]) for key in ordered if coefficients[key]), total)


def _scaled(index: Index, factor: int, total: int) -> Index:
    """factor · index with another constant."""
    if factor == 1:
        return index if total == index.constant else index_of(index.terms, total)
    return index_of(tuple((atom, factor * coefficient) for atom, coefficient in index.terms), total)


def _join_quotients_and_remainders(atoms: dict[str, Atom], coefficients: dict[str, int]) -> int:
    """(x / n) · n · c + (x % n) · c = x · c, until no such pair is left; returns what the constants of x add."""
    offset, changed = 0, True
    while changed:
        changed = False
        for key, atom in list(atoms.items()):
            if not isinstance(atom, Remainder) or not coefficients[key]:
                continue
            whole, multiple = atom.whole, coefficients[key]
            if len(whole.terms) != 1 or whole.constant or whole.terms[0][1] != 1:
                continue
            partner = whole.terms[0][0].key
            if coefficients.get(partner) != multiple * atom.divisor:
                continue
            offset += multiple * atom.dividend.constant
            coefficients[key] = coefficients[partner] = 0
            for part, coefficient in atom.dividend.terms:
                atoms.setdefault(part.key, part)
                coefficients[part.key] = coefficients.get(part.key, 0) + multiple * coefficient
            changed = True
    return offset


def lookups_of(index: Index) -> Iterator[Lookup]:
    """The numbers read from arrays that are parts of an index, but not those that are parts of such numbers' places."""
    for atom, _ in index.terms if index.reads_array else ():
        match atom:
            case Lookup():
                yield atom
            case Quotient(dividend=inner) | Remainder(dividend=inner) | Clamped(index=inner):
                yield from lookups_of(inner)


def order_of(index: Index) -> str:
    """Sorts indices the same way in every process: the key without what identifies arrays."""
    if not index.reads_array:
        return index.key
    parts = [f"{c}*{order_of_atom(atom)}" if c != 1 else order_of_atom(atom) for atom, c in index.terms]
    return "+".join(parts + ([str(index.constant)] if index.constant else []))


def order_of_atom(atom: Atom) -> str:
    """Sorts atoms as `order_of` does. Lookups that differ in their arrays or bounds alone stay as they were added."""
    match atom:
        case Quotient(dividend=dividend, divisor=divisor):
            return f"({order_of(dividend)})/{divisor}"
        case Remainder(dividend=dividend, divisor=divisor):
            return f"({order_of(dividend)})%{divisor}"
        case Near(index=index, low=low, high=high):
            return f"near({order_of(index)},{low},{high})"
        case Clamped(index=index, low=low, high=high):
            return f"clamp({order_of(index)},{low},{high})"
        case Lookup(coordinates=coordinates):
            return f"{_LOOKUP}[{','.join(map(order_of, coordinates))}]"
    return atom.key


def add(index: Index, offset: int) -> Index:
    return index_of(index.terms, index.constant + offset) if offset else index


def _split(index: Index, divisor: int) -> tuple[Index, Index]:
    """index = divisor · first + second, with as much as possible in the first and the second not negative."""
    whole = [(atom, c // divisor) for atom, c in index.terms if c % divisor == 0]
    rest = [(atom, c) for atom, c in index.terms if c % divisor]
    first = index_of(tuple(whole), index.constant // divisor)
    second = index_of(tuple(rest), index.constant % divisor)
    if second.low < 0:  # take back as many divisors as make it whole
        borrowed = -(second.low // divisor)
        first, second = add(first, -borrowed), add(second, borrowed * divisor)
    return first, second


def _coarser(index: Index, divisor: int) -> tuple[int, Index, Index] | None:
    """(g, coarse, fine) with index = g · coarse + fine, g a divisor of `divisor` and 0 <= fine < g."""
    for step in sorted({gcd(divisor, c) for _, c in index.terms}, reverse=True):
        if step == 1:
            break
        fine = index_of(tuple((a, c) for a, c in index.terms if c % step), index.constant % step)
        if fine.low >= 0 and fine.high < step:
            coarse = tuple((a, c // step) for a, c in index.terms if c % step == 0)
            return step, index_of(coarse, index.constant // step), fine
    return None


def _as_one_quotient(index: Index) -> Quotient | None:
    """x / n + y as (x + n · y) / n: what divides a quotient again then has one form. None: not of that form."""
    for atom, coefficient in index.terms:
        if coefficient == 1 and isinstance(atom, Quotient):
            others = index_of(tuple(term for term in index.terms if term[0] is not atom), index.constant)
            dividend = linear([(atom.dividend, 1), (others, atom.divisor)])
            return Quotient(index.low, index.high, dividend, atom.divisor) if dividend.high < _INT_LIMIT else None
    return None


def quotient(index: Index, divisor: int) -> Index:
    """index // divisor. `index` is never negative."""
    if divisor == 1 or index.high < divisor:
        return index if divisor == 1 else ZERO
    if index.reads_array:  # a table would keep the array's graph
        return _new_quotient(index, divisor)
    asked = index.number, divisor
    found = _QUOTIENTS.get(asked)
    return _entered(_QUOTIENTS, asked, _new_quotient(index, divisor)) if found is None else found


def _new_quotient(index: Index, divisor: int) -> Index:
    whole, rest = _split(index, divisor)
    if rest.high < divisor:
        return whole
    coarser = _coarser(rest, divisor)
    if coarser is not None:
        step, coarse, _ = coarser
        return linear([(whole, 1), (quotient(coarse, divisor // step), 1)])
    once = _as_one_quotient(rest)
    if once is not None:
        return linear([(whole, 1), (quotient(once.dividend, once.divisor * divisor), 1)])
    atom = Quotient(rest.low // divisor, rest.high // divisor, rest, divisor)
    return linear([(whole, 1), (of_atom(atom), 1)])


def remainder(index: Index, divisor: int) -> Index:
    """index % divisor. `index` is never negative."""
    if divisor == 1:
        return ZERO
    if index.reads_array:
        return _new_remainder(index, divisor)
    asked = index.number, divisor
    found = _REMAINDERS.get(asked)
    return _entered(_REMAINDERS, asked, _new_remainder(index, divisor)) if found is None else found


def _new_remainder(index: Index, divisor: int) -> Index:
    _, rest = _split(index, divisor)
    if rest.high < divisor:
        return rest
    coarser = _coarser(rest, divisor)
    if coarser is not None:
        step, coarse, fine = coarser
        return linear([(remainder(coarse, divisor // step), step), (fine, 1)])
    if rest.low // divisor == rest.high // divisor:
        return add(rest, -(rest.low // divisor) * divisor)
    return of_atom(Remainder(0, divisor - 1, rest, divisor))


def clamp(index: Index, low: int, high: int) -> Index:
    """The nearest number from low to high."""
    if low <= index.low and index.high <= high:
        return index
    if index.high <= low or index.low >= high:
        return constant(low if index.high <= low else high)
    return of_atom(Clamped(low, high, index))


def near(index: Index, low: int, high: int) -> Index:
    """The index where it is from low to high, and some number of those elsewhere: neighbours stay neighbours then."""
    if low <= index.low and index.high <= high:
        return index
    if index.high <= low or index.low >= high:
        return constant(low if index.high <= low else high)
    coarser = _coarser(index, gcd(low, high + 1))
    if coarser is None:
        return of_atom(Near(low, high, index))
    step, coarse, fine = coarser
    return linear([(near(coarse, low // step, (high + 1) // step - 1), step), (fine, 1)])


def lookup(array: Node, coordinates: tuple[Index, ...], extent: int) -> Index:
    """The array's element at the coordinates, as a coordinate along an axis of that extent."""
    return of_atom(Lookup(0, max(extent - 1, 0), array, coordinates))


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def flatten(coordinates: tuple[Index, ...], shape: tuple[int, ...]) -> Index:
    """The row-major position of an element."""
    asked = (shape, *[index.number for index in coordinates])
    found = _FLATTENED.get(asked)
    if found is None:
        found = linear(zip(coordinates, strides_of(shape), strict=True))
        if not found.reads_array:
            return _entered(_FLATTENED, asked, found)
    return found


def unflatten(position: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The coordinates of the element at a row-major position below the product of `shape`."""
    asked = position.number, shape
    found = _UNFLATTENED.get(asked)
    if found is None:
        found = _new_coordinates(position, shape)
        if not position.reads_array:
            return _entered(_UNFLATTENED, asked, found)
    return found


def _new_coordinates(position: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    coordinates = []
    for axis, (extent, stride) in enumerate(zip(shape, strides_of(shape), strict=True)):
        outer = quotient(position, stride) if stride else ZERO
        coordinates.append(outer if axis == 0 else remainder(outer, extent) if extent else ZERO)
    return tuple(coordinates)


def substitute(index: Index, values: Mapping[str, Index]) -> Index:
    """Puts other indices in place of loop variables."""
    if index.variables.isdisjoint(values):
        return index
    if index.reads_array:
        return _substituted(index, values)
    put = [values.get(name) for name in index.names]
    asked = (index.number, *[None if value is None else value.number for value in put])
    found = _SUBSTITUTED.get(asked)
    if found is None:
        found = _substituted(index, values)
        if not found.reads_array:
            _entered(_SUBSTITUTED, asked, found)
    return found


def _substituted(index: Index, values: Mapping[str, Index]) -> Index:
    if len(index.terms) == 1 and index.terms[0][1] == 1 and not index.constant:
        return _substitute_atom(index.terms[0][0], values)
    return linear([(_substitute_atom(atom, values), c) for atom, c in index.terms], index.constant)


def _substitute_atom(atom: Atom, values: Mapping[str, Index]) -> Index:
    match atom:
        case Variable(name=name):
            return values.get(name, of_atom(atom))
        case Quotient(dividend=dividend, divisor=divisor):
            return quotient(substitute(dividend, values), divisor)
        case Remainder(dividend=dividend, divisor=divisor):
            return remainder(substitute(dividend, values), divisor)
        case Near(index=index, low=low, high=high):
            return near(substitute(index, values), low, high)
        case Clamped(index=index, low=low, high=high):
            return clamp(substitute(index, values), low, high)
        case Lookup(array=array, coordinates=coordinates, high=high):
            return lookup(array, tuple(substitute(c, values) for c in coordinates), high + 1)
    raise TypeError(f"unknown atom {atom!r}")


def grows_by_one(index: Index, name: str) -> bool:
    """Whether the innermost part of the variable has stride 1."""
    for atom, coefficient in index.terms:
        if coefficient == 1 and name in atom.variables:
            return isinstance(atom, Variable) or (isinstance(atom, Remainder) and atom.dividend.key == name)
    return False


def grows_by_one_inside(index: Index, name: str) -> bool:
    """The same where indices are held near the ends of arrays, as those of arrays that lie end to end, or of heads in
    such arrays."""
    nears = (_near_of(atom) for atom, coefficient in index.terms if coefficient == 1)
    return grows_by_one(index, name) or any(grows_by_one_inside(near.index, name) for near in nears if near is not None)


def _near_of(atom: Atom) -> Near | None:
    """What an atom is, or is the remainder of, that is held near the ends of an array."""
    if isinstance(atom, Remainder) and len(atom.dividend.terms) == 1 and atom.dividend.terms[0][1] == 1:
        atom = atom.dividend.terms[0][0]
    return atom if isinstance(atom, Near) else None
