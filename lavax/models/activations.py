"""Activations by the names that published configurations give them."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lavax.nn.activations import gelu, mish, relu, relu6, sigmoid, silu, tanh
from lavax.tracer.values.value import Value

Activation = Callable[[Value], Value]


def quick_gelu(x: Value) -> Value:
    """x · sigmoid(1.702 · x), the approximation of gelu in OpenAI's CLIP. Hendrycks and Gimpel (2016), section 2."""
    return x * sigmoid(1.702 * x)


def relu2(x: Value) -> Value:
    """relu(x)². So et al., "Primer" (2021), section 4.1."""
    positive = relu(x)
    return positive * positive


_TANH_GELU = partial(gelu, approximate=True)

ACTIVATIONS: dict[str, Activation] = {
    "gelu": partial(gelu, approximate=False),
    "gelu_fast": _TANH_GELU,
    "gelu_new": _TANH_GELU,
    "gelu_python": partial(gelu, approximate=False),
    "gelu_pytorch_tanh": _TANH_GELU,
    "mish": mish,
    "quick_gelu": quick_gelu,
    "relu": relu,
    "relu2": relu2,
    "relu6": relu6,
    "sigmoid": sigmoid,
    "silu": silu,
    "swish": silu,
    "tanh": tanh,
}


def activation_of(name: str) -> Activation:
    """The activation that a config.json names. Raises ValueError if lavax has none of that name."""
    if name not in ACTIVATIONS:
        raise ValueError(f"config.json: no activation {name!r}; there are {', '.join(sorted(ACTIVATIONS))}")
    return ACTIVATIONS[name]
