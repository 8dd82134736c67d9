"""The documentation's site: it builds without a warning, its links lead somewhere, it loads nothing from elsewhere."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Where pages may lead a reader. Nothing is loaded from there.
OUTSIDE = {"data-apis.org", "arxiv.org", "doi.org", "semver.org", "github.com"}


class Page(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(found["href"])
        elif tag in ("script", "img", "iframe") and "src" in found:
            self.loaded.append(found["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="builds the site: pip install 'lavax[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def broken(pages: dict[Path, Page]) -> Iterator[str]:
    for path, page in pages.items():
        if path.name == "404.html":  # it is shown at any depth, so its links are absolute
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.netloc not in OUTSIDE:
                    yield f"{path}: {link} leads to a place that nobody knows"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{path}: {link} is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path}: {link}: there is no such anchor"


def test_no_link_is_broken(pages: dict[Path, Page]) -> None:
    assert list(broken(pages)) == []
    assert len(pages) > 80


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    from_elsewhere = {
        (path.name, loaded)
        for path, page in pages.items()
        for loaded in page.loaded
        if urlsplit(loaded).netloc or urlsplit(loaded).scheme not in ("", "data")
    }
    assert from_elsewhere == set()


def test_every_fence_is_a_block(pages: dict[Path, Page], site: Path) -> None:
    left = [path for path in pages if "source" not in path.relative_to(site).parts and "```" in path.read_text("utf-8")]
    assert left == []


def test_formulas_are_mathml(site: Path) -> None:
    text = (site / "start" / "tutorial.html").read_text(encoding="utf-8")
    assert "<math" in text and "arithmatex" not in text


def test_links_to_code_lead_to_the_line(site: Path) -> None:
    text = (site / "architecture.html").read_text(encoding="utf-8")
    assert 'href="source/passes/fuse/fuse.py.html#L' in text
    source = (site / "source" / "passes" / "fuse" / "fuse.py.html").read_text(encoding="utf-8")
    assert 'id="L1"' in source


def test_dumps_are_coloured(site: Path) -> None:
    text = (site / "inside" / "shader.html").read_text(encoding="utf-8")
    assert 'class="language-lavax' in text and '<span class="kt">f32</span>' in text


def test_the_reference_has_every_public_name(pages: dict[Path, Page]) -> None:
    from importlib import import_module

    from tools.site.reference import MODULES, public_names

    anchors = {path.stem: page.anchors for path, page in pages.items() if path.parent.name == "api"}
    for page, modules in MODULES.items():
        for module in modules:
            missing = [name for name in public_names(import_module(module)) if f"{module}.{name}" not in anchors[page]]
            assert missing == [], module


def test_search_finds_a_page_for_each_error(site: Path) -> None:
    import lavax as lx

    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    errors = [name for name in lx.__all__ if name.endswith("Error") and name != "LavaxError"]
    assert [name for name in errors if f'"title":"{name}"' not in index] == []
