"""Qwen 3 with experts: Mixtral's layer, norms of queries and keys, and some layers without experts."""
from __future__ import annotations

from lavax.models.family import WRITER, Family
from lavax.models.llama import OPTIONAL
from lavax.models.mixtral import Mixtral, MixtralConfig, expert_names

FAMILY = Family(
    MixtralConfig,
    Mixtral,
    expert_names("mlp.gate", "mlp.experts", "gate_proj", "up_proj", "down_proj"),
    optional=OPTIONAL,
    adapter_task=WRITER,
)
