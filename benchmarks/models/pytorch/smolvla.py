"""SmolVLA's action expert, with the names of lerobot less "model."."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.models.pytorch.llama import FeedForward, RMSNorm, rotary_tables, rotated


class Attention(nn.Module):
    """Of actions to a prefix and to earlier actions; or, with `crosses`, to the projected prefix alone."""

    def __init__(self, config: Any, crosses: bool) -> None:
        super().__init__()
        self.head, self.crosses = config.head_dim, crosses
        queries, keys = config.num_attention_heads * self.head, config.num_key_value_heads * self.head
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=False)
        self.k_proj = nn.Linear(keys if crosses else config.hidden_size, keys, bias=False)
        self.v_proj = nn.Linear(keys if crosses else config.hidden_size, keys, bias=False)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=False)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        length, before = x.shape[1], keys.shape[1]
        cosines, sines = rotary_tables(before + length, self.head, 10000.0, x.device)
        cosines, sines = cosines.to(x.dtype), sines.to(x.dtype)
        query, mask = self._by_head(self.q_proj(x)), None
        if self.crosses:
            key, value = (
                self._by_head(layer(each.flatten(2)))
                for layer, each in ((self.k_proj, keys), (self.v_proj, values))
            )
            query = rotated(query, cosines[:length], sines[:length])
        else:
            key = rotated(self._by_head(self.k_proj(x)), cosines[before:], sines[before:])
            key = torch.cat([keys.transpose(1, 2), key], 2)
            value = torch.cat([values.transpose(1, 2), self._by_head(self.v_proj(x))], 2)
            query = rotated(query, cosines[before:], sines[before:])
            mask = torch.ones(length, before + length, dtype=torch.bool, device=x.device).tril(before)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))

    def _by_head(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(2, (-1, self.head)).transpose(1, 2)


class Layer(nn.Module):
    def __init__(self, config: Any, crosses: bool) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config, crosses)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = FeedForward(config.hidden_size, config.intermediate_size)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), keys, values)
        return x + self.mlp(self.post_attention_layernorm(x))


class SmolVLA(nn.Module):
    """Velocities of noisy actions [B, T, A] at times [B]; keys and values are [layers, B, S, heads, head]."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        hidden = config.hidden_size
        self.periods = config.min_period, config.max_period
        self.state_proj = nn.Linear(config.max_state_dim, config.vlm_hidden_size)  # for the prefix; unused here
        self.action_in_proj = nn.Linear(config.max_action_dim, hidden)
        self.action_time_mlp_in = nn.Linear(2 * hidden, hidden)
        self.action_time_mlp_out = nn.Linear(hidden, hidden)
        self.action_out_proj = nn.Linear(hidden, config.max_action_dim)
        layers = [Layer(config, not config.attends_to_itself(index)) for index in range(config.num_vlm_layers)]
        expert = nn.ModuleDict({"layers": nn.ModuleList(layers), "norm": RMSNorm(hidden, config.rms_norm_eps)})
        self.vlm_with_expert = nn.ModuleDict({"lm_expert": expert})

    def forward(
        self, actions: torch.Tensor, times: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        x = self.action_in_proj(actions)
        shortest, longest = self.periods
        steps = torch.linspace(0, 1, x.shape[-1] // 2, dtype=torch.float64, device=x.device)
        angles = times[:, None] * (2 * math.pi / (shortest * (longest / shortest) ** steps))
        time = torch.cat([angles.sin(), angles.cos()], 1).to(x.dtype)
        x = torch.cat([x, time[:, None].expand_as(x)], 2)
        x = self.action_time_mlp_out(functional.silu(self.action_time_mlp_in(x)))
        expert: Any = self.vlm_with_expert["lm_expert"]
        for layer, *pair in zip(expert["layers"], keys, values, strict=True):
            x = layer(x, *pair)
        return self.action_out_proj(expert["norm"](x))
