"""Tracing without running: the graph of a function, and the shapes of its result."""
from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, field
from math import prod
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node
from lavax.ir.location import user_error
from lavax.ir.types import TensorType, dtype_of_data
from lavax.tracer.calls.call import call_of, named_conversion
from lavax.tracer.calls.signature import signature_of
from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.pytrees.key_trees import map
from lavax.tracer.pytrees.pytree import flatten, register, unflatten
from lavax.tracer.tracing.convert import abstract_of, constant
from lavax.tracer.tracing.float0 import float0, is_float0
from lavax.tracer.tracing.key_nodes import KEYS
from lavax.tracer.tracing.trace import resumed
from lavax.tracer.tracing.tracing import Traced, trace_call, without_effects
from lavax.tracer.values.key_array import KEY, KeyArray


@dataclass(frozen=True)
class ShapeDtype:
    """The shape and dtype of an array that need not exist: `ShapeDtype((2, 3), "float32")`.

    `shape` is a sequence of integers; `dtype` is a NumPy dtype, a name, a dtype of lavax.numpy such as
    `lavax.numpy.bfloat16`, or that of random keys. With `weak_type` the array yields to other dtypes, as Python's
    numbers do; equality does not ask for it. Raises ShapeError for a negative extent, DtypeError for extents that are
    not integers and for dtypes that lavax does not have.
    """

    shape: Sequence[int]
    dtype: Any
    sharding: InitVar[Any] = None  # taken as JAX takes it, and not kept
    weak_type: bool = field(default=False, compare=False, repr=False)

    def __new__(cls, shape: Sequence[int], dtype: Any, *args: Any, **kwargs: Any) -> ShapeDtype:
        return object.__new__(KeyShape if dtype == KEY else cls)

    def __post_init__(self, sharding: Any) -> None:
        held = dtype_of_data(self.dtype)
        if held is None and self.dtype not in (float0, KEY):
            raise user_error(DtypeError, f"ShapeDtype: {self.dtype!r} is not a dtype of lavax")
        if not isinstance(self.shape, (tuple, list)) or any(not isinstance(n, (int, np.integer)) for n in self.shape):
            raise user_error(DtypeError, f"ShapeDtype: the shape must be a tuple of integers, got {self.shape!r:.80}")
        if min(self.shape, default=0) < 0:
            raise user_error(ShapeError, f"ShapeDtype: a shape has no negative extents, got {self.shape}")
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        object.__setattr__(self, "dtype", self.dtype if held is None else held.user)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def to_tangent_aval(self) -> ShapeDtype:
        """The shape and dtype of a derivative: float0 for anything but floats."""
        held = dtype_of_data(self.dtype)
        return self if held is not None and held.is_inexact else ShapeDtype(self.shape, float0)

    at_least_vspace = to_tangent_aval

    def update(self, **changes: Any) -> ShapeDtype:
        """The same with another `shape`, `dtype` or `weak_type`."""
        return ShapeDtype(**{"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type, **changes})

    def str_short(self) -> str:
        """Both in a word, such as float32[2,3]."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def as_keys(self) -> ShapeDtype:
        """What keys have whose words have this."""
        return ShapeDtype(self.shape[:-1], KEY)


class KeyShape(ShapeDtype):
    """A ShapeDtype of random keys."""

    @property
    def words(self) -> ShapeDtype:
        """The shape and dtype of their words."""
        return ShapeDtype((*self.shape, 2), np.uint32)


register(KeyShape, KEYS)


def shape_of(node: Node, weak: bool = False) -> ShapeDtype:
    """The shape and dtype of a node of a graph."""
    return ShapeDtype(node.shape, node.dtype.user, weak_type=weak)


def trace(function: Callable[..., Any]) -> Callable[..., Graph]:
    """A function of the same arguments that returns the graph of `function`, not its result.

    Arguments are pytrees of arrays, numbers or anything with `shape` and `dtype`; the graph's inputs are their leaves,
    named after the parameters, and its outputs the leaves of the result.
    """

    @wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Graph:
        return _traced(function, args, kwargs, "trace").graph

    return traced


def typeof(x: Any) -> ShapeDtype:
    """The shape and dtype of an array or a number."""
    if isinstance(x, KeyArray):
        return ShapeDtype(x.shape, KEY)
    kind = abstract_of(x)
    return ShapeDtype(kind.type.shape, kind.type.dtype.user, weak_type=kind.weak)


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of `fun` with a ShapeDtype for each array; computes nothing and needs no device.

    What `fun` returns may have the shapes and dtypes of arrays in their place.
    """
    with resumed():  # shapes of traced values are known within `ensure_compile_time_eval`, too
        result = _traced(fun, args, kwargs, "eval_shape", _with_arrays)
    shapes = unflatten(result.structure, [*builtins.map(shape_of, result.graph.outputs, result.weak)])
    return map(lambda leaf: ShapeDtype(leaf.shape, float0) if is_float0(leaf) else leaf, shapes)


def _with_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result has an array for each ShapeDtype, which a trace does not take."""

    @wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten(function(*args, **kwargs))
        return unflatten(structure, [_array_like(leaf) if isinstance(leaf, ShapeDtype) else leaf for leaf in leaves])

    return made


def _array_like(shape: ShapeDtype) -> Any:
    held = dtype_of_data(shape.dtype)
    return shape if held is None else constant(0, TensorType(tuple(shape.shape), held))


def _traced(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    purpose: str,
    changed: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function,
) -> Traced:
    """What a function records, `changed` before it is traced."""
    signature = signature_of(function, purpose)
    call, leaves = call_of(args, kwargs)
    kinds = named_conversion(abstract_of, leaves, call, signature)
    return without_effects(trace_call(changed(function), signature, call, kinds, purpose))
