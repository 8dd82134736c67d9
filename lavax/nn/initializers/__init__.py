"""Initial weights, as in jax.nn.initializers: functions that make `init(key, shape, dtype)`."""
from lavax.nn.initializers.constants import constant, ones, zeros
from lavax.nn.initializers.distributions import normal, truncated_normal, uniform
from lavax.nn.initializers.initializer import Initializer
from lavax.nn.initializers.orthogonal import delta_orthogonal, orthogonal
from lavax.nn.initializers.variance_scaling import (
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    kaiming_normal,
    kaiming_uniform,
    lecun_normal,
    lecun_uniform,
    variance_scaling,
    xavier_normal,
    xavier_uniform,
)

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
