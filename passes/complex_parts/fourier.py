"""Fourier transforms of complex values by parts.

Lines of small prime factors are transformed by kernels of their own (`fourier_step`), and so are those that Bluestein's
convolution pads to such lengths; how large a factor may be depends on the device. Lines of up to 128 points with larger
prime factors are products with small matrices.
Other lengths with large prime factors become convolutions: of primes p with a smooth p − 1 in many lines those of
prime_lines.py, of others Bluestein's (1970), on CPU drivers in steps of their own (convolved_lines.py).

For products, a line of n₁·n₂ points is transformed along n₁, multiplied by twiddle factors, and transformed along n₂
(Cooley and Tukey 1965). Each of these steps is one real product, whose matrix holds the roots of unity: it takes the
real and imaginary parts, stacked along the first axis, to those of the result. Its result has the transformed axis in
front of the others, which is the order that the next step and the end want, so that nothing is moved in between.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.ops.lowered.lines_across import TURNED
from lavax.passes.build.builder import (
    add,
    broadcast,
    build,
    concatenate,
    dot,
    flip,
    negate,
    pad,
    reshape,
    slice_along,
    splat,
    subtract,
    transpose,
    zeros,
)
from lavax.passes.complex_parts import convolved_lines, paired_lines, prime_lines
from lavax.passes.complex_parts.arithmetic import multiply
from lavax.passes.complex_parts.parts import Parts, Real, interleaved, parts, separated
from lavax.passes.complex_parts.real_lines import joined, taken_apart
from lavax.passes.complex_parts.roots import chirp, counted_roots
from lavax.passes.numerics.primes import balanced, prime_factors
from lavax.passes.target.target import Transforms

_WIDEST = 32  # points of a step among several
_WIDEST_ALONE = 128  # points of a transform in one step, which need not be smooth
# Of fewer numbers in all lines, tables and long shaders of large primes take longer than is won.
_FEW_NUMBERS = 1 << 14
_SMALL_PRIME = 31

Value = Node | Parts


def _transform(node: Node, operands: Sequence[Value], transforms: Transforms) -> Parts:
    """The parts of `fft`."""
    (z,) = operands
    assert isinstance(z, Parts)
    return _along(z, node.attrs["axis"], node.attrs["reverse"], transforms)


def _of_real(node: Node, operands: Sequence[Value], transforms: Transforms) -> Parts:
    """The parts of `rfft`."""
    (x,) = operands
    assert isinstance(x, Node)
    largest = largest_prime(x, transforms)
    *batch, length = x.shape
    across = across_of([x], length, largest, False, transforms)
    if across is not None:
        return across.of_reals(x.operands[0])
    beside = beside_of([x], length, False, transforms)
    if beside is not None:
        return beside.of_reals(x.operands[0])
    last, half = len(batch), length // 2
    if _is_odd_line(length, largest, transforms):
        type = x.type.with_shape((*batch, half + 1, 2))
        return separated(build("fourier_from_reals", reshape(x, (prod(batch), length, 1)), type=type))
    if length % 2:
        steps = _convolved_steps(x, length, (length, half + 1), transforms)
        if steps:
            found = convolved_lines.half_spectrum(reshape(x, (prod(batch), length)), steps)
            return separated(reshape(found, (*batch, half + 1, 2)))
        whole = _along(parts(x, zeros(x.type)), last, False, transforms)
        return parts(*(slice_along(part, last, 0, half + 1) for part in whole.nodes))
    pairs = reshape(x, (*batch, half, 2))
    if not has_steps(half, largest):
        return taken_apart(_along(separated(pairs), last, False, transforms))
    type = x.type.with_shape((*batch, half + 1, 2))
    return separated(build("fourier_spectrum", reshape(pairs, (prod(batch), half, 1, 2)), type=type))


def _to_real(node: Node, operands: Sequence[Value], transforms: Transforms) -> Node:
    """`irfft`."""
    (s,) = operands
    assert isinstance(s, Parts)
    largest = largest_prime(node, transforms)
    *batch, length = node.shape
    across = across_of(s.nodes, length, largest, True, transforms)
    if across is not None:
        real, imaginary = (part.operands[0] for part in s.nodes)
        if imaginary.op == "negate":  # conjugates
            return across.to_reals(_whole(parts(real, imaginary.operands[0])), length, TURNED)
        return across.to_reals(_whole(parts(real, imaginary)), length)
    beside = beside_of(s.nodes, length, True, transforms)
    if beside is not None:
        return beside.to_reals(_whole(parts(*(part.operands[0] for part in s.nodes))), length)
    last, half = len(batch), length // 2
    if _is_odd_line(length, largest, transforms):
        spectrum = reshape(_whole(s), (prod(batch), 1, half + 1, 2))
        return build("fourier_to_reals", spectrum, type=node.type, columns=length)
    if length % 2:
        steps = _convolved_steps(node, length, (half + 1, length), transforms)
        if steps:
            spectrum = reshape(_whole(s), (prod(batch), half + 1, 2))
            return reshape(convolved_lines.real_line(spectrum, length, steps), node.shape)
        real, imaginary = (flip(slice_along(part, last, 1, half + 1), (last,)) for part in s.nodes)
        whole = parts(*(concatenate([*both], last) for both in zip(s.nodes, (real, negate(imaginary)), strict=True)))
        return _along(whole, last, True, transforms).real.node
    if not has_steps(half, largest):
        return reshape(interleaved(_along(joined(s), last, True, transforms)), node.shape)
    joins = _whole if transforms.mirrored_steps(half, True, node.dtype) else interleaved
    spectrum = reshape(joins(s), (prod(batch), half + 1, 2))
    return build("fourier_join", spectrum, type=node.type, rest=1)


def _of_type_4(node: Node, operands: Sequence[Value], transforms: Transforms) -> Node:
    """`trigonometric_4`."""
    (x,) = operands
    assert isinstance(x, Node)
    axis, sines = node.attrs["axis"], node.attrs["sines"]
    half, behind = x.shape[axis] // 2, prod(x.shape[axis + 1 :])
    if has_steps(half, largest_prime(x, transforms)):
        is_beside = transforms.beside(2 * half, behind, x.type.size // (2 * half))
        if is_beside and len(transforms.paired_steps(half, 1)) == 1:
            return paired_lines.beside_each_other(x, axis, sines)
        steps = transforms.paired_steps(half, behind)
        if steps:
            return paired_lines.by_steps(x, axis, sines, steps)
    return paired_lines.put_back(_along(paired_lines.paired(x, axis, sines), axis, False, transforms), axis, sines)


TRANSFORMS: dict[str, Callable[[Node, Sequence[Value], Transforms], Value]] = {
    "fft": _transform,
    "irfft": _to_real,
    "rfft": _of_real,
    "trigonometric_4": _of_type_4,
}


@dataclass(frozen=True)
class Across:
    """Real lines that are put along memory, where they had another axis: they are transformed along this, and what is
    found is put along memory instead."""

    axis: int
    axes: tuple[int, ...]  # in the order in which lines lie along memory

    def of_reals(self, x: Node, order: int = 0) -> Parts:
        """Half the spectra, or with the order TURNED their conjugates."""
        lines, points, behind = self.form(x)
        type = x.type.with_shape((*self.shape(x, points // 2 + 1), 2))
        whole = build("fourier_across_from_reals", reshape(x, (lines, points, 1, behind)), type=type, folded=order)
        return parts(*(transpose(part, self.axes) for part in separated(whole).nodes))

    def to_reals(self, spectrum: Node, length: int, order: int = 0) -> Node:
        """Of half the spectrum, whose parts lie side by side; with the order TURNED, of its conjugates."""
        lines, half, behind = self.form(spectrum)
        ahead = reshape(spectrum, (lines, 1, half, behind // 2, 2))
        type = spectrum.type.with_shape(self.shape(spectrum, length)[:-1])
        found = build("fourier_across_to_reals", ahead, type=type, columns=length, folded=order)
        return transpose(found, self.axes)

    def form(self, x: Node) -> tuple[int, int, int]:
        """How many lines follow each other, the places of each, and how many are neighbours."""
        return prod(x.shape[: self.axis]), x.shape[self.axis], prod(x.shape[self.axis + 1 :])

    def shape(self, x: Node, length: int) -> tuple[int, ...]:
        return (*x.shape[: self.axis], length, *x.shape[self.axis + 1 :])


def across_of(
    values: Sequence[Node], length: int, largest: int, inverse: bool, transforms: Transforms
) -> Across | None:
    """How values, whose lines along the last axis had another one before, are transformed along that; None if they are
    no such, or are best put along memory."""
    first = values[0]
    if not has_steps(length, largest) or any(value.op != "transpose" for value in values):
        return None
    axes = tuple(first.attrs["axes"])
    if any(tuple(value.attrs["axes"]) != axes for value in values):
        return None
    found = Across(axes[-1], axes)
    lines, _, behind = found.form(first.operands[0])
    return found if transforms.across_steps(length, behind, lines * length * behind, inverse, False) else None


@dataclass(frozen=True)
class Beside:
    """Real lines along another axis than the last one, of which so many are neighbours in memory: steps of lines along
    memory read them where they are, and write what they give in the same order."""

    lines: Across
    count: int

    def of_reals(self, x: Node, only: int = 0) -> Parts:
        """Half the spectra, or of lines of an even number of points what of them `fourier_spectrum` gives."""
        ahead, length, behind = self.lines.form(x)
        type = x.type.with_shape((*self.lines.shape(x, length // 2 + 1), 2))
        lines, count = transpose(x, self._along), ahead * behind
        if length % 2:
            whole = build("fourier_from_reals", reshape(lines, (count, length, 1)), type=type, beside=self.count)
        else:
            pairs = reshape(lines, (count, length // 2, 1, 2))
            whole = build("fourier_spectrum", pairs, type=type, only=only, beside=self.count)
        return parts(*(transpose(part, self.lines.axes) for part in separated(whole).nodes))

    def to_reals(self, spectrum: Node, length: int) -> Node:
        """Of half the spectra, whose parts lie side by side."""
        half, type = length // 2 + 1, spectrum.type.with_shape(self.lines.shape(spectrum, length)[:-1])
        lines = transpose(spectrum, (*self._along, len(self._along)))
        count = spectrum.type.size // (2 * half)
        if length % 2:
            attrs = {"columns": length, "beside": self.count}
            found = build("fourier_to_reals", reshape(lines, (count, 1, half, 2)), type=type, **attrs)
        else:
            found = build("fourier_join", reshape(lines, (count, half, 2)), type=type, rest=1, beside=self.count)
        return transpose(found, self.lines.axes)

    @property
    def _along(self) -> tuple[int, ...]:
        """The order of axes in which lines lie along memory, one behind the other as they are neighbours."""
        axis = self.lines.axis
        return (*(other for other in range(len(self.lines.axes)) if other != axis), axis)


def beside_of(values: Sequence[Node], length: int, inverse: bool, transforms: Transforms) -> Beside | None:
    """How values, whose lines along the last axis had another one before and are few neighbours in memory, are
    transformed where they are; None if they are no such, or are best put along memory."""
    first = values[0]
    if any(value.op != "transpose" or value.attrs["axes"] != first.attrs["axes"] for value in values):
        return None
    axes = tuple(first.attrs["axes"])
    found = Across(axes[-1], axes)
    lines, _, count = found.form(first.operands[0])
    half, largest = length // 2, largest_prime(first, transforms)
    if not transforms.beside(length, count, lines * count):
        return None
    if length % 2:
        return Beside(found, count) if _is_odd_line(length, largest, transforms) else None
    has_step = has_steps(half, largest) and len(transforms.mirrored_steps(half, inverse, first.dtype)) > 0
    return Beside(found, count) if has_step else None


def _whole(z: Parts) -> Node:
    """The numbers with their parts side by side. Parts that are multiplied by one number, as by the scale of an inverse
    transform, are so side by side."""
    real, imaginary = z.nodes
    if real.op == imaginary.op == "multiply":
        (x, factor), (y, other_factor) = real.operands, imaginary.operands
        if _is_everywhere(factor, other_factor):
            whole = interleaved(parts(x, y))
            return build("multiply", whole, splat(factor.attrs["value"], whole.type))
    return interleaved(z)


def _is_everywhere(*values: Node) -> bool:
    """Whether they are one number in all places."""
    return all(value.op == "constant" and value.attrs["value"] == values[0].attrs["value"] for value in values)


def largest_prime(x: Node, transforms: Transforms) -> int:
    """The largest prime factor of lines that have kernels of their own."""
    return transforms.largest_prime if x.type.size >= _FEW_NUMBERS else min(_SMALL_PRIME, transforms.largest_prime)


def _along(z: Parts, axis: int, reverse: bool, transforms: Transforms) -> Parts:
    part = z.real.node
    length, largest = part.shape[axis], largest_prime(part, transforms)
    if has_steps(length, largest):
        return separated(_by_steps(_whole(z), reverse, axis=axis))
    if _is_convolution(length, part, largest):
        return separated(_of_prime(_whole(z), axis, reverse))
    steps = _convolved_steps(part, length, (length, length), transforms)
    if steps:
        convolved = partial(convolved_lines.transformed, length=length, reverse=reverse, steps=steps)
        return separated(_moved(_whole(z), axis, convolved))
    return _by_products(z, axis, reverse, largest)


def _is_odd_line(length: int, largest: int, transforms: Transforms) -> bool:
    """Whether real lines of that length have kernels of their own, being of an odd number of points."""
    return length % 2 == 1 and has_steps(length, largest) and len(transforms.odd_steps(length)) > 0


def has_steps(length: int, largest: int) -> bool:
    """Whether lines of that many complex numbers have kernels of their own."""
    return max(prime_factors(length), default=1) <= largest


def _is_convolution(length: int, part: Node, largest: int) -> bool:
    """Whether lines of that length are convolutions of one number fewer; `part` has all numbers."""
    is_long = length > largest and part.type.size >= _FEW_NUMBERS
    return is_long and prime_lines.is_suited(length, part.dtype, _SMALL_PRIME)


def _convolved_steps(
    x: Node, length: int, numbers: tuple[int, int], transforms: Transforms
) -> Sequence[int]:
    """The steps of the convolution that transforms lines of that length, of so many points into so many frequencies;
    none if they are transformed otherwise. `x` has all their numbers."""
    largest = largest_prime(x, transforms)
    if has_steps(length, largest) or _is_convolution(length, x, largest) or widths(length)[1] <= _WIDEST_ALONE:
        return ()
    return transforms.convolved_steps(sum(numbers) - 1, x.type.size // length)


def _by_steps(whole: Node, reverse: bool, *, axis: int) -> Node:
    """The transform along an axis of numbers whose parts lie side by side."""
    shape = whole.shape[:-1]
    form = (prod(shape[:axis]), shape[axis], 1, prod(shape[axis + 1 :]), 2)
    return build("fourier_step", reshape(whole, form), type=whole.type, reverse=reverse)


def _of_prime(whole: Node, axis: int, reverse: bool) -> Node:
    """The transform along an axis of a prime number of points."""
    convolved = partial(prime_lines.transformed, reverse=reverse, lines=partial(_by_steps, axis=1))
    return _moved(whole, axis, convolved)


def _moved(whole: Node, axis: int, transformed: Callable[[Node], Node]) -> Node:
    """What becomes of numbers whose lines along an axis are transformed as [batch, n, 2]."""
    others = [other for other in range(whole.type.rank - 1) if other != axis]
    order = [*others, axis, whole.type.rank - 1]
    moved = transpose(whole, order)
    batch = prod(whole.shape[other] for other in others)
    found = transformed(reshape(moved, (batch, whole.shape[axis], 2)))
    return transpose(reshape(found, moved.shape), [order.index(place) for place in range(whole.type.rank)])


def _by_products(z: Parts, axis: int, reverse: bool, largest: int) -> Parts:
    shape = z.real.node.shape
    order = [other for other in range(len(shape)) if other != axis] + [axis]
    batch, length = prod(extent for d, extent in enumerate(shape) if d != axis), shape[axis]
    whole = _stacked(parts(*(reshape(transpose(part, order), (batch, length)) for part in z.nodes)))
    found = _lines(whole, not reverse, largest)
    front = (length, *(extent for d, extent in enumerate(shape) if d != axis))
    back = [0 if d == axis else d + (d < axis) for d in range(len(shape))]
    return parts(*(transpose(reshape(part, front), back) for part in _parted(found).nodes))


def _stacked(z: Parts) -> Node:
    return concatenate([reshape(part, (1, *part.shape)) for part in z.nodes], 0)


def _parted(stack: Node) -> Parts:
    return parts(*(reshape(slice_along(stack, 0, side, side + 1), stack.shape[1:]) for side in (0, 1)))


def _lines(x: Node, forward: bool, largest: int) -> Node:
    """Lines [2, batch, n] as their transforms [2, n, batch]."""
    _, batch, length = x.shape
    if length == 1:
        return reshape(x, (2, 1, batch))
    if has_steps(length, largest):
        found = _by_steps(transpose(x, (1, 2, 0)), not forward, axis=1)
        return transpose(found, (2, 1, 0))
    steps, rest = widths(length)
    if not steps and _is_convolution(length, _parted(x).real.node, largest):
        return transpose(_of_prime(transpose(x, (1, 2, 0)), 1, not forward), (2, 1, 0))
    if not steps:
        return _step(x, forward) if rest <= _WIDEST_ALONE else _by_convolution(x, forward, largest)
    first, others = steps[0], length // steps[0]
    if others == 1:
        return _step(x, forward)
    # [2, batch, n₁, n₂] -> [2, k₁, batch, n₂]
    turned = _step(reshape(x, (2, batch, first, others)), forward)
    roots = counted_roots((first, others), (0, 1), length, x.dtype, forward)
    shape = (first, batch, others)
    twiddles = parts(*(broadcast(part, shape, (0, 2)) for part in roots.nodes))
    turned = _stacked(multiply(_parted(turned), twiddles))
    # -> [2, k₂, k₁·batch]: the position k₂·n₁ + k₁ is in order
    return reshape(_lines(reshape(turned, (2, first * batch, others)), forward, largest), (2, length, batch))


def _step(x: Node, forward: bool) -> Node:
    """[2, batch, n, …] -> [2, n, batch, …], by one product with a matrix [2, n, 2, n], or by two for a prime n."""
    width = x.shape[2]
    if width % 2 and width > _WIDEST:
        return _by_symmetry(x, forward)
    cosine, sine = counted_roots((width, width), (0, 1), width, x.dtype, forward)
    rows = [_beside(cosine, -sine), _beside(sine, cosine)]
    matrix = concatenate([reshape(row, (1, *row.shape)) for row in rows], 0)
    return dot(matrix, x, ((2, 3), (0, 2)))


def _by_symmetry(x: Node, forward: bool) -> Node:
    """An odd number of points: sums of those at equal distances from the ends with cosines, and differences with sines,
    give two frequencies each. That is a quarter of the products."""
    width = x.shape[2]
    half = width // 2
    ahead, back = slice_along(x, 2, 1, half + 1), flip(slice_along(x, 2, half + 1, width), (2,))
    sums = concatenate([slice_along(x, 2, 0, 1), add(ahead, back)], 2)
    cosine, sine = counted_roots((half + 1, half + 1), (0, 1), width, x.dtype, forward)
    even = dot(cosine.node, sums, ((1,), (2,)))  # [frequency, 2, batch, …]
    inner = slice_along(slice_along(sine.node, 0, 1, half + 1), 1, 1, half + 1)
    odd = dot(inner, subtract(ahead, back), ((1,), (2,)))
    first, others = slice_along(even, 0, 0, 1), slice_along(even, 0, 1, half + 1)
    turned = concatenate([negate(slice_along(odd, 1, 1, 2)), slice_along(odd, 1, 0, 1)], 1)  # times i
    found = concatenate([first, add(others, turned), flip(subtract(others, turned), (0,))], 0)
    return transpose(found, (1, 0, *range(2, x.type.rank)))


def _beside(of_real: Real, of_imaginary: Real) -> Node:
    """[n, 2, n]: what the real and what the imaginary parts are multiplied by."""
    width = of_real.node.shape[0]
    return concatenate([reshape(part.node, (width, 1, width)) for part in (of_real, of_imaginary)], 1)


def _by_convolution(x: Node, forward: bool, largest: int) -> Node:
    """−2jk = (k − j)² − j² − k²: the transform is a convolution with a chirp, between products with its conjugate."""
    _, batch, length = x.shape
    padded = smooth_length(2 * length - 1)
    roots = chirp(length, x.dtype, forward)
    along_last = parts(*(broadcast(part, (batch, length), (1,)) for part in roots.nodes))
    risen = _lines(_padded(_stacked(multiply(_parted(x), along_last)), padded), True, largest)
    kernel = Parts(roots.real, -roots.imaginary)
    round_trip = parts(*(_round(part, padded) for part in kernel.nodes))
    of_kernel = _parted(_lines(reshape(_stacked(round_trip), (2, 1, padded)), True, largest))
    repeated = parts(*(broadcast(reshape(part, (padded,)), (padded, batch), (0,)) for part in of_kernel.nodes))
    product = _stacked(multiply(_parted(risen), repeated))
    found = slice_along(_lines(transpose(product, (0, 2, 1)), False, largest), 1, 0, length)
    along_first = parts(*(broadcast(part, (length, batch), (0,)) for part in roots.nodes))
    scaled = Parts(along_first.real * (1 / padded), along_first.imaginary * (1 / padded))
    return _stacked(multiply(_parted(found), scaled))


def _padded(x: Node, length: int) -> Node:
    """Zeros behind the last axis."""
    none = [0] * x.type.rank
    return pad(x, none, [*none[1:], length - x.shape[-1]], none, 0.0)


def _round(line: Node, length: int) -> Node:
    """The line at positions 0, 1, … and at −1, −2, … modulo `length`, with zeros between."""
    count = line.shape[0]
    behind = flip(slice_along(line, 0, 1, count), (0,))
    between = length - 2 * count + 1
    return concatenate([pad(line, (0,), (between,), (0,), 0.0), behind], 0)


def widths(length: int) -> tuple[list[int], int]:
    """The widths of the steps of a line, each at most 32, and the factor that is left: 1, or one with large primes."""
    if length <= _WIDEST_ALONE and max(prime_factors(length), default=1) > _WIDEST:
        return [], length
    primes = [prime for prime in prime_factors(length) if prime <= _WIDEST]
    return balanced(primes, _WIDEST), length // prod(primes)


def smooth_length(least: int) -> int:
    """The least 2ᵏ, 3·2ᵏ, 5·2ᵏ or 9·2ᵏ that is not below `least`."""
    return min(odd << max(-(-least // odd) - 1, 0).bit_length() for odd in (1, 3, 5, 9))
