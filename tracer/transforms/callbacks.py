"""Python functions on the host as parts of compiled functions: `pure_callback`, `io_callback`."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError, TreeMismatchError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import TensorType
from lavax.ir.host_function import HostFunction
from lavax.ir.location import user_error
from lavax.ir.types import dtype_of_data
from lavax.tracer.calls.signature import function_name, require_function
from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.pytrees.pytree import TreeDef, flatten, unflatten
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype
from lavax.tracer.tracing.convert import abstract_of, is_numeric, lift
from lavax.tracer.tracing.effects import emit, last_ordered
from lavax.tracer.values.value import Value

# How a function is called for a batch: by the name of the method, whether operands without the batch axis are repeated
# along it, or get one of extent 1, or stay as they are. None: it is called once per element.
_EXTENTS: dict[str, Callable[[int], int | None] | None] = {
    "sequential": None,
    "sequential_unrolled": None,
    "expand_dims": lambda size: 1,
    "broadcast_all": lambda size: size,
    "legacy_vectorized": lambda size: None,
}


@dataclass(frozen=True, eq=False)
class _Call:
    """A call of the user's function: which leaves of its arguments are traced, and what it has to return."""

    what: str  # "pure_callback of f"
    function: Callable[..., Any]
    structure: TreeDef
    leaves: tuple[Any, ...]
    traced: tuple[int, ...]
    given: tuple[TensorType, ...]  # the types of the traced leaves
    results: TreeDef
    types: tuple[TensorType, ...]
    method: str | None
    has_effects: bool

    def run(self, arrays: Sequence[np.ndarray], batch: tuple[int, ...] = ()) -> list[np.ndarray]:
        """The leaves of the result for these traced leaves, all with the axes `batch` in front."""
        leaves = list(self.leaves)
        for position, array, type in zip(self.traced, arrays, self.given, strict=True):
            leaves[position] = np.asarray(array).astype(type.dtype.user, copy=False)
        args, kwargs = unflatten(self.structure, leaves)
        found, structure = flatten(self.function(*args, **kwargs))
        if structure is not self.results:
            raise TreeMismatchError(f"{self.what} returned {structure!r}, but result_shape_dtypes is {self.results!r}")
        return [self._checked(leaf, type, batch) for leaf, type in zip(found, self.types, strict=True)]

    def _checked(self, leaf: Any, type: TensorType, batch: tuple[int, ...]) -> np.ndarray:
        array = np.asarray(leaf)
        wanted = (*batch, *type.shape)
        if array.shape != wanted:
            raise ShapeError(f"{self.what} returned the shape {array.shape}, but result_shape_dtypes says {wanted}")
        if not np.can_cast(array.dtype, type.dtype.numpy, "same_kind"):
            raise DtypeError(f"{self.what} returned {array.dtype}, but result_shape_dtypes says {type.dtype.user_name}")
        return array.astype(type.dtype.numpy, copy=False)

    def as_host_function(self) -> HostFunction:
        """The call as the graph holds it."""
        return HostFunction(
            self.what, self.run, lambda size, flags: self._batched((size,), (flags,)), self.has_effects
        )

    def run_on(
        self, arrays: Sequence[np.ndarray], sizes: tuple[int, ...], flags: tuple[Sequence[bool], ...]
    ) -> list[np.ndarray]:
        """The same for batches within batches, the outermost first; operands have the batch axes that `flags` says."""
        if not sizes:
            return self.run(arrays)
        assert self.method is not None
        extent = _EXTENTS[self.method]
        if extent is None:
            return self._one_by_one(arrays, sizes, flags)
        spread = []
        for number, (array, type) in enumerate(zip(arrays, self.given, strict=True)):
            pairs = zip(sizes, flags, strict=True)
            held = [(size, size) if flag[number] else (1, extent(size)) for size, flag in pairs]
            kept = [(have, wanted) for have, wanted in held if wanted is not None]
            whole = np.reshape(array, (*(have for have, _ in kept), *type.shape))
            spread.append(np.broadcast_to(whole, (*(wanted for _, wanted in kept), *type.shape)))
        return self.run(spread, sizes)

    def _one_by_one(
        self, arrays: Sequence[np.ndarray], sizes: tuple[int, ...], flags: tuple[Sequence[bool], ...]
    ) -> list[np.ndarray]:
        rows = []
        for element in range(sizes[0]):
            chosen = [array[element] if flag else array for array, flag in zip(arrays, flags[0], strict=True)]
            rows.append(self.run_on(chosen, sizes[1:], flags[1:]))
        if not rows:
            return [np.zeros((*sizes, *type.shape), type.dtype.numpy) for type in self.types]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def _batched(self, sizes: tuple[int, ...], flags: tuple[Sequence[bool], ...]) -> HostFunction:
        if self.method is None:
            raise user_error(
                ValueError,
                f"{self.what} under vmap: say how it is called for a batch, by vmap_method, one of "
                f"{', '.join(map(repr, _EXTENTS))}; ordered calls cannot be batched",
            )
        return HostFunction(
            self.what,
            lambda arrays: self.run_on(arrays, sizes, flags),
            lambda size, more: self._batched((size, *sizes), (more, *flags)),
            self.has_effects,
        )


def _call(
    name: str, function: Any, result: Any, args: Sequence[Any], kwargs: dict[str, Any], method: str | None,
    has_effects: bool = False,
) -> tuple[_Call, list[Value]]:
    require_function(function, f"{name} takes a function")
    if method is not None and method not in _EXTENTS:
        raise user_error(ValueError, f"{name}: vmap_method must be one of {', '.join(_EXTENTS)}, got {method!r}")
    leaves, structure = flatten((tuple(args), kwargs))
    traced = tuple(position for position, leaf in enumerate(leaves) if is_numeric(leaf))
    values = [lift(leaves[position]) for position in traced]
    kept = tuple(None if position in traced else leaf for position, leaf in enumerate(leaves))
    shapes, results = flatten(result)
    types = tuple(abstract_of(shape).type for shape in shapes)
    for shape, type in zip(shapes, types, strict=True):
        wanted = dtype_of_data(shape.dtype) if hasattr(shape, "dtype") else None
        if wanted is not None and wanted != type.dtype:
            message = f"{name}: results of {wanted.user_name} are {type.dtype.user_name}, as 64 bits are not enabled"
            warnings.warn(f"{message}: see lavax.enable_x64", UserWarning, stacklevel=3)
    what = f"{name} of {function_name(function)}"
    given = tuple(value.type for value in values)
    return _Call(what, function, structure, kept, traced, given, results, types, method, has_effects), values


def _results(call: _Call, values: Sequence[Value], function: HostFunction) -> list[Value]:
    return apply_control_flow("host_call", values, call.types, [False] * len(call.types), function=function)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    vectorized: bool | None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """The result of a Python function on the host, inside compiled functions too.

    `callback` gets the arguments with NumPy arrays for the arrays and numbers in them (scalars as arrays of rank 0). It
    returns a tree like `result_shape_dtypes`, a tree of ShapeDtype or anything with `shape` and `dtype`. Dtypes of 64
    bits there stand for those of 32, with a warning, unless 64 bits are enabled. It has to be pure: it may be called
    again, or not at all if its result is not used.

    A compiled function that calls it runs as several programs, and waits for the device at each call. A loop or branch
    that calls it is run by the host, one iteration after the other. It has no derivative (CustomRuleError): give the
    function around it one, by custom_vjp or custom_jvp. Under `vmap`, `vmap_method` says how it is called:
    "sequential", once per element; "expand_dims", once, with an axis in front of all arrays, of extent 1 for those that
    are the same for all elements; "broadcast_all", once, with all arrays repeated along it; "legacy_vectorized", once,
    with the axis only where elements differ. `vectorized=True` means the last, and False the first.

    Raises ShapeError, DtypeError or TreeMismatchError if the function returns something else.
    """
    if vectorized is not None and vmap_method is None:
        vmap_method = "legacy_vectorized" if vectorized else "sequential"
    call, values = _call("pure_callback", callback, result_shape_dtypes, args, kwargs, vmap_method)
    return unflatten(call.results, _results(call, values, call.as_host_function()) if call.types else ())


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """As `pure_callback`, for a function with effects: it is called exactly once, even if its result is not used.

    In a loop that is once per iteration, in a branch if that is taken; where a condition of `while_loop` calls it, it
    may be called more often. With `ordered`, calls are made in the order of the program. Under `vmap` the function is
    called once per element; with `ordered` that raises ValueError. Without results, what the function returns is not
    used.
    """
    method = None if ordered else "sequential"
    leaves, structure = flatten(result_shape_dtypes)
    called = callback if leaves or not callable(callback) else _without_result(callback)
    expected = result_shape_dtypes if leaves else ShapeDtype((), "int32")
    call, values = _call("io_callback", called, expected, args, kwargs, method, has_effects=True)
    before = last_ordered() if ordered else []
    function = call.as_host_function()
    if before:  # one more operand, which the function does not get
        function = HostFunction(call.what, lambda arrays: call.run(arrays[1:]), function.batched, True)
    results = _results(call, [*before, *values], function)
    emit(None, [min(results, key=lambda result: result.size)], ordered)  # so that the call is kept
    return unflatten(call.results, results) if leaves else unflatten(structure, ())


def _without_result(callback: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which returns a number that nobody reads: calls are known by their results."""

    @wraps(callback)
    def called(*args: Any, **kwargs: Any) -> np.ndarray:
        callback(*args, **kwargs)
        return np.zeros((), np.int32)

    return called
