"""Random functions in the user's terms: operations, transformations of smaller programs, branches and loops.

A program works on vectors of one length and gives one. All numbers stay within a few units, so that what is deep is not
large.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp

LENGTH = 5
MATRIX = np.random.default_rng(99).normal(size=(LENGTH, LENGTH)) / LENGTH**0.5
INPUTS = 3  # vectors; besides, a program takes a matrix and an integer


@dataclass(frozen=True)
class Step:
    """`apply(parts, parameters, x, y)` on two earlier values gives the next one."""

    name: str
    apply: Callable[..., Any]
    operands: tuple[int, int]
    parts: tuple[Program, ...]


@dataclass(frozen=True)
class Program:
    """Steps; the result is the sum of the last values. `watch` is called with each step's name and value."""

    steps: tuple[Step, ...]
    watch: Callable[[str, Any], None] | None = None

    def __call__(self, parameters: Any, *vectors: Any) -> Any:
        values = list(vectors)
        for step in self.steps:
            x, y = (values[position] for position in step.operands)
            parts = [part.on(parameters) for part in step.parts]
            values.append(lnp.tanh(step.apply(parts, parameters, x, y)))
            if self.watch is not None:
                self.watch(step.name, values[-1])
        return sum(values[-3:])

    def watched_by(self, watch: Callable[[str, Any], None]) -> Program:
        """The same program, and its parts, with a `watch`."""
        steps = [replace(step, parts=tuple(part.watched_by(watch) for part in step.parts)) for step in self.steps]
        return Program(tuple(steps), watch)

    def on(self, parameters: Any) -> Callable[..., Any]:
        """The program as a function of vectors."""
        return lambda *vectors: self(parameters, *vectors)

    @property
    def size(self) -> int:
        """Steps, those of parts among them."""
        return sum(1 + sum(part.size for part in step.parts) for step in self.steps)

    @property
    def names(self) -> set[str]:
        return {step.name for step in self.steps}.union(*(part.names for step in self.steps for part in step.parts))

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            lines.append(f"{step.name} {step.operands}")
            lines += [f"  {line}" for part in step.parts for line in str(part).split("\n")]
        return "\n".join(lines)


@lx.custom_vjp
def _scaled_back(x: Any) -> Any:
    return lnp.sin(x)


_scaled_back.defvjp(lambda x: (lnp.sin(x), x), lambda x, g: (0.5 * g * lnp.cos(x),))


@lx.custom_jvp
def _slower(x: Any) -> Any:
    return lnp.cos(x)


_slower.defjvp(lambda primals, tangents: (_slower(primals[0]), -0.5 * lnp.sin(primals[0]) * tangents[0]))

Simple = Callable[[Any, Any, Any], Any]

# Of x, y and the parameters.
OPERATIONS: dict[str, Simple] = {
    "add": lambda x, y, p: x + y,
    "subtract": lambda x, y, p: x - 2 * y,
    "multiply": lambda x, y, p: x * y,
    "divide": lambda x, y, p: x / (1.5 + y * y),
    "sin": lambda x, y, p: lnp.sin(2 * x),
    "exp": lambda x, y, p: lnp.exp(-x * y),
    "log": lambda x, y, p: lnp.log(1.2 + x * x),
    "sqrt": lambda x, y, p: lnp.sqrt(0.5 + y * y),
    "power": lambda x, y, p: (1.5 + x * x) ** 1.5,
    "matrix": lambda x, y, p: p["w"] @ x,
    "outer": lambda x, y, p: lnp.outer(x, y) @ x,
    "sum": lambda x, y, p: x - lnp.sum(y) / LENGTH,
    "reverse": lambda x, y, p: x[::-1] + y,
    "shift": lambda x, y, p: lnp.concatenate([x[2:], y[:2]]),
    "spread": lambda x, y, p: lnp.mean(x[:, None] * y[None, :], axis=0),
    "gather": lambda x, y, p: x[lnp.arange(LENGTH) * 3 % 4],
    "scatter": lambda x, y, p: x.at[lnp.arange(3) * 2 % 4].add(y[:3]),
    "softmax": lambda x, y, p: lnp.exp(x) / lnp.sum(lnp.exp(x)) - y,
    "running sum": lambda x, y, p: lnp.cumsum(x) / LENGTH,
    "largest": lambda x, y, p: x + lnp.max(lnp.sin(3 * x + lnp.arange(LENGTH))),
    "where": lambda x, y, p: lnp.where(lnp.arange(LENGTH) % 2 == p["n"] % 2, x, y * x),
    "part": lambda x, y, p: x + x[p["n"] % LENGTH],
    "custom_vjp": lambda x, y, p: _scaled_back(x) + y,
    "custom_jvp": lambda x, y, p: _slower(x) * y,
}

UNTRUE = frozenset({"custom_vjp", "custom_jvp"})  # whose rules are not what differences say, so that they are noticed

Nested = Callable[[list[Any], Any, Any, Any], Any]


def _scan(parts: list[Any], p: Any, x: Any, y: Any) -> Any:
    def body(carry: Any, row: Any) -> tuple[Any, Any]:
        after = lnp.tanh(parts[0](carry, row, x))
        return after, lnp.sum(after * row)

    last, sums = lx.scan(body, y, p["w"][:3], reverse=True)
    return last + lnp.sum(sums)


def _associative_scan(parts: list[Any], p: Any, x: Any, y: Any) -> Any:
    rows = lnp.stack([x, y, x * y, x - y])
    return lx.associative_scan(lambda a, b: a * b, lnp.tanh(lx.vmap(lambda r: parts[0](r, r, y))(rows)))[-1]


def _named_axis(parts: list[Any], p: Any, x: Any, y: Any) -> Any:
    def each(row: Any) -> Any:
        return row - lx.pmean(parts[0](row, x, y), "rows")

    return lnp.sum(lx.vmap(each, axis_name="rows")(p["w"]), axis=0)


# With how many parts, and whether derivatives go back through it.
TRANSFORMATIONS: dict[str, tuple[int, Nested]] = {
    "grad": (1, lambda f, p, x, y: lx.grad(lambda v: lnp.sum(f[0](v, y, v)))(x)),
    "jvp": (1, lambda f, p, x, y: lx.jvp(lambda v: f[0](v, y, x), (x,), (y,))[1]),
    "vjp": (1, lambda f, p, x, y: lx.vjp(lambda v: f[0](v, v, y), x)[1](y)[0]),
    "jacfwd": (1, lambda f, p, x, y: lx.jacfwd(lambda v: f[0](v, x, y))(y) @ x),
    "hessian product": (
        1,
        lambda f, p, x, y: lx.jvp(lx.grad(lambda v: lnp.sum(f[0](v, y, y))), (x,), (lnp.ones(LENGTH),))[1],
    ),
    "vmap": (1, lambda f, p, x, y: lnp.sum(lx.vmap(f[0], in_axes=(0, None, 1))(p["w"], x, p["w"]), axis=0)),
    "vmap of grad": (
        1,
        lambda f, p, x, y: lnp.mean(lx.vmap(lx.grad(lambda r: lnp.sum(f[0](r, x, y))))(p["w"]), axis=1),
    ),
    "named axis": (1, _named_axis),
    "compile": (1, lambda f, p, x, y: lx.compile(f[0])(x, y, x)),
    "checkpoint": (1, lambda f, p, x, y: lx.checkpoint(f[0])(x, y, y)),
    "jacrev": (1, lambda f, p, x, y: lx.jacrev(lambda v: f[0](v, y, x))(x) @ y),
    "linearize": (1, lambda f, p, x, y: lx.linearize(lambda v: f[0](x, v, y), y)[1](x)),
    "hessian": (1, lambda f, p, x, y: lx.hessian(lambda v: lnp.sum(f[0](v, y, v)))(x) @ y / LENGTH),
    "grad of vmap": (
        1,
        lambda f, p, x, y: lx.grad(lambda v: lnp.sum(lx.vmap(f[0], in_axes=(0, None, None))(p["w"], v, y)))(x) / LENGTH,
    ),
    "cond": (2, lambda f, p, x, y: lx.cond(p["n"] % 2 == 0, f[0], f[1], x, y, x)),
    "switch": (3, lambda f, p, x, y: lx.switch(p["n"] % 3, f, x, x, y)),
    "batched switch": (
        2,
        lambda f, p, x, y: lnp.sum(lx.vmap(lambda k, r: lx.switch(k, f, r, x, y))(lnp.arange(LENGTH) % 2, p["w"]), 0),
    ),
    "fori_loop": (1, lambda f, p, x, y: lx.fori_loop(0, 3, lambda i, v: lnp.tanh(f[0](v, x, y) + 0.1 * i), y)),
    "scan": (1, _scan),
    "associative_scan": (1, _associative_scan),
    "map": (1, lambda f, p, x, y: lnp.mean(lx.map(lambda row: f[0](row, x, y), p["w"]), axis=0)),
}

# Only forward: how often they turn hangs on data.
FORWARD: dict[str, tuple[int, Nested]] = {
    "while_loop": (
        1,
        lambda f, p, x, y: lx.while_loop(
            lambda s: s[0] < p["n"], lambda s: (s[0] + 1, lnp.tanh(f[0](s[1], x, y))), (lnp.int32(0), x)
        )[1],
    ),
    "fori_loop to n": (1, lambda f, p, x, y: lx.fori_loop(0, p["n"], lambda i, v: lnp.tanh(f[0](v, y, x)), y)),
}
_BACKWARD = frozenset(
    {"grad", "vjp", "hessian product", "vmap of grad", "jacrev", "linearize", "hessian", "grad of vmap"}
)


def _simple(function: Simple) -> Nested:
    return lambda parts, p, x, y: function(x, y, p)


def random_program(random: Random, steps: int = 30, forward: bool = True) -> Program:
    """A program of about so many steps, those of parts counted once; all of it has reverse mode if not `forward`."""
    return _program(random, steps, depth=0, inputs=INPUTS, forward=forward)


def _program(random: Random, steps: int, depth: int, inputs: int, forward: bool) -> Program:
    made: list[Step] = []
    left = steps
    while left > 0:
        values = inputs + len(made)
        operands = (random.randrange(max(0, values - 6), values), random.randrange(max(0, values - 6), values))
        if depth < 3 and left > 4 and random.random() > 0.55:
            step, used = _nested(random, min(left, 12), depth, operands, forward)
            left -= used
        else:
            name = random.choice(list(OPERATIONS))
            step = Step(name, _simple(OPERATIONS[name]), operands, ())
            left -= 1
        made.append(step)
    return Program(tuple(made))


def _nested(
    random: Random, steps: int, depth: int, operands: tuple[int, int], forward: bool
) -> tuple[Step, int]:
    """A transformation of smaller programs, and how many steps they have with it."""
    known = TRANSFORMATIONS | (FORWARD if forward else {})
    name = random.choice(list(known))
    count, apply = known[name]
    each = max(1, min(random.randrange(1, 6), (steps - 1) // count))
    below = forward and name not in _BACKWARD
    parts = tuple(_program(random, each, depth + 1, 3, below) for _ in range(count))
    return Step(name, apply, operands, parts), 1 + count * each


def arguments(seed: int) -> tuple[Any, ...]:
    """Parameters and vectors for a program, which float32 holds exactly."""
    random = np.random.default_rng(seed + 10_000)
    vectors = random.normal(size=(INPUTS, LENGTH)).astype(np.float32)
    parameters = {"w": lnp.asarray(MATRIX.astype(np.float32)), "n": lnp.asarray(np.int32(random.integers(0, 6)))}
    return parameters, *map(lnp.asarray, vectors)
