"""How long the registers of the processor are, for drivers that run shaders on it. Vulkan tells only how many lanes a
subgroup has.
"""
from __future__ import annotations

from pathlib import Path

_PROCESSORS = Path("/proc/cpuinfo")  # on Linux
_LONGEST = 512
_USUAL = 256


def register_bits(listed: Path = _PROCESSORS) -> int:
    """The bits of the longest registers: 512 where the system lists a processor's features and AVX-512 is one."""
    try:
        lines = listed.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return _USUAL
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return _LONGEST if "avx512f" in flags else _USUAL
