"""Every operation under every composition of transformations, as graphs with the arrays to run them on.

Gradients are those of the loss Σ (y² + y) of its result y.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import OPERATIONS, Graph, TensorType, float32
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.operation import names_of_family
from lavax.passes.batch import batch
from lavax.passes.build.builder import add, build, multiply, sum_over
from lavax.passes.build.inline import inline
from lavax.passes.differentiate import differentiate, jvp
from lavax.passes.differentiate.rules import NOT_DIFFERENTIABLE
from tests.operation_cases import cases_of

SIZE = 2  # of batches
FEW = 24  # floats that a case is differentiated by, at most, where there is such a case
AXIS = "i"
PLACES_MATTER = frozenset({"cholesky"})  # its operand is positive definite
BELONG_TOGETHER = {"linear_solve": 2}  # so many of the first operands: a matrix, and what lu makes of it


@dataclass(frozen=True)
class Sample:
    """A graph of one operation, and arrays for its inputs."""

    op: str
    graph: Graph
    arrays: tuple[np.ndarray, ...]

    @property
    def by(self) -> list[int]:
        """The inputs that derivatives are by."""
        return [position for position, node in enumerate(self.graph.inputs) if node.dtype.is_float]

    @property
    def batch(self) -> list[np.ndarray]:
        """Arrays with other numbers for each element: in other places, or where places matter larger ones."""
        if self.op in PLACES_MATTER:
            return [np.stack([array * (1 + k / 4) for k in range(SIZE)]).astype(array.dtype) for array in self.arrays]
        fixed = BELONG_TOGETHER.get(self.op, 0)
        shifts = [[0] * SIZE if position < fixed else range(SIZE) for position in range(len(self.arrays))]
        return [np.stack([np.roll(array, k) for k in by]) for array, by in zip(self.arrays, shifts, strict=True)]

    def directions(self, count: int | None = None) -> list[np.ndarray]:
        """A tangent for each float input; with `count` so many."""
        random = np.random.default_rng(7)
        lead = () if count is None else (count,)
        shapes = [(*lead, *self.graph.inputs[position].shape) for position in self.by]
        return [np.asarray(random.normal(size=shape), np.float32) for shape in shapes]

    def units(self) -> list[np.ndarray]:
        """All unit vectors of the float inputs together."""
        types = [self.graph.inputs[position].type for position in self.by]
        total = sum(type.size for type in types)
        ends = np.cumsum([type.size for type in types])[:-1]
        parts = np.split(np.eye(total, dtype=np.float32), ends, axis=1)
        return [part.reshape(total, *type.shape) for part, type in zip(parts, types, strict=True)]


Made = tuple[Graph, list[np.ndarray]]
Composition = Callable[[Sample], Made]


def loss_of(graph: Graph) -> Graph:
    """Σ (y² + y) over the float results: with curvature, and no cotangent of 1."""
    terms = [sum_over(add(multiply(y, y), y), range(y.type.rank)) for y in graph.outputs if y.dtype.is_float]
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return graph_of(graph.inputs, [total])


def _gradient(graph: Graph, by: Sequence[int]) -> Graph:
    loss = loss_of(graph)
    return graph_of(loss.inputs, differentiate(loss, by).outputs[1:])


def _mapped(graph: Graph) -> Graph:
    return batch(graph, [0] * len(graph.inputs), [0] * len(graph.outputs), SIZE, AXIS)


def _compile(sample: Sample) -> Made:
    return sample.graph, list(sample.arrays)


def _grad(sample: Sample) -> Made:
    return _gradient(sample.graph, sample.by), list(sample.arrays)


def _jvp(sample: Sample) -> Made:
    return jvp(sample.graph, sample.by), [*sample.arrays, *sample.directions()]


def _vmap(sample: Sample) -> Made:
    return _mapped(sample.graph), sample.batch


def _vmap_of_grad(sample: Sample) -> Made:
    return _mapped(_gradient(sample.graph, sample.by)), sample.batch


def _grad_of_vmap(sample: Sample) -> Made:
    """With the first operand the same for all elements, where there is another one."""
    axes: list[int | None] = [0] * len(sample.arrays)
    arrays = sample.batch
    if len(axes) > 1:
        axes[0], arrays[0] = None, sample.arrays[0]
    mapped = batch(sample.graph, axes, [0] * len(sample.graph.outputs), SIZE, AXIS)
    return _gradient(mapped, sample.by), arrays


def _jvp_of_grad(sample: Sample) -> Made:
    return jvp(_gradient(sample.graph, sample.by), sample.by), [*sample.arrays, *sample.directions()]


def _hessian(sample: Sample) -> Made:
    """Forward over reverse: the products with all unit vectors."""
    products = jvp(_gradient(sample.graph, sample.by), sample.by)
    products = graph_of(products.inputs, products.outputs[len(sample.by) :])
    units = sample.units()
    axes = [*[None] * len(sample.arrays), *[0] * len(units)]
    return batch(products, axes, [0] * len(products.outputs), len(units[0])), [*sample.arrays, *units]


def _vmap_of_jvp(sample: Sample) -> Made:
    return _mapped(jvp(sample.graph, sample.by)), [*sample.batch, *sample.directions(SIZE)]


def _jvp_of_vmap(sample: Sample) -> Made:
    return jvp(_mapped(sample.graph), sample.by), [*sample.batch, *sample.directions(SIZE)]


def _within_batch(compose: Composition) -> Composition:
    """What stands over a named axis means something in a batch alone."""

    def within(sample: Sample) -> Made:
        graph, arrays = compose(sample)
        stacked = [np.stack([np.roll(array, k) for k in range(SIZE)]) for array in arrays]
        return _mapped(graph), stacked

    return within


PLAIN: dict[str, Composition] = {"compile": _compile, "vmap": _vmap}
FORWARD: dict[str, Composition] = {"jvp": _jvp, "vmap of jvp": _vmap_of_jvp, "jvp of vmap": _jvp_of_vmap}
REVERSE: dict[str, Composition] = {
    "grad": _grad,
    "vmap of grad": _vmap_of_grad,
    "grad of vmap": _grad_of_vmap,
    "jvp of grad": _jvp_of_grad,
    "hessian": _hessian,
}
EVERY = PLAIN | FORWARD | REVERSE
_BATCHES_ITSELF = frozenset(name for name in EVERY if "vmap" in name)

# Why something is not defined -> for which operations, and which compositions these are.
# Operations that graphs have only once they are prepared for kernels.
PREPARED = names_of_family("lowered")
UNDEFINED: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "whole numbers, truth values, steps, bits, or made of nothing: no derivative passes it": (
        NOT_DIFFERENTIABLE,
        frozenset(FORWARD | REVERSE),
    ),
    "made when kernels are prepared, when all transformations are done": (
        PREPARED,
        frozenset({"vmap"}),
    ),
    "made when gradients are taken again, with one operand for the value and another for its derivatives": (
        frozenset({"known_value"}),
        frozenset(FORWARD | REVERSE),
    ),
    "how often it runs is known only when it runs, so that its steps cannot be gone through backwards": (
        frozenset({"while"}),
        frozenset(REVERSE),
    ),
}


def undefined(op: str) -> dict[str, str]:
    """The compositions that are not defined for an operation, with the reason for each."""
    return {name: reason for reason, (ops, names) in UNDEFINED.items() if op in ops for name in names}


def compositions_of(sample: Sample) -> dict[str, Made]:
    """All that is defined for the sample."""
    names = EVERY.keys() - undefined(sample.op).keys()
    over_axis = OPERATIONS[sample.op].family == "axis"
    return {
        name: (_within_batch(make) if over_axis and name not in _BATCHES_ITSELF else make)(sample)
        for name, make in EVERY.items()
        if name in names
    }


def _is_plain(node: Any) -> bool:
    return bool(node.type.size) and (not node.dtype.is_float or node.dtype == float32)


def _is_float(node: Any) -> bool:
    return bool(node.dtype.is_float)


def samples_of(op: str) -> list[Sample]:
    """The samples of an operation, those with most numbers of a few first. Ones with special values are left out where
    there are others."""
    if op in OTHERS:
        return [OTHERS[op]()]
    cases = [case for case in cases_of(op) if all(map(_is_plain, (*case.graph.inputs, case.node)))]
    if "grad" not in undefined(op):
        cases = [case for case in cases if case.node.dtype.is_float and any(map(_is_float, case.graph.inputs))]
    chosen = [case for case in cases if not case.special] or cases
    return sorted((Sample(op, case.graph, case.arrays) for case in chosen), key=_preference)


def _preference(sample: Sample) -> tuple[bool, int]:
    floats = sum(node.type.size for node in (*sample.graph.inputs, *sample.graph.outputs))
    return (floats > FEW, floats if floats > FEW else -floats)


# Operations without cases of their own, as functions.

_X = np.array([0.5, -1.0, 2.0], "f")
_Y = np.array([1.5, 0.25, -0.75], "f")


def _traced(op: str, function: Callable[..., Any], *arrays: Any) -> Callable[[], Sample]:
    @cache
    def made() -> Sample:
        graph = lx.trace(function)(*arrays)
        assert op in {node.op for node in graph.nodes}
        return Sample(op, graph, tuple(np.asarray(array) for array in arrays))

    return made


def _custom_vjp(x: Any, y: Any) -> Any:
    f = lx.custom_vjp(lambda x, y: lnp.sin(x) * y)
    f.defvjp(lambda x, y: (lnp.sin(x) * y, (x, y)), lambda kept, g: (3 * g * kept[1], g * kept[0] * kept[1]))
    return f(x, y)


def _custom_jvp(x: Any, y: Any) -> Any:
    f = lx.custom_jvp(lambda x, y: lnp.sin(x) * y)
    f.defjvp(lambda primals, tangents: (f(*primals), f(*primals) * tangents[0] + 2 * tangents[1] * primals[0]))
    return f(x, y)


def _custom_vmap(x: Any, y: Any) -> Any:
    f = lx.custom_batching.custom_vmap(lambda x, y: lnp.sin(x) * y)
    f.def_vmap(lambda size, batched, x, y: (lnp.sin(x) * y, any(batched)))
    return f(x, y)


def _scan(x: Any, xs: Any) -> Any:
    return lx.scan(lambda c, e: (lnp.tanh(c * e + c), c * e), x, xs)


def _while(x: Any, n: Any) -> Any:
    return lx.while_loop(lambda s: s[1] < n, lambda s: (lnp.sin(s[0]) + s[0], s[1] + 1), (x, lnp.int32(0)))[0]


def _switch(x: Any, n: Any) -> Any:
    return lx.switch(n, [lnp.sin, lambda x: x * x * x, lambda x: x[::-1] * x], x)


def _over_axis(op: str) -> Callable[[], Sample]:
    """Of the sine of a vector, so that there is a derivative before and behind; an index is of no operand."""

    @cache
    def made() -> Sample:
        x = input_node("x", TensorType((3,), float32))
        attrs = {"name": AXIS, "size": SIZE} if op == "axis_gather" else {"name": AXIS}
        node = make_node(op, () if op == "axis_index" else (build("sin", x),), attrs)
        return Sample(op, graph_of((x,), (node,)), (_X,))

    return made


OTHERS: dict[str, Callable[[], Sample]] = {
    "switch": _traced("switch", _switch, _X, np.int32(1)),
    "while": _traced("while", _while, _X, np.int32(3)),
    "scan": _traced("scan", _scan, _X, np.stack([_X, _Y])),
    "item": _traced("item", lambda x: lx.scan(lambda c, e: (c, c * e), x[0], x)[1], _X),
    "checkpoint": _traced("checkpoint", lx.checkpoint(lambda x, y: lnp.sin(x) * lnp.exp(y)), _X, _Y),
    "custom_vjp": _traced("custom_vjp", _custom_vjp, _X, _Y),
    "custom_jvp": _traced("custom_jvp", _custom_jvp, _X, _Y),
    "custom_vmap": _traced("custom_vmap", _custom_vmap, _X, _Y),
    **{op: _over_axis(op) for op in OPERATIONS if OPERATIONS[op].family == "axis"},
}


def merged(parts: Sequence[Made]) -> Made:
    """Several graphs as one, each with its own inputs."""
    inputs, outputs, arrays = [], [], []
    for number, (graph, given) in enumerate(parts):
        own = [input_node(f"x{number}_{k}", node.type) for k, node in enumerate(graph.inputs)]
        inputs += own
        outputs += inline(graph, own)
        arrays += given
    return graph_of(inputs, outputs), arrays
