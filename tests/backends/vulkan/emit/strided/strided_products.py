"""Products by the tile that shares its shader: on which device, of which numbers, and with operands in which orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from lavax.backends.vulkan.backend import VulkanBackend
from tests.backends.vulkan.run.execution import backend_with

# Which operands are transposed.
ORDERS = ("", "a", "b", "ab")
RANDOM = np.random.default_rng(0)


def cpu_device() -> VulkanBackend:
    """These are schedules of CPU drivers, which any device runs."""
    return backend_with(kind="cpu")


def numbers(*shape: int) -> np.ndarray:
    """Small whole numbers, whose sums of products float32 has exactly."""
    return RANDOM.integers(-3, 4, shape).astype(np.float32)


def product(left: Any, right: Any, order: str) -> Any:
    return (left.T if "a" in order else left) @ (right.T if "b" in order else right)


def operands(m: int, k: int, n: int, order: str) -> tuple[np.ndarray, np.ndarray]:
    return numbers(*((k, m) if "a" in order else (m, k))), numbers(*((n, k) if "b" in order else (k, n)))
