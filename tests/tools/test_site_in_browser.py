"""The documentation's site in a real browser: pages fit their window, nothing fails to load, and the search finds."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.browser import Browser, browser, is_there

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.long, pytest.mark.skipif(not is_there(), reason="needs chromedriver (chromium-driver)")]

# Elements that reach beyond the window although nothing around them scrolls.
BEYOND = """
const scrolls = e => { for (; e; e = e.parentElement) {
  if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true; } return false; };
return [...document.querySelectorAll('.md-content *')].filter(e => e.checkVisibility()
  && e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e)).slice(0, 3).map(e => e.outerHTML.slice(0, 120));
"""
BRIGHTNESS = """
const channels = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number);
return channels.reduce((a, b) => a + b) / 3;
"""
FOUND = "return [...document.querySelectorAll('.md-search-result__article h1')].map(e => e.textContent)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="builds the site: pip install 'lavax[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder


@pytest.fixture(scope="module", params=[420, 1400])
def window(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile"), request.param) as opened:
        yield opened


def test_every_page_fits_its_window_and_loads_all_it_needs(site: Path, window: Browser) -> None:
    """Opened from the disk, without a network."""
    faults = []
    pages = [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    code = [path for path in pages if "source" in path.relative_to(site).parts]  # these are all alike
    for page in (*(path for path in pages if path not in code), *code[::40]):
        window.open(page.as_uri())
        faults += [f"{page.relative_to(site)}: {element}" for element in window.run(BEYOND)]
        faults += [f"{page.relative_to(site)}: {message}" for message in window.messages()]
    assert faults == []


@pytest.mark.parametrize(
    ("words", "page"), [("nan", "NaNError"), ("vmap axis", "VmapAxisError"), ("notebook", "Tutorial")]
)
def test_the_search_finds_pages_from_the_disk(site: Path, window: Browser, words: str, page: str) -> None:
    window.open(f"{(site / 'index.html').as_uri()}?q={words.replace(' ', '+')}")
    titles = window.wait_for(FOUND)
    assert any(title.startswith(page) for title in titles[:4]), titles


def test_it_is_light_or_dark_as_the_reader_wishes(site: Path, tmp_path: Path) -> None:
    found = []
    for dark in (False, True):
        with browser(tmp_path / str(dark), 1000, dark=dark) as opened:
            opened.open((site / "index.html").as_uri())
            found.append(opened.run(BRIGHTNESS))
    light, night = found
    assert light > 240 and night < 60


def test_a_link_to_code_shows_its_line(site: Path, window: Browser) -> None:
    text = (site / "architecture.html").read_text(encoding="utf-8")
    link = re.search(r'href="(source/passes/fuse/fuse.py.html#L(\d+))"', text)
    assert link is not None
    window.open(f"{site.as_uri()}/{link[1]}")
    assert window.run("return document.querySelector(':target').id") == f"L{link[2]}"
    assert "def fuse" in window.run("return document.querySelector(':target').textContent")
