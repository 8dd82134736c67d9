"""Fields as functions of coordinates: SIREN by its Laplacian, NeRF with rays through it, and tables by hashes."""
from __future__ import annotations

import math
from itertools import product
from typing import Any


def siren(F: Any, w: Any, points: Any, target: Any, width: int = 256, layers: int = 4, first: float = 30.0) -> Any:
    """Sines of products; the loss is of second derivatives, so that weights get third ones."""
    dimensions = points.shape[1]

    def field(x: Any) -> Any:
        x = F.sin(first * F.linear(x, w("in", width, dimensions), w("in_bias", width)))
        for layer in range(layers - 1):
            x = F.sin(F.linear(x, w(f"l{layer}", width, width), w(f"l{layer}_bias", width)))
        return F.linear(x, w("out", 1, width))[:, 0]

    def slope(axis: int) -> Any:
        return lambda x: F.gradient(field, x)[:, axis]

    laplacian = sum(F.gradient(slope(axis), points)[:, axis] for axis in range(dimensions))
    return F.mean((laplacian / first**2 - target) ** 2)


def _waves(F: Any, x: Any, octaves: int) -> Any:
    """Sines and cosines of the coordinates in the last axis, of doubling frequency."""
    scaled = [x * (math.pi * 2.0**octave) for octave in range(octaves)]
    return F.concatenate([x, *map(F.sin, scaled), *map(F.cos, scaled)], -1)


def nerf(
    F: Any,
    w: Any,
    starts: Any,
    directions: Any,
    colours: Any,
    samples: int = 64,
    width: int = 256,
    octaves: tuple[int, int] = (10, 4),
) -> Any:
    """Rays [r,3], each with samples of a network of eight layers; what is behind others counts less."""
    depth = 2 + 4 * F.wide(F.arange(samples, starts)) / samples
    places = starts[:, None] + directions[:, None] * depth[:, None]
    given = F.cast_as(_waves(F, places, octaves[0]), starts)
    x = given
    for layer in range(8):
        x = F.concatenate([x, given], -1) if layer == 5 else x
        x = F.relu(F.linear(x, w(f"l{layer}", width, x.shape[-1]), w(f"l{layer}_bias", width)))
    density = F.relu(F.linear(x, w("density", 1, width), w("density_bias", 1)))[..., 0] * (4 / samples)
    x = F.linear(x, w("feature", width, width), w("feature_bias", width))
    seen = _waves(F, directions, octaves[1])[:, None] + F.zeros((1, samples, 1), x)
    x = F.concatenate([x, F.cast_as(seen, x)], -1)
    x = F.relu(F.linear(x, w("view", width // 2, x.shape[-1]), w("view_bias", width // 2)))
    colour = F.sigmoid(F.linear(x, w("colour", 3, width // 2), w("colour_bias", 3)))
    before = F.exp(density - F.cumsum(density, 1))
    found = F.sum((before * (1 - F.exp(-density)))[..., None] * colour, 1)
    return F.mean((found - colours) ** 2)


_PRIMES = (1, 2654435761 - (1 << 32), 805459861)


def hashed_field(
    F: Any, w: Any, points: Any, colours: Any, levels: int = 16, entries: int = 1 << 16, width: int = 64
) -> Any:
    """Instant NGP: features of corners around points [n,3] in the unit cube, by hashes, and a perceptron of them."""
    found = []
    for level in range(levels):
        scaled = points * (16 * 1.4**level)
        corner = F.whole(scaled)
        part = scaled - F.cast_as(corner, scaled)
        feature, table = 0, w(f"table{level}", entries, 2)
        for ends in product((0, 1), repeat=3):
            words = [(corner[:, axis] + end) * _PRIMES[axis] for axis, end in enumerate(ends)]
            place = (words[0] ^ words[1] ^ words[2]) & (entries - 1)
            near = [part[:, axis] if end else 1 - part[:, axis] for axis, end in enumerate(ends)]
            feature = feature + (near[0] * near[1] * near[2])[:, None] * F.embedding(place, table)
        found.append(feature)
    x = F.concatenate(found, 1)
    for layer in range(2):
        x = F.relu(F.linear(x, w(f"l{layer}", width, x.shape[1])))
    return F.mean((F.linear(x, w("head", colours.shape[1], width)) - colours) ** 2)
