"""Steps by accumulated squares or curvature: AdaGrad, AdaDelta, RMSProp, SM3, Adafactor, Sophia, Muon.

In all, `learning_rate` is a number, an array of rank 0, or a schedule of the steps done.
"""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.optim.adam_family import adamw, decays
from lavax.optim.transforms.chaining import sequence
from lavax.optim.transforms.clipping import clip_by_block_rms
from lavax.optim.transforms.decay_and_noise import add_decayed_weights
from lavax.optim.transforms.factored import scale_by_factored_rms
from lavax.optim.transforms.layerwise import scale_by_param_block_rms
from lavax.optim.transforms.masking import of_parameters, partition
from lavax.optim.transforms.mean_squares import (
    scale_by_adadelta,
    scale_by_rms,
    scale_by_rss,
    scale_by_sm3,
    scale_by_stddev,
)
from lavax.optim.transforms.muon import (
    COEFFICIENTS,
    STANDARD,
    MuonDimensionNumbers,
    muon_labels,
    numbers_of_each,
    scale_by_muon,
    scale_by_shape,
)
from lavax.optim.transforms.scaling import scale, scale_by_learning_rate
from lavax.optim.transforms.sophia import scale_by_sophia
from lavax.optim.transforms.traces import ema, trace
from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    identity,
)
from lavax.tracer.pytrees import pytree


def adagrad(
    learning_rate: Any, initial_accumulator_value: float = 0.1, eps: Any = 1e-7
) -> GradientTransformationExtraArgs:
    """AdaGrad (Duchi, Hazan and Singer 2011)."""
    direction = scale_by_rss(initial_accumulator_value, eps)
    return sequence("adagrad", direction, scale_by_learning_rate(learning_rate))


def adadelta(
    learning_rate: Any = None, rho: Any = 0.9, eps: Any = 1e-6, weight_decay: Any = 0.0, weight_decay_mask: Any = None
) -> GradientTransformationExtraArgs:
    """AdaDelta (Zeiler 2012)."""
    return sequence(
        "adadelta",
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_adadelta(rho, eps),
        scale_by_learning_rate(learning_rate),
        needs_params=decays(weight_decay),
    )


def rmsprop(
    learning_rate: Any, decay: Any = 0.9, eps: Any = 1e-8, initial_scale: float = 0.0, eps_in_sqrt: bool = True,
    centered: bool = False, momentum: Any = None, nesterov: bool = False, bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """RMSProp (Tieleman and Hinton 2012), or with `centered` that of Graves 2013.

    PyTorch's is the one with `eps_in_sqrt=False`.
    """
    direction = scale_by_stddev if centered else scale_by_rms
    return sequence(
        "rmsprop",
        direction(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
        identity() if momentum is None else trace(momentum, nesterov),
    )


def sm3(learning_rate: Any, momentum: Any = 0.9) -> GradientTransformationExtraArgs:
    """SM3 (Anil et al. 2019): AdaGrad with memory for rows and columns only."""
    return sequence("sm3", scale_by_sm3(momentum), scale(-learning_rate))


def adafactor(
    learning_rate: Any = None, min_dim_size_to_factor: int = 128, decay_rate: Any = 0.8, decay_offset: Any = 0,
    multiply_by_parameter_scale: bool = True, clipping_threshold: Any = 1.0, momentum: Any = None,
    dtype_momentum: Any = lnp.float32, weight_decay_rate: Any = None, eps: Any = 1e-30, factored: bool = True,
    weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Adafactor (Shazeer and Stern 2018): second moments of matrices as a row and a column. Needs the parameters."""
    parts: list[GradientTransformation] = [
        scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)
    ]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    needs_params = multiply_by_parameter_scale or weight_decay_rate is not None
    return sequence("adafactor", *parts, scale(-1), needs_params=needs_params)


def sophia(
    learning_rate: Any, b1: Any = 0.965, b2: Any = 0.99, eps: Any = 1e-8, weight_decay: Any = 1e-4,
    weight_decay_mask: Any = None, gamma: Any = 0.01, clip_threshold: Any = 1.0, update_interval: int = 10,
    hessian_diagonal_fn: GradientTransformation | None = None, mu_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Sophia (Liu et al. 2023): steps by the Hessian's diagonal. `update` needs the parameters and `obj_fn=`.

    `obj_fn` is the loss as a function of the parameters alone; `hessian_diagonal_fn` is another estimate than
    Hutchinson's.
    """
    direction = scale_by_sophia(
        b1, b2, eps, gamma, clip_threshold, update_interval, hessian_diagonal_fn, mu_dtype
    )
    decay = add_decayed_weights(weight_decay, weight_decay_mask)
    return sequence("sophia", direction, decay, scale_by_learning_rate(learning_rate), needs_params=True)


def muon(
    learning_rate: Any, ns_coeffs: Any = STANDARD, ns_steps: int = 5, beta: Any = 0.95, eps: Any = 1e-8,
    weight_decay: Any = 0.0, weight_decay_mask: Any = None, mu_dtype: Any = None, *, nesterov: bool = True,
    adaptive: bool = False, preconditioning: str = "frobenius", adam_b1: Any = 0.9, adam_b2: Any = 0.999,
    adam_eps_root: Any = 0.0, adam_weight_decay: Any = 0.0, adam_learning_rate: Any = None,
    muon_weight_dimension_numbers: Any = None, consistent_rms: Any = None,
) -> GradientTransformationExtraArgs:
    """Muon (Jordan et al. 2024) for matrices, `adamw` for all other parameters.

    Matrices are [inputs, outputs] unless `muon_weight_dimension_numbers` says otherwise: a tree of
    `MuonDimensionNumbers`, None for parameters of Adam, or a function from parameters to such a tree. `lavax.nn.Linear`
    has [outputs, inputs]. `consistent_rms` scales steps to that root mean square (Liu et al. 2025: 0.2, which suits the
    learning rates of Adam). `ns_coeffs` may also be "standard" or "dion". Raises ValueError for another name.
    """
    if isinstance(ns_coeffs, str) and ns_coeffs not in COEFFICIENTS:
        raise ValueError(f"muon: ns_coeffs must be numbers or one of {', '.join(COEFFICIENTS)}, got {ns_coeffs!r}")
    coefficients = COEFFICIENTS[ns_coeffs] if isinstance(ns_coeffs, str) else ns_coeffs

    def numbers(params: Any) -> Any:
        if muon_weight_dimension_numbers is None:
            return pytree.map(lambda p: MuonDimensionNumbers() if lnp.ndim(p) == 2 else None, params)
        return of_parameters(muon_weight_dimension_numbers, params)

    def numbers_of_matrices(params: Any) -> Any:
        return numbers_of_each(numbers(params), params)

    orthogonal = sequence(
        "muon",
        scale_by_muon(
            coefficients, ns_steps, beta, eps, mu_dtype, nesterov=nesterov, adaptive=adaptive,
            preconditioning=preconditioning, weight_dimension_numbers=numbers_of_matrices,
        ),
        scale_by_shape(numbers_of_matrices, consistent_rms),
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_learning_rate(learning_rate),
        needs_params=decays(weight_decay),
    )
    rest = adamw(
        learning_rate if adam_learning_rate is None else adam_learning_rate, adam_b1, adam_b2, eps, adam_eps_root,
        mu_dtype, adam_weight_decay, nesterov=nesterov,
    )
    return partition({"muon": orthogonal, "adam": rest}, lambda params: muon_labels(numbers(params), params))
