"""Whisper's encoder."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            projected.view(batch, length, self.heads, -1).transpose(1, 2)
            for projected in (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        )
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.out_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.self_attn = Attention(width, heads)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)
        self.final_layer_norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.self_attn_layer_norm(x))
        return x + self.fc2(functional.gelu(self.fc1(self.final_layer_norm(x))))


class WhisperEncoder(nn.Module):
    """Spectrograms [batch, mels, 2·length] to states [batch, length, width]."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, length = config["d_model"], config["max_source_positions"]
        self.conv1 = nn.Conv1d(config["num_mel_bins"], width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(length, width)
        self.embed_positions.requires_grad_(False)
        sizes = config["encoder_attention_heads"], config["encoder_ffn_dim"]
        self.layers = nn.ModuleList(EncoderLayer(width, *sizes) for _ in range(config["encoder_layers"]))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.gelu(self.conv2(functional.gelu(self.conv1(x)))).transpose(1, 2)
        x = x + self.embed_positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)
