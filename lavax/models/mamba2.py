"""Mamba-2: Dao and Gu, "Transformers are SSMs" (2024). Mamba with another block."""
from __future__ import annotations

import math
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import Settings
from lavax.models.family import WRITER, Family
from lavax.models.mamba import FAMILY as MAMBA
from lavax.models.mamba import MambaConfig, MambaLanguageModel
from lavax.nn.modules.mamba2 import Mamba2
from lavax.numpy._core.operands import ArrayLike


@dataclass(frozen=True)
class Mamba2Config(MambaConfig):
    """Settings of a `MambaLanguageModel` of `Mamba2` blocks, by the names of its config.json."""

    model_type: str = "mamba2"
    vocab_size: int = 32768
    hidden_size: int = 4096
    num_hidden_layers: int = 64
    state_size: int = 128
    num_heads: int = 128
    head_dim: int = 64
    n_groups: int = 8
    chunk_size: int = 256
    time_step_limit: tuple[Any, Any] | None = None  # None: (0, inf)
    tie_word_embeddings: bool = False
    eos_token_id: int | tuple[int, ...] | None = 2
    pad_token_id: int | None = 1

    @property
    def step_limits(self) -> tuple[float, float]:
        """The shortest and the longest step."""
        if self.time_step_limit is None:
            return 0.0, math.inf
        shortest, longest = map(_number, self.time_step_limit)
        return shortest, longest

    def mixer(self, *, key: ArrayLike, dtype: Any) -> Mamba2:
        """The block of a layer. Raises ValueError if its channels are not `expand` · `hidden_size`."""
        if self.num_heads * self.head_dim != self.expand * self.hidden_size:
            raise ValueError(
                f"Mamba2Config: num_heads={self.num_heads} times head_dim={self.head_dim} must be expand={self.expand} "
                f"times hidden_size={self.hidden_size}"
            )
        return Mamba2(
            self.hidden_size,
            self.state_size,
            self.conv_kernel,
            self.num_heads,
            self.head_dim,
            self.n_groups,
            self.use_bias,
            self.use_conv_bias,
            self.step_limits,
            self.chunk_size,
            self.layer_norm_epsilon,
            key=key,
            dtype=dtype,
        )


def _number(written: Any) -> float:
    """A number, which newer files may write as {"__float__": "Infinity"}."""
    return float(written["__float__"] if isinstance(written, Settings) else written)


FAMILY = Family(
    Mamba2Config,
    MambaLanguageModel,
    (*MAMBA.names, (r"\.mixer\.step_bias$", ".mixer.dt_bias")),
    prepared=MAMBA.prepared,
    optional=MAMBA.optional,
    adapter_task=WRITER,
)
