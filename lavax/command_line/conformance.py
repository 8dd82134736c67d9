"""Checks of a device: what it computes is compared with the interpreter of the IR, in float64 on the host."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import linalg, random
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import interpret
from lavax.nn.attention import dot_product_attention
from lavax.nn.functional import softmax
from lavax.nn.spatial_convolution import conv2d
from lavax.tracer.compiled.compile import compile
from lavax.tracer.control_flow.branches import cond
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.pytrees.pytree import leaves
from lavax.tracer.tracing.abstract_evaluation import trace
from lavax.tracer.tracing.placement import default_device, device_put
from lavax.tracer.transforms.grad import grad
from lavax.tracer.transforms.jacobian import hessian

Arrays = Sequence[np.ndarray]


class DifferenceError(Exception):
    """A device computed something else than it should."""


def _draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def _integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-(2**31), 2**31, shape).astype(np.int32)


def compare(function: Callable[..., Any], arrays: Arrays, tolerance: float) -> float:
    """The largest error of the function on the device, over the largest number of each result.

    A tolerance of 0 asks for the same bits; NaN and infinities must stand where they should. Raises DifferenceError.
    """
    graph = trace(function)(*arrays)
    results = [np.asarray(leaf) for leaf in leaves(compile(function)(*arrays))]
    worst = 0.0
    for number, (found, wanted) in enumerate(zip(results, interpret(graph, *arrays), strict=True)):
        worst = max(worst, _error(f"result {number}", found, np.asarray(wanted), tolerance))
    return worst


def _error(name: str, found: np.ndarray, wanted: np.ndarray, tolerance: float) -> float:
    if found.shape != wanted.shape:
        raise DifferenceError(f"{name} has the shape {found.shape}, not {wanted.shape}")
    if found.dtype.kind not in "fV":
        return _of_integers(name, found, wanted)
    exact, wide = wanted.astype(found.dtype).astype(np.float64), found.astype(np.float64)
    special = ~np.isfinite(exact)
    if not np.array_equal(wide[special], exact[special], equal_nan=True) or not np.isfinite(wide[~special]).all():
        raise DifferenceError(f"{name} has NaN or infinities in other places")
    scale = max(float(np.abs(exact[~special]).max(initial=0)), 1e-30)
    error = float(np.abs(wide[~special] - exact[~special]).max(initial=0)) / scale
    if error > tolerance:
        raise DifferenceError(f"{name} differs by {error:.2g} of its largest number, more than {tolerance:.2g}")
    return error


def _of_integers(name: str, found: np.ndarray, wanted: np.ndarray) -> float:
    different = np.flatnonzero(found.ravel() != wanted.astype(found.dtype).ravel())
    if len(different):
        where = f"{len(different)} of {found.size} elements, first in number {different[0]}"
        raise DifferenceError(f"{name} differs in {where}")
    return 0.0


@dataclass(frozen=True)
class Check:
    """A function on arguments; its results must be within `tolerance` of their largest number."""

    function: Callable[..., Any]
    arguments: Callable[[], Arrays]
    tolerance: float = 1e-5

    def run(self) -> str:
        """What was found, in a few words. Raises DifferenceError."""
        return f"error {compare(self.function, self.arguments(), self.tolerance):.1g}"


@dataclass(frozen=True)
class OwnCheck:
    """A check that is more than a function on arguments."""

    run: Callable[[], str]


def _transfers() -> str:
    total = 0
    for dtype in (np.uint8, np.int32, np.float32):
        for size in (0, 1, 3, 4097, 1 << 18):
            array = np.random.default_rng(size).integers(0, 100, size).astype(dtype)
            if not np.array_equal(np.asarray(device_put(array)), array):
                raise DifferenceError(f"{size} elements of {array.dtype} came back otherwise")
            total += array.nbytes
    return f"{total:,} bytes there and back"


def _order() -> str:
    """Many short programs, each on the result of the one before."""
    step, x = compile(lambda x: x * 3 + 1), device_put(np.zeros(5, np.int32))
    wanted = 0
    for _ in range(200):
        x, wanted = step(x), (wanted * 3 + 1) % 2**32
    found = int(np.asarray(x)[0]) % 2**32
    if found != wanted:
        raise DifferenceError(f"after 200 programs, one on the other, the number is {found}, not {wanted}")
    return "200 programs"


def _donation() -> str:
    step, x = compile(lambda x: x + 1, donate_argnums=0), device_put(np.zeros(1000, np.float32))
    for _ in range(20):
        x = step(x)
    if not (np.asarray(x) == 20).all():
        raise DifferenceError("results in donated memory are wrong")
    return "20 steps"


def _limits() -> str:
    from lavax.backends.vulkan.device.device import get_device  # late: they need a Vulkan loader
    from lavax.backends.vulkan.measure.limits import measure_limits

    limits = measure_limits(get_device())
    return f"copies {limits.copy / 1e9:.3g} GB/s, arithmetic {limits.arithmetic / 1e9:.3g} GFLOP/s"


def _where_there_is(member: str, check: Check) -> OwnCheck:
    """The check, on devices with that member of their profile."""

    def run() -> str:
        from lavax.backends.vulkan.device.device import get_device  # late: it needs a Vulkan loader

        return check.run() if getattr(get_device().profile, member) else f"the device has no {member}"

    return OwnCheck(run)


def _elementary(x: Any) -> Any:
    return lnp.exp(-x * x), lnp.log1p(x * x), lnp.tanh(x), lnp.sin(3 * x), lnp.sqrt(abs(x)), x / (1 + x * x)


def _special(x: Any, y: Any) -> Any:
    return x + y, x * y, x - y, lnp.maximum(x, y), lnp.exp(x), lnp.isnan(x), x < y


def _integral(x: Any, y: Any) -> Any:
    return x + y, x * y, x // (y | 1), x % (y | 1), x & y, x ^ y, x >> 3, lnp.maximum(x, y)


def _moved(x: Any) -> Any:
    joined = lnp.concatenate([x.T, lnp.flip(x.T, 0)])
    return joined, lnp.pad(x, ((1, 2), (0, 3))), x[::2, 1:-1], lnp.roll(x, 3, axis=1)


def _indexed(x: Any, places: Any) -> Any:
    chosen, counts = places % x.shape[0], x * 0
    return x[chosen], counts.at[chosen].add(1.0)


def _network(w: Any, v: Any, x: Any) -> Any:
    return lnp.mean((lnp.tanh(x @ w) @ v - 1) ** 2)


def _branches(x: Any) -> Any:
    return cond(lnp.sum(x) > 0, lnp.sin, lnp.cos, x), cond(lnp.sum(x) <= 0, lnp.sin, lnp.cos, x)


def _loops(x: Any) -> Any:
    walked, sums = scan(lambda carry, row: (0.9 * carry + row, lnp.sum(carry)), x[0], x)
    halved = while_loop(lambda y: lnp.max(abs(y)) > 0.1, lambda y: y / 2, x[1])
    return walked, sums, halved, fori_loop(0, 20, lambda i, y: lnp.tanh(y + i), x[2])


def _drawn(number: Any) -> Any:
    key = random.key(number)
    return random.bits(key, (1000,)), random.permutation(key, 100)


def _symmetric(x: Any) -> Any:
    return x @ x.T + 4 * lnp.eye(x.shape[0])


_SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 3.0], np.float32)
_PAIRS = [np.repeat(_SPECIAL, len(_SPECIAL)), np.tile(_SPECIAL, len(_SPECIAL))]

# The most telling first: what does not fit into the time is left out.
CHECKS: dict[str, Check | OwnCheck] = {
    "transfers": OwnCheck(_transfers),
    "elementary functions": Check(_elementary, lambda: [_draw(1027)]),
    "integers": Check(_integral, lambda: [_integers(999), _integers(1000)[:999]], 0),
    "special values": Check(_special, lambda: _PAIRS),
    "sums of rows": Check(lambda x: (x.sum(1), x.mean(0), x.max(1), lnp.argmin(x, 1)), lambda: [_draw(37, 1000)]),
    "sum of a million": Check(lnp.sum, lambda: [abs(_draw(1 << 20))]),
    "products": Check(lambda a, b: (a @ b, a[0] @ b), lambda: [_draw(33, 65), _draw(65, 17)]),
    "large products": Check(lnp.matmul, lambda: [_draw(128, 256), _draw(256, 192)]),
    "order of programs": OwnCheck(_order),
    "movement": Check(_moved, lambda: [_draw(31, 45)], 0),
    "softmax": Check(partial(softmax, axis=-1), lambda: [10 * _draw(9, 333)]),
    "gradients": Check(grad(_network, (0, 1)), lambda: [_draw(7, 16), _draw(16, 3), _draw(50, 7)]),
    "reading and writing by index": Check(_indexed, lambda: [_draw(50, 3), abs(_integers(200))]),
    "branches": Check(_branches, lambda: [_draw(40)]),
    "loops": Check(_loops, lambda: [_draw(12, 30)]),
    "random bits": Check(_drawn, lambda: [np.array(7, np.int32)], 0),
    "donated memory": OwnCheck(_donation),
    "sorting": Check(lambda x: (lnp.sort(x), lnp.argsort(x)), lambda: [_draw(1500)], 0),
    "cumulative sums": Check(lambda x: (lnp.cumsum(x), lnp.cumsum(x.reshape(50, -1), 0)), lambda: [_draw(5000)]),
    "attention": Check(dot_product_attention, lambda: [_draw(2, 40, 2, 16)] * 3),
    "convolution": Check(conv2d, lambda: [_draw(2, 3, 12, 12), _draw(8, 3, 3, 3)]),
    "second derivatives": Check(hessian(lambda x: lnp.sum(lnp.tanh(x) ** 3)), lambda: [_draw(6)]),
    "half precision": _where_there_is(
        "float16", Check(lambda x: x * x + 1, lambda: [_draw(300).astype(np.float16)], 1e-3)
    ),
    "float64": _where_there_is(
        "float64", Check(lambda x: lnp.sum(x * x), lambda: [_draw(300).astype(np.float64)], 1e-14)
    ),
    "linear systems": Check(lambda x: linalg.solve(_symmetric(x), x[0]), lambda: [_draw(12, 12)], 1e-4),
    "measured limits": OwnCheck(_limits),
}


def outcome(name: str) -> str:
    """Runs a check on the chosen device. Raises DifferenceError, or whatever else goes wrong."""
    default_device()
    return CHECKS[name].run()
