"""The Mamba-2 block: a state space of heads, by products of matrices. Dao and Gu (2024)."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.ir.types import float32, int32
from lavax.nn.activations import silu, softplus
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.mamba import CausalConvolution, MambaState, step_bias
from lavax.nn.modules.module import Module, field
from lavax.nn.state_space_duality import state_space_duality
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["Mamba2"]


class GatedRMSNorm(Module):
    """x · silu(gate), divided by the root mean square of each group of channels, times `weight` [channels]."""

    weight: Any
    groups: int = field(static=True)
    eps: float = field(static=True)

    def __init__(self, channels: int, groups: int, eps: float, *, dtype: Any) -> None:
        self.weight = lnp.ones(channels, dtype)
        self.groups, self.eps = groups, eps

    def __call__(self, x: Value, gate: Value) -> Value:
        gated = cast(x, float32) * silu(cast(gate, float32))
        grouped = lnp.reshape(gated, (*x.shape[:-1], self.groups, x.shape[-1] // self.groups))
        squares = lnp.mean(grouped * grouped, axis=-1, keepdims=True)
        normal = lnp.reshape(grouped / lnp.sqrt(squares + self.eps), x.shape)
        made: Value = cast(normal, x.type.dtype) * self.weight
        return made


class Mamba2(Module):
    """Tokens [B, T, features] to the same; each sees those before it through a state that does not grow.

        block = nn.Mamba2(256, key=key)
        y = block(x)
        y, state = block.extend(x, block.empty_state(batch))  # more tokens can follow

    There are `heads` of `head_size` channels each, by default 2 · features / 64 of 64, and each channel has
    `state_size` numbers of state. `groups` divides the heads: those of a group write to their states, and read from
    them, alike. Tokens attend to each other in chunks of up to `chunk`, which changes the speed alone. `log_rates` and
    `skip`, [heads], are A and D of the paper, the rates as the logarithms of their negatives; steps are held within
    `step_limits`.
    """

    project_in: Linear
    convolution: CausalConvolution
    step_bias: Any
    log_rates: Any
    skip: Any
    norm: GatedRMSNorm
    project_out: Linear
    features: int = field(static=True)
    heads: int = field(static=True)
    groups: int = field(static=True)
    state_size: int = field(static=True)
    step_limits: tuple[float, float] = field(static=True)
    chunk: int = field(static=True)

    def __init__(
        self,
        features: int,
        state_size: int = 128,
        kernel_size: int = 4,
        heads: int | None = None,
        head_size: int = 64,
        groups: int = 1,
        bias: bool = False,
        convolution_bias: bool = True,
        step_limits: tuple[float, float] = (0.0, math.inf),
        chunk: int = 256,
        eps: float = 1e-5,
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        count = max(1, 2 * features // head_size) if heads is None else heads
        if min(features, state_size, kernel_size, count, head_size, groups, chunk) < 1 or count % groups:
            raise ValueError(
                f"Mamba2: {features=}, {state_size=}, {kernel_size=}, heads={count}, {head_size=}, {groups=} and "
                f"{chunk=} must be positive, and groups divide heads"
            )
        channels, shared = count * head_size, 2 * groups * state_size
        keys = random.split(key, 4)
        self.project_in = Linear(features, 2 * channels + shared + count, bias, key=keys[0], dtype=dtype)
        self.convolution = CausalConvolution(channels + shared, kernel_size, convolution_bias, key=keys[1], dtype=dtype)
        self.step_bias = step_bias(count, keys[2], dtype)
        self.log_rates = lnp.astype(lnp.log(lnp.arange(1, count + 1, dtype=float32)), dtype)
        self.skip = lnp.ones(count, dtype)
        self.norm = GatedRMSNorm(channels, groups, eps, dtype=dtype)
        self.project_out = Linear(channels, features, bias, key=keys[3], dtype=dtype)
        self.features, self.heads, self.groups, self.state_size = features, count, groups, state_size
        self.step_limits, self.chunk = step_limits, chunk

    def __call__(self, x: ArrayLike) -> Value:
        given = as_value(x)
        return self.extend(given, self.empty_state(given.shape[0] if given.ndim else 0, given.type.dtype))[0]

    @property
    def head_size(self) -> int:
        """The channels of a head."""
        return int(self.norm.weight.shape[0]) // self.heads

    def empty_state(self, batch: int, dtype: Any = None) -> MambaState:
        """The state before the first token: `state` is float32 [B, heads, head_size, state_size]."""
        kind = self.skip.dtype if dtype is None else dtype
        channels = self.convolution.weight.shape[0]
        window = lnp.zeros((batch, self.convolution.size - 1, channels), kind)
        return MambaState(window, lnp.zeros((batch, self.heads, self.head_size, self.state_size), "float32"))

    def extend(self, x: ArrayLike, state: MambaState, counts: ArrayLike | None = None) -> tuple[Value, MambaState]:
        """The results for T more tokens [B, T, features], and the state after them.

        With `counts` [B], the state is that after so many of the tokens of each row; the others are padding.
        """
        given = as_value(x)
        if given.ndim != 3 or given.shape[-1] != self.features:
            raise shape_error(f"Mamba2: x is [B, T, {self.features}], got {given.type}")
        ends = None if counts is None else cast(as_value(counts), int32)
        channels, mixed = self.norm.weight.shape[0], self.convolution.weight.shape[0]
        gate, inner, raw = lnp.split(self.project_in(given), [channels, channels + mixed], axis=-1)
        window = self.convolution.window(inner, state.window, ends)
        y, last = self._scanned(silu(self.convolution(inner, state.window)), self._steps(raw, ends), state.state)
        found = self.project_out(self.norm(y, gate))
        return found, MambaState(cast(window, as_value(state.window).type.dtype), last)

    def _steps(self, raw: Value, ends: Value | None) -> Value:
        """Step sizes [B, T, heads] in float32; 0 for padding."""
        steps = lnp.clip(softplus(cast(raw, float32) + self.step_bias), *self.step_limits)
        if ends is None:
            return steps
        is_token = lnp.arange(raw.shape[1], dtype="int32") < lnp.expand_dims(ends, 1)
        shown: Value = lnp.where(lnp.expand_dims(is_token, 2), steps, 0.0)
        return shown

    def _scanned(self, inner: Value, steps: Value, state: Value) -> tuple[Value, Value]:
        """The state space over tokens [B, T, channels + 2 · groups · state_size]: [B, T, channels], the last state."""
        tokens, channels, shared = inner.shape[:2], self.norm.weight.shape[0], self.groups * self.state_size
        x, inputs, outputs = lnp.split(inner, [channels, channels + shared], axis=-1)
        made, last = state_space_duality(
            lnp.reshape(x, (*tokens, self.heads, self.head_size)),
            steps,
            -lnp.exp(cast(as_value(self.log_rates), float32)),
            lnp.reshape(inputs, (*tokens, self.groups, self.state_size)),
            lnp.reshape(outputs, (*tokens, self.groups, self.state_size)),
            cast(as_value(self.skip), float32),
            state,
            self.chunk,
        )
        return lnp.reshape(made, (*tokens, channels)), last
