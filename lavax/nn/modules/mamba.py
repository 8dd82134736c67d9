"""The Mamba block: a selective state space between linear layers. Gu and Dao (2023)."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.ir.types import float32, int32
from lavax.nn.activations import silu, softplus
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.state_space import selective_scan
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["Mamba", "MambaState"]

# Step sizes at the start: Gu and Dao (2023), section 3.6.
_SHORTEST_STEP, _LONGEST_STEP = 0.001, 0.1


class MambaState(Module):
    """What a block keeps of the tokens so far: the last inputs of its convolution, [B, kernel_size - 1, channels], and
    the state of its recurrence, float32 [B, channels, state_size]."""

    window: Any
    state: Any


class CausalConvolution(Module):
    """Each channel's weighted sum of its last inputs: [B, T, channels] to the same; `weight` [channels, 1, size]."""

    weight: Any
    bias: Any

    def __init__(self, channels: int, size: int, bias: bool, *, key: ArrayLike, dtype: Any) -> None:
        for_weight, for_bias = random.split(key)
        bound = size**-0.5
        self.weight = random.uniform(for_weight, (channels, 1, size), dtype, -bound, bound)
        self.bias = random.uniform(for_bias, (channels,), dtype, -bound, bound) if bias else None

    @property
    def size(self) -> int:
        """How many inputs a sum has."""
        return int(self.weight.shape[-1])

    def __call__(self, x: Value, before: Value) -> Value:
        """`before` [B, size - 1, channels] are the inputs before the first."""
        length = x.shape[1]
        longer = lnp.concatenate([cast(before, x.type.dtype), x], axis=1)
        made: Any = 0 if self.bias is None else self.bias
        for place in range(self.size):
            made = made + longer[:, place : place + length] * self.weight[:, 0, place]
        found: Value = made
        return found

    def window(self, x: Value, before: Value, counts: Value | None) -> Value:
        """The last size - 1 inputs, of the first `counts` [B] in each row."""
        longer = lnp.concatenate([cast(before, x.type.dtype), x], axis=1)
        if counts is None:
            return longer[:, x.shape[1] :]
        places = lnp.expand_dims(counts, 1) + lnp.arange(self.size - 1, dtype="int32")
        return lnp.take_along_axis(longer, lnp.expand_dims(places, 2), axis=1, mode="promise_in_bounds")


class Mamba(Module):
    """Tokens [B, T, features] to the same; each sees those before it through a state that does not grow.

        block = nn.Mamba(256, key=key)
        y = block(x)
        y, state = block.extend(x, block.empty_state(batch))  # more tokens can follow

    There are `expand` · features channels, each with `state_size` numbers of state; `step_rank` is the inner width of
    the layer that computes step sizes, by default features / 16. `log_rates` and `skip` are A and D of the paper, the
    rates as the logarithms of their negatives.
    """

    project_in: Linear
    convolution: CausalConvolution
    select: Linear
    step: Linear
    log_rates: Any
    skip: Any
    project_out: Linear
    features: int = field(static=True)
    state_size: int = field(static=True)
    step_rank: int = field(static=True)

    def __init__(
        self,
        features: int,
        state_size: int = 16,
        kernel_size: int = 4,
        expand: int = 2,
        step_rank: int | None = None,
        bias: bool = False,
        convolution_bias: bool = True,
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        if min(features, state_size, kernel_size, expand) < 1:
            raise ValueError(f"Mamba: {features=}, {state_size=}, {kernel_size=} and {expand=} must be positive")
        channels, rank = expand * features, step_rank or math.ceil(features / 16)
        keys = random.split(key, 6)
        self.project_in = Linear(features, 2 * channels, bias, key=keys[0], dtype=dtype)
        self.convolution = CausalConvolution(channels, kernel_size, convolution_bias, key=keys[1], dtype=dtype)
        self.select = Linear(channels, rank + 2 * state_size, bias=False, key=keys[2], dtype=dtype)
        self.step = Linear(rank, channels, key=keys[3], dtype=dtype).replace(bias=step_bias(channels, keys[4], dtype))
        rates = lnp.log(lnp.arange(1, state_size + 1, dtype=float32))
        self.log_rates = lnp.astype(lnp.broadcast_to(rates, (channels, state_size)), dtype)
        self.skip = lnp.ones(channels, dtype)
        self.project_out = Linear(channels, features, bias, key=keys[5], dtype=dtype)
        self.features, self.state_size, self.step_rank = features, state_size, rank

    def __call__(self, x: ArrayLike) -> Value:
        given = as_value(x)
        return self.extend(given, self.empty_state(given.shape[0] if given.ndim else 0, given.type.dtype))[0]

    def empty_state(self, batch: int, dtype: Any = None) -> MambaState:
        """The state before the first token."""
        channels = self.skip.shape[0]
        kind = self.skip.dtype if dtype is None else dtype
        window = lnp.zeros((batch, self.convolution.size - 1, channels), kind)
        return MambaState(window, lnp.zeros((batch, channels, self.state_size), "float32"))

    def extend(self, x: ArrayLike, state: MambaState, counts: ArrayLike | None = None) -> tuple[Value, MambaState]:
        """The results for T more tokens [B, T, features], and the state after them.

        With `counts` [B], the state is that after so many of the tokens of each row; the others are padding.
        """
        given = as_value(x)
        if given.ndim != 3 or given.shape[-1] != self.features:
            raise shape_error(f"Mamba: x is [B, T, {self.features}], got {given.type}")
        ends = None if counts is None else cast(as_value(counts), int32)
        inner, gate = lnp.split(self.project_in(given), 2, axis=-1)
        window = self.convolution.window(inner, state.window, ends)
        x = silu(self.convolution(inner, state.window))
        steps, inputs, outputs = self._selected(x)
        if ends is not None:
            is_token = lnp.arange(given.shape[1], dtype="int32") < lnp.expand_dims(ends, 1)
            steps = lnp.where(lnp.expand_dims(is_token, 2), steps, 0.0)
        rates = -lnp.exp(cast(as_value(self.log_rates), float32))
        y, last = selective_scan(x, steps, rates, inputs, outputs, cast(as_value(self.skip), float32), state.state)
        return self.project_out(y * silu(gate)), MambaState(cast(window, as_value(state.window).type.dtype), last)

    def _selected(self, x: Value) -> tuple[Value, Value, Value]:
        """Step sizes [B, T, channels] in float32, and what each token writes to the state and reads from it."""
        places = [self.step_rank, self.step_rank + self.state_size]
        step, inputs, outputs = lnp.split(self.select(x), places, axis=-1)
        return softplus(self.step(cast(step, float32))), inputs, outputs


def step_bias(channels: int, key: ArrayLike, dtype: Any) -> Value:
    """Biases whose softplus are step sizes, uniformly drawn on a logarithmic scale."""
    drawn = random.uniform(key, (channels,), "float32", math.log(_SHORTEST_STEP), math.log(_LONGEST_STEP))
    steps = lnp.exp(drawn)
    return lnp.astype(steps + lnp.log(-lnp.expm1(-steps)), dtype)
