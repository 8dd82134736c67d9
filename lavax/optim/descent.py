"""Gradient descent: plain, with momentum, by signs, and scaled to each array's norm.

In all, `learning_rate` is a number, an array of rank 0, or a schedule of the steps done.
"""
from __future__ import annotations

from typing import Any

from lavax.optim.adam_family import decays
from lavax.optim.transforms.chaining import sequence
from lavax.optim.transforms.decay_and_noise import add_decayed_weights, add_noise
from lavax.optim.transforms.layerwise import scale_by_trust_ratio
from lavax.optim.transforms.masking import masked
from lavax.optim.transforms.polyak import scale_by_polyak
from lavax.optim.transforms.scaling import scale, scale_by_learning_rate
from lavax.optim.transforms.signs import scale_by_lion, scale_by_rprop, scale_by_sign
from lavax.optim.transforms.traces import ema, scale_by_optimistic_gradient, trace
from lavax.optim.transforms.transformation import GradientTransformation, GradientTransformationExtraArgs


def sgd(
    learning_rate: Any, momentum: Any = None, nesterov: bool = False, accumulator_dtype: Any = None
) -> GradientTransformation:
    """Gradient descent. With `momentum` m the step is along t, where t = gradient + m · (t of the previous step).

    With `nesterov`, along gradient + m · t (Sutskever et al. 2013). `learning_rate` may be an array, so that it can
    change without a new trace.
    """
    rate = scale_by_learning_rate(learning_rate)
    return rate if momentum is None else sequence("sgd", trace(momentum, nesterov, accumulator_dtype), rate)


def noisy_sgd(
    learning_rate: Any, eta: Any = 0.01, gamma: Any = 0.55, key: Any = 0
) -> GradientTransformationExtraArgs:
    """Gradient descent with noise of variance eta / t^gamma (Neelakantan et al. 2015); `key` is a key or a seed."""
    return sequence("noisy_sgd", add_noise(eta, gamma, key), scale_by_learning_rate(learning_rate))


def sign_sgd(learning_rate: Any) -> GradientTransformationExtraArgs:
    """Steps of the learning rate along the signs of the gradient (Bernstein et al. 2018)."""
    return sequence("sign_sgd", scale_by_sign(), scale_by_learning_rate(learning_rate))


def signum(learning_rate: Any, beta: Any = 0.9, accumulator_dtype: Any = None) -> GradientTransformationExtraArgs:
    """Steps along the signs of the running mean of gradients (Bernstein et al. 2018)."""
    mean = ema(beta, debias=False, accumulator_dtype=accumulator_dtype)
    return sequence("signum", mean, scale_by_sign(), scale_by_learning_rate(learning_rate))


def lion(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None, weight_decay: Any = 1e-3, mask: Any = None
) -> GradientTransformationExtraArgs:
    """Lion (Chen et al. 2023): steps along the sign of a mean of gradient and momentum. Needs the parameters."""
    return sequence(
        "lion",
        scale_by_lion(b1, b2, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
        needs_params=decays(weight_decay),
    )


def lars(
    learning_rate: Any, weight_decay: Any = 0.0, weight_decay_mask: Any = True, trust_coefficient: Any = 0.001,
    eps: Any = 0.0, trust_ratio_mask: Any = True, momentum: Any = 0.9, nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """LARS (You, Gitman and Ginsburg 2017): momentum, scaled to the norm of each array. Needs the parameters."""
    return sequence(
        "lars",
        add_decayed_weights(weight_decay, weight_decay_mask),
        masked(scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps), trust_ratio_mask),
        scale_by_learning_rate(learning_rate),
        trace(momentum, nesterov),
        needs_params=True,
    )


def fromage(learning_rate: Any, min_norm: Any = 1e-6) -> GradientTransformationExtraArgs:
    """Fromage (Bernstein et al. 2020): relative steps, and parameters scaled by 1/√(1 + rate²). Needs them."""

    def shrink(rate: Any) -> Any:
        return 1 / (1 + rate**2) ** 0.5

    rate: Any = lambda count: learning_rate(count) * shrink(learning_rate(count))  # noqa: E731
    decay: Any = lambda count: shrink(learning_rate(count)) - 1  # noqa: E731
    if not callable(learning_rate):
        rate, decay = learning_rate * shrink(learning_rate), shrink(learning_rate) - 1
    return sequence(
        "fromage",
        scale_by_trust_ratio(min_norm),
        scale_by_learning_rate(rate),
        add_decayed_weights(decay),
        needs_params=True,
    )


def optimistic_gradient_descent(
    learning_rate: Any, alpha: Any = 1.0, beta: Any = 1.0
) -> GradientTransformationExtraArgs:
    """Optimistic gradient descent, for games (Mokhtari, Ozdaglar and Pattathil 2019)."""
    ahead = scale_by_optimistic_gradient(alpha, beta)
    return sequence("optimistic_gradient_descent", ahead, scale_by_learning_rate(learning_rate))


def rprop(
    learning_rate: float, eta_minus: Any = 0.5, eta_plus: Any = 1.2, min_step_size: Any = 1e-6,
    max_step_size: Any = 50.0,
) -> GradientTransformationExtraArgs:
    """Rprop (Riedmiller and Braun 1993), for gradients of all the data: steps by signs, of lengths that adapt.

    The first call already takes a step, as in the paper (optax 0.2.8 gives out each step one call late).
    """
    direction = scale_by_rprop(learning_rate, eta_minus, eta_plus, min_step_size, max_step_size)
    return sequence("rprop", direction, scale(-1.0))


def polyak_sgd(
    max_learning_rate: Any = 1.0, scaling: Any = 1.0, f_min: Any = 0.0, eps: Any = 0.0, variant: str = "sps"
) -> GradientTransformationExtraArgs:
    """Polyak's step, (loss - f_min) / ‖gradient‖² (Loizou et al. 2021). `update` needs the loss as `value=`."""
    return sequence("polyak_sgd", sgd(scaling), scale_by_polyak(f_min, max_learning_rate, eps, variant))
