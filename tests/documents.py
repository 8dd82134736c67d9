"""The samples in the documentation, and what they are samples of.

A page's Python blocks run one after the other in one namespace. A block that begins with "```text STAGE" shows
`lowered.as_text(STAGE)` of the `lowered` that the blocks before it made, as on a CPU driver, whatever device is at
hand. `python -m tests.documents` writes the samples anew, to be looked at before they are kept.
"""
from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.tracer.values.backend import register

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/dumps.md")
BLOCK = re.compile(r"```(?P<kind>python|text (?P<stage>\w+))\n(?P<body>.*?)```", re.DOTALL)


class ForCpuDriver(VulkanBackend):
    """Lowers for a CPU driver and runs nothing."""

    profile = CPU_DRIVER


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def with_true_samples(page: str) -> str:
    """The text of the page with every sample replaced by what the code gives."""
    names: dict[str, Any] = {}

    def renewed(block: re.Match[str]) -> str:
        if block["stage"] is None:
            with redirect_stdout(StringIO()):
                exec(compile(block["body"], page, "exec"), names)
            return block[0]
        return f"```{block['kind']}\n{names['lowered'].as_text(block['stage']).strip()}\n```"

    before = register(ForCpuDriver)
    try:
        return BLOCK.sub(renewed, read(page))
    finally:
        register(before)


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(with_true_samples(page), encoding="utf-8")
