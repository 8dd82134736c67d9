"""Programs as files: what is wrong with them, the arrays of their inputs, and the text of their graph.

    # device: output 0[] is 1, not 2
    # x0 = [1.0, 2.0]
    graph (x0: f32[2]) {
    …
"""
from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lavax.ir import Graph, parse

FOLDER = Path(__file__).resolve().parent.parent / "regressions"
_ARRAY = re.compile(r"# (?P<name>[\w.]+) = (?P<numbers>\[.*\])")


@dataclass(frozen=True)
class Entry:
    """A file's program. `engine`: where it went wrong."""

    engine: str
    graph: Graph
    arrays: tuple[np.ndarray, ...]


def text_of(engine: str, what: str, graph: Graph, arrays: Sequence[np.ndarray]) -> str:
    lines = [f"# {engine}: {' '.join(what.split())[:300]}"]
    for node, array in zip(graph.inputs, arrays, strict=True):
        lines.append(f"# {node.name} = {array.reshape(-1).tolist()!r}")
    return "\n".join([*lines, str(graph), ""])


def entry_of(text: str) -> Entry:
    """The inverse of `text_of`. An array of which the file says nothing counts up from 0, five times over."""
    lines = text.splitlines()
    given = {found["name"]: ast.literal_eval(found["numbers"]) for line in lines if (found := _ARRAY.fullmatch(line))}
    graph = parse("\n".join(line for line in lines if not line.startswith("#")))
    arrays = []
    for node in graph.inputs:
        numbers = np.array(given[node.name]) if node.name in given else np.arange(node.type.size) % 5
        arrays.append(numbers.astype(node.dtype.numpy).reshape(node.shape))
    return Entry(lines[0].removeprefix("# ").partition(":")[0], graph, tuple(arrays))


def entries() -> dict[str, Path]:
    return {path.stem: path for path in sorted(FOLDER.glob("*.txt"))}
