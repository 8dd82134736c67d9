"""The interpreter against definitions that go element by element, in plain Python."""
from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import special

from lavax.errors import ShapeError
from lavax.ir import OPERATIONS, DType, TensorType, interpret, parse
from lavax.ir.ops.attention import names_of
from tests.operation_cases import WITHOUT_CASES, Case, cases_of

Place = tuple[int, ...]
# element(arrays, attributes, type, place): the element of the result at `place`.
Definition = Callable[[Sequence[np.ndarray], Mapping[str, Any], TensorType, Place], Any]


def places(shape: Sequence[int]) -> Iterator[Place]:
    return product(*map(range, shape))


# Single elements: Python floats are float64, Python integers are wrapped to their dtype afterwards.


def or_nan(function: Callable[..., float]) -> Callable[..., float]:
    """`function`, with NaN where Python's math raises for want of a value."""

    def value(*x: float) -> float:
        try:
            return function(*x)
        except ValueError:
            return math.nan

    return value


def or_infinite(function: Callable[[float], float]) -> Callable[[float], float]:
    def value(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf

    return value


def sign(x: Any) -> Any:
    return x if math.isnan(x) else (x > 0) - (x < 0)


def log(x: float) -> float:
    return -math.inf if x == 0 else or_nan(math.log)(x)


def log1p(x: float) -> float:
    return -math.inf if x == -1 else or_nan(math.log1p)(x)


def floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def rsqrt(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / or_nan(math.sqrt)(x)


def logistic(x: float) -> float:
    return math.nan if math.isnan(x) else 0.5 * (1 + math.tanh(x / 2)) if x > -30 else math.exp(x) if x > -700 else 0.0


def divide(x: Any, y: Any) -> Any:
    if isinstance(x, float):
        if y == 0:
            return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)
        return x / y
    if y == 0:
        return -1
    return abs(x) // abs(y) * sign(x) * sign(y)


def remainder(x: Any, y: Any) -> Any:
    if isinstance(x, float):
        return or_nan(math.fmod)(x, y)
    return x if y == 0 else abs(x) % abs(y) * sign(x)


def modulo(x: float, y: float) -> float:
    """Python's %, which has no remainder by zero or of infinities."""
    if y == 0 or math.isinf(x) or math.isnan(x):
        return math.nan
    return x % y


def power(x: Any, y: Any) -> Any:
    """C's pow, which Python's is but for the errors; for whole numbers by what the quotient truncates to."""
    if isinstance(x, float):
        try:
            return math.pow(x, y)
        except OverflowError:
            return -math.inf if x < 0 and y % 2 == 1 else math.inf
        except ValueError:
            if x != 0:
                return math.nan
            return -math.inf if math.copysign(1, x) < 0 and y % 2 == 1 else math.inf
    if y >= 0:
        return pow(x, y, 2**64)
    return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)


def extremum(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """The better one; NaN where there is one."""

    def choose(*values: Any) -> Any:
        best = values[0]
        for value in values[1:]:
            if not math.isnan(best) and (math.isnan(value) or better(value, best)):
                best = value
        return best

    return choose


def greatest(*values: Any) -> Any:
    return extremum(lambda a, b: a > b)(*values)


def least(*values: Any) -> Any:
    return extremum(lambda a, b: a < b)(*values)


# Their edges, which are not all SciPy's, are in tests/lavax/test_scipy_special_more.py.
OF_SCIPY: dict[str, Callable[..., Any]] = {
    "factorial": lambda x: special.gamma(x + 1),
    "betainc": special.betainc,
    **{name: getattr(special, name) for name in ("beta", "boxcox", "boxcox1p", "expi", "expn", "gamma", "gammainc")},
    **{name: getattr(special, name) for name in ("gammaincc", "kl_div", "poch", "polygamma", "zeta")},
}
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **OF_SCIPY,
    "negate": lambda x: -x,
    "abs": abs,
    "sign": sign,
    "floor": floor,
    "ceil": lambda x: -floor(-x),
    "round": lambda x: math.copysign(float(round(x)), x) if math.isfinite(x) else x,
    "truncate": lambda x: math.copysign(floor(abs(x)), x),
    "exp2": or_infinite(math.exp2),
    "log2": lambda x: -math.inf if x == 0 else or_nan(math.log2)(x),
    "cbrt": math.cbrt,
    "tan": or_nan(math.tan),
    "asin": or_nan(math.asin),
    "acos": or_nan(math.acos),
    "atan": math.atan,
    "atan2": math.atan2,
    "sinh": lambda x: math.copysign(or_infinite(math.sinh)(abs(x)), x),
    "cosh": or_infinite(math.cosh),
    "asinh": math.asinh,
    "acosh": or_nan(math.acosh),
    "atanh": lambda x: math.copysign(math.inf, x) if abs(x) == 1 else or_nan(math.atanh)(x),
    "erf": math.erf,
    "erfc": math.erfc,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "ndtr": special.ndtr,
    "ndtri": special.ndtri,
    "lgamma": lambda x: math.inf if x == -math.inf else special.gammaln(x),
    "digamma": special.digamma,
    "bessel_i0": lambda x: math.inf if math.isinf(x) else special.i0(x),
    "bessel_i0e": special.i0e,
    "bessel_i1": lambda x: x if math.isinf(x) else special.i1(x),
    "bessel_i1e": special.i1e,
    "exp": or_infinite(math.exp),
    "log": log,
    "expm1": or_infinite(math.expm1),
    "log1p": log1p,
    "sqrt": or_nan(math.sqrt),
    "rsqrt": rsqrt,
    "sin": or_nan(math.sin),
    "cos": or_nan(math.cos),
    "tanh": math.tanh,
    "logistic": logistic,
    "not": lambda x: not x if isinstance(x, bool) else ~x,
    "stop_gradient": lambda x: x,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": divide,
    "remainder": remainder,
    "modulo": modulo,
    "power": power,
    "maximum": greatest,
    "minimum": least,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "where": lambda c, x, y: x if c else y,
    "barrier": lambda x, after: x,
    "known_value": lambda x, known: known,
}


def shift(arrays: Sequence[np.ndarray], place: Place) -> tuple[int, int, bool]:
    """The bits to be shifted, the distance, and whether the highest bit is set."""
    modulus = 2 ** (8 * arrays[0].itemsize)
    word, distance = (int(array[place]) % modulus for array in arrays)
    return word, distance, word >= modulus // 2


def shift_left(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> int:
    word, distance, _ = shift(arrays, place)
    return word << distance if distance < 64 else 0


def shift_right_logical(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> int:
    word, distance, _ = shift(arrays, place)
    return word >> distance


def shift_right_arithmetic(
    arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place
) -> int:
    word, distance, negative = shift(arrays, place)
    return (word - 2**type.dtype.bits if negative else word) >> distance


def bitcast(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    value = arrays[0][place].item()
    width = type.dtype.bits // 8
    form = {1: "", 2: "<e", 4: "<f", 8: "<d"}[width]
    whole = isinstance(value, int)
    packed = (value % 2**type.dtype.bits).to_bytes(width, "little") if whole else struct.pack(form, value)
    return struct.unpack(form, packed)[0] if type.dtype.is_float else int.from_bytes(packed, "little")


def threefry(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> int:
    """Threefry-2x32-20 as the paper has it: a key word is added every four rounds."""
    k0, k1, x, y = (int(array[place]) for array in arrays)
    keys, turns = [k0, k1, k0 ^ k1 ^ 0x1BD11BDA], [13, 15, 26, 6, 17, 29, 16, 24]
    x, y = (x + k0) % 2**32, (y + k1) % 2**32
    for number in range(20):
        turn = turns[number % 8]
        x = (x + y) % 2**32
        y = x ^ (y << turn | y >> 32 - turn) % 2**32
        if number % 4 == 3:
            group = number // 4 + 1
            x, y = (x + keys[group % 3]) % 2**32, (y + keys[(group + 1) % 3] + group) % 2**32
    return [x, y, x ^ y][attrs["word"]]


def elementwise(function: Callable[..., Any]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        return function(*(array[place].item() for array in arrays))

    return element


def cast(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    x = arrays[0][place].item()
    if type.dtype.kind == "bool":
        return x != 0
    if type.dtype.is_float:
        return float(x)
    if not isinstance(x, float):
        return int(x)
    low, high = type.dtype.lowest, type.dtype.highest
    return 0 if math.isnan(x) else low if x < low else high if x > high else int(x)


# Reductions and positions


def folded(function: Callable[..., Any]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        (x,) = arrays
        given = iter(place)
        ranges = [range(n) if axis in attrs["axes"] else [next(given)] for axis, n in enumerate(x.shape)]
        return function(*(x[at].item() for at in product(*ranges)))

    return element


def position(better: Callable[[Any, Any], bool]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        axis = attrs["axis"]
        row = [arrays[0][(*place[:axis], k, *place[axis:])].item() for k in range(arrays[0].shape[axis])]
        best = extremum(better)(*row)
        return next(k for k, value in enumerate(row) if value == best or (math.isnan(best) and math.isnan(value)))

    return element


# Movement: where the element of the result comes from


def reshape(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    flat = 0
    for at, extent in zip(place, type.shape, strict=True):
        flat = flat * extent + at
    source: list[int] = []
    for extent in reversed(arrays[0].shape):
        flat, at = divmod(flat, extent)
        source.insert(0, at)
    return arrays[0][tuple(source)]


def transpose(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    return arrays[0][tuple(place[attrs["axes"].index(axis)] for axis in range(arrays[0].ndim))]


def broadcast(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    return arrays[0][tuple(0 if n == 1 else place[a] for a, n in zip(attrs["axes"], arrays[0].shape, strict=True))]


def slice_(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    return arrays[0][tuple(a + k * s for a, k, s in zip(attrs["start"], place, attrs["stride"], strict=True))]


def pad(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    source = []
    for at, low, between, extent in zip(place, attrs["low"], attrs["interior"], arrays[0].shape, strict=True):
        number, beside = divmod(at - low, between + 1)
        if beside or not 0 <= number < extent:
            return attrs["value"]
        source.append(number)
    return arrays[0][tuple(source)]


def concatenate(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis, at = attrs["axis"], place[attrs["axis"]]
    for array in arrays:
        if at < array.shape[axis]:
            return array[(*place[:axis], at, *place[axis + 1 :])]
        at -= array.shape[axis]
    raise AssertionError("the place is outside all parts")


def flip(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    turned = [extent - 1 - at for at, extent in zip(place, type.shape, strict=True)]
    return arrays[0][tuple(turned[axis] if axis in attrs["axes"] else at for axis, at in enumerate(place))]


# Indexing and contraction


def inserted(window: Sequence[int], axes: Sequence[int], at: Sequence[int]) -> Place:
    """`at` on `axes`, `window` on the others."""
    rest, known = iter(window), dict(zip(axes, at, strict=True))
    return tuple(known[axis] if axis in known else next(rest) for axis in range(len(window) + len(axes)))


def gather(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    x, *indices = arrays
    rank = indices[0].ndim
    read = [i[place[:rank]].item() for i in indices]
    nearest = [min(max(i, 0), x.shape[axis] - 1) for i, axis in zip(read, attrs["axes"], strict=True)]
    return x[inserted(place[rank:], attrs["axes"], nearest)]


def scatter(join: Callable[[Any, Any], Any]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        x, updates, *indices = arrays
        window = tuple(at for axis, at in enumerate(place) if axis not in attrs["axes"])
        wanted = [place[axis] for axis in attrs["axes"]]
        hits = [at for at in places(indices[0].shape) if [i[at].item() for i in indices] == wanted]
        return reduce(join, (updates[at + window].item() for at in hits), x[place].item())

    return element


# Routines


def cumulative(join: Callable[[Any, Any], Any]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        axis = attrs["axis"]
        row = [arrays[0][(*place[:axis], k, *place[axis + 1 :])].item() for k in range(place[axis] + 1)]
        return reduce(join, row)

    return element


def log_of_sum(x: float, y: float) -> float:
    if x == y:
        return x + math.log(2)
    return max(x, y) + math.log1p(math.exp(-abs(x - y))) if x == x and y == y else math.nan


def rank_key(value: Any) -> tuple[bool, Any]:
    """NaN is behind all numbers."""
    return (True, 0) if value != value else (False, value)


def order_of(row: Sequence[Any], among: Sequence[int]) -> list[int]:
    return sorted(among, key=lambda k: rank_key(row[k]))


def sort_order(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis = attrs["axis"]
    row = [arrays[0][(*place[:axis], k, *place[axis + 1 :])].item() for k in range(type.shape[axis])]
    return order_of(row, range(len(row)))[place[axis]]


def sort(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis = attrs["axis"]
    return arrays[0][(*place[:axis], sort_order(arrays, attrs, type, place), *place[axis + 1 :])].item()


def unsort(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    axis = attrs["axis"]
    line = [(*place[:axis], k, *place[axis + 1 :]) for k in range(type.shape[axis])]
    (source,) = (at for at in line if arrays[1][at] == place[axis])
    return arrays[0][source].item()


def sort_runs(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    row, run = arrays[0][place[:-1]].tolist(), attrs["run"]
    start = place[-1] // run * run
    return order_of(row, range(start, min(start + run, len(row))))[place[-1] - start]


def merge_runs(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    row, order, pair = arrays[0][place[:-1]].tolist(), arrays[1][place[:-1]].tolist(), 2 * attrs["run"]
    start = place[-1] // pair * pair
    return order_of(row, order[start : start + pair])[place[-1] - start]


def search_sorted(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    row, wanted = arrays[0][place[:-1]].tolist(), rank_key(arrays[1][place].item())
    return sum(rank_key(x) < wanted or (attrs["right"] and rank_key(x) == wanted) for x in row)


def digit_of(value: np.ndarray, attrs: Mapping[str, Any]) -> int:
    return int(value) // 2 ** attrs["shift"] % 2 ** attrs["bits"]


def count_digits(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    *row, digit, tile = place
    start = tile * attrs["tile"]
    values = arrays[0][tuple(row)][start : start + attrs["tile"]]
    return sum(digit_of(value, attrs) == digit for value in values)


def move_by_digit(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """The starts of the cases are those that put the whole row in order."""
    *row, rank = place
    return sorted(arrays[0][tuple(row)].tolist(), key=lambda value: digit_of(value, attrs))[rank]


def joined_in_turn(held: Any, updates: Iterable[Any], join: str) -> Any:
    return reduce(FOLDS.get(join, lambda held, update: update), updates, held)


def fold_runs(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    updates, order, places = arrays
    number, *window = place
    chunk = range(number * attrs["chunk"], min((number + 1) * attrs["chunk"], len(order)))
    run = [updates[(order[at], *window)].item() for at in chunk if places[at] == places[chunk[0]]]
    return joined_in_turn(run[0], run[1:], attrs["join"])


def join_runs(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    array, updates, order, places, *_ = arrays
    axes = attrs["axes"]
    target = np.ravel_multi_index([place[axis] for axis in axes], [array.shape[axis] for axis in axes])
    window = [index for axis, index in enumerate(place) if axis not in axes]
    run = [updates[(number, *window)].item() for number, at in zip(order, places, strict=True) if at == target]
    return joined_in_turn(array[place].item(), run, attrs["join"])


def dot(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    (left_batch, right_batch), (left_sum, right_sum) = attrs["batch"], attrs["contract"]
    left, right = arrays
    batch, free = place[: len(left_batch)], place[len(left_batch) :]
    count = left.ndim - len(left_batch) - len(left_sum)
    total = 0
    for inner in places([left.shape[axis] for axis in left_sum]):
        x = left[inserted(free[:count], (*left_batch, *left_sum), (*batch, *inner))].item()
        y = right[inserted(free[count:], (*right_batch, *right_sum), (*batch, *inner))].item()
        total += x * y
    return total


def conv(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    left, right = arrays
    (left_batch, right_batch), (left_sum, right_sum), (of_left, of_right) = (
        attrs[name] for name in ("batch", "contract", "window")
    )
    kept = [axis for axis in range(left.ndim) if axis not in (*left_batch, *left_sum)]
    free = [axis for axis in range(right.ndim) if axis not in (*right_batch, *right_sum, *of_right)]
    at = dict(zip([*left_batch, *kept], place, strict=False))
    lists = [attrs[name] for name in ("stride", "dilation", "low", "interior")]
    total = 0
    for inner in places([left.shape[axis] for axis in left_sum]):
        for element in places([right.shape[axis] for axis in of_right]):
            x_place, inside = dict(at) | dict(zip(left_sum, inner, strict=True)), True
            for axis, k, stride, dilation, low, interior in zip(of_left, element, *lists, strict=True):
                x_place[axis], between = divmod(at[axis] * stride + k * dilation - low, interior + 1)
                inside = inside and not between and 0 <= x_place[axis] < left.shape[axis]
            met = (*place[: len(left_batch)], *inner, *element)
            y_place = dict(zip((*right_batch, *right_sum, *of_right), met, strict=True))
            y_place |= dict(zip(free, place[len(left_batch) + len(kept) :], strict=True))
            if inside:
                x = left[tuple(x_place[axis] for axis in range(left.ndim))].item()
                total += x * right[tuple(y_place[axis] for axis in range(right.ndim))].item()
    return total


def shear(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    source = list(place)
    for axis, along, stride, dilation in zip(*(attrs[name] for name in SHEARED), strict=True):
        source[axis] = place[axis] * stride + place[along] * dilation
    return arrays[0][tuple(source)]


def unshear(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    source = list(place)
    for axis, along, stride, dilation in zip(*(attrs[name] for name in SHEARED), strict=True):
        source[axis], between = divmod(place[axis] - place[along] * dilation, stride)
        if between or not 0 <= source[axis] < arrays[0].shape[axis]:
            return 0
    return arrays[0][tuple(source)]


class Attention:
    """One element of the batch of an operation of attention: numbers for each pair of a query and a key."""

    def __init__(self, op: str, arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], batch: Place) -> None:
        self.attrs = attrs
        self.of = {name: array[batch] for name, array in zip(names_of(op, attrs), arrays, strict=True)}
        self.queries, self.keys = len(self.of["query"]), len(self.of["key"])

    def is_visible(self, i: int, j: int) -> bool:
        inside = self.attrs["lowest"] <= j - i <= self.attrs["highest"]
        return inside and bool(self.of["mask"][i, j] if self.attrs["masked"] else True)

    def score(self, i: int, j: int) -> float:
        if not self.is_visible(i, j):
            return float(self.attrs["fill"])
        bias = float(self.of["bias"][i, j]) if self.attrs["biased"] else 0.0
        return float(self.of["query"][i] @ self.of["key"][j]) * self.attrs["scale"] + bias

    def scores(self, i: int) -> list[float]:
        return [self.score(i, j) for j in range(self.keys)]

    def out(self, i: int, e: int) -> float:
        scores = self.scores(i)
        if max(scores) == -math.inf:
            return 0.0 if self.attrs["empty"] else math.nan
        grown = [math.exp(score - max(scores)) for score in scores]
        return math.fsum(w * v for w, v in zip(grown, self.of["value"][:, e].tolist(), strict=True)) / math.fsum(grown)

    def logsumexp(self, i: int) -> float:
        scores = self.scores(i)
        if max(scores) == -math.inf:
            return math.inf if self.attrs["empty"] else -math.inf
        return math.log(math.fsum(math.exp(score - max(scores)) for score in scores)) + max(scores)

    def weight(self, i: int, j: int) -> float:
        return math.exp(self.score(i, j) - float(self.of["logsumexp"][i]))

    def slope(self, i: int, j: int) -> float:
        """The cotangent of the product of query and key."""
        if not self.is_visible(i, j):
            return 0.0
        of_weight = float(self.of["cotangent"][i] @ self.of["value"][j]) - float(self.of["delta"][i])
        return float(self.attrs["scale"] * self.weight(i, j) * of_weight)


def attention(op: str, compute: Callable[..., float], own: int = 2) -> Definition:
    """`compute` takes the operands of one element of the batch and the last `own` indices."""

    def definition(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        count = len(place) - own
        return compute(Attention(op, arrays, attrs, place[:count]), *place[count:])

    return definition


ATTENTION: dict[str, Definition] = {
    "attention": attention("attention", Attention.out),
    "attention_logsumexp": attention("attention_logsumexp", Attention.logsumexp, 1),
    "attention_query_gradient": attention(
        "attention_query_gradient",
        lambda a, i, d: math.fsum(a.slope(i, j) * a.of["key"][j, d] for j in range(a.keys)),
    ),
    "attention_key_gradient": attention(
        "attention_key_gradient",
        lambda a, j, d: math.fsum(a.slope(i, j) * a.of["query"][i, d] for i in range(a.queries)),
    ),
    "attention_value_gradient": attention(
        "attention_value_gradient",
        lambda a, j, e: math.fsum(a.weight(i, j) * a.of["cotangent"][i, e] for i in range(a.queries)),
    ),
}

SHEARED = ("axes", "along", "stride", "dilation")

FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda held, update: held + update,
    "multiply": lambda held, update: held * update,
    "minimum": least,
    "maximum": greatest,
}

DEFINITIONS: dict[str, Definition] = {
    **{op: elementwise(function) for op, function in ELEMENTWISE.items()},
    "cast": cast,
    "shift_left": shift_left,
    "shift_right_logical": shift_right_logical,
    "shift_right_arithmetic": shift_right_arithmetic,
    "bitcast": bitcast,
    "population_count": lambda arrays, attrs, type, place: (int(arrays[0][place]) % 2**type.dtype.bits).bit_count(),
    "threefry": threefry,
    "sum": folded(lambda *x: sum(x)),
    "prod": folded(lambda *x: math.prod(x)),
    "max": folded(greatest),
    "min": folded(least),
    "argmax": position(lambda a, b: a > b),
    "argmin": position(lambda a, b: a < b),
    "reshape": reshape,
    "transpose": transpose,
    "broadcast": broadcast,
    "slice": slice_,
    "pad": pad,
    "concatenate": concatenate,
    "flip": flip,
    "gather": gather,
    "scatter_set": scatter(lambda held, update: update),
    **{f"scatter_{join}": scatter(function) for join, function in FOLDS.items()},
    "cumulative_sum": cumulative(FOLDS["add"]),
    "cumulative_prod": cumulative(FOLDS["multiply"]),
    "cumulative_max": cumulative(FOLDS["maximum"]),
    "cumulative_min": cumulative(FOLDS["minimum"]),
    "cumulative_logsumexp": cumulative(log_of_sum),
    "sort": sort,
    "sort_order": sort_order,
    "sort_runs": sort_runs,
    "unsort": unsort,
    "merge_runs": merge_runs,
    "search_sorted": search_sorted,
    "count_digits": count_digits,
    "move_by_digit": move_by_digit,
    "fold_runs": fold_runs,
    "join_runs": join_runs,
    "dot": dot,
    "conv": conv,
    "shear": shear,
    "unshear": unshear,
    **ATTENTION,
    "constant": lambda arrays, attrs, type, place: attrs["value"],
    "iota": lambda arrays, attrs, type, place: place[attrs["axis"]],
}


def wrapped(value: Any, dtype: DType) -> Any:
    if not dtype.is_integer:
        return value
    value = int(value) % 2**dtype.bits
    return value - 2**dtype.bits if dtype.kind == "int" and value > dtype.highest else value


def defined(case: Case) -> np.ndarray:
    """The case's result by the definition."""
    type = case.node.type
    arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in case.arrays]
    result = np.zeros(type.shape, np.float64 if type.dtype.is_float else type.dtype.numpy)
    for place in places(type.shape):
        result[place] = wrapped(DEFINITIONS[case.op](arrays, case.node.attrs, type, place), type.dtype)
    return result


# Matrices taken apart have no definition element by element; see tests/ir/test_linear_algebra.py.
OF_MATRICES = {"cholesky", "eigh", "householder", "jacobi", "linear_solve", "lu", "qr", "svd", "triangular_solve"}


def test_every_operation_has_a_definition() -> None:
    assert set(DEFINITIONS) | OF_MATRICES == set(OPERATIONS) - WITHOUT_CASES


@pytest.mark.parametrize("op", sorted(DEFINITIONS))
def test_float64(op: str) -> None:
    """Functions of libraries differ by a unit or two in the last place; sums by the order of their terms."""
    for case in cases_of(op):
        if case.node.type.size > 1000 or (case.special and op in OF_SCIPY):
            continue
        (found,) = interpret(case.graph, *case.arrays)
        expected = defined(case)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), str(case)
        close = 2e-14 if op in ATTENTION else 1e-12 if op in OF_SCIPY else 4e-15  # sums, under exp
        np.testing.assert_allclose(found, expected, rtol=close, atol=close, err_msg=str(case))


# Their terms are added in another order.
SUMS = ("dot", "conv", "sum", "cumulative_sum", "cumulative_logsumexp", *ATTENTION)


@pytest.mark.parametrize("op", sorted(DEFINITIONS))
def test_float32(op: str) -> None:
    """The same in float32, where values stay in range: a few of its units, in sums for as many as there are terms."""
    for case in cases_of(op):
        if not case.only_float32:
            continue
        (found,) = interpret(case.graph, *case.arrays, dtype=np.float32)
        assert found.dtype == case.node.dtype.numpy
        if not case.special and case.op not in ("remainder", "modulo"):
            (expected,) = interpret(case.graph, *case.arrays)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 if op in SUMS else 0)


def test_signed_zeros_and_division() -> None:
    graph = parse("graph (x: f32[2], y: f32[2]) {\n  %0 = divide(x, y) : f32[2]\n  return %0\n}")
    np.testing.assert_array_equal(interpret(graph, [1.0, 1.0], [0.0, -0.0])[0], [np.inf, -np.inf])


def test_a_value_may_be_returned_more_than_once_and_an_input_too() -> None:
    graph = parse("graph (x: f32[2]) {\n  %0 = sin(x) : f32[2]\n  return %0, x, %0\n}")
    results = interpret(graph, [0.5, 1.0])
    np.testing.assert_array_equal(results, [np.sin([0.5, 1.0]), [0.5, 1.0], np.sin([0.5, 1.0])])


def test_inputs_take_their_dtype() -> None:
    graph = parse("graph (i: i32[2], b: bool[2], x: f32[]) {\n  return i, b, x\n}")
    results = interpret(graph, [1.0, 2.0], [0, 2], 1)
    assert [result.dtype for result in results] == [np.int32, np.bool_, np.float64]


def test_wrong_arguments() -> None:
    graph = parse("graph (x: f32[2], y: f32[]) {\n  return x\n}")
    with pytest.raises(ShapeError, match="the graph has 2 inputs, got 1 arrays"):
        interpret(graph, [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"input x is f32\[2\], got an array of shape \(3,\)"):
        interpret(graph, [1.0, 2.0, 3.0], 1.0)


def test_a_deep_graph() -> None:
    lines = ["graph (x: f32[]) {", "  %0 = sin(x) : f32[]"]
    lines += [f"  %{number} = sin(%{number - 1}) : f32[]" for number in range(1, 3000)]
    graph = parse("\n".join([*lines, "  return %2999", "}"]))
    assert 0 < interpret(graph, 1.0)[0] < 0.1
