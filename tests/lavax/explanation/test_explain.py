"""Reports of functions: what they hold and how they print."""
from __future__ import annotations

import configparser
import re
from collections.abc import Callable
from functools import partial
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.explanation import stages
from lavax.explanation.arena import Arena
from lavax.explanation.report import ExplainedProgram, Report
from lavax.explanation.stages import stages_of
from tests.documents import ROOT

DRAW = np.random.default_rng(0)
W, X = DRAW.normal(size=(6, 4)).astype("f"), DRAW.normal(size=(20, 6)).astype("f")
HERE = Path(__file__).name


def network(w: Any, x: Any) -> Any:
    hidden = lnp.tanh(x @ w / 2.0)
    return lnp.sum(hidden * hidden) * 1.0


@pytest.fixture(scope="module")
def report() -> Report:
    return lx.explain(lx.grad(network))(W, X)


@pytest.fixture(scope="module")
def program(report: Report) -> ExplainedProgram:
    (found,) = report.programs
    return found


def test_what_is_explained(report: Report) -> None:
    assert report.function == "network" and report.arguments == "w: f32[6,4], x: f32[20,6]"
    assert re.fullmatch(rf".*{HERE}:\d+", report.location)
    assert report.note == ""


def test_every_stage_is_that_of_the_dumps(program: ExplainedProgram) -> None:
    lowered = lx.compile(lx.grad(network)).lower(W, X)
    texts = {stage.name: str(stage.graph) for stage in program.stages}
    assert texts["traced"] == lowered.as_text("ir") and texts["optimized"] == lowered.as_text("optimized")
    assert texts["signs"] == lowered.as_text("prepare:signs") and texts["norms"] == lowered.as_text("prepare")


def test_the_lines_of_a_stage_are_its_graph(program: ExplainedProgram) -> None:
    for before, after in zip(program.stages, program.stages[1:], strict=False):
        assert shown(after, " +") == [line.strip() for line in str(after.graph).splitlines()[1:-1]]
        assert len(shown(after, " -")) == len(before.graph.nodes) + 1
        assert (after.changes == "no change") == (str(before.graph) == str(after.graph))


def shown(stage: stages.Stage, signs: str) -> list[str]:
    return [line.text.strip() for line in stage.lines if line.sign in signs]


def test_lines_inside_loops_are_compared_one_by_one() -> None:
    after = lx.trace(lambda x: lx.fori_loop(0, 4, lambda i, y: lnp.tanh(y) + y, x))(X)
    text = str(after).replace("%3 = add(%2, x1)", "%4 = negate(%2) : f32[20,6]\n    %3 = add(%2, x1)")
    lines = list(stages._compared(lx.ir.parse(text), after))
    assert [(line.sign, line.text.strip()) for line in lines if line.sign != " "] == [
        ("-", "%3 = negate(%2) : f32[20,6]")
    ]


def test_long_graphs_are_compared_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_MOST_PAIRS", 0)
    (program,) = lx.explain(lx.grad(network), times=False)(W, X).programs
    for before, after in zip(program.stages, program.stages[1:], strict=False):
        assert shown(after, " +") == [line.strip() for line in str(after.graph).splitlines()[1:-1]]
        assert len(shown(after, " -")) == len(before.graph.nodes) + 1


def test_kernels_have_costs_times_reasons_and_code(program: ExplainedProgram) -> None:
    text = lx.compile(lx.grad(network)).lower(W, X).as_text("kernels")
    assert [kernel.name for kernel in program.kernels] == re.findall(r"^kernel (\w+)", text, re.MULTILINE)
    for kernel in program.kernels:
        assert kernel.graph in text and kernel.reasons and kernel.schedule
        assert all("#version" in shader for shader in kernel.shaders) and len(kernel.shaders) == len(kernel.groups)
        assert kernel.lines and all(HERE in line for line in kernel.lines)
        assert kernel.time is not None and kernel.time.seconds > 0 and kernel.of_limit is not None
    assert sum(kernel.share or 0 for kernel in program.kernels) == pytest.approx(1)
    assert set(program.kernel_of.values()) == {kernel.name for kernel in program.kernels}


def test_the_rules_that_applied(report: Report) -> None:
    rules = {rule.rule: rule for rule in report.rules}
    assert rules["divide by splat"].count == 1
    assert "x / c -> x * (1/c)" in rules["divide by splat"].meaning
    assert all(HERE in location for location in rules["divide by splat"].locations)
    assert [rule.count for rule in report.rules] == sorted((rule.count for rule in report.rules), reverse=True)


def check_arena(arena: Arena) -> None:
    for number, one in enumerate(arena.buffers):
        assert one.offset >= 0 and one.offset + one.nbytes <= arena.nbytes
        assert 0 <= one.first <= one.last < len(arena.steps)
        for other in arena.buffers[:number]:
            at_once = one.first <= other.last and other.first <= one.last
            assert not at_once or one.offset + one.nbytes <= other.offset or other.offset + other.nbytes <= one.offset
    assert len(arena.live) == len(arena.steps) and max(arena.live, default=0) <= arena.nbytes


def test_memory_over_time(program: ExplainedProgram) -> None:
    assert program.arena.buffers
    check_arena(program.arena)

    def chain(x: Any) -> Any:
        for _ in range(4):
            x = lnp.tanh(x @ x.T) @ x
        return x

    (found,) = lx.explain(lx.grad(lambda x: lnp.sum(chain(x))), times=False)(X).programs
    assert len(found.arena.buffers) > 5
    check_arena(found.arena)


def test_the_report_prints(report: Report) -> None:
    text = str(report)
    for word in ("passes", "kernels", "memory", "rewrites", "of the limit", "limits, measured", "peak", HERE):
        assert word in text
    assert "without effect here: " in text
    assert max(map(len, text.splitlines())) < 200


# -- the page ----------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Whether tags are closed in order; the text, links, ids, and the tags around the word of a shader."""

    EMPTY = frozenset({"meta", "rect", "path", "line"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.tags: set[str] = set()
        self.around_shaders: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        assert not {"src", "onclick", "onload"} & given.keys()
        self.links += [given["href"] or ""] if "href" in given else []
        if given.get("id"):
            assert given["id"] not in self.ids
            self.ids.add(given["id"] or "")
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if "#version" in data:
            self.around_shaders.append([*self.open])


def test_the_page_is_whole_and_refers_to_nothing_outside(report: Report, tmp_path: Path) -> None:
    report.save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text == report.html()
    page = Page(text)
    assert "script" not in page.tags and "link" not in page.tags and "img" not in page.tags
    assert all(link[1:] in page.ids for link in page.links if link.startswith("#"))
    assert all(link.startswith("#") for link in page.links)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "") and "@import" not in text
    assert page.around_shaders and all(tags.count("details") >= 1 for tags in page.around_shaders)


def test_notebooks_show_the_page(report: Report) -> None:
    (frame,) = re.findall(r'<iframe srcdoc="([^"]*)"', report._repr_html_())
    assert unescape(frame) == report.html()


def test_tuned_schedules_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from lavax.backends.vulkan.backend import LoweredGraph

    monkeypatch.setattr(LoweredGraph, "schedule_of", lambda self, kernel: "a tile")
    assert "&#x27;a tile&#x27;" in lx.explain(network, times=False)(W, X).html()


def test_the_page_shows_everything(report: Report) -> None:
    text = " ".join("".join(Page(report.html()).text).split())
    for word in ("network, explained", "Kernels", "Your lines", "Graph", "Passes", "Memory", "Rewrites", "divide"):
        assert word in text
    assert "hidden = lnp.tanh(x @ w / 2.0)" in text  # the source
    assert "= dot(" in text and "void main()" in text
    assert "on the device" in text and "of what the device could do" in text


def test_shaders_that_kernels_share_are_shown_once() -> None:
    def function(x: Any) -> Any:
        for _ in range(6):
            x = lnp.sort(x @ x.T, axis=1)
        return x

    found = lx.explain(function, times=False)(lx.ShapeDtype((8, 8), "float32"))
    shaders = [shader for kernel in found.programs[0].kernels for shader in kernel.shaders]
    page = Page(found.html())
    assert len(page.around_shaders) == len(set(shaders)) < len(shaders)
    assert re.search(r"GLSL: that of k\d", "".join(page.text))


def test_the_style_is_installed() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    pattern = settings["options.package_data"]["lavax.explanation"]
    assert [path.name for path in (ROOT / "lavax" / "explanation").glob(pattern)] == ["page.css"]


def test_a_large_graph_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.explanation.page.MOST_DRAWN", 2)
    assert "too many to be drawn" in lx.explain(network, times=False)(W, X).html()


# -- functions of all kinds -------------------------------------------------------------------------------------


def loops(x: Any) -> Any:
    last, sums = lx.scan(lambda carry, row: (lnp.tanh(carry + row), lnp.sum(carry)), x[0], x)
    return lx.cond(lnp.sum(last) > 0, lambda: lnp.sort(last), lambda: last * 2), sums


@lx.compile(static_argnames="mode")
def with_settings(x: Any, mode: str, scale: Any = 1.0) -> Any:
    return x * scale if mode == "scale" else x + scale


class Model:
    @lx.compile(static_argnums=0)
    def shifted(self, x: Any) -> Any:
        return x + 1


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "name"),
    [
        (loops, (X,), {}, "loops"),
        (with_settings, (X, "scale"), {"scale": 3.0}, "with_settings"),
        (with_settings, (X,), {"mode": "shift"}, "with_settings"),
        (Model().shifted, (X,), {}, "Model.shifted"),
        (partial(network, W), (X,), {}, "partial"),
        (lx.vmap(network, in_axes=(None, 0)), (W, X[None]), {}, "network"),
        (lambda tree: tree["a"] + tree["b"][0], ({"a": X, "b": [2.0]},), {}, "<lambda>"),
    ],
)
def test_functions_of_all_kinds(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> None:
    found = lx.explain(function)(*args, **kwargs)
    assert name in found.function and found.note == ""
    Page(found.html())
    for explained in found.programs:
        check_arena(explained.arena)
        assert explained.kernels and str(found)


def test_shapes_are_enough() -> None:
    found = lx.explain(network)(lx.ShapeDtype(W.shape, "float32"), lx.ShapeDtype(X.shape, "float32"))
    (explained,) = found.programs
    assert explained.profile is None and explained.cost.operations > 0 and explained.memory.peak > 0
    assert "shapes without numbers" in found.note and found.note in str(found) and "on the device" not in found.html()
    Page(found.html())


def test_times_are_left_out_as_asked() -> None:
    assert lx.explain(network, times=False)(W, X).note == "nothing was timed, as asked"


def test_donated_arguments_are_not_donated() -> None:
    x = lx.device_put(X)
    lx.explain(lx.compile(lambda x: x + 1, donate_argnums=0))(x)
    assert np.array_equal(np.asarray(x), X)


def test_a_function_that_computes_nothing() -> None:
    found = lx.explain(lambda x: (x, 2.0))(X)
    assert "nothing is computed" in found.note
    Page(found.html())


def test_a_function_that_calls_the_host() -> None:
    def function(x: Any) -> Any:
        return lx.pure_callback(np.sort, lx.ShapeDtype(x.shape, "float32"), x + 1) * 2

    found = lx.explain(function)(X)
    assert len(found.programs) == 2 and "calls the host" in found.note
    assert "Part 2 of 2" in found.html() and "part 2 of 2" in str(found)
    Page(found.html())


def test_a_backend_without_kernels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from lavax.tracer.values import backend
    from tests.numpy_backend import NumpyBackend

    monkeypatch.setattr(backend, "_factory", NumpyBackend)
    monkeypatch.setattr(backend.in_use, "runtime", None)
    with pytest.raises(TypeError, match="which has no kernels to show"):
        lx.explain(network)(W, X)


def test_nothing_is_watched_unasked() -> None:
    from lavax.passes.simplify import watching

    assert watching._applied.get() is None
    with watching.watched() as applied:
        lx.compile(lambda x: x * 1.0).lower(X)
    assert [each.rule for each in applied] == ["multiply by splat"]
    assert stages_of.__doc__
