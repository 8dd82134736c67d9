"""Derivatives of complex functions in JAX's convention: its values, recorded and beside them, and differences."""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax

pytestmark = pytest.mark.usefixtures("reference_backend")

_K = np.arange(4)
Z = (np.cos(1 + 2 * _K) + 1j * np.sin(2 + 3 * _K**2)).astype(np.complex64)
W = (np.sin(3 * _K - 1) + 1j * np.cos(_K + 0.3)).astype(np.complex64)
X = np.cos(_K * 1.7 + 0.2).astype(np.float32)

Function = Callable[[Any], Any]

# Real functions of z, in the middle of which stands what is differentiated.
REAL: dict[str, Callable[[ModuleType, Any], Function]] = {
    "length": lambda m, loops: lambda z: m.sum(m.abs(z * W) * X),
    "angle": lambda m, loops: lambda z: m.sum(m.angle(z * W) * X),
    "parts": lambda m, loops: lambda z: m.sum(m.real(z * z) * m.imag(z * W) * X),
    "conjugate": lambda m, loops: lambda z: m.abs(m.sum(m.conj(z) * W)) ** 2,
    "quotient": lambda m, loops: lambda z: m.sum(m.abs(W / z)),
    "power": lambda m, loops: lambda z: m.sum(m.abs(z**W) ** 2),
    "product": lambda m, loops: lambda z: m.abs(m.prod(z * W + 1)),
    "cumulative": lambda m, loops: lambda z: m.sum(m.abs(m.cumprod(z)) * X),
    "matrices": lambda m, loops: lambda z: m.sum(m.abs(m.outer(z, W) @ z)),
    "choice": lambda m, loops: lambda z: m.sum(m.abs(m.where(m.real(z) > 0, z * W, m.conj(z)))),
    "variance": lambda m, loops: lambda z: m.var(z * W),
    "scan": lambda m, loops: lambda z: m.abs(loops.scan(lambda c, q: (c * q + m.sin(c), c), z[0], z)[0]),
    "branches": lambda m, loops: lambda z: m.abs(
        loops.cond(m.real(z[0]) > 0, lambda q: m.sum(q * q), lambda q: m.sum(m.conj(q) * W), z)
    ),
    "writing": lambda m, loops: lambda z: m.sum(m.abs(z.at[1].multiply(2j).at[m.asarray([0, 0])].add(z[2]))),
}
# Analytic functions; acosh apart, whose derivative in jax 0.10 has the wrong sign in the left half plane.
ANALYTIC = [
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh",
    "arctanh", "square", "reciprocal", "expm1", "log1p",
]  # fmt: skip

# From jax 0.10.0 on a CPU: Σ W·gradient of each function at Z, and Σ W·gradient of Σ|gradient|².
RECORDED: dict[str, tuple[complex, complex]] = {
    "length": (2.7738+0.535439j, 4.54202e-07+6.14611e-08j),
    "angle": (0.328193-2.11678j, -0.0851438-3.03434j),
    "parts": (2.55159-1.34104j, 3.16201+29.2664j),
    "conjugate": (-3.19254+29.9002j, -74.5333+698.053j),
    "quotient": (-0.96511-2.28917j, -7.73206-9.04855j),
    "power": (6.05269-0.31293j, 904.863-276.826j),
    "product": (4.9963+5.55838j, 44.2472+63.2498j),
    "cumulative": (2.2282-0.690073j, -3.85662+5.35831j),
    "matrices": (6.06097+16.8231j, 123.789+293.66j),
    "choice": (0.553034+2.72268j, 1.34808e-06-1.47832e-07j),
    "variance": (-0.140892+0.904074j, -0.0277329+1.22211j),
    "scan": (-32.5324-18.3413j, -6761.35+26007.5j),
    "branches": (-5.63879+6.22177j, -2.18798+20.4918j),
    "writing": (-2.5275+3.97359j, 0.0250822-0.154763j),
}


def _sum(numbers: Any) -> complex:
    return complex(np.sum(np.asarray(numbers, np.complex128) * W))


def _first_and_second(m: ModuleType, grad: Callable[[Function], Function], f: Function) -> tuple[complex, complex]:
    again = grad(lambda z: m.sum(m.abs(grad(f)(z)) ** 2))
    return _sum(grad(f)(Z)), _sum(again(Z))


@pytest.mark.parametrize("name", REAL)
def test_gradients_of_real_functions_are_those_of_jax(name: str) -> None:
    found = _first_and_second(lnp, lx.grad, REAL[name](lnp, lax))  # type: ignore[arg-type]
    np.testing.assert_allclose(found, RECORDED[name], rtol=2e-4, atol=1e-5)


def test_jax_still_gives_what_is_recorded() -> None:
    jax = pytest.importorskip("jax", reason="jax is the oracle of derivatives")
    for name, function in REAL.items():
        found = _first_and_second(jax.numpy, jax.grad, function(jax.numpy, jax.lax))
        np.testing.assert_allclose(found, RECORDED[name], rtol=2e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", REAL)
def test_tangents_agree_with_gradients(name: str) -> None:
    """The change along t is Re(Σ gradient·t)."""
    function = REAL[name](lnp, lax)  # type: ignore[arg-type]
    _, tangent = lx.jvp(function, (Z,), (W,))
    assert tangent.dtype == np.float32
    np.testing.assert_allclose(float(tangent), _sum(lx.grad(function)(Z)).real, rtol=1e-4)


@pytest.mark.parametrize("name", ANALYTIC)
def test_analytic_functions_have_complex_derivatives(name: str) -> None:
    """First and second, against central differences in complex128."""
    point, step = complex(Z[1]), 1e-4

    def value(z: complex) -> complex:
        return complex(getattr(np, name)(np.complex128(z * complex(W[2]))))

    def function(z: Any) -> Any:
        return getattr(lnp, name)(z * W[2])

    first = (value(point + step) - value(point - step)) / (2 * step)
    second = (value(point + step) - 2 * value(point) + value(point - step)) / step**2
    gradient = lx.grad(function, holomorphic=True)
    np.testing.assert_allclose(complex(gradient(Z[1])), first, rtol=2e-5)
    np.testing.assert_allclose(complex(lx.grad(gradient, holomorphic=True)(Z[1])), second, rtol=1e-4)
    _, tangent = lx.jvp(function, (Z[1],), (W[0],))
    np.testing.assert_allclose(complex(tangent), first * complex(W[0]), rtol=2e-5)
    _, pullback = lx.vjp(function, Z[1])
    np.testing.assert_allclose(complex(pullback(W[0])[0]), first * complex(W[0]), rtol=2e-5)


def test_the_derivative_of_acosh_in_both_half_planes() -> None:
    for point in (0.7 + 0.4j, -0.7 + 0.4j, -2 - 0.5j):
        wanted = (np.arccosh(point + 1e-5) - np.arccosh(point - 1e-5)) / 2e-5
        found = lx.grad(lnp.acosh, holomorphic=True)(np.complex64(point))
        np.testing.assert_allclose(complex(found), wanted, rtol=1e-5)


def test_jacobians_and_hessians() -> None:
    def function(z: Any) -> Any:
        return lnp.outer(z, W) @ (z * z)

    wanted = np.sum(W * Z**2) * np.eye(4) + np.outer(Z, 2 * W * Z)
    for jacobian in (lx.jacrev, lx.jacfwd):
        np.testing.assert_allclose(np.asarray(jacobian(function, holomorphic=True)(Z)), wanted, rtol=1e-4, atol=1e-5)
    hessian = lx.hessian(lambda z: lnp.sum(z**3 * W), holomorphic=True)(Z)
    np.testing.assert_allclose(np.asarray(hessian), np.diag(6 * Z * W), rtol=1e-5, atol=1e-6)


def test_real_arguments_of_complex_functions_have_real_gradients() -> None:
    gradient = lx.grad(lambda x: lnp.sum(lnp.real(lnp.exp(1j * x) * W)))(X)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(np.asarray(gradient), np.real(1j * np.exp(1j * X) * W), rtol=1e-5)


def test_vmap_and_checkpoint() -> None:
    gradient = lx.vmap(lx.grad(lambda z: lnp.abs(z * z + 1) ** 2))(Z)
    np.testing.assert_allclose(np.asarray(gradient), 4 * Z * np.conj(Z * Z + 1), rtol=1e-5)
    kept = lx.grad(lambda z: lnp.sum(lnp.abs(lx.checkpoint(lnp.sin)(z)) ** 2))(Z)
    np.testing.assert_allclose(np.asarray(kept), 2 * np.conj(np.sin(Z)) * np.cos(Z), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(lx.linear_transpose(lambda z: z * W, Z)(W)[0]), W * W, rtol=1e-6)


def test_functions_with_rules_of_their_own() -> None:
    pulled, pushed = lx.custom_vjp(lambda z: z * z), lx.custom_jvp(lambda z: z * z)
    pulled.defvjp(lambda z: (z * z, z), lambda z, g: (3j * g * z,))
    pushed.defjvp(lambda primals, tangents: (primals[0] ** 2, 5 * tangents[0] * primals[0]))
    unit = np.conj(Z * Z) / np.abs(Z * Z)
    for function, factor in ((pulled, 3j * Z), (pushed, 5 * Z)):
        found = lx.grad(lambda z, f=function: lnp.sum(lnp.abs(f(z))))(Z)
        np.testing.assert_allclose(np.asarray(found), unit * factor, rtol=1e-5)


def test_the_origin_has_no_direction() -> None:
    assert complex(lx.grad(lnp.abs)(np.complex64(0))) == 0
    assert complex(lx.grad(lambda z: lnp.abs(z) ** 2)(np.complex64(0))) == 0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lx.grad(lnp.sum)(Z), lx.NonScalarGradError, r"the result is real, but it gave c64.*holomorphic=True"),
        (lambda: lx.grad(lambda x: x * 1j, holomorphic=True)(1.0), lx.NonFloatArgumentError, "are complex, got f32"),
        (lambda: lx.grad(lnp.abs, holomorphic=True)(Z[0]), lx.NonScalarGradError, "the result is complex"),
        (lambda: lx.jacfwd(lnp.abs)(Z), lx.NonFloatArgumentError, "c64.*is complex"),
        (lambda: lx.jacrev(lnp.sin)(Z), lx.DtypeError, "jacrev of sin: the result is real"),
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_gradients_of_lengths_divide_real_numbers() -> None:
    """Each part by the length, which takes a third of the division by a complex number."""
    graph = str(lx.trace(lx.grad(lambda z: lnp.sum(3 * lnp.abs(z) ** 2)))(lx.ShapeDtype((8,), "complex64")))
    assert "divide(" in graph and not any("divide(" in line and "c64" in line for line in graph.splitlines())
