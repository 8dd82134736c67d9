"""Graph -> the language of Graphviz; the graphs inside loops and branches are clusters."""
from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from lavax.ir.graph import Graph
from lavax.ir.picture import Box, Picture, picture_of

# The shape and the fill of the boxes of each kind that is not an ordinary operation.
_STYLES = {
    "input": ("ellipse", "#e8eef7"),
    "output": ("ellipse", "#e8eef7"),
    "contraction": ("box", "#fbe3cf"),
    "reduction": ("box", "#f7eec4"),
    "region": ("box", "#e6dcf3"),
    "movement": ("box", "#e4f1e4"),
    "indexing": ("box", "#e4f1e4"),
}
_PLAIN = ("box", "#ffffff")
_HEAD = (
    "digraph graph_of_lavax {",
    '  node [fontname="monospace", fontsize=10, style="filled,rounded", margin="0.12,0.06"];',
    '  edge [arrowsize=0.6, color="#555555"];',
)


def dot_text(graph: Graph) -> str:
    """The graph in the language of Graphviz; the same text on every run."""
    return "\n".join([*_HEAD, *_lines(picture_of(graph), "n", "  "), "}"])


def svg_by_graphviz(graph: Graph) -> str:
    """The graph as SVG, drawn by the program `dot`. Raises RuntimeError if it is not installed or fails."""
    program = shutil.which("dot")
    if program is None:
        raise RuntimeError(
            "to_svg: Graphviz's program dot is not on PATH (Debian and Ubuntu: apt install graphviz); without "
            "graphviz=True lavax draws the graph itself"
        )
    done = subprocess.run([program, "-Tsvg"], input=dot_text(graph), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"to_svg: Graphviz failed: {done.stderr.strip()}")
    return done.stdout


def _lines(picture: Picture, prefix: str, indent: str) -> Iterator[str]:
    for number, box in enumerate(picture.boxes):
        yield f"{indent}{prefix}{number} [{_attributes(box)}];"
        for part, (name, inner) in enumerate(box.inner):
            within = f"{prefix}{number}_{part}_"
            yield f"{indent}subgraph cluster_{within} {{"
            yield f'{indent}  label="{_escaped(name)}"; fontname="monospace"; fontsize=10; color="#999999";'
            yield from _lines(inner, within, f"{indent}  ")
            yield f"{indent}}}"
            yield f"{indent}{within}{len(inner.boxes) - 1} -> {prefix}{number} [style=dashed];"
    for source, target in picture.arrows:
        yield f"{indent}{prefix}{source} -> {prefix}{target};"


def _attributes(box: Box) -> str:
    shape, fill = _STYLES.get(box.kind, _PLAIN)
    label = "\\n".join(map(_escaped, box.lines))
    where = f', tooltip="{_escaped(box.location)}"' if box.location else ""
    return f'label="{label}", shape={shape}, fillcolor="{fill}"{where}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
