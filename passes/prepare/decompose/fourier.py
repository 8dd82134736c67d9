"""Long Fourier transforms as several steps (Stockham's order: Cochran et al. 1967).

A line of n·m points is transformed along n, multiplied by twiddle factors, and transformed along m. Each step puts the
axis that it transforms behind the rest, so that the frequencies are in order at the end and nothing else is moved.
Transforms of real lines have a last step of their own, and their inverses a first one, where the device has such steps.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.ir.graph import Node
from lavax.ir.ops.lowered.fourier import CONJUGATES, ONLY_REAL
from lavax.ir.types import TensorType
from lavax.passes.build.builder import (
    broadcast,
    build,
    concatenate,
    flip,
    negate,
    reshape,
    slice_along,
    transpose,
)
from lavax.passes.complex_parts.parts import Parts, Real, interleaved, separated
from lavax.passes.complex_parts.real_lines import cosine_spectra, joined, taken_apart
from lavax.passes.target.target import Target, Transforms


def _steps(node: Node, target: Target) -> Node:
    (x,) = node.operands
    lines, points, rest, behind, _ = x.shape
    fold, reverse = node.attrs["folded"], node.attrs["reverse"]
    if fold and not target.transforms.folds(points, rest, behind, reverse):
        form = x.type.with_shape((lines, x.type.size // max(lines, 1)))
        if reverse:
            plain = build("fourier_step", x, type=form, reverse=True)
            return reshape(_unfolded(_steps(plain, target), fold), node.shape)
        x = reshape(_folded(reshape(x, form.shape), fold), x.shape)
        return _steps(build("fourier_step", x, type=node.type, reverse=False), target)
    if rest > 1 or fold:
        return node
    return _whole_in_steps(x, node, reverse, target)


def _whole_in_steps(x: Node, node: Node, reverse: bool, target: Target) -> Node:
    """What a node is, which has all steps of lines that no other steps are before or behind."""
    widths = _widths(x, target)
    if node.attrs.get("beside", 1) == 1:
        return _in_steps(x, widths, reverse, node.type)
    return _put_beside(_in_steps(x, widths, reverse), node, 1)


def _widths(x: Node, target: Target) -> Sequence[int]:
    _, points, _, behind, _ = x.shape
    few = target.transforms.few_steps(points, x.type.size // 2)
    return few or target.transforms.steps(points, behind, x.dtype)


def _in_steps(
    x: Node, widths: Sequence[int], reverse: bool, type: TensorType | None = None, fold: int = 0, beside: int = 1
) -> Node:
    """[lines,points,1,behind,2] after the steps of these widths, as [lines,rest,1,behind,2], or as `type`. The first
    one is `folded`, or in reverse the last one, whose lines lie `beside` each other."""
    lines, points, _, behind, _ = x.shape
    for number, width in enumerate(widths, 1):
        rest, is_last = points // width, number == len(widths)
        after = x.type.with_shape((lines, rest, 1, width * behind, 2))
        form = reshape(x, (lines, width, rest, behind, 2))
        own = fold if (is_last if reverse else number == 1) else 0
        attrs = {"reverse": reverse, "folded": own, "beside": beside if is_last else 1}
        x = build("fourier_step", form, type=type if type and is_last else after, **attrs)
        points, behind = rest, behind * width
    return x


def _mirrored_widths(node: Node, points: int, transforms: Transforms) -> Sequence[int]:
    """The steps of a transform of lines along the first axis, whose pairs are so many points."""
    x, op = node.operands[0], node.op
    few = transforms.few_steps(points, x.shape[0] * points)
    if few:
        return few
    if op in ("fourier_cosines", "fourier_join"):
        return (transforms.cosine_steps if op == "fourier_cosines" else transforms.joined_steps)(points, x.dtype)
    return transforms.mirrored_steps(points, op == "fourier_from_cosines", x.dtype)


def _spectrum(node: Node, target: Target) -> Node:
    (x,) = node.operands
    lines, points, behind, _ = x.shape
    if behind > 1:
        return node
    whole = reshape(x, (lines, points, 1, 1, 2))
    steps = _mirrored_widths(node, points, target.transforms)
    if not steps:
        found = _in_steps(whole, _widths(whole, target), False)
        spectra = taken_apart(separated(reshape(found, (lines, points, 2))))
        return _put_beside(_only(spectra, node.attrs["only"]), node, 2)
    *widths, last = steps
    ahead = reshape(_in_steps(whole, widths, False), (lines, last, points // last, 2))
    return build("fourier_spectrum", ahead, type=node.type, only=node.attrs["only"], beside=node.attrs["beside"])


def _only(spectra: Parts, only: int) -> Node:
    """The part of spectra [b, h + 1] that `fourier_spectrum` gives, or both, or conjugates."""
    if not only or only == CONJUGATES:
        return interleaved(Parts(spectra.real, -spectra.imaginary) if only else spectra)
    if only == ONLY_REAL:
        return spectra.real.node
    imaginary = spectra.imaginary.node
    return negate(slice_along(imaginary, 1, 1, imaginary.shape[1] - 1))


def _cosines(node: Node, target: Target) -> Node:
    x, *tables = node.operands
    lines, points, behind, _ = x.shape
    if behind > 1:
        return node
    steps, fold = _mirrored_widths(node, points, target.transforms), node.attrs["folded"]
    ordered = target.transforms.folded_order(steps, False) if fold else steps
    if fold and not ordered:
        x, fold = reshape(_folded(reshape(x, (lines, 2 * points)), fold), x.shape), 0
    steps = ordered or steps
    if not steps:
        whole = build("fourier_spectrum", x, type=x.type.with_shape((lines, points + 1, 2)))
        return _cosines_of(_spectrum(whole, target), node)
    *widths, last = steps
    ahead = _in_steps(reshape(x, (lines, points, 1, 1, 2)), widths, False, fold=fold)
    form = reshape(ahead, (lines, last, points // last, 2))
    own = 0 if widths else fold
    attrs = {"reverse": node.attrs["reverse"], "folded": own, "beside": node.attrs["beside"]}
    return build("fourier_cosines", form, *tables, type=node.type, **attrs)


def _cosines_of(spectra: Node, node: Node) -> Node:
    """What the tables of `fourier_cosines` make of spectra [b, h + 1, 2]."""
    lines, places, _ = spectra.shape
    tables = (Real(broadcast(table, (lines, places), (1,))) for table in node.operands[1:])
    (real, imaginary), (cosine, sine) = separated(spectra), tables
    ahead, back = (real * cosine + imaginary * sine) * 2.0, (real * sine - imaginary * cosine) * 2.0
    inner = [flip(slice_along(back.node, 1, 1, places - 1), (1,))] if places > 2 else []
    found = concatenate([ahead.node, *inner], 1)
    return _put_beside(flip(found, (1,)) if node.attrs["reverse"] else found, node, 1)


def _join(node: Node, target: Target) -> Node:
    (x,) = node.operands
    lines, points = x.shape[0], x.shape[1] // 2 if node.op == "fourier_from_cosines" else x.shape[1] - 1
    if node.attrs["rest"] > 1:
        return node
    steps, fold = _mirrored_widths(node, points, target.transforms), node.attrs["folded"]
    ordered = target.transforms.folded_order(steps, True) if fold else steps
    if fold and not ordered:
        plain = build(node.op, x, type=x.type.with_shape((lines, 2 * points)), rest=1, **_kept(node, "first"))
        return reshape(_unfolded(_join(plain, target), fold), node.shape)
    steps = ordered or steps
    if not steps:
        spectrum = cosine_spectra(x, node.attrs["first"]) if node.op == "fourier_from_cosines" else separated(x)
        whole = reshape(interleaved(joined(spectrum)), (lines, points, 1, 1, 2))
        return _whole_in_steps(whole, node, True, target)
    *widths, first = steps
    rest = points // first
    if not widths:
        return build(node.op, x, type=node.type, rest=rest, folded=fold, **_kept(node, "first", "beside"))
    type = x.type.with_shape((lines, rest, 1, first, 2))
    found = build(node.op, x, type=type, rest=rest, **_kept(node, "first"))
    return _in_steps(found, widths, True, node.type, fold, **_kept(node, "beside"))


def _kept(node: Node, *names: str) -> dict[str, Any]:
    """Those of the attributes that the step has."""
    return {name: node.attrs[name] for name in names if name in node.attrs}


def _put_beside(found: Node, node: Node, words: int) -> Node:
    """Lines of numbers of so many words, which follow each other, as the step has them."""
    beside, lines = node.attrs["beside"], node.operands[0].shape[0]
    if beside == 1:
        return reshape(found, node.shape)
    apart = reshape(found, (lines // beside, beside, node.type.size // (lines * words), words))
    return reshape(transpose(apart, (0, 2, 1, 3)), node.shape)


def _folded(lines: Node, sign: int) -> Node:
    """[b, n]: the numbers at even places, and those at odd ones from the last to the first, times a sign."""
    length = lines.shape[1]
    even, odd = (slice_along(lines, 1, side, length, 2) for side in (0, 1))
    back = flip(odd, (1,))
    return concatenate([even, negate(back) if sign < 0 else back], 1)


def _unfolded(lines: Node, sign: int) -> Node:
    """The other way."""
    count, length = lines.shape
    ahead, back = slice_along(lines, 1, 0, length // 2), flip(slice_along(lines, 1, length // 2, length), (1,))
    both = [reshape(x, (count, length // 2, 1)) for x in (ahead, negate(back) if sign < 0 else back)]
    return reshape(concatenate(both, 2), lines.shape)


def _from_reals(node: Node, target: Target) -> Node:
    x, *tables = node.operands
    lines, points, rest = x.shape
    steps = () if rest > 1 else target.transforms.odd_steps(points)
    if len(steps) < 2:
        return node
    first, *widths, last = steps
    held, rest = _held(first), points // first
    form = x.type.with_shape((lines, rest, 1, held, 2))
    x = _in_steps(build("fourier_from_reals", reshape(x, (lines, first, rest)), type=form), widths, False)
    ahead = reshape(x, (lines, last, rest // last, held, 2))
    attrs = {"cosines": node.attrs["cosines"], "beside": node.attrs["beside"]}
    return build("fourier_to_half", ahead, *tables, type=node.type, columns=first, **attrs)


def _to_reals(node: Node, target: Target) -> Node:
    (s,) = node.operands
    lines, rest, half, _ = s.shape
    points = node.attrs["columns"]
    steps = () if rest > 1 else target.transforms.odd_steps(points)
    if len(steps) < 2:
        return node
    last, first, *widths = steps
    held, rest = _held(last), points // last
    form = s.type.with_shape((lines, rest // first, 1, first * held, 2))
    s = reshape(s, (lines, half, 2))
    found = build("fourier_from_half", s, type=form, columns=last, rest=rest // first)
    ahead = reshape(_in_steps(found, widths, True), (lines, rest, held, 2))
    attrs = {"folded": node.attrs["folded"], "beside": node.attrs["beside"]}
    return build("fourier_to_reals", ahead, type=node.type, columns=last, **attrs)


def _across_from_reals(node: Node, target: Target) -> Node:
    x, *tables = node.operands
    lines, points, rest, behind = x.shape
    numbers, has_cosines = lines * points * behind, node.attrs["cosines"] != 0
    steps = () if rest > 1 else target.transforms.across_steps(points, behind, numbers, False, has_cosines)
    if len(steps) < 2:
        return node
    first, *widths, last = steps
    held, rest = first // 2 + 1, points // first
    form = x.type.with_shape((lines, rest, 1, held * behind, 2))
    columns, fold = reshape(x, (lines, first, rest, behind)), node.attrs["folded"]
    x = build("fourier_across_from_reals", columns, type=form, folded=fold)
    ahead = reshape(_in_steps(x, widths, False), (lines, last, rest // last, held, behind, 2))
    attrs = {"columns": first, "cosines": node.attrs["cosines"]}
    return build("fourier_across_to_half", ahead, *tables, type=node.type, **attrs)


def _across_to_reals(node: Node, target: Target) -> Node:
    (s,) = node.operands
    points, cosines = node.attrs["columns"], node.attrs["cosines"]
    lines, rest, _, behind = (s.shape[0], 1, points, s.shape[2]) if cosines else s.shape[:-1]
    numbers = lines * points * behind
    steps = () if rest > 1 else target.transforms.across_steps(points, behind, numbers, True, cosines != 0)
    if len(steps) < 2:
        return node
    last, first, *widths = steps
    held, rest = last // 2 + 1, points // last
    form = s.type.with_shape((lines, rest // first, 1, first * held * behind, 2))
    s = s if cosines else reshape(s, (lines, points // 2 + 1, behind, 2))
    attrs = {"length": points, "columns": last, "rest": rest // first, "cosines": cosines, **_kept(node, "first")}
    found = build("fourier_across_from_half", s, type=form, **attrs)
    ahead = reshape(_in_steps(found, widths, True), (lines, rest, held, behind, 2))
    return build("fourier_across_to_reals", ahead, type=node.type, columns=last, folded=node.attrs["folded"])


def _held(columns: int) -> int:
    """How many columns steps hold of an odd number, of which the others are conjugates: an even number, so that two are
    read and written together."""
    half = columns // 2 + 1
    return half + half % 2


RULES: dict[str, Callable[[Node, Target], Node]] = {
    "fourier_across_from_reals": _across_from_reals,
    "fourier_across_to_reals": _across_to_reals,
    "fourier_step": _steps,
    "fourier_cosines": _cosines,
    "fourier_from_cosines": _join,
    "fourier_spectrum": _spectrum,
    "fourier_join": _join,
    "fourier_from_reals": _from_reals,
    "fourier_to_reals": _to_reals,
}
