"""Into how many parts a long sum is split that the kernel of the next rows adds."""
from __future__ import annotations

from dataclasses import replace

import pytest

from lavax.backends.vulkan.emit.contract.parts_for_rows import parts_for_rows
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from tests.backends.vulkan.emit.contract.test_cooperative_matrices import WITH_MATRICES, dot_of

GPU = replace(WITH_MATRICES, shared_memory_bytes=49152)


@pytest.mark.parametrize(
    ("m", "n", "k", "parts"),
    [
        (2048, 1024, 4096, 2),  # 128 tiles, one a processor
        (1576, 768, 3072, 3),
        (1024, 768, 3072, 4),
        (2048, 1024, 3072, 2),
        (1024, 1024, 4096, 4),
        (1576, 1024, 4096, 2),
        (512, 768, 3072, 4),
        (1576, 768, 2304, 3),
        (2048, 1280, 5120, 4),
        (4096, 1024, 4096, 1),  # 256 tiles, two a processor
        (2048, 2048, 5632, 1),
        (2048, 576, 1536, 1),  # short sums: rows read more than is gained
        (1024, 512, 2048, 1),
        (1500, 384, 1536, 1),
        (3200, 256, 1024, 1),
        (1024, 768, 2304, 1),
        (3152, 768, 3072, 1),
        (2048, 1024, 1024, 1),
    ],
)
def test_parts_are_those_that_were_fastest_on_a_gpu(m: int, n: int, k: int, parts: int) -> None:
    """docs/performance/training_bfloat16.md has the times."""
    assert parts_for_rows(dot_of(m, k, n), 0, GPU) == parts


@pytest.mark.parametrize(("beside", "parts"), [(0, 2), (2048 * 1024 * 2047, 2), (2048 * 1024 * 4096, 1)])
def test_a_device_that_others_fill_gains_nothing(beside: int, parts: int) -> None:
    assert parts_for_rows(dot_of(2048, 4096, 1024), beside, GPU) == parts


def test_sums_without_matrices_have_none() -> None:
    assert parts_for_rows(dot_of(2048, 4096, 1024), 0, CPU_DRIVER) == 1
    assert parts_for_rows(dot_of(2048, 4096, 1024), 0, GENERIC_GPU) == 1
    assert parts_for_rows(dot_of(2048, 4096, 1024, ""), 0, GPU) == 1
