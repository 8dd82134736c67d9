"""How long the registers of the processor are, as the system lists its features."""
from __future__ import annotations

from pathlib import Path

import pytest

from lavax.backends.vulkan.device.registers import register_bits
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU


@pytest.mark.parametrize(
    ("listed", "bits"),
    [
        ("processor : 0\nflags\t\t: fpu sse2 avx2 avx512f avx512vl\n\nprocessor : 1\nflags : fpu\n", 512),
        ("processor : 0\nvendor_id : avx512f\nflags\t\t: fpu sse2 avx2\n", 256),
        ("processor : 0\nFeatures : fp asimd sve\n", 256),
        ("", 256),
    ],
)
def test_registers_are_as_long_as_the_first_processor_says(listed: str, bits: int, tmp_path: Path) -> None:
    path = tmp_path / "processors"
    path.write_text(listed, encoding="utf-8")
    assert register_bits(path) == bits


def test_a_length_is_assumed_where_no_system_tells(tmp_path: Path) -> None:
    assert register_bits(tmp_path / "none") == CPU_DRIVER.register_bits == 256
    assert CPU_DRIVER.stores_long_words and not GENERIC_GPU.stores_long_words
