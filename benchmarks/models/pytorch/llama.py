"""The Llama architecture: root-mean-square norms, rotary positions, grouped heads, gated feed-forward layers."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


def rotary_tables(length: int, head: int, base: float, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [length, head], computed in float64."""
    frequencies = base ** -(torch.arange(0, head, 2, dtype=torch.float64, device=device) / head)
    angles = torch.outer(torch.arange(length, dtype=torch.float64, device=device), frequencies).repeat(1, 2)
    return angles.cos(), angles.sin()


def rotated(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """`x` [..., length, head] turned by its position, in halves."""
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat([-second, first], -1) * sines


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, hidden: int, heads: int, groups: int, head: int, context: int | None = None) -> None:
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, head
        self.q_proj = nn.Linear(hidden, heads * head, bias=False)
        self.k_proj = nn.Linear(context or hidden, groups * head, bias=False)
        self.v_proj = nn.Linear(context or hidden, groups * head, bias=False)
        self.o_proj = nn.Linear(heads * head, hidden, bias=False)

    def forward(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        query, key, value = (
            projected.view(batch, length, -1, self.head).transpose(1, 2)
            for projected in (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        )
        mixed = functional.scaled_dot_product_attention(
            rotated(query, cosines, sines), rotated(key, cosines, sines), value, is_causal=True, enable_gqa=True
        )
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, hidden: int, inner: int, heads: int, groups: int, eps: float) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(hidden, eps)
        self.self_attn = Attention(hidden, heads, groups, hidden // heads)
        self.post_attention_layernorm = RMSNorm(hidden, eps)
        self.mlp = FeedForward(hidden, inner)

    def forward(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cosines, sines)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        hidden, eps = config["hidden_size"], config["rms_norm_eps"]
        sizes = config["intermediate_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], hidden)
        self.layers = nn.ModuleList(Layer(hidden, *sizes, eps) for _ in range(config["num_hidden_layers"]))
        self.norm = RMSNorm(hidden, eps)
        self.head, self.base = hidden // config["num_attention_heads"], config["rope_theta"]

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed_tokens(ids)
        tables = rotary_tables(ids.shape[1], self.head, self.base, ids.device)
        cosines, sines = (table.to(x.dtype) for table in tables)
        for layer in self.layers:
            x = layer(x, cosines, sines)
        return self.norm(x)


class Llama(nn.Module):
    """Tokens [batch, length] to logits [batch, length, vocabulary]; the output layer is the table of embeddings."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.model = Decoder(config)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return functional.linear(self.model(ids), self.model.embed_tokens.weight)
