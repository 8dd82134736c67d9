"""Random nests of loops and branches over a vector and an integer, which carry, choose, swap and stack them."""
from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp

Step = Callable[[Any, Any, Any], tuple[Any, Any]]  # (vector, integer, outer vector) -> (vector, integer)
Nest = Callable[[list[Step]], Step]

VECTOR, OUTER = np.array([0.4, -0.3, 0.7], "f"), np.array([-0.2, 0.9, 0.5], "f")

STEPS: dict[str, Step] = {
    "sine": lambda c, k, x: (lnp.sin(c) * x, k + 1),
    "of the integer": lambda c, k, x: (c * 0.5 + x * k, k),
    "sum": lambda c, k, x: (lnp.tanh(c + lnp.sum(x)), (k * 3) % 5),
    "outer": lambda c, k, x: (x, k),
    "nothing": lambda c, k, x: (c, k),
    "reverse": lambda c, k, x: (c[::-1] + x, k - 1),
    "constant": lambda c, k, x: (c * x + c, lnp.int32(2)),
    "where": lambda c, k, x: (lnp.where(k > 1, c, x), k),
}


def _scan(parts: list[Step], length: int, reverse: bool) -> Step:
    def run(c: Any, k: Any, x: Any) -> tuple[Any, Any]:
        def body(state: Any, row: Any) -> Any:
            after = parts[0](*state, x + row)
            return after, (2 * after[0], state[1])

        rows = lnp.arange(3 * length, dtype=lnp.float32).reshape(length, 3) / 10
        (c, k), (vectors, integers) = lx.scan(body, (c, k), rows, reverse=reverse)
        return c + lnp.sum(vectors, 0), k + lnp.sum(integers)

    return run


def _scan_of_cases(parts: list[Step]) -> Step:
    def run(c: Any, k: Any, x: Any) -> tuple[Any, Any]:
        def body(state: Any, element: Any) -> Any:
            case, row = element
            return lx.switch(case, parts, *state, row + x), case

        (c, k), cases = lx.scan(body, (c, k), ((lnp.arange(4) * k) % 4 - 1, lnp.stack([x, 2 * x, c, c - x])))
        return c, k + lnp.max(cases)

    return run


def _scan_that_keeps(parts: list[Step]) -> Step:
    def run(c: Any, k: Any, x: Any) -> tuple[Any, Any]:
        def body(state: Any, row: Any) -> Any:
            return parts[0](*state, x), (state[0], state[0], row)

        (c, k), (kept, again, rows) = lx.scan(body, (c, k), lnp.stack([c, x]))
        return kept[0] + again[1] + rows[0], k

    return run


def _while(parts: list[Step]) -> Step:
    def run(c: Any, k: Any, x: Any) -> tuple[Any, Any]:
        def goes_on(state: Any) -> Any:
            return lnp.logical_and(state[2] < 4, lnp.sum(lnp.abs(state[0])) < 9)

        c, k, _ = lx.while_loop(goes_on, lambda s: (*parts[0](s[0], s[1], x), s[2] + 1), (c, k, 0))
        return c, k

    return run


def _swap(parts: list[Step]) -> Step:
    def run(c: Any, k: Any, x: Any) -> tuple[Any, Any]:
        p, q, k = lx.fori_loop(0, 3, lambda i, s: (s[1], parts[0](s[0], s[2], s[1])[0], s[2] + 1), (c, x, k))
        return p + q * 0.1, k

    return run


def _vmap(parts: list[Step]) -> Step:
    def run(c: Any, k: Any, x: Any) -> tuple[Any, Any]:
        vectors, integers = lx.vmap(parts[0], in_axes=(0, 0, None))(lnp.stack([c, x]), lnp.stack([k, k + 1]), x)
        return vectors[0] + vectors[1] * 0.5, integers[0] + integers[1]

    return run


# With how many parts.
NESTS: dict[str, tuple[int, Nest]] = {
    "sequence": (2, lambda f: lambda c, k, x: f[1](*f[0](c, k, x), x)),
    "scan": (1, lambda f: _scan(f, 3, reverse=False)),
    "scan back": (1, lambda f: _scan(f, 2, reverse=True)),
    "scan of nothing": (1, lambda f: _scan(f, 0, reverse=False)),
    "scan of cases": (3, _scan_of_cases),
    "scan that keeps": (1, _scan_that_keeps),
    "fori_loop": (1, lambda f: lambda c, k, x: lx.fori_loop(0, 3, lambda i, s: f[0](s[0], s[1] + i, x), (c, k))),
    "fori_loop to k": (
        1,
        lambda f: lambda c, k, x: lx.fori_loop(0, k % 4, lambda i, s: f[0](s[0], s[1] - i, x * 0.5), (c, k)),
    ),
    "while_loop": (1, _while),
    "swap": (1, _swap),
    "cond": (2, lambda f: lambda c, k, x: lx.cond(lnp.sum(c) > 0.3, f[0], f[1], c, k, x)),
    "cond of k": (2, lambda f: lambda c, k, x: lx.cond(k % 2 == 0, f[0], f[1], x, k, c)),
    "switch": (3, lambda f: lambda c, k, x: lx.switch(k, f, c, k, x)),
    "vmap": (1, _vmap),
    "compile": (1, lambda f: lx.compile(f[0])),
}


def _pushed(step: Step) -> Step:
    def run(c: Any, k: Any, x: Any) -> tuple[Any, Any]:
        return lx.jvp(lambda c: step(c, k, x)[0], (c,), (x,))[1], k

    return run


def _mapped(step: Step) -> Step:
    def run(c: Any, k: Any, x: Any) -> tuple[Any, Any]:
        vectors, integers = lx.vmap(step)(lnp.stack([c, x]), lnp.stack([k, k + 1]), lnp.stack([x, c]))
        return vectors[1], integers[0]

    return run


WHOLE: dict[str, Callable[[Step], Step]] = {"plain": lambda step: step, "jvp": _pushed, "vmap": _mapped}


def random_nest(random: Random, depth: int) -> Step:
    """Regions within regions, `depth` deep, with simple steps in the innermost."""
    if depth == 0:
        return random.choice(list(STEPS.values()))
    count, make = random.choice(list(NESTS.values()))
    return make([random_nest(random, depth - 1) for _ in range(count)])


def random_regions(random: Random) -> Step:
    """One of them, to be run on VECTOR, a small integer and OUTER."""
    return random.choice(list(WHOLE.values()))(random_nest(random, random.randrange(1, 4)))
