"""Pictures of graphs: the language of Graphviz, and SVG drawn by lavax."""
from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.layered_layout import Layout, layout
from lavax.ir.picture import picture_of

X = lx.ShapeDtype((4, 3), "float32")


def scaled(x: Any) -> Any:
    return lnp.tanh(x) * 2.0, x.sum(1)


def loops(x: Any) -> Any:
    def body(carry: Any, row: Any) -> Any:
        return lx.cond(lnp.sum(carry) > 0, lambda c: c * row, lambda c: c - row, carry), lnp.sum(row)

    last, sums = lx.scan(body, x[0], x)
    return lx.while_loop(lambda y: lnp.max(y) > 1, lambda y: y / 2, last), sums


def derivative(function: Callable[[Any], Any], order: int) -> Callable[[Any], Any]:
    """The derivative by the sum of the elements, of that order."""
    for _ in range(order):
        function = lx.grad(lambda x, inner=function: lnp.sum(inner(x)))
    return function


def test_the_language_of_graphviz() -> None:
    text = lx.trace(scaled)(X).to_dot()
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0].startswith("digraph ") and lines[-1] == "}"
    assert 'n0 [label="x\\nf32[4,3]", shape=ellipse, fillcolor="#e8eef7"];' in lines
    assert any(line.startswith('n2 [label="%2 = multiply(%0, 2.0)\\nf32[4,3]", shape=box') for line in lines)
    assert any('label="%3 = sum(x)\\naxes=[1]\\nf32[4]"' in line for line in lines)
    assert any(line.startswith('n4 [label="return %2, %3"') for line in lines)
    assert lines[-6:-1] == ["n0 -> n1;", "n1 -> n2;", "n0 -> n3;", "n2 -> n4;", "n3 -> n4;"]
    assert text == lx.trace(scaled)(X).to_dot()


def test_loops_and_branches_are_clusters() -> None:
    text = lx.trace(loops)(X).to_dot()
    assert text.count("subgraph cluster_") == 5
    assert text.count("{") == text.count("}")
    for name in ("body", "branches 0", "branches 1", "condition"):
        assert f'label="{name}"' in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("function", [scaled, loops, derivative(lnp.tanh, 3)])
def test_graphviz_draws_it(function: Callable[[Any], Any]) -> None:
    svg = lx.trace(function)(X).to_svg(graphviz=True)
    assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_without_graphviz_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="dot is not on PATH"):
        lx.trace(scaled)(X).to_svg(graphviz=True)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_derivatives_of_any_order_are_drawn(order: int) -> None:
    graph = lx.compile(derivative(lambda x: lnp.tanh(x) * x, order)).lower(X).optimized
    texts = [element.text or "" for element in ElementTree.fromstring(graph.to_svg()).iter() if element.text]
    operations = [node for node in graph.nodes if node.op != "constant"]
    assert sum(" = " in text for text in texts) == len(operations)
    assert graph.to_dot().count(" = ") >= len(operations)


def test_loops_and_branches_are_drawn_inside() -> None:
    graph = lx.trace(loops)(X)
    svg = ElementTree.fromstring(graph.to_svg())
    texts = [element.text for element in svg.iter() if element.text]
    assert {"body", "branches 0", "branches 1", "condition"} <= set(texts)
    boxes = [element for element in svg.iter() if element.tag.endswith("rect")]
    frames = [box for box in boxes if box.get("class") == "frame"]
    assert len(frames) == 5 and len(boxes) - 5 == picture_of(graph).count


def test_text_is_escaped_and_marks_are_shown() -> None:
    from lavax.ir.drawing import svg_of

    with lx.named_scope("a<b>&c"):
        graph = lx.trace(lambda x: x < 1)(X)
    svg = svg_of(graph, {graph.nodes[-1]: "k<0>"})
    assert "k&lt;0&gt;" in svg
    ElementTree.fromstring(svg)


def test_a_picture_refers_to_nothing_outside() -> None:
    svg = lx.trace(scaled)(X).to_svg()
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


# -- the layout ------------------------------------------------------------------------------------------------------


def random_layout(seed: int) -> tuple[list[tuple[float, float]], list[tuple[int, int]], Layout]:
    draw = random.Random(seed)
    count = draw.randrange(1, 40)
    sizes = [(draw.uniform(20, 150), draw.uniform(15, 60)) for _ in range(count)]
    arrows = {(draw.randrange(b), b) for b in range(1, count) for _ in range(draw.randrange(3))}
    return sizes, sorted(arrows), layout(sizes, sorted(arrows))


@pytest.mark.parametrize("seed", range(20))
def test_boxes_do_not_overlap_and_arrows_point_down(seed: int) -> None:
    sizes, arrows, placed = random_layout(seed)
    boxes = [
        (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        for (x, y), (width, height) in zip(placed.centres, sizes, strict=True)
    ]
    for number, (left, top, right, bottom) in enumerate(boxes):
        assert left >= -1e-6 and top >= -1e-6 and right <= placed.width + 1e-6 and bottom <= placed.height + 1e-6
        for other in boxes[:number]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    for (source, target), points in zip(arrows, placed.arrows, strict=True):
        assert points[0] == (placed.centres[source][0], pytest.approx(boxes[source][3]))
        assert points[-1] == (placed.centres[target][0], pytest.approx(boxes[target][1]))
        assert all(upper[1] <= lower[1] for upper, lower in pairwise(points))


def test_a_chain_is_straight() -> None:
    placed = layout([(50.0, 20.0)] * 5, [(number, number + 1) for number in range(4)])
    assert len({round(x, 6) for x, _ in placed.centres}) == 1


def test_two_chains_do_not_cross() -> None:
    placed = layout([(50.0, 20.0)] * 6, [(0, 3), (1, 2), (2, 4), (3, 5)])
    assert (placed.centres[0][0] < placed.centres[1][0]) == (placed.centres[3][0] < placed.centres[2][0])


def test_no_boxes() -> None:
    assert layout([], []) == Layout((), (), 0.0, 0.0)


def test_a_deep_gradient_takes_moderate_time() -> None:
    def deep(x: Any) -> Any:
        for number in range(150):
            x = lnp.tanh(x + number)
        return lnp.sum(x)

    graph = lx.trace(lx.grad(deep))(X)
    start = time.process_time()
    assert graph.to_svg()
    assert time.process_time() - start < 20
