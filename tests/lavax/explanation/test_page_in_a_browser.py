"""The page of a report in a real browser: it fits its window, shows what is folded on a click, and loads nothing."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

# Looks at the page, and writes what it sees where --dump-dom shows it.
LOOK = """<script>
const all = s => [...document.querySelectorAll(s)], box = e => e.getBoundingClientRect();
const shader = all('pre').find(e => e.textContent.includes('#version'));
const folded = !shader.checkVisibility();
const beyond = all('body *').filter(e => e.checkVisibility() && box(e).right > innerWidth && !e.closest(
  '.wide,pre,.source,.picture,nav')).map(e => e.outerHTML.slice(0, 80));
for (let e = shader; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
const colours = getComputedStyle(document.body);
const seen = {
  folded, beyond, unfolded: shader.checkVisibility(),
  wide: document.documentElement.scrollWidth - innerWidth,
  picture: box(document.querySelector('.lavax-graph')).height,
  boxes: all('.lavax-graph rect').length,
  overlapping: all('.lavax-graph text').filter(t => { const r = t.parentElement.querySelector('rect');
    return r && t.getBBox().width > r.getBBox().width; }).length,
  arena: box(document.querySelector('.arena')).width,
  sections: all('section').map(e => e.id), loaded: performance.getEntriesByType('resource').length,
  paper: colours.backgroundColor, ink: colours.color,
};
const note = document.createElement('div'); note.id = 'seen'; note.textContent = JSON.stringify(seen);
document.body.append(note);
</script>"""


def step(w: Any, x: Any) -> Any:
    hidden = lnp.tanh(x @ w)
    for _ in range(2):
        hidden = lnp.tanh(hidden @ hidden.T) @ hidden
    return w - 0.1 * lnp.sum(hidden)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    lx.explain(step)(np.ones((5, 4), "f"), np.ones((9, 5), "f")).save(path)
    return path


@pytest.fixture
def open_page(page: Path, tmp_path: Path) -> Callable[..., str]:
    def run(*options: str) -> str:
        looking = tmp_path / "looking.html"
        looking.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{LOOK}</body>"), encoding="utf-8")
        command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        command += ["--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", *options]
        done = subprocess.run([*command, looking.as_uri()], capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    return run


def seen_in(document: str) -> dict[str, Any]:
    found = re.search(r'<div id="seen">(.*?)</div>', document)
    assert found is not None
    seen: dict[str, Any] = json.loads(found[1])
    return seen


@pytest.mark.parametrize("width", [500, 1400])
def test_the_page_fits_and_unfolds(width: int, open_page: Callable[..., str]) -> None:
    seen = seen_in(open_page("--dump-dom", f"--window-size={width},1000"))
    assert seen["beyond"] == [] and seen["wide"] <= 0
    assert seen["folded"] and seen["unfolded"]  # the GLSL is behind a click
    assert seen["picture"] > 100 and seen["boxes"] > 5 and seen["overlapping"] == 0
    assert 0 < seen["arena"] <= width
    assert seen["sections"] == ["summary", "kernels", "lines", "graph", "passes", "memory", "rewrites"]
    assert seen["loaded"] == 0


def test_it_is_light_or_dark_as_the_reader_wishes(open_page: Callable[..., str]) -> None:
    light = seen_in(open_page("--dump-dom"))
    dark = seen_in(open_page("--dump-dom", "--blink-settings=preferredColorScheme=0"))
    assert light["paper"] == "rgb(255, 255, 255)" and brightness(light["ink"]) < 60
    assert brightness(dark["paper"]) < 40 and brightness(dark["ink"]) > 200


def brightness(colour: str) -> float:
    parts = list(map(int, re.findall(r"\d+", colour)[:3]))
    return sum(parts) / len(parts)


def test_it_is_painted(open_page: Callable[..., str], tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    open_page(f"--screenshot={picture}", "--window-size=900,1200")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size > 20_000
