"""The Llama architecture one token at a time, with a cache of fixed size, as CUDA graphs need it."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.models.pytorch.llama import Attention, Llama, rotary_tables, rotated


class Decoding(nn.Module):
    """The token after `token` [1], which has the place `filled` [1] in the cache; both are moved on in place.

    Once the cache is full, its last place is written again and again.
    """

    def __init__(self, model: Llama, places: int, filled: int) -> None:
        super().__init__()
        decoder = model.model
        weight = decoder.embed_tokens.weight
        self.model = model
        first = decoder.layers[0].self_attn
        shape = (len(decoder.layers), 1, first.groups, places, first.head)
        self.keys, self.values = (torch.zeros(shape, dtype=weight.dtype, device=weight.device) for _ in range(2))
        tables = rotary_tables(places, decoder.head, decoder.base, weight.device)
        self.cosines, self.sines = (table.to(weight.dtype) for table in tables)
        self.places = torch.arange(places, device=weight.device)
        self.filled = torch.full((1,), filled, device=weight.device)
        self.token = torch.zeros(1, dtype=torch.long, device=weight.device)

    def forward(self) -> torch.Tensor:
        decoder = self.model.model
        x = decoder.embed_tokens(self.token)[None]
        for number, layer in enumerate(decoder.layers):
            x = x + self._attention(layer.self_attn, layer.input_layernorm(x), number)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        logits = functional.linear(decoder.norm(x)[0, 0], decoder.embed_tokens.weight)
        self.token.copy_(logits.argmax(-1, keepdim=True))
        self.filled.add_(1).clamp_(max=len(self.places) - 1)
        return self.token

    def _attention(self, layer: Attention, x: torch.Tensor, number: int) -> torch.Tensor:
        query, key, value = (
            projected.view(1, 1, -1, layer.head).transpose(1, 2)
            for projected in (layer.q_proj(x), layer.k_proj(x), layer.v_proj(x))
        )
        cosines, sines = self.cosines[self.filled], self.sines[self.filled]
        keys, values = self.keys[number], self.values[number]
        keys.index_copy_(2, self.filled, rotated(key, cosines, sines))
        values.index_copy_(2, self.filled, value)
        mask: Any = (self.places <= self.filled)[None, None, None]
        mixed = functional.scaled_dot_product_attention(
            rotated(query, cosines, sines), keys, values, attn_mask=mask, enable_gqa=True
        )
        return layer.o_proj(mixed.transpose(1, 2).reshape(1, 1, -1))
