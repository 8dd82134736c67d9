"""Single functions beside PyTorch on its own GPU: linear algebra, sorts, sums, scatters, images, functions.

Strict float32 on both sides; calls are waited for. PyTorch's is the faster of eager and of a CUDA graph.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from benchmarks.figure import markdown, median, spread
from benchmarks.models.measurement import timed
from benchmarks.pytorch_calls import pytorch
from lavax import lax
from lavax.scipy import linalg, special

_CALLS, _QUICK_CALLS = 29, 5  # fewer than those before which a device is warmed up: programs of some µs are many
_HEAD = ("function", "lavax: median (quartiles)", "PyTorch", "ratio")

Draw = Callable[[np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Operation:
    """A function of arrays in lavax, and in PyTorch, whose module it is given first; and what draws the arrays."""

    name: str
    function: Callable[..., Any]
    in_pytorch: Callable[..., Any]
    draws: tuple[Draw, ...]


def report(only: Sequence[str] | None, quick: bool, show: Callable[[str], Any]) -> None:
    """Measures the functions whose names match, and shows a line of each as soon as it is done."""
    torch, calls, generator = pytorch(), _QUICK_CALLS if quick else _CALLS, np.random.default_rng(0)
    chosen = (one for one in OPERATIONS if not only or any(fnmatch(one.name, pattern) for pattern in only))
    for one in chosen:
        arrays = [draw(generator) for draw in one.draws]
        show(markdown(_HEAD, [_row(one, arrays, torch, calls)]))


def _row(one: Operation, arrays: Sequence[np.ndarray], torch: Any, calls: int) -> list[str]:
    given, function = lx.device_put(list(arrays)), lx.compile(one.function)
    _, ours = timed(lambda: function(*given), lx.block_until_ready, calls)
    if torch is None:
        return [one.name, spread(ours), "", ""]
    theirs = min(_in_pytorch(one, arrays, torch, calls), key=median)
    return [one.name, spread(ours), spread(theirs), f"{median(ours) / median(theirs):.2f}"]


def _in_pytorch(one: Operation, arrays: Sequence[np.ndarray], torch: Any, calls: int) -> Iterator[list[float]]:
    """Seconds of eager calls, and of calls of a graph where the function can be captured."""
    from benchmarks.models.in_pytorch import captured

    given = [torch.from_numpy(np.array(array)).cuda() for array in arrays]
    given = [array if array.is_floating_point() or array.is_complex() else array.long() for array in given]
    call = partial(one.in_pytorch, torch, *given)

    def wait(_: Any) -> None:
        torch.cuda.synchronize()

    yield timed(call, wait, calls)[1]
    try:
        replay = captured(call)
    except RuntimeError:  # it waits for the device itself, as routines do that choose by what they find
        torch.cuda.synchronize()
        return
    yield timed(replay, wait, calls)[1]


def _normal(*shape: int) -> Draw:
    return lambda generator: generator.standard_normal(shape, np.float32)


def _definite(*shape: int) -> Draw:
    """Symmetric matrices with eigenvalues of at least 1."""

    def draw(generator: np.random.Generator) -> np.ndarray:
        x = generator.standard_normal((*shape, shape[-1]), np.float32)
        found: np.ndarray = x @ x.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1], dtype=np.float32)
        return found

    return draw


def _below(count: int, *shape: int) -> Draw:
    return lambda generator: generator.integers(0, count, shape, np.int32)


def _rising(size: int) -> Draw:
    return lambda generator: np.sort(generator.standard_normal(size, np.float32))


def _lower(size: int) -> Draw:
    return lambda generator: np.linalg.cholesky(_definite(size)(generator))


def _added(places: Any, values: Any) -> Any:
    return lnp.zeros(1 << 16).at[places].add(values)


def _pooled(x: Any) -> Any:
    return lx.nn.max_pool(x, (3, 3), 2, 1, axes=(1, 2))


def _gradient_of_pool(t: Any, x: Any) -> Any:
    given = x.detach().requires_grad_()
    pooled = t.nn.functional.max_pool2d(given.permute(0, 3, 1, 2), 3, 2, 1)
    return t.autograd.grad((pooled * pooled).sum(), given)[0]


OPERATIONS = (
    Operation("cholesky 1024", lnp.linalg.cholesky, lambda t, a: t.linalg.cholesky(a), (_definite(1024),)),
    Operation("cholesky 3000", lnp.linalg.cholesky, lambda t, a: t.linalg.cholesky(a), (_definite(3000),)),
    Operation("cholesky 512 of 64", lnp.linalg.cholesky, lambda t, a: t.linalg.cholesky(a), (_definite(512, 64),)),
    Operation("lu 512", linalg.lu_factor, lambda t, a: t.linalg.lu_factor(a), (_normal(512, 512),)),
    Operation("lu 1024", linalg.lu_factor, lambda t, a: t.linalg.lu_factor(a), (_normal(1024, 1024),)),
    Operation(
        "solve 1024, 16 sides", lnp.linalg.solve, lambda t, a, b: t.linalg.solve(a, b),
        (_normal(1024, 1024), _normal(1024, 16)),
    ),
    Operation(
        "solve 512 of 64", lnp.linalg.solve, lambda t, a, b: t.linalg.solve(a, b),
        (_normal(512, 64, 64), _normal(512, 64, 1)),
    ),
    Operation(
        "triangular 1024, 1024 sides", partial(linalg.solve_triangular, lower=True),
        lambda t, a, b: t.linalg.solve_triangular(a, b, upper=False), (_lower(1024), _normal(1024, 1024)),
    ),
    Operation("inv 512", lnp.linalg.inv, lambda t, a: t.linalg.inv(a), (_normal(512, 512),)),
    Operation("det 256 of 32", lnp.linalg.det, lambda t, a: t.linalg.det(a), (_normal(256, 32, 32),)),
    Operation("qr 512", lnp.linalg.qr, lambda t, a: t.linalg.qr(a), (_normal(512, 512),)),
    Operation("qr 2048 x 64", lnp.linalg.qr, lambda t, a: t.linalg.qr(a), (_normal(2048, 64),)),
    Operation("qr 1000 x 20", lnp.linalg.qr, lambda t, a: t.linalg.qr(a), (_normal(1000, 20),)),
    Operation(
        "lstsq 1000 x 20", lambda a, b: lnp.linalg.lstsq(a, b)[0], lambda t, a, b: t.linalg.lstsq(a, b)[0],
        (_normal(1000, 20), _normal(1000, 1)),
    ),
    Operation("eigh 256", lnp.linalg.eigh, lambda t, a: t.linalg.eigh(a), (_definite(256),)),
    Operation("eigh 1000 of 8", lnp.linalg.eigh, lambda t, a: t.linalg.eigh(a), (_definite(1000, 8),)),
    Operation(
        "svd 256", partial(lnp.linalg.svd, full_matrices=False),
        lambda t, a: t.linalg.svd(a, full_matrices=False), (_normal(256, 256),),
    ),
    Operation("pinv 256 x 64", lnp.linalg.pinv, lambda t, a: t.linalg.pinv(a), (_normal(256, 64),)),
    Operation("expm 128", lambda a: linalg.expm(a / 12), lambda t, a: t.matrix_exp(a / 12), (_normal(128, 128),)),
    Operation("sort 2^24", lnp.sort, lambda t, x: t.sort(x)[0], (_normal(1 << 24),)),
    Operation("sort 4096 rows", lnp.sort, lambda t, x: t.sort(x, -1)[0], (_normal(4096, 4096),)),
    Operation("top 50 of 64 rows", lambda x: lax.top_k(x, 50), lambda t, x: t.topk(x, 50), (_normal(64, 50257),)),
    Operation("top 8 of 8192 rows", lambda x: lax.top_k(x, 8), lambda t, x: t.topk(x, 8), (_normal(8192, 64),)),
    Operation("top 100 of 2^20", lambda x: lax.top_k(x, 100), lambda t, x: t.topk(x, 100), (_normal(1 << 20),)),
    Operation("argmax of 64 rows", lambda x: lnp.argmax(x, -1), lambda t, x: t.argmax(x, -1), (_normal(64, 50257),)),
    Operation("cumsum 2^24", lnp.cumsum, lambda t, x: t.cumsum(x, 0), (_normal(1 << 24),)),
    Operation(
        "bincount 2^22 in 1000", lambda x: lnp.bincount(x, length=1000),
        lambda t, x: t.bincount(x, minlength=1000), (_below(1000, 1 << 22),),
    ),
    Operation(
        "bincount 2^22 in 50000", lambda x: lnp.bincount(x, length=50_000),
        lambda t, x: t.bincount(x, minlength=50_000), (_below(50_000, 1 << 22),),
    ),
    Operation(
        "histogram 2^22", lambda x: lnp.histogram(x, 100, (-4, 4))[0], lambda t, x: t.histc(x, 100, -4, 4),
        (_normal(1 << 22),),
    ),
    Operation(
        "add 2^22 to 2^16", _added,
        lambda t, i, x: t.zeros(1 << 16, device="cuda").index_add(0, i, x),
        (_below(1 << 16, 1 << 22), _normal(1 << 22)),
    ),
    Operation(
        "search 2^20 in 10^4", lnp.searchsorted, lambda t, a, v: t.searchsorted(a, v),
        (_rising(10_000), _normal(1 << 20)),
    ),
    Operation(
        "resize 16 x 3 x 224^2 to 512^2", lambda x: lx.image.resize(x, (16, 3, 512, 512), "bilinear"),
        lambda t, x: t.nn.functional.interpolate(x, (512, 512), mode="bilinear"), (_normal(16, 3, 224, 224),),
    ),
    Operation(
        "gradient of max pool", lx.grad(lambda x: lnp.sum(_pooled(x) ** 2)), _gradient_of_pool,
        (_normal(64, 112, 112, 64),),
    ),
    Operation("erf 2^24", special.erf, lambda t, x: t.erf(x), (_normal(1 << 24),)),
    Operation(
        "gammaln 2^24", lambda x: special.gammaln(abs(x) + 0.1), lambda t, x: t.lgamma(abs(x) + 0.1),
        (_normal(1 << 24),),
    ),
)
