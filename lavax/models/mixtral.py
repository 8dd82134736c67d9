"""Mixtral: a decoder of the Llama family with experts in place of feed-forward layers. Jiang et al. (2024)."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.models.family import WRITER, Family
from lavax.models.llama import NAMES, OPTIONAL, Llama
from lavax.models.llama_config import Experts, LlamaConfig
from lavax.nn.modules.mixture_of_experts import MixtureOfExperts
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class MixtralConfig(LlamaConfig):
    """Settings of a decoder with experts, by the names of Mixtral's and Qwen 3's config.json."""

    num_local_experts: int | None = None
    num_experts: int | None = None
    num_experts_per_tok: int = 2
    moe_intermediate_size: int | None = None
    norm_topk_prob: bool | None = None
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] = ()

    def experts_of(self, layer: int) -> Experts | None:
        """The experts of that layer; None: it has one feed-forward layer for all tokens."""
        count = self.num_local_experts or self.num_experts
        if not count:
            raise ValueError("MixtralConfig: num_local_experts or num_experts must say how many experts there are")
        if layer in self.mlp_only_layers or (layer + 1) % self.decoder_sparse_step:
            return None
        normalize = self.model_type == "mixtral" if self.norm_topk_prob is None else self.norm_topk_prob
        return Experts(count, self.moe_intermediate_size or self.intermediate_size, self.num_experts_per_tok, normalize)


class Mixtral(Llama):
    """A `Llama` whose layers have experts; every token's are computed exactly.

    To train it, add `nn.load_balancing_loss(router_logits, config.num_experts_per_tok)` to the loss:

        logits, router_logits = model.routed(ids)
    """

    def routed(self, ids: ArrayLike) -> tuple[Value, Value]:
        """The logits [B, T, vocabulary], and those of the experts in each layer that has some: [layers, B, T, E]."""
        x, routers = self._embedded(ids), []
        rotations = self._rotations(lnp.arange(x.shape[1], dtype="int32"))
        for layer, rotation in zip(self.layers, rotations, strict=True):
            mixed, _ = layer.attention(layer.attention_norm(x), rotation)
            x = x + mixed
            normed = layer.feed_forward_norm(x)
            if isinstance(layer.feed_forward, MixtureOfExperts):
                routers.append(layer.feed_forward.router(normed))
            x = x + layer.feed_forward(normed)
        return self.logits(self.norm(x)), lnp.stack(routers)


def expert_names(router: str, experts: str, gate: str, up: str, down: str) -> Any:
    """The names of a family's tensors; those of experts are numbered."""
    parts = (("gate", gate), ("up", up), ("down", down))
    return (
        (r"\.feed_forward\.router\.", f".{router}."),
        *((rf"\.feed_forward\.{own}$", f".{experts}.*.{name}.weight") for own, name in parts),
        (r"\.feed_forward_norm\.", ".post_attention_layernorm."),
        *NAMES,
    )


FAMILY = Family(
    MixtralConfig,
    Mixtral,
    expert_names("block_sparse_moe.gate", "block_sparse_moe.experts", "w1", "w3", "w2"),
    optional=OPTIONAL,
    adapter_task=WRITER,
)
