"""Rotary position embeddings: frequencies, their scalings for long contexts, and the rotation (Su et al. 2021)."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy._core.promotion import averaging
from lavax.tracer.values.value import Value

__all__ = ["SCALINGS", "RotaryFrequencies", "frequencies", "rotate", "tables"]

Layout = Literal["half", "interleaved"]


class RotaryFrequencies(NamedTuple):
    """How fast each pair of elements turns, and what cosines and sines are multiplied by.

    `radians` [pairs] are float32, in radians per position; `attention_factor` is 1 unless a scaling sets it.
    """

    radians: Any
    attention_factor: float = 1.0


class _Rotation(NamedTuple):
    """What a scaling starts from; `settings` are the entries of config.json's "rope_scaling" by name."""

    head_dim: int
    dim: int  # elements of a head that turn
    theta: float
    settings: Mapping[str, Any]
    longest: int | None  # positions that the model is made for
    length: Any  # positions in use, a number or a traced one; None: not known

    @property
    def exponents(self) -> np.ndarray:
        return np.arange(0, self.dim, 2) / self.dim

    @property
    def unscaled(self) -> np.ndarray:
        return np.asarray(self.theta**-self.exponents)

    def setting(self, name: str) -> Any:
        found = self.settings.get(name)
        if found is None:
            raise ValueError(f"rotary.frequencies: the scaling {dict(self.settings)} lacks {name!r}")
        return found

    @property
    def trained(self) -> int:
        """Positions of the training before the context was made longer."""
        found = self.settings.get("original_max_position_embeddings", self.longest)
        if found is None:
            raise ValueError("rotary.frequencies: this scaling needs original_max_position_embeddings")
        return int(found)

    @property
    def factor(self) -> float:
        """How many times longer the context is than in training."""
        given = self.settings.get("factor")
        if given is not None:
            return float(given)
        if self.longest is None:
            raise ValueError("rotary.frequencies: give the scaling a factor, or max_position_embeddings")
        return self.longest / self.trained


def _default(rotation: _Rotation) -> tuple[Any, float]:
    return rotation.unscaled, 1.0


def _linear(rotation: _Rotation) -> tuple[Any, float]:
    """All positions are closer by the factor (Chen et al. 2023)."""
    return rotation.unscaled / float(rotation.setting("factor")), 1.0


def _dynamic(rotation: _Rotation) -> tuple[Any, float]:
    """The base grows with the sequence, from the length of the training on."""
    if rotation.longest is None:
        raise ValueError("rotary.frequencies: the scaling 'dynamic' needs max_position_embeddings")
    factor, longest = float(rotation.setting("factor")), rotation.longest
    if isinstance(rotation.length, Value):
        length: Any = lnp.maximum(cast(rotation.length, float32), float(longest))
    else:
        length = float(longest if rotation.length is None else max(rotation.length, longest))
    growth = factor * length / longest - (factor - 1)
    slower = growth ** (-rotation.exponents * rotation.dim / max(rotation.dim - 2, 1)).astype(np.float32)
    return rotation.unscaled.astype(np.float32) * slower, 1.0


def _llama3(rotation: _Rotation) -> tuple[Any, float]:
    """Slow pairs turn slower by the factor, fast ones as before, with a ramp over those between (Llama 3.1)."""
    factor = float(rotation.setting("factor"))
    low, high = (float(rotation.setting(name)) for name in ("low_freq_factor", "high_freq_factor"))
    turns = rotation.trained * rotation.unscaled / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return rotation.unscaled * (kept + (1 - kept) / factor), 1.0


def _logarithmic(factor: float, slope: float = 1.0) -> float:
    return 1.0 if factor <= 1 else 0.1 * slope * math.log(factor) + 1


def _yarn(rotation: _Rotation) -> tuple[Any, float]:
    """As `_llama3` with a ramp over the pairs' numbers, and flatter attention (Peng et al. 2023, section 3)."""
    settings, factor, dim = rotation.settings, rotation.factor, rotation.dim

    def pair_with(turns: float) -> float:
        """The number of the pair, times 2, that turns so often in the training's positions."""
        return dim * math.log(rotation.trained / (turns * 2 * math.pi)) / (2 * math.log(rotation.theta))

    first, last = pair_with(settings.get("beta_fast") or 32), pair_with(settings.get("beta_slow") or 1)
    if settings.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dim - 1)
    width = (last - first) or 0.001
    slowed = np.clip((np.arange(dim // 2) - first) / width, 0, 1)
    radians = rotation.unscaled * (1 - slowed + slowed / factor)
    if settings.get("attention_factor") is not None:
        return radians, float(settings["attention_factor"])
    slopes = settings.get("mscale"), settings.get("mscale_all_dim")
    if all(slopes):
        above, below = (_logarithmic(factor, float(slope)) for slope in slopes if slope)
        return radians, above / below
    return radians, _logarithmic(factor)


def _longrope(rotation: _Rotation) -> tuple[Any, float]:
    """A factor for each pair, of one list up to the training's length, of another above it (Ding et al. 2024)."""
    short, long = (
        (rotation.unscaled / np.asarray(rotation.setting(name))).astype(np.float32)
        for name in ("short_factor", "long_factor")
    )
    if isinstance(rotation.length, Value):
        radians: Any = lnp.where(rotation.length > rotation.trained, long, short)
    else:
        radians = long if rotation.length is not None and rotation.length > rotation.trained else short
    given = rotation.settings.get("attention_factor")
    if given is not None:
        return radians, float(given)
    factor = rotation.factor
    return radians, 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(rotation.trained))


def _proportional(rotation: _Rotation) -> tuple[Any, float]:
    """The pairs are those of the whole head; the last ones stand still."""
    unscaled = rotation.theta ** -(np.arange(0, rotation.head_dim, 2) / rotation.head_dim)
    turning = np.arange(rotation.head_dim // 2) < rotation.dim // 2
    return np.where(turning, unscaled, 0) / float(rotation.settings.get("factor") or 1), 1.0


# "rope_type" of config.json's "rope_scaling" or "rope_parameters" -> frequencies and attention factor.
SCALINGS: dict[str, Callable[[_Rotation], tuple[Any, float]]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
    "su": _longrope,  # its first name
    "proportional": _proportional,
}


def frequencies(
    head_dim: int,
    theta: float | None = None,
    scaling: Mapping[str, Any] | None = None,
    *,
    partial_rotary_factor: float | None = None,
    max_position_embeddings: int | None = None,
    length: Any = None,
) -> RotaryFrequencies:
    """How fast the pairs of a head turn: pair i by theta^(-2i / dim) radians per position, then scaled.

    `dim` is `head_dim`, or with `partial_rotary_factor` that part of it. `scaling` is "rope_scaling" or
    "rope_parameters" of a Hugging Face config.json: "rope_type" (or "type") is a name in `SCALINGS`, the other entries
    are its settings. "rope_theta" and "partial_rotary_factor" there stand in for arguments that are None; `theta` is
    10000 by default. "dynamic" and "longrope" depend on `length`, the greatest position in use plus 1: a number, or
    traced integers [..., 1], for which the radians are [..., pairs]. Raises ValueError for an unknown scaling, a
    missing setting, or an odd `dim`.
    """
    settings = {} if scaling is None else scaling
    name = settings.get("rope_type", settings.get("type")) or "default"
    if name not in SCALINGS:
        raise ValueError(f"rotary.frequencies: no scaling {name!r}; there are {', '.join(SCALINGS)}")
    base = settings.get("rope_theta") if theta is None else theta
    part = settings.get("partial_rotary_factor") if partial_rotary_factor is None else partial_rotary_factor
    dim = head_dim if part is None else int(head_dim * part)
    if dim < 2 or dim % 2:
        raise ValueError(f"rotary.frequencies: {dim} of {head_dim} elements cannot turn in pairs; the number is even")
    base = 10000.0 if base is None else float(base)
    rotation = _Rotation(head_dim, dim, base, settings, max_position_embeddings, length)
    radians, factor = SCALINGS[name](rotation)
    return RotaryFrequencies(radians if isinstance(radians, Value) else radians.astype(np.float32), factor)


def tables(positions: ArrayLike, frequencies: RotaryFrequencies) -> tuple[Value, Value]:
    """Cosines and sines of the angles at `positions`: integers [..., T] to two arrays float32 [..., T, pairs]."""
    angles = lnp.expand_dims(cast(as_value(positions), float32), -1) * frequencies.radians
    cosines, sines = lnp.cos(angles), lnp.sin(angles)
    factor = frequencies.attention_factor
    return (cosines, sines) if factor == 1 else (cosines * factor, sines * factor)


def rotate(x: ArrayLike, cosines: ArrayLike, sines: ArrayLike, layout: Layout = "half") -> Value:
    """Queries or keys, turned by their positions: [..., T, heads, H] to the same, in the dtype of `x`.

    `cosines` and `sines` are [T, pairs], or with the leading axes of `x`, as `tables` makes them. The first 2·pairs
    elements of a head turn, the rest stays. A pair is elements i and i + pairs in the layout "half" (GPT-NeoX, Llama in
    transformers), elements 2i and 2i + 1 in "interleaved" (the paper, GPT-J). 16-bit floats are computed
    in float32. Raises ShapeError if shapes do not fit, ValueError for another layout.
    """
    value, cosine, sine = as_floating(x), as_value(cosines), as_value(sines)
    pairs = cosine.shape[-1] if cosine.ndim else 0
    _check(value, cosine, sine, pairs)
    wide = cast(value, averaging(value.type.dtype))
    cosine, sine = lnp.expand_dims(cosine, -2), lnp.expand_dims(sine, -2)
    turning = wide if 2 * pairs == wide.shape[-1] else wide[..., : 2 * pairs]
    if layout == "half":
        first, second = turning[..., :pairs], turning[..., pairs:]
        parts = [first * cosine - second * sine, second * cosine + first * sine]
    elif layout == "interleaved":
        by_pair = lnp.reshape(turning, (*turning.shape[:-1], pairs, 2))
        first, second = by_pair[..., 0], by_pair[..., 1]
        turned = lnp.stack([first * cosine - second * sine, second * cosine + first * sine], axis=-1)
        parts = [lnp.reshape(turned, (*turned.shape[:-2], 2 * pairs))]
    else:
        raise ValueError(f"rotary.rotate: the layout is 'half' or 'interleaved', got {layout!r}")
    if 2 * pairs < wide.shape[-1]:
        parts.append(wide[..., 2 * pairs :])
    made = lnp.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
    return cast(made, value.type.dtype)


def _check(x: Value, cosines: Value, sines: Value, pairs: int) -> None:
    if x.ndim < 3:
        raise shape_error(f"rotary.rotate: x is [..., T, heads, H], got {x.type}")
    if cosines.shape != sines.shape or cosines.ndim < 2 or not 0 < 2 * pairs <= x.shape[-1]:
        raise shape_error(
            f"rotary.rotate: cosines and sines are [..., T, pairs] with at most {x.shape[-1] // 2} pairs "
            f"for {x.type}, got {cosines.type} and {sines.type}"
        )
    given, whole = cosines.shape[:-1], x.shape[:-2]
    fits = len(given) <= len(whole) and all(
        one in (1, extent) for one, extent in zip(given[::-1], whole[::-1], strict=False)
    )
    if not fits:
        raise shape_error(f"rotary.rotate: the positions of {cosines.type} are not those of {x.type}")
