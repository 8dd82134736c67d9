"""The samples and citations in the documentation, and what they are checked against.

A page's Python blocks run one after the other in one namespace. A block that begins with "```text STAGE" shows
`lowered.as_text(STAGE)` of the `lowered` that the blocks before it made, as on a CPU driver, whatever device is
present. "```text STAGE k1" shows only kernel k1 of that stage; of GLSL, only its `main`.

`python -m tests.documents` writes the samples anew, what blocks print (tests/pages.py), the list of what was tried and
lost (tools/site/rejected.py), and the lines of links to code.
Read the result before you keep it. It then lists the citations that it could not mend.
"""
from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.tracer.values.backend import register
from tests.citations import stale_citations, with_true_lines
from tests.pages import blocks_of, pages, with_true_prints
from tools.site.rejected import INDEX, with_all_sections

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/architecture.md", "docs/dumps.md", "docs/inside/shader.md")
BLOCK = re.compile(r"```(?P<kind>python|text (?P<stage>\w+)(?: (?P<kernel>k\d+))?)\n(?P<body>.*?)```", re.DOTALL)


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
        text = names["lowered"].as_text(block["stage"])
        if block["kernel"] is not None:
            text = kernel_in(text, block["stage"], block["kernel"])
        return f"```{block['kind']}\n{text.strip()}\n```"

    before = register(ForCpuDriver)
    try:
        return BLOCK.sub(renewed, read(page))
    finally:
        register(before)


def kernel_in(text: str, stage: str, kernel: str) -> str:
    """The part of a stage's text that shows one kernel; of GLSL, the function `main`."""
    lines = text.splitlines(keepends=True)
    if stage == "glsl":
        start = lines.index(f"// {kernel}\n")
        start = lines.index("void main() {\n", start)
        return "".join(lines[start : lines.index("}\n", start) + 1])
    starts = [number for number, line in enumerate(lines) if line.startswith("kernel ")]
    (start,) = (number for number in starts if lines[number].split()[1] == kernel)
    end = min((number for number in starts if number > start), default=len(lines))
    return "".join(lines[start:end])


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(with_true_samples(page), encoding="utf-8")
    for page in pages():
        if page not in PAGES and any(block.label in (("printed",), ("message",)) for block in blocks_of(page)):
            (ROOT / page).write_text(with_true_prints(page), encoding="utf-8")
    INDEX.write_text(with_all_sections(INDEX.read_text(encoding="utf-8")), encoding="utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        path.write_text(with_true_lines(path, path.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write("".join(f"{citation}\n" for citation in stale_citations()))
