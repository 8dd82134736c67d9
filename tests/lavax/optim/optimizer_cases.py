"""Every optimizer and building block with the options that change its numbers, under names that optax shares."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax as lx

# (name, its arguments); of optax's top module unless CONTRIB names it.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"learning_rate": 0.1}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("adam", {"learning_rate": 0.1}),
    ("adam", {"learning_rate": 0.1, "b1": 0.8, "b2": 0.95, "eps": 1e-3, "eps_root": 1e-4, "nesterov": True}),
    ("nadam", {"learning_rate": 0.1}),
    ("adamw", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("adamw", {"learning_rate": 0.1, "weight_decay": 0.1, "mask": {"a": True, "b": {"c": False, "d": True}}}),
    ("nadamw", {"learning_rate": 0.1}),
    ("amsgrad", {"learning_rate": 0.1, "b2": 0.6}),
    ("amsgrad", {"learning_rate": 0.1, "b2": 0.6, "bias_correction_mu": False, "bias_correction_nu": False}),
    ("adamax", {"learning_rate": 0.1}),
    ("adamaxw", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("adabelief", {"learning_rate": 0.1}),
    ("adabelief", {"learning_rate": 0.1, "nesterov": True, "eps": 1e-4, "eps_root": 1e-6}),
    ("adan", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("yogi", {"learning_rate": 0.1}),
    ("radam", {"learning_rate": 0.1, "b2": 0.5}),
    ("radam", {"learning_rate": 0.1, "b2": 0.9, "threshold": 4.0, "nesterov": True}),
    ("radam", {"learning_rate": 0.1}),
    ("lamb", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("novograd", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("optimistic_adam_v2", {"learning_rate": 0.1, "alpha": 0.7, "beta": 0.4}),
    ("sign_sgd", {"learning_rate": 0.1}),
    ("signum", {"learning_rate": 0.1}),
    ("lion", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("lars", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("lars", {"learning_rate": 0.1, "nesterov": True, "trust_coefficient": 0.01, "eps": 0.1}),
    ("fromage", {"learning_rate": 0.1}),
    ("optimistic_gradient_descent", {"learning_rate": 0.1, "alpha": 0.7, "beta": 0.4}),
    ("adagrad", {"learning_rate": 0.1}),
    ("adadelta", {"learning_rate": 0.5, "weight_decay": 0.1}),
    ("adadelta", {}),
    ("rmsprop", {"learning_rate": 0.1}),
    ("rmsprop", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "eps_in_sqrt": False, "initial_scale": 1.0}),
    ("rmsprop", {"learning_rate": 0.1, "centered": True, "bias_correction": True, "decay": 0.7, "eps": 0.1}),
    ("rmsprop", {"learning_rate": 0.1, "bias_correction": True, "momentum": 0.5}),
    ("sm3", {"learning_rate": 0.1}),
    ("adafactor", {"learning_rate": 0.1, "min_dim_size_to_factor": 2}),
    ("adafactor", {"learning_rate": 0.1, "min_dim_size_to_factor": 2, "momentum": 0.9, "weight_decay_rate": 0.01}),
    ("adafactor", {"factored": False, "multiply_by_parameter_scale": False, "clipping_threshold": None}),
    ("muon", {"learning_rate": 0.1}),
    ("muon", {"learning_rate": 0.1, "nesterov": False, "adaptive": True, "weight_decay": 0.1, "ns_steps": 3}),
    ("muon", {"learning_rate": 0.1, "ns_coeffs": "dion", "consistent_rms": 0.2, "adam_learning_rate": 0.01}),
    ("muon", {"learning_rate": 0.1, "preconditioning": "spectral"}),
    ("muon", {"learning_rate": 0.1, "preconditioning": "aol"}),
    ("muon", {"learning_rate": 0.1, "preconditioning": "schatten"}),
    ("scale_by_lion", {"mode": "smooth", "smooth_beta": 2.0}),
    ("scale_by_lion", {"mode": "refined"}),
    ("scale_by_sm3", {"b2": 0.9}),
    ("scale_by_novograd", {"eps_root": 0.1}),
    ("scale_by_param_block_norm", {}),
    ("scale_by_param_block_rms", {"min_scale": 3.0}),
    ("scale_by_trust_ratio", {"min_norm": 2.0, "eps": 0.1}),
    ("add_decayed_weights", {"weight_decay": 0.1}),
    ("ema", {"decay": 0.9}),
    ("ema", {"decay": 0.9, "debias": False}),
    ("trace", {"decay": 0.9, "nesterov": True}),
    ("clip", {"max_delta": 0.5}),
    ("clip_by_block_rms", {"threshold": 0.5}),
    ("clip_by_global_norm", {"max_norm": 1.0}),
    ("adaptive_grad_clip", {"clipping": 0.1}),
    ("adaptive_grad_clip", {"clipping": 0.1, "axis": 0}),
    ("centralize", {}),
    ("normalize_by_update_norm", {"scale_factor": 2.0}),
    ("keep_params_nonnegative", {}),
    ("set_to_zero", {}),
    ("apply_every", {"k": 2}),
]
CONTRIB = frozenset({"muon"})
NAMES = [f"{name}-{number}" for number, (name, _) in enumerate(CASES)]


def start() -> dict[str, Any]:
    """Three arrays, of which two are matrices: one wide, one tall."""
    draw = np.random.default_rng(7).standard_normal
    return {"a": draw((3, 4)).astype("f"), "b": {"c": draw(5).astype("f"), "d": draw((4, 2)).astype("f")}}


def gradients(step: int) -> dict[str, Any]:
    """Of the same structure, of other signs and sizes at each step."""
    draw = np.random.default_rng(100 + step).standard_normal
    size = np.float32(1.5 ** (step - 2))
    shapes = {"a": (3, 4), "b": {"c": (5,), "d": (4, 2)}}
    return lx.tree.map(lambda shape: draw(shape).astype("f") * size, shapes, is_leaf=lambda part: type(part) is tuple)
