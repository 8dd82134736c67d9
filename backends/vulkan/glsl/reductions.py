"""How each reduction starts, and joins an element or two partial results: one entry per operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.monoids import MONOIDS
from lavax.ir.types import DType

# `||` and `&&` skip their right side if the left decides, in some lanes only; but a shuffle needs all lanes.
_OR = {1: "bool(uint({0}) | uint({1}))", 4: "bvec4(uvec4({0}) | uvec4({1}))"}
_AND = {1: "bool(uint({0}) & uint({1}))", 4: "bvec4(uvec4({0}) & uvec4({1}))"}


@dataclass(frozen=True)
class Reduction:
    """`identity` by dtype; `join` gives the expression that joins two values of a dtype and width."""

    identity: Callable[[DType], str]
    join: Callable[[str, str, DType, int, Uses], str]


def _small_number(op: str) -> Callable[[DType], str]:
    return lambda dtype: f"{type_name(dtype, 1)}({int(MONOIDS[op].identity(dtype))})"


def _limit(op: str) -> Callable[[DType], str]:
    return lambda dtype: literal(MONOIDS[op].identity(dtype), dtype)


def _extremum(
    float_function: str, function: str, of_bools: Mapping[int, str]
) -> Callable[[str, str, DType, int, Uses], str]:
    def join(left: str, right: str, dtype: DType, width: int, uses: Uses) -> str:
        if dtype.kind == "bool":
            return of_bools[width].format(left, right)
        return f"{uses.function(float_function, dtype) if dtype.is_float else function}({left}, {right})"

    return join


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction(_small_number("sum"), lambda a, b, *_: f"({a} + {b})"),
    "prod": Reduction(_small_number("prod"), lambda a, b, *_: f"({a} * {b})"),
    "max": Reduction(_limit("max"), _extremum("lx_maximum", "max", _OR)),
    "min": Reduction(_limit("min"), _extremum("lx_minimum", "min", _AND)),
}

# Shuffles of 64-bit integers are a separate feature of devices, so these go in two halves.
_HALVES = {"i64": ("packInt2x32", "unpackInt2x32"), "u64": ("packUint2x32", "unpackUint2x32")}


def shuffled(function: str, value: str, argument: str, dtype: DType) -> str:
    """A value of another lane of the subgroup; `function` is subgroupShuffle or subgroupShuffleXor."""
    if dtype.name not in _HALVES:
        return f"{function}({value}, {argument})"
    pack, unpack = _HALVES[dtype.name]
    return f"{pack}({function}({unpack}({value}), {argument}))"


# Positions of extrema: a value beats the best so far if it lies on this side of it, or is the first NaN.
POSITIONS: dict[str, str] = {"argmax": ">", "argmin": "<"}


def beats(node: Node, value: str, best: str, uses: Uses) -> str:
    """Whether a value is strictly better than the best so far."""
    dtype = node.operands[0].dtype
    symbol = POSITIONS[node.op]
    if dtype.kind == "bool":
        return f"(uint({value}) {symbol} uint({best}))"
    if not dtype.is_float:
        return f"({value} {symbol} {best})"
    isnan = uses.function("lx_isnan", dtype)
    return f"({value} {symbol} {best} || ({isnan}({value}) && !{isnan}({best})))"


def ties(node: Node, value: str, best: str, uses: Uses) -> str:
    """Whether two values are equally good."""
    dtype = node.operands[0].dtype
    if not dtype.is_float:
        return f"({value} == {best})"
    isnan = uses.function("lx_isnan", dtype)
    return f"({value} == {best} || ({isnan}({value}) && {isnan}({best})))"


def doubling(end: int) -> Iterator[int]:
    """1, 2, 4 and so on, below `end`."""
    step = 1
    while step < end:
        yield step
        step *= 2
