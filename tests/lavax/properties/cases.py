"""What a property is checked on: strategies of arguments, and the comparison of a function with NumPy's on them."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import lavax.numpy as lnp
from lavax.base.errors import LavaxError
from lavax.ir import interpret, verify
from lavax.ir.types import bfloat16
from lavax.tracer import dtype_of
from tests.lavax.numpy.arrays import BOOL, DTYPES, F32, I32, NUMBERS, U32, sample, traced

INTEGERS = (I32, U32)
WITHOUT_SIGN = (U32, BOOL)
# Rounding in float64, times what a few hundred terms of size 1 may gather.
EXACT = 1e-9
TINY = 1e-15
EPS = float(np.finfo(np.float32).eps)
BRAIN_EPS = 2.0**-7
REFUSALS = (LavaxError, ValueError, TypeError, IndexError)
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Arguments:
    """NumPy arrays that become traced, and the arguments that the program knows.

    With `brain` the floats, in float32 here, are numbers of bfloat16, and passed on as such.
    """

    arrays: tuple[np.ndarray, ...]
    options: dict[str, Any] = field(default_factory=dict)
    brain: bool = False

    def passed(self) -> list[Any]:
        """The arrays as lavax gets them."""
        brain = [self.brain and array.dtype.kind == "f" for array in self.arrays]
        pairs = zip(self.arrays, brain, strict=True)
        return [lnp.asarray(array, dtype="bfloat16") if special else array for array, special in pairs]


@dataclass(frozen=True)
class Case:
    """A function of both namespaces on arguments that a strategy draws.

    `call` makes the function of a namespace; `theirs` stands for it where NumPy's name or meaning differs.
    `eager`: the shape of the result depends on data, so there is no graph. `single`: the reference is NumPy's in
    float32, as the function is about the format itself. `lenient`: what NumPy refuses may have an answer here.
    """

    arguments: st.SearchStrategy[Arguments]
    call: Callable[[Any], Callable[..., Any]]
    theirs: Callable[..., Any] | None = None
    eager: bool = False
    single: bool = False
    lenient: bool = False

    def expected(self, drawn: Arguments) -> list[np.ndarray]:
        """NumPy's results, floats in float64."""
        return self._called(drawn.arrays if self.single else tuple(map(_widened, drawn.arrays)), drawn)

    def in_place(self, drawn: Arguments) -> list[np.ndarray]:
        """NumPy's results in the arguments' own dtypes."""
        return self._called(drawn.arrays, drawn)

    def _called(self, held: tuple[np.ndarray, ...], drawn: Arguments) -> list[np.ndarray]:
        # NumPy's nanmin and nanmax leave `initial` out for its scalars, not for arrays without axes.
        held = tuple(map(np.asarray, held))
        function = self.theirs or self.call(np)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.asarray(one) for one in listed(function(*held, **drawn.options))]


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def listed(result: Any) -> list[Any]:
    """The results of a function that gives one, or several."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def named(name: str, arguments: st.SearchStrategy[Arguments], theirs: Any = None, **more: Any) -> Case:
    """The case of a function that has the same name in both namespaces."""
    return Case(arguments, lambda namespace: getattr(namespace, name), theirs, **more)


# Widths

# The families of dtypes, each with its widths: the same numbers are drawn for all.
WIDTHS: dict[str, tuple[str, ...]] = {
    "f": ("float16", "bfloat16", "float32", "float64"),
    "i": ("int8", "int16", "int32", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "b": ("bool",),
}


def in_widths(drawn: Arguments, widths: Mapping[str, str]) -> Arguments:
    """The same numbers in one dtype of each family."""
    brain = widths["f"] == "bfloat16"
    names = {**widths, "f": "float32"} if brain else widths
    with np.errstate(all="ignore"):
        arrays = tuple(array.astype(names[array.dtype.kind]) for array in drawn.arrays)
    if brain:
        arrays = tuple(bfloat16.rounded(array) if array.dtype == F32 else array for array in arrays)
    return Arguments(arrays, drawn.options, brain)


def epsilon_of(drawn: Arguments) -> float:
    """The rounding that results may show: that of the least exact floats, of float32 where there are none."""
    if drawn.brain:
        return BRAIN_EPS
    floats = [float(np.finfo(array.dtype).eps) for array in drawn.arrays if array.dtype.kind == "f"]
    return max(floats, default=EPS)


def _check_dtypes(types: Sequence[Any], drawn: Arguments, expected: Sequence[np.ndarray]) -> None:
    """Of arguments of one dtype, results have that too wherever NumPy's do; positions are int32 here, int64 there."""
    dtypes = {array.dtype for array in drawn.arrays}
    if len(dtypes) != 1 or "dtype" in drawn.options:
        return
    (held,) = dtypes
    for type, right in zip(types, expected, strict=True):
        if right.dtype == held != np.dtype(np.int64):
            assert type.dtype == (bfloat16 if drawn.brain and held == F32 else dtype_of(held)), f"{type} of {held}"


# Arrays

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in order": lambda x: x,
    "by columns": lambda x: np.array(x.T, order="C").T,
    "reversed": lambda x: np.flip(np.array(np.flip(x), order="C")),
    "every other": lambda x: np.repeat(x, 2, -1)[..., ::2] if x.ndim else x,
}
ranks = st.integers(0, 5)


def shapes(low: int = 0, high: int = 5, smallest: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of rank `low` to `high`, with extents from `smallest` to 4 (to 3 from rank 4 on)."""
    flat = arrays_of.array_shapes(min_dims=low, max_dims=max(min(high, 3), low), min_side=smallest, max_side=4)
    if high <= 3:
        return flat
    deep = arrays_of.array_shapes(min_dims=max(low, 4), max_dims=high, min_side=smallest, max_side=3)
    return st.one_of(flat, deep)


# What is drawn among the numbers for functions that leave it out.
NAN = (np.nan,)


def numbers(
    draw: Draw,
    shape: Sequence[int],
    dtypes: Sequence[np.dtype] = DTYPES,
    low: float = -3,
    high: float = 3,
    special: Sequence[float] = (),
) -> np.ndarray:
    """An array of one of `dtypes` in some memory layout; some floats are one of `special`."""
    x = sample(shape, draw(st.sampled_from(dtypes)), low, high, draw(st.integers(0, 999)))
    if special and x.dtype == F32:
        random = np.random.default_rng(draw(st.integers(0, 999)))
        x = np.where(random.random(x.shape) < 0.3, random.choice(special, x.shape), x).astype(F32)
    return LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](x)


def axis_of(draw: Draw, rank: int, none: bool = False) -> int | None:
    """An axis, counted from either end; None too if `none`."""
    axes = st.integers(-rank, rank - 1) if rank else st.none()
    found: int | None = draw(st.one_of(st.none(), axes) if none else axes)
    return found


def axes_of(draw: Draw, rank: int) -> Any:
    """None, an axis, or several."""
    return draw(
        st.one_of(
            st.none(),
            st.integers(-rank, rank - 1) if rank else st.none(),
            arrays_of.valid_tuple_axes(rank),
        )
    )


@st.composite
def one(draw: Draw, dtypes: Sequence[np.dtype] = DTYPES, low: int = 0, high: int = 5, smallest: int = 0,
        range: tuple[float, float] = (-3, 3), special: Sequence[float] = ()) -> Arguments:  # fmt: skip
    """An array."""
    shape = draw(shapes(low, high, smallest))
    return Arguments((numbers(draw, shape, dtypes, *range, special),))


@st.composite
def several(draw: Draw, count: int, dtypes: Sequence[np.dtype] = DTYPES, high: int = 5,
            ranges: Sequence[tuple[float, float]] = ((-3, 3),), special: Sequence[float] = (),
            same: bool = False) -> Arguments:  # fmt: skip
    """`count` arrays that broadcast; the ranges are repeated as needed; of one dtype if `same`."""
    shapes = arrays_of.mutually_broadcastable_shapes(num_shapes=count, max_dims=high, min_side=0, max_side=3)
    if same:
        dtypes = (draw(st.sampled_from(dtypes)),)
    arrays = [
        numbers(draw, shape, dtypes, *ranges[place % len(ranges)], special)
        for place, shape in enumerate(draw(shapes).input_shapes)
    ]
    return Arguments(tuple(arrays))


@st.composite
def along(draw: Draw, dtypes: Sequence[np.dtype] = DTYPES, low: int = 1, high: int = 5, smallest: int = 0,
          range: tuple[float, float] = (-3, 3), special: Sequence[float] = (), none: bool = False,
          name: str = "axis", **options: st.SearchStrategy[Any]) -> Arguments:  # fmt: skip
    """An array and one of its axes, with further options."""
    shape = draw(shapes(low, high, smallest))
    chosen = {name: axis_of(draw, len(shape), none), **{key: draw(one) for key, one in options.items()}}
    return Arguments((numbers(draw, shape, dtypes, *range, special),), chosen)


@st.composite
def over(draw: Draw, dtypes: Sequence[np.dtype] = DTYPES, smallest: int = 0, range: tuple[float, float] = (-3, 3),
         special: Sequence[float] = (), **options: st.SearchStrategy[Any]) -> Arguments:  # fmt: skip
    """An array, some of its axes and `keepdims`, with further options."""
    shape = draw(shapes(0, 5, smallest))
    chosen = {"axis": axes_of(draw, len(shape)), "keepdims": draw(st.booleans())}
    chosen |= {key: draw(one) for key, one in options.items()}
    return Arguments((numbers(draw, shape, dtypes, *range, special),), chosen)


# Checks

def _agree(found: Any, type: Any, expected: np.ndarray, rtol: float, atol: Any, what: str) -> None:
    assert type.shape == expected.shape, f"{what}: shape {type.shape}, NumPy has {expected.shape}"
    kind = expected.dtype.kind
    assert type.dtype.numpy.kind == kind, f"{what}: {type.dtype}, NumPy has {expected.dtype}"
    if kind == "f":
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=what)
    else:
        np.testing.assert_array_equal(np.asarray(found).astype(np.int64), expected.astype(np.int64), err_msg=what)


def check(case: Case, drawn: Arguments, on_device: bool = False) -> None:
    """`case` on what was drawn: as a graph in float64, and at once on the arrays in float32."""
    function = case.call(lnp)
    try:
        expected = case.expected(drawn)
    except (ValueError, IndexError, TypeError, ZeroDivisionError) as refusal:
        if not case.lenient:
            _check_refused(function, drawn, refusal)
        return
    slack: list[Any] = [8 * epsilon_of(drawn)] * len(expected)
    if not case.eager:
        slack = _check_exact(case, drawn, expected)
    if on_device or case.eager or drawn.arrays:
        types = _check_at_once(function, drawn, expected, slack)
        _check_dtypes(types, drawn, case.in_place(drawn))


def _check_refused(function: Callable[..., Any], drawn: Arguments, refusal: Exception) -> None:
    try:
        found = function(*drawn.passed(), **drawn.options)
    except REFUSALS:
        return
    raise AssertionError(f"NumPy refuses this ({refusal}), but here it is {found}")


def _check_exact(case: Case, drawn: Arguments, expected: list[np.ndarray]) -> list[Any]:
    """The graph in float64 against NumPy; the result is how far float32 may be off, by the graph's condition."""
    graph = traced(lambda *arrays: case.call(lnp)(*arrays, **drawn.options), *drawn.arrays)
    verify(graph)
    eps = epsilon_of(drawn)
    held = np.float32 if case.single else np.float64
    exact = interpret(graph, *drawn.arrays, dtype=held)
    assert len(exact) == len(expected), f"{len(exact)} results, NumPy has {len(expected)}"
    for place, (output, ours, right) in enumerate(zip(graph.outputs, exact, expected, strict=True)):
        scale = _scale(right)
        _agree(ours, output.type, right, EXACT, EXACT * scale + TINY, f"result {place} of the graph")
    slack: list[Any] = [TINY + 16 * eps * (_scale(right) + np.abs(_finite(right))) for right in exact]
    for moved in _moved_both_ways(drawn.arrays, eps):
        for place, other in enumerate(interpret(graph, *moved)):
            if other.dtype.kind == "f":
                slack[place] = slack[place] + 16 * _finite(np.abs(_finite(other) - _finite(exact[place])))
    return slack


def _moved_both_ways(arrays: Sequence[np.ndarray], eps: float) -> Iterator[list[np.ndarray]]:
    """Floats moved by a rounding, each up or down by chance, then each the other way: one of them crosses any tie.

    Two such directions, since changes that cancel along one (those of a sum near 0) do not along the other.
    """
    random = np.random.default_rng(0)
    for _ in range(2):
        steps = [random.choice([-eps, eps], x.shape) for x in arrays]
        for way in (1, -1):
            yield [
                x.astype(np.float64) * (1 + way * step) if x.dtype.kind == "f" else x
                for x, step in zip(arrays, steps, strict=True)
            ]


def _scale(x: np.ndarray) -> float:
    return float(np.max(np.abs(_finite(x)), initial=0)) if x.dtype.kind == "f" else 0.0


def _finite(x: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(x), x, 0).astype(np.float64) if x.dtype.kind == "f" else np.zeros(x.shape)


def _check_at_once(
    function: Callable[..., Any], drawn: Arguments, expected: list[np.ndarray], slack: list[Any]
) -> list[Any]:
    """The function called with arrays; the result is the types of what it gives."""
    found = [lnp.asarray(one) for one in listed(function(*drawn.passed(), **drawn.options))]
    assert len(found) == len(expected), f"{len(found)} results, NumPy has {len(expected)}"
    for place, (ours, right, atol) in enumerate(zip(found, expected, slack, strict=True)):
        numbers = np.asarray(ours)
        what = f"result {place} at once"
        if right.dtype.kind != "f":
            _agree(numbers, ours.type, right, 0, 0, what)
            continue
        assert ours.shape == right.shape, f"{what}: shape {ours.shape}, NumPy has {right.shape}"
        assert ours.type.dtype.is_float, f"{what}: {ours.type}, NumPy has {right.dtype}"
        apart = np.abs(_finite(numbers.astype(np.float64)) - _finite(right))
        bound = atol + 8 * epsilon_of(drawn) * np.abs(_finite(right))
        assert (apart <= bound).all(), f"{what}: {numbers}, NumPy has {right}"
        np.testing.assert_array_equal(np.isnan(numbers), np.isnan(right), err_msg=what)
    return [one.type for one in found]


__all__ = [
    "Arguments", "BOOL", "Case", "DTYPES", "Draw", "F32", "I32", "INTEGERS", "NUMBERS", "U32", "WITHOUT_SIGN",
    "WIDTHS", "along", "axes_of", "axis_of", "check", "in_widths", "listed", "named", "numbers", "one", "over",
    "several", "shapes",
]  # fmt: skip
