"""Roots of unity on the host, in float64."""
from __future__ import annotations

import math


def unit_root(place: int, count: int) -> complex:
    """exp(2πi·place/count), each part within an ulp: the angle is reduced in integers to at most π/4."""
    quarter, rest = divmod(4 * (place % count), count)
    if 2 * rest <= count:
        angle = math.pi * rest / (2 * count)
        root = complex(math.cos(angle), math.sin(angle))
    else:
        angle = math.pi * (count - rest) / (2 * count)
        root = complex(math.sin(angle), math.cos(angle))
    for _ in range(quarter):
        root = complex(-root.imag, root.real)
    return root
