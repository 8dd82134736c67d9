"""Notebooks as pages: their texts, their code, and what it printed when it ran last."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def pages(docs: Path) -> dict[str, str]:
    """The Markdown of every notebook below a folder, by its path there, with .md in place of .ipynb."""
    found = sorted(path for path in docs.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
    return {path.relative_to(docs).with_suffix(".md").as_posix(): page_of(path) for path in found}


def page_of(path: Path) -> str:
    """The Markdown of one notebook, with a link to the notebook itself below its title."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title, *others = [_cell(cell) for cell in cells]
    heading, _, first = title.partition("\n")
    return "\n\n".join([heading, f"[Download this page as a notebook]({path.name}){{ download }}", first, *others])


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *(_output(output) for output in cell["outputs"])])


def _output(output: dict[str, Any]) -> str:
    """One output of a cell: text, or a picture."""
    data = output.get("data", {})
    if "image/png" in data:
        return f"![What the cell draws](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output["text"] if output["output_type"] == "stream" else data["text/plain"])
    return f"```text\n{_ESCAPES.sub('', text).rstrip()}\n```"
