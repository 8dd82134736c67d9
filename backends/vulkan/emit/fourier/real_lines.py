"""Steps of transforms of real lines, whose pairs are complex numbers: the last one, and the first one of the inverse.

The spectra of the elements at even and at odd places are in the numbers z[k] and z[h − k], with k and h − k modulo the
number h of pairs. So an invocation holds two columns that are mirrored, k modulo their number and its opposite, and
transforms them together. The column 0 is its own mirror image: there the second column repeats it.
"""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.choose import lanes_of
from lavax.backends.vulkan.emit.fourier.cosine_fours import emit_cosines_in_fours, has_fours
from lavax.backends.vulkan.emit.fourier.cosine_spectra import spectrum_of
from lavax.backends.vulkan.emit.fourier.folded import read_folded_line, write_folded_line
from lavax.backends.vulkan.emit.fourier.numbers import open_step, read_number, write_neighbours, write_number
from lavax.backends.vulkan.emit.fourier.real_lanes import emit_join_by_lanes, emit_spectrum_by_lanes
from lavax.backends.vulkan.emit.fourier.roots import multiples, of_both, unit_root
from lavax.backends.vulkan.emit.fourier.spectra import write_frequency
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.numerics.unit_roots import unit_root as host_root


def emit_spectrum(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step."""
    (node,) = kernel.graph.outputs
    lines, points, behind, _ = node.operands[0].shape
    lanes = lanes_of(points, 1, 1, profile) if behind == 1 else 0
    if lanes:
        return emit_spectrum_by_lanes(kernel, profile, lifted, lanes)
    if has_fours(kernel, profile, lifted):
        return emit_cosines_in_fours(kernel, profile, lifted)
    routine = open_step(kernel, profile, lifted)
    count = lines * _columns(behind)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        _write_spectrum(_Step(routine, points, behind, number, -1))
    return routine.close(count)


def _write_spectrum(step: _Step) -> None:
    points = step.points
    if step.columns == 1:
        if step.routine.node.attrs.get("folded"):
            line = read_folded_line(step.routine, step.line, points)
        else:
            line = [step.read(step.at(step.column, j)) for j in range(points)]
        found = transformed(step.single, line)
        for k in range(points // 2 + 1):
            step.write_mirrored(found[k], found[-k % points], k)
        return
    columns = [(step.read(step.at(step.column, j)), step.read(step.at(step.mirror, j))) for j in range(points)]
    found = transformed(step.double, [step.both(*pair) for pair in columns])
    for k in range(points):
        step.write_mirrored(_of(found[k], "x"), step.mirrored(found, k), k)


def emit_join(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step of the inverse."""
    (node,) = kernel.graph.outputs
    (lines, places, *_), rest = node.operands[0].shape, node.attrs["rest"]
    points = (places // 2 if node.op == "fourier_from_cosines" else places - 1) // rest
    lanes = lanes_of(points, 1, 1, profile) if rest == 1 else 0
    if lanes:
        return emit_join_by_lanes(kernel, profile, lifted, lanes)
    routine = open_step(kernel, profile, lifted)
    count = lines * _columns(rest)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        _write_joined(_Step(routine, points, rest, number, 1))
    return routine.close(count)


def _write_joined(step: _Step) -> None:
    points = step.points
    if step.columns == 1:
        pairs = [step.joined(j) for j in range(points // 2 + 1)]
        line = [pairs[j][0] if j < len(pairs) else pairs[points - j][1] for j in range(points)]
        found = transformed(step.single, line)
        if step.routine.node.attrs["folded"]:
            write_folded_line(step.routine, step.line, found)
        else:
            step.write_line(step.column, found)
        return
    pairs = [step.joined(j) for j in range(points)]
    both = [step.both(pairs[j][0], pairs[-j % points][1]) for j in range(points)]
    found = transformed(step.double, both)
    roots = multiples(step.single, points, step.root_of_place)
    turned = [found[0], *(step.turned(x, root) for x, root in zip(found[1:], roots, strict=True))]
    for part, column in (("x", step.column), ("y", step.mirror)):
        step.write_line(column, [_of(x, part) for x in turned])


def _columns(count: int) -> int:
    """How many columns are not the mirror image of one before."""
    return count // 2 + 1


def _of(both: Number, part: str) -> Number:
    """The number of the first column, x, or of the second one, y."""
    return Number(f"{both.real}.{part}", f"{both.imaginary}.{part}")


class _Step:
    """The state of writing a step: an invocation's column among those of a line, and its mirror image."""

    def __init__(self, routine: RoutineShader, points: int, columns: int, place: Index, sign: int) -> None:
        self.routine, self.body, self.points, self.columns = routine, routine.body, points, columns
        self.half = points * columns
        self.line, self.column = quotient(place, _columns(columns)), remainder(place, _columns(columns))
        self.mirror = remainder(linear([(self.column, -1)], columns), columns)
        self.single, self.double = (Registers(self.body, routine.node.dtype, n, sign) for n in (1, 2))
        self.is_first = self._declared("bool", f"{self.body.index(self.column)} == 0")
        of_cosines = routine.node.op == "fourier_from_cosines"
        self._spectrum = spectrum_of(routine, self.single, self.line, self.half, self.column) if of_cosines else None

    def _declared(self, kind: str, text: str) -> str:
        return self.body.declare(self.body.scopes[-1], kind, text)

    def at(self, column: Index, point: int) -> Index:
        """The position of a point of a column among the pairs."""
        return linear([(self.line, self.half), (column, 1)], point * self.columns)

    def read(self, position: Index) -> Number:
        return read_number(self.routine, self.routine.operands[0], position)

    def both(self, first: Number, second: Number) -> Number:
        """Numbers of both columns."""
        return of_both(self.double, first, second)

    def mirrored(self, found: list[Number], k: int) -> Number:
        """z[h − k·columns − column]: of the second column, or of the first one if that is its own mirror image."""
        own, other = _of(found[-k % self.points], "x"), _of(found[self.points - 1 - k], "y")
        return self.single.named(
            f"{self.is_first} ? {own.real} : {other.real}", f"{self.is_first} ? {own.imaginary} : {other.imaginary}"
        )

    def write_mirrored(self, z: Number, mirrored: Number, k: int) -> None:
        """Takes the spectra apart, and writes two numbers of the whole one."""
        single, half = self.single, self.single.text(0.5)
        sides = f"{z.real} + {mirrored.real}", f"{z.imaginary} - {mirrored.imaginary}"
        even = single.named(*(f"{half} * ({side})" for side in sides))
        odd = single.named(f"{z.real} - {mirrored.real}", f"{z.imaginary} + {mirrored.imaginary}")
        turned = single.times(odd, self._root(k, -0.5j))
        first = single.plus(even, turned)
        second = single.named(f"{even.real} - {turned.real}", f"{turned.imaginary} - {even.imaginary}")
        frequency = linear([(self.column, 1)], k * self.columns)
        write_frequency(self.routine, single, self.line, self.half, frequency, first)
        mirrored_frequency = linear([(self.column, -1)], self.half - k * self.columns)
        write_frequency(self.routine, single, self.line, self.half, mirrored_frequency, second)

    def joined(self, point: int) -> tuple[Number, Number]:
        """The pairs k and h − k that half a spectrum has, at that point of the column."""
        if self._spectrum is not None:
            return self._spectrum.joined(point * self.columns)
        single, start = self.single, [(self.line, self.half + 1)]
        s = self.read(linear([*start, (self.column, 1)], point * self.columns))
        mirrored = self.read(linear([*start, (self.column, -1)], self.half - point * self.columns))
        zero = single.text(0.0)
        if point == 0:  # the ends of the spectrum of a real line are real
            s, mirrored = (single.named(x.real, f"{self.is_first} ? {zero} : {x.imaginary}") for x in (s, mirrored))
        even = single.named(f"{s.real} + {mirrored.real}", f"{s.imaginary} - {mirrored.imaginary}")
        odd = single.named(f"{s.real} - {mirrored.real}", f"{s.imaginary} + {mirrored.imaginary}")
        turned = single.times(odd, self._root(point, 1j))
        second = single.named(f"{even.real} - {turned.real}", f"{turned.imaginary} - {even.imaginary}")
        return single.plus(even, turned), second

    def _root(self, k: int, factor: complex) -> Number:
        """The factor times exp(±πi·(k·columns + column)/h)."""
        known = factor * host_root(self.single.sign * k, 2 * self.points)
        fixed = self.single.constant(known)
        return fixed if self.columns == 1 else self.single.times(self._of_column, fixed)

    @property
    def _of_column(self) -> Number:
        if self._first_root is None:
            self._first_root = unit_root(self.single, self.body.index(self.column), 2 * self.half)
        return self._first_root

    _first_root: Number | None = None

    def root_of_place(self, frequency: int) -> Number:
        """The twiddle factor of the first column; that of the second one is its conjugate."""
        return unit_root(self.single, self.body.index(linear([(self.column, frequency)])), self.half)

    def turned(self, x: Number, root: Number) -> Number:
        return self.double.times(x, self.both(root, Number(root.real, f"-{root.imaginary}")))

    def write_line(self, column: Index, line: list[Number]) -> None:
        start = linear([(self.line, self.half), (column, self.points)])
        if self.points % 2:
            for k, x in enumerate(line):
                write_number(self.routine, linear([(start, 1)], k), x)
            return
        for k in range(0, self.points, 2):
            write_neighbours(self.routine, linear([(start, 1)], k), *line[k : k + 2])
