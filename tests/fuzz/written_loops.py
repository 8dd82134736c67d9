"""Loops as users write them, against the same steps written out: `python -m tests.fuzz.written_loops --seconds 60`.

Random bodies with branches, draws by keys that are carried, and loops within them; run as `scan`, `fori_loop` and
`while_loop`, unrolled or not, under checkpoint policies, with donated arguments; values, gradients, directional
derivatives of gradients, tangents and batches are compared with those of a Python loop over the same body.
"""
from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp

State = tuple[Any, ...]
Body = Callable[[State, Any], tuple[State, Any]]

SIZE = 3
POLICIES = ("nothing_saveable", "dots_saveable", "everything_saveable", "dots_with_no_batch_dims_saveable")
_TOLERANCE = 2e-4


@dataclass(frozen=True)
class Form:
    """How the outer loop is written."""

    kind: str  # scan, fori_loop, or while_loop, which has no reverse mode
    steps: int
    reverse: bool
    unroll: int
    policy: str | None
    whole: bool  # whether the checkpoint is around the loop, not around its body
    inner_steps: int  # of a loop within the body; 0: there is none
    has_key: bool


def form_of(random: np.random.Generator) -> Form:
    def one_of(options: tuple[Any, ...]) -> Any:
        return options[int(random.integers(len(options)))]

    return Form(
        kind=one_of(("scan", "scan", "fori_loop", "while_loop")),
        steps=one_of((0, 1, 2, 3, 4, 6)),
        reverse=one_of((False, True)),
        unroll=one_of((1, 1, 2, 3, 6)),
        policy=one_of((None, *POLICIES)),
        whole=one_of((False, True)),
        inner_steps=one_of((0, 0, 2, 3)),
        has_key=one_of((False, True)),
    )


def _pieces(random: np.random.Generator, has_key: bool) -> list[int]:
    """The numbers of the operations in a body, in order."""
    kinds = len(_OPERATIONS) if has_key else len(_OPERATIONS) - 1
    return [int(random.integers(kinds)) for _ in range(int(random.integers(1, 5)))]


def _mixed(x: Any, m: Any, w: Any, part: Any, key: Any) -> Any:
    return lnp.tanh(w @ x + part)


def _branched(x: Any, m: Any, w: Any, part: Any, key: Any) -> Any:
    return lx.cond(lnp.sum(x) > 0.3, lambda y: lnp.sin(y) + part, lambda y: 0.5 * y * w[0], x)


def _switched(x: Any, m: Any, w: Any, part: Any, key: Any) -> Any:
    branches = [lambda y: 0.7 * y, lambda y: lnp.cos(y) * w[1], lambda y: lnp.tanh(y) + y[::-1] / 4]
    return lx.lax.switch(lnp.int32(lnp.sum(part) * 3) % 3, branches, x)


def _updated(x: Any, m: Any, w: Any, part: Any, key: Any) -> Any:
    return x.at[lnp.int32(lnp.abs(m[0, 0]) * 5) % SIZE].add(lnp.sum(part * w[2]) / 4)


def _solved(x: Any, m: Any, w: Any, part: Any, key: Any) -> Any:
    return lnp.linalg.solve(lnp.eye(SIZE) * 4 + w, x + part)


def _ordered(x: Any, m: Any, w: Any, part: Any, key: Any) -> Any:
    return lnp.cumsum(lnp.sort(x * (1 + part / 8))) / SIZE


def _normalised(x: Any, m: Any, w: Any, part: Any, key: Any) -> Any:
    return lx.nn.softmax(x + m[0]) - lnp.max(x) * 0.1


def _drawn(x: Any, m: Any, w: Any, part: Any, key: Any) -> Any:
    return 0.8 * x + 0.1 * lx.random.normal(key, (SIZE,)) * w[0]


_OPERATIONS = (_mixed, _branched, _switched, _updated, _solved, _ordered, _normalised, _drawn)  # those with keys last


def body_of(random: np.random.Generator, form: Form) -> Callable[[Any], Callable[[bool], Body]]:
    """From the weights and whether loops are written out: a body over (number, x, m, key or nothing)."""
    pieces, inner = _pieces(random, form.has_key), _pieces(random, False)

    def with_weights(w: Any) -> Callable[[bool], Body]:
        def with_loops(written_out: bool) -> Body:
            def body(state: State, part: Any) -> tuple[State, Any]:
                number, x, m, *keys = state
                key = None
                if keys:
                    key, following = lx.random.split(keys[0])
                    keys = [following]
                for piece in pieces:
                    x = _OPERATIONS[piece](x, m, w, part, key)

                def within(state: State, _: Any) -> tuple[State, Any]:
                    (y,) = state
                    for piece in inner:
                        y = _OPERATIONS[piece](y, m, w, part, None)
                    return (lnp.tanh(y),), lnp.sum(y)

                kept = lnp.sum(x)
                if form.inner_steps:
                    loop = _written_out if written_out else _scanned
                    (x,), sums = loop(within, (x,), None, form.inner_steps, False, 1)
                    kept = kept + lnp.sum(sums * sums)
                m = 0.5 * m + lnp.outer(x, part) / 4
                return (number + 1, lnp.tanh(x), m, *keys), (kept, x[:2])

            return body

        return with_loops

    return with_weights


def _scanned(body: Body, init: State, xs: Any, steps: int, reverse: bool, unroll: int) -> tuple[State, Any]:
    found: tuple[State, Any] = lx.lax.scan(body, init, xs, length=steps, reverse=reverse, unroll=unroll)
    return found


def _written_out(body: Body, init: State, xs: Any, steps: int, reverse: bool, unroll: int) -> tuple[State, Any]:
    state, kept = init, []
    for number in reversed(range(steps)) if reverse else range(steps):
        state, found = body(state, None if xs is None else xs[number])
        kept.append(found)
    kept = kept[::-1] if reverse else kept
    return state, lx.tree.map(lambda *parts: lnp.stack(parts), *kept) if kept else None


def _counted(body: Body, init: State, xs: Any, form: Form) -> State:
    """The carried values alone, by a loop that looks its part up."""

    def place(number: Any) -> Any:
        return max(form.steps, 1) - 1 - number if form.reverse else number

    if form.kind == "fori_loop":
        found: State = lx.lax.fori_loop(0, form.steps, lambda i, s: body(s, xs[place(i)])[0], init)
        return found
    ended: State = lx.lax.while_loop(lambda s: s[0] < form.steps, lambda s: body(s, xs[place(s[0])])[0], init)
    return ended


def function_of(number: int, written_out: bool) -> tuple[Callable[..., Any], Form]:
    """The program of that number as a function of (x, w, xs, key), and how its loop is written."""
    random = np.random.default_rng([number, 91])
    form = form_of(random)
    with_weights = body_of(random, form)

    def function(x: Any, w: Any, xs: Any, key: Any) -> Any:
        body = with_weights(w)(written_out)
        init: State = (lnp.int32(0), x, lnp.outer(x, x), *([key] if form.has_key else []))
        if written_out:
            state, kept = _written_out(body, init, xs, form.steps, form.reverse, 1)
            return _weighted(state, kept if form.kind == "scan" else None)
        if form.policy is not None and not form.whole:
            body = lx.checkpoint(body, policy=getattr(lx.checkpoint_policies, form.policy))
        if form.kind != "scan":
            return _weighted(_counted(body, init, xs, form), None)
        state, kept = _scanned(body, init, xs, form.steps, form.reverse, form.unroll)
        return _weighted(state, kept if form.steps else None)

    if form.policy is not None and form.whole and not written_out:
        return lx.checkpoint(function, policy=getattr(lx.checkpoint_policies, form.policy)), form
    return function, form


def _weighted(state: State, kept: Any) -> Any:
    """A number in which all that is carried and kept counts."""
    number, x, m, *_ = state
    total = lnp.sum(x * lnp.arange(1.0, SIZE + 1)) + lnp.sum(m * m) + lnp.float32(number) / 8
    if kept is not None:
        sums, parts = kept
        total = total + lnp.sum(sums * lnp.cos(lnp.arange(sums.shape[0]))) + lnp.sum(parts[..., 0] * parts[..., 1])
    return total


def results_of(number: int, written_out: bool) -> Mapping[str, Any]:
    """What transformations of the program give."""
    function, form = function_of(number, written_out)
    random = np.random.default_rng([number, 92])

    def drawn(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype("f") * 0.7

    first = drawn(SIZE)
    rows = form.steps if form.kind == "scan" else max(form.steps, 1)
    w, xs = (lnp.asarray(drawn(*shape)) for shape in ((SIZE, SIZE), (rows, SIZE)))
    x, key = lnp.asarray(first), lx.random.key(number)
    dx, dw, batch = (lnp.asarray(drawn(*shape)) for shape in ((SIZE,), (SIZE, SIZE), (2, SIZE)))
    whole = lx.jit(function, donate_argnums=(0,))
    found = {
        "value": function(x, w, xs, key),
        "donated": whole(lnp.asarray(first), w, xs, key),
        "tangent": lx.jit(lambda x, w: lx.jvp(lambda x, w: function(x, w, xs, key), (x, w), (dx, dw)))(x, w),
        "batch": lx.jit(lx.vmap(function, in_axes=(0, None, None, None)))(batch, w, xs, key),
    }
    if form.kind == "while_loop":
        return found
    gradient = lx.grad(function, argnums=(0, 1))
    found["gradient"] = lx.jit(gradient)(x, w, xs, key)
    found["batch of gradients"] = lx.jit(lx.vmap(gradient, in_axes=(0, None, None, None)))(batch, w, xs, key)

    def along(x: Any, w: Any) -> Any:
        by_x, by_w = gradient(x, w, xs, key)
        return lnp.sum(by_x * dx) + lnp.sum(by_w * dw)

    found["second by reverse"] = lx.jit(lx.grad(along, argnums=(0, 1)))(x, w)
    found["second by forward"] = lx.jit(lambda x, w: lx.jvp(along, (x, w), (dx, dw)))(x, w)
    return found


def differences_of(number: int) -> Iterator[str]:
    """What differs between the loop and its steps written out."""
    own, wanted = results_of(number, False), results_of(number, True)
    for name, expected in wanted.items():
        pairs = zip(lx.tree.leaves(own[name]), lx.tree.leaves(expected), strict=True)
        for place, (left, right) in enumerate(pairs):
            a, b = np.asarray(left, np.float64), np.asarray(right, np.float64)
            error = np.abs(a - b).max(initial=0.0) / max(1.0, np.abs(b).max(initial=0.0))
            if not error <= _TOLERANCE:  # NaN differs
                yield f"{name}[{place}] differs by {error:.2e}: {a.ravel()[:3]}, not {b.ravel()[:3]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60, help="how long to run")
    parser.add_argument("--start", type=int, default=0, help="the number of the first program")
    chosen = parser.parse_args()
    start, number, found = time.monotonic(), chosen.start, 0
    while time.monotonic() - start < chosen.seconds:
        try:
            lines = list(differences_of(number))
        except Exception as error:
            lines = [f"{type(error).__name__}: {str(error)[:300]}"]
        for line in lines:
            sys.stdout.write(f"{number}: {line}\n   {function_of(number, False)[1]}\n")
            sys.stdout.flush()
        found += bool(lines)
        number += 1
    sys.stdout.write(f"{number - chosen.start} programs: {found} with differences\n")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
