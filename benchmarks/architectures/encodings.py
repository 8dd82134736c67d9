"""A field whose coordinates are looked up in tables by hashes, at several resolutions, as in Instant NGP."""
from __future__ import annotations

from itertools import product
from typing import Any

_PRIMES = (1, 2654435761 - (1 << 32), 805459861)


def hashed_field(
    F: Any, w: Any, points: Any, colours: Any, levels: int = 16, entries: int = 1 << 16, width: int = 64
) -> Any:
    """Points [n,3] within the unit cube; features of the corners around a point, by its distances, to a perceptron."""
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
