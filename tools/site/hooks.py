"""What MkDocs does besides: pages of the reference and of sources, notebooks, links to code, dumps, formulas.

mkdocs.yml names this file. MkDocs calls the functions below by their names.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path

from tools.site import formulas, ir_lexer, notebooks, reference, sources, titles  # noqa: E402

ir_lexer.register()

# A fence as the pages have it: its language, and what tests need to know, such as the stage of a dump.
_FENCE = re.compile(r"^```(?P<language>[\w-]+)(?P<label>(?: [\w./:-]+)+)$", re.MULTILINE)
_GRAPHS = frozenset({"ir", "optimized", "prepare", "kernels", "fusion"})
_DUMPS = _GRAPHS | {"glsl", "spirv"}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are not written by hand."""
    pages = {**reference.pages(), **notebooks.pages(Path(config.docs_dir)), **_pages_of_the_project()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_config(config: Any) -> Any:
    """Puts the pages of a folder where mkdocs.yml names the folder."""
    docs = Path(config.docs_dir)
    errors = [path.relative_to(docs) for path in sorted((docs / "errors").rglob("*.md"))]
    groups = sorted({path.parts[1] for path in errors})
    folders: dict[str, list[Any]] = {
        "errors/": [
            {group.capitalize(): [path.as_posix() for path in errors if path.parts[1] == group]} for group in groups
        ],
        "rejected/": [path.relative_to(docs).as_posix() for path in sorted((docs / "rejected").glob("*.md"))],
        "api/": [{"API": [{_name(path): path} for path in reference.pages_in_order()]}],
    }
    config.nav = _with_folders(config.nav, folders)
    return config


def _with_folders(nav: list[Any], folders: dict[str, list[Any]]) -> list[Any]:
    found: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and entry in folders:
            found += folders[entry]
        elif isinstance(entry, dict):
            found.append({title: _with_folders(under, folders) if isinstance(under, list) else under
                          for title, under in entry.items()})
        else:
            found.append(entry)
    return found


def _name(path: str) -> str:
    return reference.title_of(Path(path).stem)


def _pages_of_the_project() -> dict[str, str]:
    """The pages in the repository's root but README.md, with their links as they are in the folder project/."""
    found = {}
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        found[f"project/{name}"] = text.replace("](docs/", "](../")
    return found


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    place = Path(page.file.src_uri)
    return _FENCE.sub(_fence, titles.with_titles(sources.with_links_to_sources(markdown, place), place))


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    return formulas.with_mathml(html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    return _with_own_worker(output, "../" * (len(Path(page.file.src_uri).parts) - 1))


def on_post_template(output: str, template_name: str, config: Any) -> str:
    return _with_own_worker(output, "/")


def _with_own_worker(output: str, root: str) -> str:
    """The search from the disk needs a stand-in for workers; the theme would load one from elsewhere."""
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{root}assets/worker_in_frame.js")


def on_post_build(config: Any) -> None:
    sources.write_cited(Path(config.site_dir))


def _fence(found: re.Match[str]) -> str:
    """The fence in the form that MkDocs reads; a dump has its stage for a title, and its language's colours."""
    language, label = found["language"], found["label"].strip()
    stage = label.split()[0].partition(":")[0]
    if stage == "in":
        return f'```{language} title="{label.removeprefix("in ")}"'
    if language == "python":
        return "```python"
    if label in ("printed", "message"):
        return f"```{{ .text .{label} .no-copy }}"
    if stage not in _DUMPS:
        return f"```{language}"
    shown = "lavax" if stage in _GRAPHS else "glsl" if stage == "glsl" else "text"
    return f'```{shown} title="{label}"'
