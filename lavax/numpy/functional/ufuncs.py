"""Functions of elements with NumPy's methods: `add.reduce`, `maximum.accumulate`, `multiply.outer`, `subtract.at`."""
from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from lavax.ir.types import DType, bool_
from lavax.numpy._core.axes import Axis, normal_axis, rising_axes
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.manipulation import moveaxis, ravel
from lavax.numpy.arrays.ranges import arange
from lavax.numpy.elementwise import arithmetic, bitwise, comparison, exponential, extrema
from lavax.numpy.functional.vectorize import vectorize
from lavax.numpy.indexing.indexed_update import Place
from lavax.numpy.indexing.taking import take
from lavax.numpy.reductions import cumulative, reductions
from lavax.tracer.calls.signature import require_function
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, eval_shape
from lavax.tracer.values.value import Value

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "frompyfunc", "logaddexp", "logaddexp2", "logical_and",
    "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "subtract", "ufunc",
]  # fmt: skip

_Function = Callable[..., Any]
_ORDERED = ("max", "min")  # there are no running ones of complex numbers, step by step


class ufunc:  # noqa: N801  # NumPy's name
    """A function of `nin` arrays that broadcast, which makes `nout` arrays, with the methods that NumPy's ufuncs have.

    `identity` is the number that changes no other, or None. The methods are of functions of two arrays that make one,
    and only `at` is of one argument, too; of others they raise ValueError.
    """

    def __init__(
        self,
        function: _Function,
        nin: int = 2,
        nout: int = 1,
        identity: Any = None,
        fold: _Function | None = None,
        running: _Function | None = None,
        update: str = "",
    ) -> None:
        functools.update_wrapper(self, function)
        self._function, self._fold, self._running, self._update = function, fold, running, update
        self.nin, self.nout, self.nargs, self.identity = nin, nout, nin + nout, identity

    __name__: str

    def __call__(self, *args: Any, **kwargs: Any) -> Value:
        """The array, or a tuple of them if `nout` is not 1."""
        made: Value = self._function(*args, **kwargs)
        return made

    def __reduce__(self) -> Any:
        """The library's own are pickled by their names, and copied to themselves, as functions are."""
        is_own = globals().get(self.__name__) is self
        return (_own, (self.__name__,)) if is_own else super().__reduce__()

    def __repr__(self) -> str:
        return f"<lavax.numpy.ufunc {self.__name__!r}>"

    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Value:
        """f(… f(f(initial, first), second) …, last) along `axis`, where `where` is true: the elements of several axes
        (None: of all) are in the order of the flattened array.

        `initial` is the first element if it is None and there is no `identity`; then `where` may not be given, nor an
        axis without elements: a ValueError. `dtype` is that of the result of two elements by default, of sums and
        products that of `sum`.
        """
        self._require_binary("reduce", out)
        start = self.identity if initial is None else initial
        value = as_value(a)
        if where is not None and start is None:
            raise ValueError(f"{self.__name__}.reduce: with where, initial is needed too: there is no identity")
        if self._fold is not None:
            return self._folded(value, axis, dtype, keepdims, initial, where)
        along = rising_axes("reduce", axis, value.type)
        line = _in_line(value, along)
        masks = None if where is None else _in_line(broadcast_to(as_value(where), value.shape), along)
        if start is None and not line.shape[0]:
            raise ValueError(f"{self.__name__}.reduce: there are no elements, and no identity")
        held = self._held(value, dtype)
        rows = cast(line, held)
        first = rows[0] if start is None else broadcast_to(cast(as_value(start), held), line.shape[1:])
        skipped = int(start is None)

        def step(found: Value, given: Any) -> tuple[Value, None]:
            row, mask = given
            following = cast(as_value(self._function(found, row)), held)
            return (following if mask is None else comparison.where(mask, following, found)), None

        result: Value = scan(step, first, (rows[skipped:], None if masks is None else masks[skipped:]))[0]
        if not keepdims:
            return result
        return reshaped(result, tuple(1 if d in along else extent for d, extent in enumerate(value.shape)))

    def _folded(
        self, value: Value, axis: Axis, dtype: Any, keepdims: bool, initial: ArrayLike | None, where: Any
    ) -> Value:
        """By the reduction that the library has."""
        assert self._fold is not None
        given = value if dtype is None else cast(value, canonical_dtype(dtype))
        found: Value = self._fold(given, axis, keepdims, initial, where)
        return found if dtype is None else cast(found, canonical_dtype(dtype))

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: Any = None, out: None = None) -> Value:
        """The results of `reduce` of the elements up to each along `axis`."""
        self._require_binary("accumulate", out)
        value = as_value(a)
        along = normal_axis("accumulate", axis, value.type)
        if self._running is not None and not (self._update in _ORDERED and value.type.dtype.is_complex):
            return self._running(value, along, dtype)  # type: ignore[no-any-return]
        rows = cast(moveaxis(value, along, 0), self._held(value, dtype))
        if not rows.size:
            return moveaxis(rows, 0, along)

        def step(found: Value, row: Value) -> tuple[Value, Value]:
            following = cast(as_value(self._function(found, row)), rows.type.dtype)
            return following, following

        _, later = scan(step, rows[0], rows[1:])
        return moveaxis(concatenate([rows[:1], later]), 0, along)

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Value:
        """`a` with f(a[indices], b) at `indices`, one after the other: a place that is named twice is changed twice.

        A new array, as arrays that are traced are not written: `inplace` must be False, or NotImplementedError is
        raised. Without `b` for functions of one argument.
        """
        if inplace:
            raise NotImplementedError(f"{self.__name__}.at makes a new array: pass inplace=False, and use the result")
        value = as_value(a)
        if self._update and b is not None and value.type.dtype != bool_:
            return getattr(Place(value, indices), self._update)(b)  # type: ignore[no-any-return]
        places = reshaped(arange(value.size), value.shape)[indices]
        others = () if b is None else (ravel(broadcast_to(as_value(b), places.shape)),)

        def step(flat: Value, given: Any) -> tuple[Value, None]:
            place, *more = given
            return Place(flat, place).set(self._function(flat[place], *more)), None

        held = eval_shape(self._function, *(_scalar(each.type.dtype) for each in (value, *others))).dtype
        flat, _ = scan(step, cast(ravel(value), canonical_dtype(held)), (ravel(places), *others))
        return reshaped(flat, value.shape)

    def reduceat(
        self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Value:
        """The results of `reduce` of the elements from each of `indices` [k] up to the next; of the last, to the end.

        Where the next is not greater, the element at the index. Raises ShapeError for other `indices`.
        """
        self._require_binary("reduceat", out)
        value, starts = as_value(a), as_value(indices)
        if starts.ndim != 1:
            raise shape_error(f"{self.__name__}.reduceat: the indices must have one axis, got {starts.type}")
        along = normal_axis("reduceat", axis, value.type)
        held = self._held(value, dtype)
        rows = cast(moveaxis(value, along, 0), held)
        ends = concatenate([starts[1:], broadcast_to(cast(as_value(rows.shape[0]), starts.type.dtype), (1,))])
        column = (starts.size, *(1,) * (rows.ndim - 1))
        first, last = reshaped(starts, column), reshaped(ends, column)

        def step(place: Value, found: Value) -> Value:
            is_inside = comparison.logical_and(comparison.greater(place, first), comparison.less(place, last))
            return comparison.where(is_inside, cast(as_value(self._function(found, rows[place])), held), found)

        return moveaxis(fori_loop(0, rows.shape[0], step, take(rows, starts, 0)), 0, along)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Value:
        """f of each element of `A` with each of `B`: an array of the axes of both."""
        self._require_binary("outer", None)
        left, right = as_value(A), as_value(B)
        found: Value = self._function(reshaped(left, left.shape + (1,) * right.ndim), right)
        return found

    def _require_binary(self, method: str, out: None) -> None:
        refuse_out(f"{self.__name__}.{method}", out)
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(f"{self.__name__}.{method} is of functions of two arrays that make one")

    def _held(self, value: Value, dtype: Any) -> DType:
        kind = _scalar(value.type.dtype)
        return canonical_dtype(eval_shape(self._function, kind, kind).dtype if dtype is None else dtype)


def _in_line(value: Value, axes: tuple[int, ...]) -> Value:
    """The elements along these axes as the first axis."""
    moved = moveaxis(value, axes, tuple(range(len(axes))))
    return reshaped(moved, (prod(moved.shape[: len(axes)]), *moved.shape[len(axes) :]))


def _own(name: str) -> ufunc:
    found: ufunc = globals()[name]
    return found


def _scalar(dtype: DType) -> ShapeDtype:
    return ShapeDtype((), dtype.user)


def frompyfunc(func: _Function, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc of a Python function of `nin` scalars that returns `nout`: one program, by `vectorize`."""
    require_function(func, "frompyfunc takes a function")
    return ufunc(vectorize(func), nin, nout, identity)


def _with_initial(reduction: _Function, join: _Function) -> _Function:
    """A reduction of truth values, which takes no first value, joined with one."""

    def fold(value: Value, axis: Any, keepdims: bool, initial: Any, where: Any) -> Value:
        found: Value = reduction(value, axis, keepdims=keepdims, where=where)
        return found if initial is None else join(found, initial)

    return fold


def _plain(reduction: _Function) -> _Function:
    return lambda value, axis, keepdims, initial, where: reduction(
        value, axis, keepdims=keepdims, initial=initial, where=where
    )


def _running(cumulated: _Function) -> _Function:
    return lambda value, axis, dtype: cumulated(value if dtype is None else cast(value, canonical_dtype(dtype)), axis)


add = ufunc(arithmetic.add, 2, 1, 0, _plain(reductions.sum), cumulative.cumsum, "add")
subtract = ufunc(arithmetic.subtract, update="subtract")
multiply = ufunc(arithmetic.multiply, 2, 1, 1, _plain(reductions.prod), cumulative.cumprod, "multiply")
negative = ufunc(arithmetic.negative, 1)
maximum = ufunc(extrema.maximum, fold=_plain(reductions.max), running=_running(cumulative.cummax), update="max")
minimum = ufunc(extrema.minimum, fold=_plain(reductions.min), running=_running(cumulative.cummin), update="min")
logaddexp = ufunc(exponential.logaddexp, identity=-np.inf)
logaddexp2 = ufunc(exponential.logaddexp2, identity=-np.inf)
logical_and = ufunc(
    comparison.logical_and, identity=True, fold=_with_initial(reductions.all, comparison.logical_and)
)
logical_or = ufunc(comparison.logical_or, identity=False, fold=_with_initial(reductions.any, comparison.logical_or))
logical_xor = ufunc(comparison.logical_xor, identity=False)
bitwise_and = ufunc(bitwise.bitwise_and, identity=-1)
bitwise_or = ufunc(bitwise.bitwise_or, identity=0)
bitwise_xor = ufunc(bitwise.bitwise_xor, identity=0)
