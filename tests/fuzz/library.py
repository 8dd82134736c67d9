"""Functions of the library for compositions: spectra, matrices, several keys, segments, few bits, and derivatives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn, ops


class Given(Protocol):
    """What a function of compositions.py is applied to."""

    a: Any
    b: Any
    rows: Any
    weights: Any
    table: Any
    number: int
    factor: float

    @property
    def axis(self) -> int: ...

    @property
    def column(self) -> int: ...


def _complex(given: Given) -> Any:
    return lnp.tanh(given.a) + 1j * lnp.tanh(given.b)


def _square(given: Given) -> Any:
    """A symmetric matrix of few columns whose eigenvalues are well above 0."""
    some = lnp.tanh(given.a[:, :5])
    return some.T @ some / some.shape[0] + 2 * lnp.eye(some.shape[1], dtype=some.dtype)


def _few(given: Given) -> Any:
    return lnp.tanh(given.b[:, :5])


def _with_columns(given: Given, few: Any) -> Any:
    """`b`, and in its first columns these, too."""
    return given.b.at[:, : few.shape[1]].add(few)


def _narrow(given: Given, dtype: str) -> Any:
    return (lnp.tanh(given.a) * 40).astype(dtype)


def _as_floats(given: Given, integers: Any) -> Any:
    return integers.astype(given.a.dtype) * 0.05 + given.b


@lx.custom_jvp
def _swish(x: Any) -> Any:
    return x * nn.sigmoid(x)


@_swish.defjvp
def _swish_tangent(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    gate = nn.sigmoid(x)
    return x * gate, t * (gate + x * gate * (1 - gate))


@lx.custom_vjp
def _clipped(x: Any, y: Any) -> Any:
    return lnp.tanh(x) * y


def _clipped_forward(x: Any, y: Any) -> Any:
    return _clipped(x, y), (x, y)


def _clipped_backward(kept: Any, cotangent: Any) -> Any:
    x, y = kept
    return lnp.clip(cotangent * y, -1.0, 1.0), cotangent * lnp.tanh(x)


_clipped.defvjp(_clipped_forward, _clipped_backward)


def _linear_recurrence(given: Given) -> Any:
    def joined(first: Any, then: Any) -> Any:
        return first[0] * then[0], then[0] * first[1] + then[1]

    parts = nn.sigmoid(given.a), lnp.tanh(given.b)
    return lax.associative_scan(joined, parts, reverse=given.number % 3 == 0, axis=given.axis)[1]


def _by_several_keys(given: Given) -> Any:
    order = lnp.lexsort((given.b[:, given.column], given.rows % 3))
    return given.a[order] + given.b


def _sorted_together(given: Given) -> Any:
    keys = lnp.broadcast_to((given.rows % 3)[:, None], given.a.shape)
    return lax.sort((keys, given.b, given.a), dimension=given.axis, num_keys=2)[2]


def _windows(given: Given) -> Any:
    of = lax.reduce_window(given.a, -lnp.inf, lax.max, (1, 3), (1, 1), "SAME")
    return of + lax.reduce_window(given.b, 0.0, lax.add, (3, 1), (1, 1), ((1, 1), (0, 0)))


def _attention(given: Given) -> Any:
    def heads(x: Any) -> Any:
        return lnp.tanh(x)[:, None, :]

    found = nn.dot_product_attention(heads(given.a), heads(given.b), heads(given.a), is_causal=given.number % 2 == 0)
    return lnp.reshape(found, given.a.shape)


def _inner_gradient(given: Given) -> Any:
    return lx.grad(lambda x: lnp.sum(lnp.tanh(x @ given.weights) * given.b))(given.a) * 0.2


def _of_convolution(given: Given) -> Any:
    kernel = lnp.tanh(given.table[:, :3].T if given.table.shape[1] >= 3 else given.table[:, :1].T)
    lines = given.a[:, None, :]
    found = lax.conv_general_dilated(lines, kernel.T[:1, None, :], (1,), "SAME", rhs_dilation=(1 + given.number % 2,))
    return found[:, 0, :] * 0.5 + given.b


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "spectrum": lambda g: lnp.fft.fft(g.a, axis=g.axis).real * 0.1 + g.b,
    "filtered": lambda g: lnp.fft.irfft(lnp.fft.rfft(g.a, axis=g.axis) * 0.5, g.a.shape[g.axis], axis=g.axis),
    "spectrum across": lambda g: lnp.fft.ifft2(_complex(g)).imag * g.b,
    "lengths": lambda g: lnp.abs(_complex(g) * lnp.exp(0.5j * g.b)),
    "angles": lambda g: lnp.angle(_complex(g) + 2) * g.a,
    "conjugate product": lambda g: (lnp.conj(_complex(g)) @ _complex(g).T).real[:, :1] * 0.1 + g.b,
    "complex sums": lambda g: lnp.cumsum(_complex(g), axis=g.axis).imag * 0.1,
    "solved": lambda g: _with_columns(g, lnp.linalg.solve(_square(g), _few(g).T).T),
    "factored": lambda g: _with_columns(g, _few(g) @ lnp.linalg.cholesky(_square(g))),
    "inverted": lambda g: _with_columns(g, _few(g) @ lnp.linalg.inv(_square(g))),
    "determinant": lambda g: g.a * lnp.linalg.slogdet(_square(g))[1] * 0.1,
    "eigenvalues": lambda g: g.b + lnp.linalg.eigvalsh(_square(g))[:1] * 0.1,
    "recurrence": _linear_recurrence,
    "largest so far": lambda g: lax.associative_scan(lnp.maximum, g.a, axis=g.axis) + g.b,
    "several keys": _by_several_keys,
    "sorted together": _sorted_together,
    "segments": lambda g: ops.segment_sum(g.a, g.rows, g.a.shape[0])[g.rows] * 0.3,
    "largest of segments": lambda g: lnp.tanh(ops.segment_max(g.a, g.rows % 3, 3))[g.rows % 3] + g.b,
    "int8": lambda g: _as_floats(g, _narrow(g, "int8") // 3 + (_narrow(g, "int8") > 5)),
    "uint8": lambda g: _as_floats(g, (lnp.abs(_narrow(g, "int32")).astype("uint8") >> 1) ^ 5),
    "int16 sums": lambda g: _as_floats(g, lnp.cumsum(_narrow(g, "int16"), axis=g.axis).astype("int16") % 50),
    "counted bits": lambda g: _as_floats(g, lax.population_count(_narrow(g, "int32").astype("uint32") % 1000)),
    "float16": lambda g: (g.a.astype("float16") * 0.5).astype(g.a.dtype) + g.b,
    "bfloat16": lambda g: g.a + lnp.tanh(g.b.astype("bfloat16")).astype(g.a.dtype),
    "own tangent": lambda g: _swish(g.a) + g.b,
    "own cotangent": lambda g: _clipped(g.a, g.b),
    "kept anew": lambda g: lx.checkpoint(lambda x: lnp.sin(lnp.tanh(x @ g.weights)))(g.a),
    "inner gradient": _inner_gradient,
    "windows": _windows,
    "attention": _attention,
    "convolution": _of_convolution,
    "layer norm": lambda g: nn.layer_norm(g.a * 2, g.table[0], g.b[0]) + g.b,
    "quantile": lambda g: g.a - lnp.quantile(g.a, 0.3, axis=g.axis, keepdims=True) + g.b,
    "median": lambda g: g.b + lnp.median(g.a, axis=1, keepdims=True),
    "interpolated": lambda g: lnp.interp(lnp.tanh(g.a), lnp.linspace(-1, 1, 5), lnp.tanh(g.b[0, 0]) * lnp.arange(5.0)),
    "places by values": lambda g: _as_floats(g, lnp.searchsorted(lnp.sort(g.b[0]), g.a)),
    "counts of rows": lambda g: g.a + lnp.bincount(g.rows, length=g.a.shape[0])[:, None] * 0.2,
    "multiplied at elements": lambda g: g.a.at[g.rows, g.column].multiply(0.5) + g.b,
    "largest at rows": lambda g: lnp.tanh(g.a).at[g.rows].max(lnp.tanh(g.b)),
    "any row": lambda g: lnp.where(lnp.any(g.a > 1.5, axis=1, keepdims=True), g.a, g.b),
    "repeated": lambda g: lnp.repeat(g.a, 2, axis=g.axis)[: g.a.shape[0], : g.a.shape[1]] + g.b,
    "until small": lambda g: lax.while_loop(lambda s: lnp.max(lnp.abs(s)) > 1.0, lambda s: s * 0.7, g.a) + g.b,
    "mapped": lambda g: lax.map(lambda row: lnp.cumsum(lnp.sin(row)) * 0.1, g.a) + g.b,
    "products of rows": lambda g: lx.vmap(lambda x, y: lnp.dot(x, y) * x * 0.1)(g.a, lnp.tanh(g.b)),
    "tiles": lambda g: lnp.tile(g.a[:, :1], (1, g.a.shape[1])) * g.b,
    "cumulative products": lambda g: lnp.cumprod(1 + 0.1 * lnp.tanh(g.a), axis=g.axis) + g.b,
    "soft": lambda g: lax.cumlogsumexp(g.a, axis=g.axis) * 0.2 + g.b,
    "special": lambda g: lx.scipy.special.erf(g.a) + lx.scipy.special.gammaln(lnp.abs(g.b) + 1.5) * 0.1,
}  # fmt: skip
