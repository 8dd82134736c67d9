"""ConvNeXt V2: Woo et al. (2023)."""
from __future__ import annotations

from lavax.models.convolution.convnext import ConvNext, ConvNextV2Config, names
from lavax.models.family import Family

FAMILY = Family(ConvNextV2Config, ConvNext, names("convnextv2"))
