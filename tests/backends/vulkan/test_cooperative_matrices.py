"""Contractions by cooperative matrices: their shaders, when they are chosen, and what they compute."""
from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from textwrap import dedent
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan import shader_compiler
from lavax.backends.vulkan.brain_floats import BRAIN_FLOATS, with_brain_floats
from lavax.backends.vulkan.emit import contract
from lavax.backends.vulkan.emit.contract_schedule import (
    COOPERATIVE_TILES,
    CooperativeTile,
    SharedTile,
    choose_schedule,
    cooperative_tile,
    fits,
)
from lavax.backends.vulkan.profile import GENERIC_GPU, DeviceProfile, MatrixShape
from lavax.ir import parse
from lavax.ir.types import DTYPES
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emission import dispatch_of, main_of
from tests.backends.vulkan.execution import assert_agrees, backend, backend_with

RANDOM = np.random.default_rng(0)
MATRICES = (MatrixShape("bf16", 16, 16, 16), MatrixShape("f16", 16, 16, 16))
WITH_MATRICES = replace(GENERIC_GPU, matrices=MATRICES, float16=True, storage_16bit=True, memory_model=True)
SMALL = CooperativeTile(32, 16, 16, 2, 1, 1, MatrixShape("bf16", 16, 16, 16), 32)
PRODUCT = """
graph (x: bf16[64,32], w: bf16[32,16]) {
  %0 = dot(x, w) contract=[1]x[0] : bf16[64,16]
  return %0
}
"""


def shader_of(graph: str, tile: CooperativeTile, profile: DeviceProfile = WITH_MATRICES) -> str:
    with patch.object(contract, "choose_schedule", lambda *_: tile):
        return dispatch_of(graph, profile).shader.source
