"""State spaces: Mamba by an associative scan, S4D by convolutions through spectra."""
from __future__ import annotations

from typing import Any


def mamba(F: Any, w: Any, x: Any, y: Any, layers: int = 4, states: int = 16) -> Any:
    """x[b,t,d]; each layer's inner width is twice that of its input, its steps have rank d/16."""
    width = x.shape[2]
    inner, rank = 2 * width, width // 16
    for layer in range(layers):
        name = f"l{layer}"
        z = F.linear(F.rms_norm(x, w(f"{name}_n_scale", width)), w(f"{name}_in", 2 * inner, width))
        z, gate = z[..., :inner], z[..., inner:]
        each = F.conv1d(F.transpose(z, (0, 2, 1)), w(f"{name}_each", inner, 1, 4), padding=3, groups=inner)
        z = F.silu(F.transpose(each[..., :-3], (0, 2, 1)))
        mixed = F.linear(z, w(f"{name}_mixed", rank + 2 * states, inner))
        b, c = mixed[..., rank : rank + states], mixed[..., rank + states :]
        step = F.linear(mixed[..., :rank], w(f"{name}_step", inner, rank), w(f"{name}_step_bias", inner))
        step = F.softplus(F.wide(step))
        rates = -F.exp(F.wide(w(f"{name}_decay", inner, states)))
        z = F.selective_scan(z, step, rates, b, c) + z * w(f"{name}_skip_scale", inner)
        x = x + F.linear(z * F.silu(gate), w(f"{name}_out", width, inner))
    return F.mean((x - y) ** 2)


def s4d(F: Any, w: Any, x: Any, y: Any, layers: int = 4, states: int = 32) -> Any:
    """x[b,d,t]; the kernel of a channel is as long as the signal, a sum of decaying waves."""
    width, length = x.shape[1:]
    for layer in range(layers):
        name = f"l{layer}"
        rate, turn, real, imaginary = (
            w(f"{name}_{part}", width, states, 1) for part in ("rate", "turn", "real", "imaginary")
        )
        time = F.wide(F.arange(length, x))
        waves = real * F.cos(turn * time) - imaginary * F.sin(turn * time)
        kernel = F.sum(F.exp(-F.exp(rate) * time * 0.01) * waves, 1)
        z = F.irfft(F.rfft(F.wide(x), 2 * length) * F.rfft(kernel, 2 * length), 2 * length)[..., :length]
        z = F.cast_as(z, x)
        z = F.transpose(F.gelu(z + x * w(f"{name}_skip_scale", width, 1)), (0, 2, 1))
        z = F.linear(z, w(f"{name}_out", 2 * width, width), w(f"{name}_out_bias", 2 * width))
        x = x + F.transpose(z[..., :width] * F.sigmoid(z[..., width:]), (0, 2, 1))
    return F.mean((x - y) ** 2)
