"""Programs with complex numbers under loops, branches and transformations, of a namespace's modules.

Each takes the modules (array functions, lax, transformations) and gives a function of two complex vectors. `RECORDED`
has what jax 0.10.2 gives on a CPU: Σ w·x over all elements x of the results, in their order, with w = cos 1, cos 2, …
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

_K = np.arange(4)
Z = (np.cos(1 + 2 * _K) + 1j * np.sin(2 + 3 * _K**2)).astype(np.complex64)
W = (np.sin(3 * _K - 1) + 1j * np.cos(_K + 0.3)).astype(np.complex64)
M = (np.cos(_K[:, None] * 3 + _K**2) + 1j * np.sin(_K[:, None] ** 2 + 2 * _K)).astype(np.complex64)
_WEIGHTS = np.arange(1, 5, dtype=np.float32)

Program = Callable[[Any, Any, Any], Callable[[Any, Any], Any]]


def _loss(m: Any, z: Any) -> Any:
    return m.sum(m.abs(z) ** 2 * _WEIGHTS)


def _scan(m: Any, loops: Any, z: Any, w: Any) -> Any:
    return loops.scan(lambda c, x: (c * x + 0.3 * m.sin(c), c * m.conj(x)), z[0], w)


def _sum_of_scan(m: Any, loops: Any) -> Callable[[Any, Any], Any]:
    def function(z: Any, w: Any) -> Any:
        final, steps = _scan(m, loops, z, w)
        return m.abs(final) + _loss(m, steps)

    return function


def _turned(m: Any, loops: Any) -> Callable[[Any], Any]:
    return lambda z: loops.fori_loop(0, 5, lambda i, c: 0.1 * c * c + 1j * i, z)


def _grown(m: Any, loops: Any) -> Callable[[Any], Any]:
    return lambda q: loops.while_loop(lambda c: m.abs(c) < 50, lambda c: c * (1.2 + 0.5j), q)


def _branches(m: Any, loops: Any) -> Callable[[Any], Any]:
    return lambda q: loops.cond(m.real(q) > 0, lambda c: m.abs(c * c), m.angle, q)


PROGRAMS: dict[str, Program] = {
    "scan": lambda m, loops, t: lambda z, w: _scan(m, loops, z, w),
    "scan backwards": lambda m, loops, t: lambda z, w: loops.scan(lambda c, x: (c * x, c), z, w, reverse=True),
    "gradients of scan": lambda m, loops, t: t.grad(_sum_of_scan(m, loops), argnums=(0, 1)),
    "gradients of scan, batched": lambda m, loops, t: lambda z, w: t.vmap(
        t.grad(_sum_of_scan(m, loops)), in_axes=(0, None)
    )(M * z, w),
    "tangents of scan": lambda m, loops, t: lambda z, w: t.jvp(lambda z: _scan(m, loops, z, W), (z,), (w,)),
    "fori_loop": lambda m, loops, t: lambda z, w: _turned(m, loops)(z * w),
    "gradient of fori_loop": lambda m, loops, t: t.grad(lambda z, w: _loss(m, _turned(m, loops)(z * w))),
    "fori_loop, batched": lambda m, loops, t: lambda z, w: t.vmap(_turned(m, loops))(M * z),
    "while_loop": lambda m, loops, t: lambda z, w: _grown(m, loops)(z[0] * w[0]),
    "while_loop, batched": lambda m, loops, t: lambda z, w: t.vmap(_grown(m, loops))(z * w),
    "tangent of while_loop": lambda m, loops, t: lambda z, w: t.jvp(_grown(m, loops), (z[0],), (w[0],)),
    "cond, batched": lambda m, loops, t: lambda z, w: t.vmap(t.grad(_branches(m, loops)))(z * w),
    "switch": lambda m, loops, t: lambda z, w: [
        loops.switch(k, [lambda q: q * 2j, m.sin, m.conj], z * w) for k in range(3)
    ],
    "map": lambda m, loops, t: lambda z, w: loops.map(lambda q: q * m.conj(q) + 1j, z * w),
    "associative_scan": lambda m, loops, t: t.grad(
        lambda z, w: _loss(m, loops.associative_scan(lambda a, b: a * b, z) * w), argnums=(0, 1)
    ),
    "loops in loops": lambda m, loops, t: lambda z, w: loops.scan(
        lambda c, x: (_grown(m, loops)(c * x) * 0.1, loops.cond(m.abs(x) > 1, lambda q: q * 1j, lambda q: q, x)),
        z[0],
        w,
    ),
    "hessian of a real argument": lambda m, loops, t: lambda z, w: t.hessian(
        lambda x: m.sum(m.abs(m.exp(1j * x) * w + x * x) ** 2)
    )(m.real(z)),
    "holomorphic hessian": lambda m, loops, t: lambda z, w: t.hessian(
        lambda z: m.sum(z**3 * w) * z[0], holomorphic=True
    )(z),
    "gradient of a gradient": lambda m, loops, t: t.grad(
        lambda z, w: _loss(m, t.grad(lambda z: _loss(m, m.sin(z) * z * w))(z))
    ),
    "complex jacobian of a real argument": lambda m, loops, t: lambda z, w: t.jacfwd(lambda x: m.exp(1j * x) * w)(
        m.real(z)
    ),
    "real jacobian of a complex argument": lambda m, loops, t: lambda z, w: t.jacrev(lambda z: m.abs(M @ z))(z * w),
    "holomorphic jacobians": lambda m, loops, t: lambda z, w: [
        jacobian(lambda q: M @ q * q * w, holomorphic=True)(z) for jacobian in (t.jacrev, t.jacfwd)
    ],
    "checkpoint": lambda m, loops, t: t.grad(
        lambda z, w: _loss(m, t.checkpoint(lambda z: m.sin(z) * m.exp(z))(z) * w)
    ),
    "linearize": lambda m, loops, t: lambda z, w: t.linearize(lambda z: m.sin(z) * M[0], z)[1](w),
    "vjp": lambda m, loops, t: lambda z, w: t.vjp(lambda z: m.conj(z) * z * M[0], z)[1](w),
    "gradients of products": lambda m, loops, t: t.grad(
        lambda z, w: _loss(m, (M * z) @ m.conj(M * w).T @ w), argnums=(0, 1)
    ),
    "gradient beside real numbers": lambda m, loops, t: lambda z, w: t.grad(
        lambda z, x: _loss(m, M @ (z * x)), argnums=(0, 1)
    )(z, m.real(w)),
    "gradients of sorted numbers": lambda m, loops, t: t.grad(lambda z, w: _loss(m, m.sort(z * w) * w)),
    "gradients of transforms": lambda m, loops, t: t.grad(
        lambda z, w: _loss(m, m.fft.fft(z) * m.fft.ifft(w * z)), argnums=(0, 1)
    ),
    "gradients of powers": lambda m, loops, t: t.grad(
        lambda z, w: _loss(m, z**w + z**3 + z**-1 + z**0.5), argnums=(0, 1)
    ),
    "gradient of eigenvalues": lambda m, loops, t: lambda z, w: t.grad(
        lambda a: m.sum(m.abs(m.linalg.eigvals(a)) ** 3)
    )(m.real(M * z + m.eye(4))),
    "cumulative": lambda m, loops, t: lambda z, w: [
        loops.cumsum(z * w, reverse=True),
        loops.cumprod(z * w),
        t.grad(lambda z: _loss(m, m.cumprod(z * w)))(z),
    ],
}


def leaves(found: Any) -> list[np.ndarray]:
    if isinstance(found, (list, tuple)):
        return [leaf for part in found for leaf in leaves(part)]
    return [np.asarray(found)]


def fingerprint(found: Any) -> complex:
    row = np.concatenate([leaf.ravel() for leaf in leaves(found)]).astype(np.complex128)
    return complex(np.sum(row * np.cos(np.arange(1, row.size + 1))))


def ran(name: str, m: ModuleType, loops: Any, t: ModuleType) -> Callable[[Any, Any], Any]:
    return PROGRAMS[name](m, loops, t)


RECORDED: dict[str, complex] = {
    "scan": 0.955217+1.46369j,
    "scan backwards": -0.170986+2.61414j,
    "gradients of scan": 20.7376-25.016j,
    "gradients of scan, batched": -106.86+19.3695j,
    "tangents of scan": 3.36794+2.86989j,
    "fori_loop": 1.30709-5.71896j,
    "gradient of fori_loop": 0.0179697+0.0133833j,
    "fori_loop, batched": 1.06857-4.67583j,
    "while_loop": -24.1151+15.4618j,
    "while_loop, batched": 21.3907+110.545j,
    "tangent of while_loop": 32.4405-7.13048j,
    "cond, batched": -1.08964-3.84922j,
    "switch": -3.75095-3.56725j,
    "map": -2.45209-1.51948j,
    "associative_scan": -6.77883-5.62606j,
    "loops in loops": -3.78484+1.04357j,
    "hessian of a real argument": -3.81398+0j,
    "holomorphic hessian": -14.3231-13.607j,
    "gradient of a gradient": -9912.5+849.563j,
    "complex jacobian of a real argument": 0.343345-1.30289j,
    "real jacobian of a complex argument": -1.74784-1.2188j,
    "holomorphic jacobians": -2.64967-1.57872j,
    "checkpoint": -83.4253-23.1302j,
    "linearize": -0.410979-0.99455j,
    "vjp": 0.804622+1.89065j,
    "gradients of products": -52.734-421.269j,
    "gradient beside real numbers": 71.1869-39.6965j,
    "gradients of sorted numbers": -10.9985+10.0983j,
    "gradients of transforms": 15.1164-6.90215j,
    "gradients of powers": 64.4535-56.9327j,
    "gradient of eigenvalues": -2.40214+0j,
    "cumulative": 43.236+81.129j,
}
