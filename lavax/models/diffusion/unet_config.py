"""The configuration of Stable Diffusion's U-Nets."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import Config
from lavax.models.diffusion.settings import refuse_other_values

# What the blocks of config.json are: whether they attend to the context.
DOWN_BLOCKS = {"CrossAttnDownBlock2D": True, "DownBlock2D": False}
UP_BLOCKS = {"CrossAttnUpBlock2D": True, "UpBlock2D": False}

# Settings of the file that the model has at these values alone.
_FIXED: Mapping[str, tuple[Any, ...]] = {
    "act_fn": ("silu", "swish"),
    "attention_type": ("default",),
    "class_embed_type": (None,),
    "class_embeddings_concat": (False,),
    "conv_in_kernel": (3,),
    "conv_out_kernel": (3,),
    "cross_attention_norm": (None,),
    "dropout": (0,),
    "dual_cross_attention": (False,),
    "encoder_hid_dim_type": (None,),
    "mid_block_scale_factor": (1,),
    "mid_block_type": ("UNetMidBlock2DCrossAttn",),
    "num_class_embeds": (None,),
    "only_cross_attention": (False,),
    "resnet_out_scale_factor": (1,),
    "resnet_skip_time_act": (False,),
    "resnet_time_scale_shift": ("default",),
    "reverse_transformer_layers_per_block": (None,),
    "time_cond_proj_dim": (None,),
    "time_embedding_act_fn": (None,),
    "time_embedding_dim": (None,),
    "time_embedding_type": ("positional",),
    "timestep_post_act": (None,),
}


@dataclass(frozen=True)
class UNetConfig(Config):
    """Settings of a `UNet2DConditionModel`, by the names of its config.json; the defaults are those of diffusers.

    One entry of `block_out_channels`, `down_block_types` and `up_block_types` stands for each resolution, the blocks
    that go up from the lowest. Settings that may differ between resolutions are one number or a tuple of them.
    `attention_head_dim` is the number of heads, which published files misname.
    """

    _class_name: str = "UNet2DConditionModel"
    sample_size: int | None = None
    in_channels: int = 4
    out_channels: int = 4
    center_input_sample: bool = False
    flip_sin_to_cos: bool = True
    freq_shift: int = 0
    down_block_types: tuple[str, ...] = ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",)
    up_block_types: tuple[str, ...] = ("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3
    block_out_channels: tuple[int, ...] = (320, 640, 1280, 1280)
    layers_per_block: int | tuple[int, ...] = 2
    downsample_padding: int = 1
    norm_num_groups: int = 32
    norm_eps: float = 1e-5
    cross_attention_dim: int | tuple[int, ...] = 1280
    transformer_layers_per_block: int | tuple[int, ...] = 1
    attention_head_dim: int | tuple[int, ...] = 8
    use_linear_projection: bool = False
    addition_embed_type: str | None = None
    addition_time_embed_dim: int | None = None
    projection_class_embeddings_input_dim: int | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The configuration of config.json. Raises ValueError for a setting that this model does not have."""
        made = super().from_json(data)
        refuse_other_values(made, _FIXED)
        made.check()
        return made

    def check(self) -> None:
        """Raises ValueError if settings do not fit each other."""
        count = len(self.block_out_channels)
        for name, known in (("down_block_types", DOWN_BLOCKS), ("up_block_types", UP_BLOCKS)):
            types = getattr(self, name)
            if len(types) != count:
                raise ValueError(f"UNetConfig: {name} must name a block for each of {count} resolutions, got {types}")
            unknown = [kind for kind in types if kind not in known]
            if unknown:
                raise ValueError(f"UNetConfig: {name}: {', '.join(unknown)} is not one of {', '.join(known)}")
        added = self.addition_embed_type
        if added not in (None, "text_time"):
            raise ValueError(f"UNetConfig: addition_embed_type is 'text_time' or None, got {added!r}")

    def per_level(self, name: str) -> tuple[int, ...]:
        """A setting for each resolution, from the highest."""
        value = getattr(self, name)
        count = len(self.block_out_channels)
        made = (value,) * count if isinstance(value, int) else tuple(value)
        if len(made) != count:
            raise ValueError(f"UNetConfig: {name} must have an entry for each of {count} resolutions, got {value}")
        return made

    @property
    def time_width(self) -> int:
        """Components of the embedding of a time step."""
        return 4 * self.block_out_channels[0]


STABLE_DIFFUSION_1_5 = UNetConfig(sample_size=64, cross_attention_dim=768)
STABLE_DIFFUSION_XL = UNetConfig(
    sample_size=128,
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    block_out_channels=(320, 640, 1280),
    cross_attention_dim=2048,
    transformer_layers_per_block=(1, 2, 10),
    attention_head_dim=(5, 10, 20),
    use_linear_projection=True,
    addition_embed_type="text_time",
    addition_time_embed_dim=256,
    projection_class_embeddings_input_dim=2816,
)
