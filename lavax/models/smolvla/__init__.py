"""SmolVLA's action expert: a robot's next actions, by flow matching."""
from lavax.models.smolvla.config import SMOLVLA_BASE, SmolVLAConfig
from lavax.models.smolvla.expert import Prefix, SmolVLA
from lavax.models.smolvla.flow_matching import denoising, flow_matching_loss, loss, random_times

__all__ = [
    "SMOLVLA_BASE",
    "Prefix",
    "SmolVLA",
    "SmolVLAConfig",
    "denoising",
    "flow_matching_loss",
    "loss",
    "random_times",
]
