"""Refuses kernels that compute in a dtype that the device lacks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.errors import DtypeError
from lavax.ir.types import DType, float64, int64, uint64
from lavax.passes.kernels.kernel import KernelStep

# For each dtype that not every device has: whether a device has it, Vulkan's name of the feature, and a substitute.
_FEATURES: dict[DType, tuple[Callable[[DeviceProfile], bool], str, str]] = {
    float64: (lambda profile: profile.float64, "shaderFloat64", "float32"),
    int64: (lambda profile: profile.int64, "shaderInt64", "int32"),
    uint64: (lambda profile: profile.int64, "shaderInt64", "uint32"),
}


def refuse_missing(step: KernelStep, profile: DeviceProfile) -> None:
    """Raises DtypeError if a kernel computes in a dtype that the device lacks."""
    for kernel in step.kernels:
        for node in (*kernel.graph.inputs, *kernel.graph.nodes):
            if node.dtype not in _FEATURES:
                continue
            exists, member, instead = _FEATURES[node.dtype]
            if not exists(profile):
                raise DtypeError(f"{profile.name} has no {np.dtype(node.dtype.numpy)} ({member}): use {instead}")
