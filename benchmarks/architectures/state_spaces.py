"""State spaces: Mamba by an associative scan, Mamba-2 by products of chunks, S4D by convolutions through spectra."""
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


def duality(F: Any, w: Any, x: Any, y: Any, layers: int = 4, states: int = 64, head: int = 64, chunk: int = 64) -> Any:
    """x[b,t,d]: Mamba-2, whose heads decay as a whole; chunks of tokens by products of matrices, as in attention."""
    batch, length, width = x.shape
    inner, chunks = 2 * width, length // chunk
    heads, channels = inner // head, inner + 2 * states
    for layer in range(layers):
        name = f"l{layer}"
        mixing = w(f"{name}_in", inner + channels + heads, width)
        mixed = F.linear(F.rms_norm(x, w(f"{name}_n_scale", width)), mixing)
        gate, given = mixed[..., :inner], mixed[..., inner : inner + channels]
        each = w(f"{name}_each", channels, 1, 4)
        each = F.conv1d(F.transpose(given, (0, 2, 1)), each, padding=3, groups=channels)
        given = F.wide(F.silu(F.transpose(each[..., :-3], (0, 2, 1)))).reshape(batch, chunks, chunk, -1)
        z, b, c = given[..., :inner], given[..., inner : inner + states], given[..., inner + states :]
        step = F.softplus(F.wide(mixed[..., inner + channels :] + w(f"{name}_step_bias", heads)))
        decay = -F.exp(F.wide(w(f"{name}_decay_bias", heads))) * step
        decay = F.cumsum(F.transpose(decay.reshape(batch, chunks, chunk, heads), (0, 1, 3, 2)), 3)
        terms = (z.reshape(batch, length, heads, head) * step[..., None]).reshape(batch, chunks, chunk, heads, head)
        place = F.arange(chunk, x)
        between = decay[..., :, None] - decay[..., None, :]
        between = F.exp(F.where(place[:, None] >= place, between, -F.inf))
        scores = F.einsum("bkln,bksn->bkls", c, b)[:, :, None] * between
        found = F.einsum("bkhls,bkshp->bklhp", scores, terms)
        ends = F.exp(decay[..., -1:] - decay)
        added = F.einsum("bkshp,bksn,bkhs->bkhpn", terms, b, ends)
        totals = F.cumsum(decay[..., -1], 1)
        number = F.arange(chunks, x)
        before = (totals - decay[..., -1])[:, :, None] - totals[:, None]
        carried = F.exp(F.where((number[:, None] > number)[..., None], before, -F.inf))
        state = F.einsum("bkjh,bjhpn->bkhpn", carried, added)
        found = found + F.einsum("bkln,bkhpn,bkhl->bklhp", c, state, F.exp(decay))
        z = found.reshape(batch, length, inner) + z.reshape(batch, length, inner) * w(f"{name}_skip_scale", inner)
        z = F.rms_norm(F.cast_as(z, x) * F.silu(gate), w(f"{name}_m_scale", inner))
        x = x + F.linear(z, w(f"{name}_out", width, inner))
    return F.mean((x - y) ** 2)
