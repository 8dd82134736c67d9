"""Muon: momentum whose matrices are orthogonalised (Jordan et al. 2024)."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.masking import of_parameters
from lavax.optim.transforms.transformation import GradientTransformation, stateless
from lavax.optim.tree.moments import bias_correction, increment, nesterov_mean, update_moment
from lavax.optim.tree.precision import cast, squared_size, wide, zeros_like
from lavax.tracer.pytrees import pytree

STANDARD = (3.4445, -4.775, 2.0315)
# Of Dion's implementation (Ahn et al. 2025), one row for each step.
_DION = (
    (4.0848, -6.8946, 2.927),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
    (2.8366, -3.0525, 1.2012),
)
COEFFICIENTS: dict[str, Any] = {"standard": STANDARD, "dion": _DION}


class MuonDimensionNumbers(NamedTuple):
    """Which axes of a parameter are summed over, and which are its outputs; others are a batch of matrices."""

    reduction_axis: Sequence[int] | int = 0
    output_axis: Sequence[int] | int = 1


class MuonState(NamedTuple):
    """Steps done (int32), running means of the gradients, and the coefficients of the iteration."""

    count: Any
    mu: Any
    ns_coeffs: Any


def _axes(axes: Sequence[int] | int, rank: int) -> tuple[int, ...]:
    return tuple(axis % rank for axis in ((axes,) if isinstance(axes, int) else axes))


def _as_matrices(x: Any, numbers: MuonDimensionNumbers) -> tuple[Any, Callable[[Any], Any]]:
    """`x` as [batch, inputs, outputs], and the way back."""
    if x.ndim < 2:
        raise ValueError(f"muon: parameters must have rank 2 at least, got shape {tuple(x.shape)}")
    inputs, outputs = _axes(numbers.reduction_axis, x.ndim), _axes(numbers.output_axis, x.ndim)
    if set(inputs) & set(outputs):
        raise ValueError(f"muon: an axis is both input and output in {numbers} for shape {tuple(x.shape)}")
    batch = tuple(axis for axis in range(x.ndim) if axis not in inputs + outputs)
    order = batch + inputs + outputs
    moved = lnp.transpose(x, order)
    flat = [math.prod(x.shape[axis] for axis in axes) for axes in (batch, inputs, outputs)]
    back = [order.index(axis) for axis in range(x.ndim)]
    return lnp.reshape(moved, flat), lambda found: lnp.transpose(lnp.reshape(found, moved.shape), back)


def _adjoint(x: Any) -> Any:
    return lnp.conj(x.mT)


def _largest_singular_value(x: Any) -> Any:
    """Of matrices [batch, m, n] with m <= n: [batch, 1, 1]."""
    return lnp.sqrt(lnp.linalg.eigvalsh(x @ _adjoint(x))[:, -1])[:, None, None]


def _frobenius(x: Any) -> Any:
    return lnp.sqrt(lnp.sum(squared_size(x), axis=(-2, -1), keepdims=True))


def _by_frobenius(x: Any, eps: Any) -> Any:
    return x / (_frobenius(x) + eps)


def _by_spectrum(x: Any, eps: Any) -> Any:
    return x / (_largest_singular_value(x) + eps)


def _by_row_sums(x: Any, eps: Any) -> Any:
    """Almost orthogonal layers (Prach and Lampert 2022): rows over the root of the absolute row sums of x xᴴ."""
    return x * lnp.rsqrt(lnp.maximum(lnp.sum(lnp.abs(x @ _adjoint(x)), axis=-1, keepdims=True), 1e-8))


def _by_schatten_norm(x: Any, eps: Any) -> Any:
    """Over the Schatten-4 norm, the root of the Frobenius norm of x xᴴ."""
    return x * lnp.rsqrt(lnp.maximum(_frobenius(x @ _adjoint(x)), 1e-8))


PRECONDITIONINGS: dict[str, Callable[[Any, Any], Any]] = {
    "frobenius": _by_frobenius,
    "spectral": _by_spectrum,
    "aol": _by_row_sums,
    "schatten": _by_schatten_norm,
}


def orthogonalize_via_newton_schulz(
    x: Any, ns_coeffs: Any, ns_steps: int = 5, preconditioning: str = "frobenius", eps: Any = 1e-8,
    dimension_numbers: MuonDimensionNumbers | None = None,
) -> Any:
    """The orthogonal factor of the matrix `x`, nearly: its singular values go to about 1.

    `ns_steps` steps of x ← a·x + (b·A + c·A²)·x with A = x xᴴ, from an `x` scaled by `preconditioning`. `ns_coeffs` are
    (a, b, c), an array [3], or an array [n, 3] with a row for each step. An `x` of another rank than 2 needs
    `dimension_numbers`. Raises ValueError for other shapes.
    """
    if preconditioning not in PRECONDITIONINGS:
        raise ValueError(f"muon: preconditioning must be one of {', '.join(PRECONDITIONINGS)}, got {preconditioning!r}")
    coefficients = lnp.asarray(ns_coeffs)
    if coefficients.ndim not in (1, 2) or coefficients.shape[-1] != 3:
        raise ValueError(f"muon: ns_coeffs must have shape [3] or [n, 3], got {tuple(coefficients.shape)}")
    value = wide(x)
    if value.ndim != 2 and dimension_numbers is None:
        raise ValueError(f"muon: an array of shape {tuple(value.shape)} is no matrix; give dimension_numbers")
    numbers = MuonDimensionNumbers() if value.ndim == 2 else dimension_numbers
    assert numbers is not None
    matrices, back = _as_matrices(value, numbers)
    is_tall = matrices.shape[1] > matrices.shape[2]
    found = PRECONDITIONINGS[preconditioning](_adjoint(matrices) if is_tall else matrices, eps)
    steps = ns_steps if coefficients.ndim == 1 else coefficients.shape[0]
    for step in range(steps):
        found = _iterated(found, coefficients if coefficients.ndim == 1 else coefficients[step])
    return back(_adjoint(found) if is_tall else found)


def _iterated(x: Any, coefficients: Any) -> Any:
    square = x @ _adjoint(x)
    return coefficients[0] * x + (coefficients[1] * square + coefficients[2] * (square @ square)) @ x


def is_dimension_numbers(part: Any) -> bool:
    """Whether `part` is the dimension numbers of one parameter."""
    return isinstance(part, MuonDimensionNumbers)


def _for_each(function: Callable[[Any, Any], Any], updates: Any, numbers: Any) -> Any:
    """`function(update, its dimension numbers)` for each; `numbers` is a tree of them, one for all, or a function."""
    held = of_parameters(numbers, updates)
    if held is None or is_dimension_numbers(held):
        return pytree.map(lambda update: function(update, held), updates)
    return pytree.map(function, updates, held)


def scale_by_muon(
    ns_coeffs: Any = STANDARD, ns_steps: int = 5, beta: Any = 0.95, eps: Any = 1e-8, mu_dtype: Any = None, *,
    nesterov: bool = True, adaptive: bool = False, preconditioning: str = "frobenius",
    weight_dimension_numbers: Any = None,
) -> GradientTransformation:
    """Running means of the gradients, each matrix orthogonalised.

    With `adaptive`, times its inner product with the mean. Raises ValueError for coefficients of another shape than 3
    or n × 3.
    """

    def init(params: Any) -> MuonState:
        coefficients = lnp.asarray(ns_coeffs, lnp.float32)
        if coefficients.ndim == 2 and coefficients.shape[0] > ns_steps:
            raise ValueError(f"muon: {coefficients.shape[0]} rows of coefficients are too many for {ns_steps} steps")
        return MuonState(lnp.zeros((), lnp.int32), zeros_like(params, mu_dtype), coefficients)

    def update(updates: Any, state: MuonState, params: Any = None) -> tuple[Any, MuonState]:
        count = increment(state.count)
        mu = update_moment(updates, state.mu, beta, 1)
        mean = nesterov_mean(updates, mu, beta, count) if nesterov else bias_correction(mu, beta, count)

        def orthogonal(x: Any, numbers: Any) -> Any:
            found = orthogonalize_via_newton_schulz(x, state.ns_coeffs, ns_steps, preconditioning, eps, numbers)
            return lnp.sum(lnp.conj(x) * found) * found if adaptive else found

        steps = _for_each(orthogonal, mean, weight_dimension_numbers)
        return steps, MuonState(count, cast(mu, mu_dtype), state.ns_coeffs)

    return GradientTransformation(init, update)


def scale_by_shape(weight_dimension_numbers: Any = None, consistent_rms: Any = None) -> GradientTransformation:
    """Updates times √max(1, outputs / inputs), or with `consistent_rms` times that and √max(inputs, outputs)."""

    def scaled(update: Any, numbers: MuonDimensionNumbers | None) -> Any:
        held = numbers or MuonDimensionNumbers()
        inputs, outputs = (math.prod(update.shape[axis] for axis in _axes(axes, update.ndim)) for axes in held)
        if consistent_rms is None:
            return math.sqrt(max(1.0, outputs / inputs)) * update
        return math.sqrt(max(inputs, outputs)) * consistent_rms * update

    return stateless(lambda updates, params: _for_each(scaled, updates, weight_dimension_numbers))


def muon_labels(numbers: Any, params: Any) -> Any:
    """"muon" for each parameter that has dimension numbers, "adam" for those that have None."""
    return _spread_numbers(numbers, params, lambda held: "adam" if held is None else "muon")


def numbers_of_each(numbers: Any, params: Any) -> Any:
    """The dimension numbers of each parameter, from a tree of them that may end above."""
    return _spread_numbers(numbers, params, lambda held: held)


def _spread_numbers(numbers: Any, params: Any, value: Callable[[Any], Any]) -> Any:
    def filled(held: Any, part: Any) -> Any:
        return pytree.map(lambda leaf: value(held), part)

    return pytree.map(filled, numbers, params, is_leaf=lambda part: part is None or is_dimension_numbers(part))
