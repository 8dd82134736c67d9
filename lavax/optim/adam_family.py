"""Adam and its kin: steps of about the learning rate per parameter, by running means of its gradient.

In all, `learning_rate` is a number, an array of rank 0, or a schedule of the steps done. States are float32, also for
float16 and bfloat16 parameters; `mu_dtype` is the dtype of the first moment, if another is wanted.
"""
from __future__ import annotations

from functools import partial
from typing import Any

from lavax.optim.transforms.adam import check_shares, scale_by_adam, scale_by_adan, scale_by_amsgrad
from lavax.optim.transforms.adam_variants import scale_by_adamax, scale_by_belief, scale_by_radam, scale_by_yogi
from lavax.optim.transforms.chaining import sequence
from lavax.optim.transforms.decay_and_noise import add_decayed_weights
from lavax.optim.transforms.layerwise import scale_by_novograd, scale_by_trust_ratio
from lavax.optim.transforms.scaling import scale_by_learning_rate
from lavax.optim.transforms.traces import scale_by_optimistic_gradient
from lavax.optim.transforms.transformation import GradientTransformation, GradientTransformationExtraArgs


def decays(weight_decay: Any) -> bool:
    """Whether parameters are needed for the decay of weights."""
    return not (isinstance(weight_decay, (int, float)) and weight_decay == 0)


def _decayed(
    name: str, direction: GradientTransformation, learning_rate: Any, weight_decay: Any, mask: Any
) -> GradientTransformationExtraArgs:
    """A direction plus decayed weights, times the learning rate."""
    rate = scale_by_learning_rate(learning_rate)
    return sequence(
        name, direction, add_decayed_weights(weight_decay, mask), rate, needs_params=decays(weight_decay)
    )


def adam(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None, *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam (Kingma and Ba 2015); with `nesterov` NAdam (Dozat 2016).

    `b1` and `b2`, both in [0, 1), are the shares of the running means of gradient and squared gradient that are kept at
    each step. Raises ValueError for others, TypeError if `update` gets a state that is not from `init`.
    """
    check_shares("adam", b1=b1, b2=b2)
    direction = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    return sequence("adam", direction, scale_by_learning_rate(learning_rate))


def adamw(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None,
    weight_decay: Any = 1e-4, mask: Any = None, *, nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """`adam` with weight decay: at each step parameters shrink by `learning_rate * weight_decay` of themselves.

    Loshchilov and Hutter 2019. Its `update` needs the parameters; `mask`, a tree of booleans or a function from
    parameters to one, says which of them decay. Raises the errors of `adam`, and TypeError without parameters.
    """
    check_shares("adamw", b1=b1, b2=b2)
    direction = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    return _decayed("adamw", direction, learning_rate, weight_decay, mask)


nadam = partial(adam, nesterov=True)
nadamw = partial(adamw, nesterov=True)


def amsgrad(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None,
    bias_correction_mu: bool = True, bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:
    """Adam by the largest second moment so far (Reddi, Kale and Kumar 2018)."""
    direction = scale_by_amsgrad(b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu)
    return sequence("amsgrad", direction, scale_by_learning_rate(learning_rate))


def adamax(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> GradientTransformationExtraArgs:
    """AdaMax (Kingma and Ba 2015, section 7.1): Adam by a decaying maximum."""
    return sequence("adamax", scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adamaxw(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, weight_decay: Any = 1e-4, mask: Any = None
) -> GradientTransformationExtraArgs:
    """`adamax` with the weight decay of `adamw`."""
    return _decayed("adamaxw", scale_by_adamax(b1, b2, eps), learning_rate, weight_decay, mask)


def adabelief(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-16, eps_root: Any = 1e-16, *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """AdaBelief (Zhuang et al. 2020): Adam by the spread of gradients around their mean."""
    direction = scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov)
    return sequence("adabelief", direction, scale_by_learning_rate(learning_rate))


def adan(
    learning_rate: Any, b1: Any = 0.98, b2: Any = 0.92, b3: Any = 0.99, eps: Any = 1e-8, eps_root: Any = 1e-8,
    weight_decay: Any = 0.0, mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Adan (Xie et al. 2022): Adam with Nesterov's step from differences of gradients."""
    return _decayed("adan", scale_by_adan(b1, b2, b3, eps, eps_root), learning_rate, weight_decay, mask)


def yogi(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-3) -> GradientTransformationExtraArgs:
    """Yogi (Zaheer et al. 2018): Adam whose second moment grows at a bounded pace."""
    return sequence("yogi", scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


def radam(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, threshold: Any = 5.0, *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Rectified Adam (Liu et al. 2020): momentum alone until the second moment is known well enough."""
    direction = scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov)
    return sequence("radam", direction, scale_by_learning_rate(learning_rate))


def lamb(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-6, eps_root: Any = 0.0, weight_decay: Any = 0.0,
    mask: Any = None,
) -> GradientTransformationExtraArgs:
    """LAMB (You et al. 2020): `adamw` whose steps are scaled to the norm of each array. Needs the parameters."""
    return sequence(
        "lamb",
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
        needs_params=True,
    )


def novograd(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.25, eps: Any = 1e-6, eps_root: Any = 0.0, weight_decay: Any = 0.0
) -> GradientTransformationExtraArgs:
    """NovoGrad (Ginsburg et al. 2019): momentum over a running norm of each array. Needs the parameters."""
    direction = scale_by_novograd(b1, b2, eps, eps_root, weight_decay)
    return sequence("novograd", direction, scale_by_learning_rate(learning_rate), needs_params=True)


def optimistic_adam_v2(
    learning_rate: Any, *, alpha: Any = 1.0, beta: Any = 1.0, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8,
    eps_root: Any = 0.0, mu_dtype: Any = None, nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """Optimistic Adam (Daskalakis et al. 2018), for games."""
    direction = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    ahead = scale_by_optimistic_gradient(alpha, beta)
    return sequence("optimistic_adam_v2", direction, ahead, scale_by_learning_rate(learning_rate))
