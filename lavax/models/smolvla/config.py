"""The configuration of SmolVLA."""
from __future__ import annotations

from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import Config

# What lerobot takes from the vision-language model, which its config.json only names.
_BACKBONE = ("vlm_hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "rms_norm_eps")


@dataclass(frozen=True)
class SmolVLAConfig(Config):
    """Settings of lerobot's `smolvla` policies, by the names of config.json, and five of the vision-language model.

    Those five default to SmolVLM2-500M, on which the published policies stand.
    """

    type: str = "smolvla"
    chunk_size: int = 50
    max_state_dim: int = 32
    max_action_dim: int = 32
    num_steps: int = 10
    attention_mode: str = "cross_attn"
    num_expert_layers: int = -1
    num_vlm_layers: int = 16
    self_attn_every_n_layers: int = 2
    expert_width_multiplier: float = 0.75
    min_period: float = 4e-3
    max_period: float = 4.0
    vlm_hidden_size: int = 960
    num_attention_heads: int = 15
    num_key_value_heads: int = 5
    head_dim: int = 64
    rms_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_expert_layers > 0 and self.num_expert_layers != self.num_vlm_layers:
            raise ValueError(
                f"SmolVLAConfig: the expert has a layer for each of num_vlm_layers={self.num_vlm_layers}; "
                f"num_expert_layers={self.num_expert_layers} is another number"
            )
        if self.attention_mode != "cross_attn":
            raise ValueError(f"SmolVLAConfig: attention_mode is 'cross_attn', got {self.attention_mode!r}")

    def to_json(self) -> dict[str, Any]:
        """What config.json holds; without those of the vision-language model that are SmolVLM2-500M's."""
        usual = SmolVLAConfig()
        data = super().to_json()
        return {
            name: value
            for name, value in data.items()
            if name not in _BACKBONE or getattr(self, name) != getattr(usual, name)
        }

    @property
    def hidden_size(self) -> int:
        """The width of the expert."""
        return int(self.vlm_hidden_size * self.expert_width_multiplier)

    @property
    def intermediate_size(self) -> int:
        """The width of the feed-forward layers: 8/3 of the expert's, up to a multiple of 256."""
        return 256 * -(-4 * int(2 * self.hidden_size / 3) // 256)

    def attends_to_itself(self, layer: int) -> bool:
        """Whether actions see each other in a layer; in the others they see the prefix alone."""
        return self.self_attn_every_n_layers > 0 and layer % self.self_attn_every_n_layers == 0


SMOLVLA_BASE = SmolVLAConfig()
