"""A Fourier neural operator, from one field on a grid to another."""
from __future__ import annotations

from typing import Any


def fourier_operator(F: Any, w: Any, x: Any, y: Any, width: int = 32, kept: int = 16, layers: int = 4) -> Any:
    """Products of channels at the lowest frequencies, and a convolution of size 1 beside them."""
    rows, columns = x.shape[2:]
    x = F.conv2d(x, w("in", width, x.shape[1], 1, 1), w("in_bias", width))
    for layer in range(layers):
        found = F.rfft2(F.wide(x))
        parts = []
        for half, taken in (("low", found[:, :, :kept, :kept]), ("high", found[:, :, -kept:, :kept])):
            weight = [w(f"l{layer}_{half}_{part}", width, width, kept, kept) for part in ("real", "imaginary")]
            parts.append(F.einsum("bixy,ioxy->boxy", taken, F.complex(*map(F.wide, weight))))
        middle = F.zeros((*parts[0].shape[:2], rows - 2 * kept, kept), parts[0])
        mixed = F.concatenate([parts[0], middle, parts[1]], 2)
        rest = F.zeros((*mixed.shape[:3], columns // 2 + 1 - kept), mixed)
        z = F.irfft2(F.concatenate([mixed, rest], 3), (rows, columns))
        z = F.cast_as(z, x) + F.conv2d(x, w(f"l{layer}_by", width, width, 1, 1), w(f"l{layer}_by_bias", width))
        x = F.gelu(z) if layer < layers - 1 else z
    x = F.gelu(F.conv2d(x, w("up", 128, width, 1, 1), w("up_bias", 128)))
    return F.mean((F.conv2d(x, w("out", y.shape[1], 128, 1, 1)) - y) ** 2)
