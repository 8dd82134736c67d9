"""Rotary position embeddings (Su et al. 2021): queries and keys turn by angles that grow with their position.

`scaling` has the names and meanings of Hugging Face's configurations ("rope_scaling", "rope_parameters"): models that
were trained on short sequences take lower frequencies to read longer ones.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["RotaryFrequencies", "apply_rotary", "rotary_frequencies"]


@dataclass(frozen=True)
class RotaryFrequencies:
    """Radians per position for each pair of features, and a factor on queries and keys."""

    frequencies: tuple[float, ...]
    factor: float = 1.0

    @property
    def features(self) -> int:
        """How many features of a head turn."""
        return 2 * len(self.frequencies)


def rotary_frequencies(
    features: int, base: float = 10000.0, scaling: Mapping[str, Any] | None = None
) -> RotaryFrequencies:
    """base^(-2i / features) for each pair i, scaled.

    `scaling` is None or has a "rope_type" (or "type") of default, linear, llama3 or yarn, and that type's settings.
    Raises ValueError for an odd number of features, or another type.
    """
    if features < 2 or features % 2:
        raise ValueError(f"rotary_frequencies: features come in pairs, got {features}")
    plain = base ** -(np.arange(0, features, 2, dtype=np.float64) / features)
    settings = dict(scaling or {})
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind not in _SCALINGS:
        raise ValueError(f"rotary_frequencies: no rope_type {kind!r}; there are {', '.join(_SCALINGS)}")
    frequencies, factor = _SCALINGS[kind](plain, base, settings)
    return RotaryFrequencies(tuple(frequencies.tolist()), factor)


_Scaled = tuple[np.ndarray, float]


def _default(plain: np.ndarray, base: float, settings: Mapping[str, Any]) -> _Scaled:
    return plain, 1.0


def _linear(plain: np.ndarray, base: float, settings: Mapping[str, Any]) -> _Scaled:
    """Positions are divided by the factor (Chen et al. 2023)."""
    return plain / settings["factor"], 1.0


def _llama3(plain: np.ndarray, base: float, settings: Mapping[str, Any]) -> _Scaled:
    """Long waves are stretched, short ones kept, and those between are mixed (Llama 3.1)."""
    low, high = settings["low_freq_factor"], settings["high_freq_factor"]
    turns = settings["original_max_position_embeddings"] * plain / (2 * np.pi)
    mixed = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - mixed) * plain / settings["factor"] + mixed * plain, 1.0


def _yarn(plain: np.ndarray, base: float, settings: Mapping[str, Any]) -> _Scaled:
    """Features that turn often in the original length keep their frequency; the factor is Peng et al. 2023, eq. 22."""
    factor, length = settings["factor"], settings["original_max_position_embeddings"]
    pairs = len(plain)

    def pair_of(turns: float) -> float:
        return 2 * pairs * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair_of(settings.get("beta_fast") or 32), pair_of(settings.get("beta_slow") or 1)
    if settings.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * pairs - 1)
    stretched = np.clip((np.arange(pairs) - low) / max(high - low, 1e-3), 0, 1)
    attention = settings.get("attention_factor")
    if attention is None:
        scale, of_all = settings.get("mscale") or 1.0, settings.get("mscale_all_dim")
        attention = _yarn_scale(factor, scale) / (_yarn_scale(factor, of_all) if of_all else 1.0)
    return plain * (1 - stretched) + plain / factor * stretched, float(attention)


def _yarn_scale(factor: float, scale: float = 1.0) -> float:
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


_SCALINGS: dict[str, Callable[[np.ndarray, float, Mapping[str, Any]], _Scaled]] = {
    "default": _default,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}


def apply_rotary(
    x: ArrayLike, positions: ArrayLike, frequencies: RotaryFrequencies, *, interleaved: bool = False
) -> Value:
    """`x` [B, T, N, H] with its first features turned by their `positions`, integers [T] or [B, T].

    Pairs are the features i and i + half, as in Hugging Face's models, or with `interleaved` 2i and 2i + 1, as in the
    paper. Features past `frequencies.features` stay. The result has the dtype of `x`; angles are float32.
    """
    given, places = as_value(x), as_value(positions)
    count = frequencies.features
    if given.ndim != 4 or given.shape[-1] < count:
        raise shape_error(f"apply_rotary: x is [B, T, N, H] with H at least {count}, got {given.type}")
    if places.ndim not in (1, 2) or places.shape[-1] != given.shape[1]:
        raise shape_error(f"apply_rotary: positions are [T] or [B, T] for x {given.type}, got {places.type}")
    radians = np.asarray(frequencies.frequencies, np.float32)
    angles = lnp.expand_dims(lnp.astype(places, "float32"), -1) * radians
    angles = lnp.expand_dims(angles if places.ndim == 2 else lnp.expand_dims(angles, 0), 2)
    cosines, sines = lnp.cos(angles) * frequencies.factor, lnp.sin(angles) * frequencies.factor
    turning, rest = given[..., :count], given[..., count:]
    first, second = (turning[..., 0::2], turning[..., 1::2]) if interleaved else _halves(turning)
    turned = (first * cosines - second * sines, second * cosines + first * sines)
    joined = _woven(*turned) if interleaved else lnp.concatenate(turned, axis=-1)
    joined = cast(as_value(joined), given.type.dtype)
    return lnp.concatenate([joined, rest], axis=-1) if rest.shape[-1] else joined


def _halves(x: Value) -> tuple[Value, Value]:
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]


def _woven(first: Value, second: Value) -> Value:
    pairs = lnp.stack([first, second], axis=-1)
    return lnp.reshape(pairs, (*first.shape[:-1], 2 * first.shape[-1]))
