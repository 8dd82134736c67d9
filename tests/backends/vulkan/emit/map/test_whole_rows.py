"""Maps over rows of few elements, such as points, of which an invocation has several whole ones on CPU drivers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.backends.vulkan.run.execution import backend
from tests.backends.vulkan.run.loop_agreement import agree

RANDOM = np.random.default_rng(7)


def crossed(x: Any) -> Any:
    return lnp.cross(x[:, :3], lnp.roll(x, 1, 0)[:, -3:])


def turned(x: Any) -> Any:
    return lnp.roll(x, 1, 1) * 2 - x[:, ::-1]


def shifted(x: Any) -> Any:
    """Of rows on both sides, and of none beyond the ends."""
    return lnp.pad(x[1:], ((0, 1), (0, 0)))[:, ::-1] + lnp.pad(x[:-1], ((1, 0), (0, 0))) * x[:, :1]


def joined(x: Any) -> Any:
    parts = [x[:, 1:] * 3, lnp.sin(x[:, :1]) + x[:, -1:]]
    return lnp.concatenate(parts, axis=1)


def stacked(x: Any) -> Any:
    return lnp.stack([x[:, 0] * x[:, 1], x[:, 1] - x[:, 2], x[:, 2] * x[:, 0]], axis=-1)


def chosen(x: Any) -> Any:
    return lnp.where(lnp.arange(x.shape[1]) == 1, x[:, :1], x[:, ::-1]) > x


def from_the_end(x: Any) -> Any:
    """The first row reads the last one, at places that no loop brings."""
    last_first = lnp.reshape(lnp.roll(lnp.reshape(x, (-1,)), x.shape[1]), x.shape)
    return lnp.sin(last_first[:, ::-1] - chosen_or_turned(x))


def chosen_or_turned(x: Any) -> Any:
    return lnp.where(lnp.arange(x.shape[1]) == 1, x, x[:, ::-1])


def gradient(x: Any) -> Any:
    return lx.grad(lambda x: lnp.sum(crossed(x) ** 2))(x)


def batched(x: Any) -> Any:
    return lx.vmap(turned)(lnp.stack([x, x + 1]))


MAPS = {
    "crossed": crossed,
    "turned": turned,
    "shifted": shifted,
    "joined": joined,
    "stacked": stacked,
    "chosen": chosen,
    "from the end": from_the_end,
    "a gradient": gradient,
    "a batch": batched,
}
SHAPES = [(8192, 3), (8195, 3), (2051, 5), (4100, 6), (2047, 7), (70, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_rows_agree(name: str, shape: tuple[int, int]) -> None:
    agree(MAPS[name], RANDOM.normal(size=shape).astype("f"))


@pytest.mark.parametrize("dtype", ["int32", "int8", "float16"])
@pytest.mark.parametrize("rows", [8192, 8195])
def test_other_elements(rows: int, dtype: str) -> None:
    x = RANDOM.integers(-9, 9, (rows, 3)).astype(dtype)
    expected = np.roll(x, 1, 1) * np.asarray(2, dtype) - x[:, ::-1]
    np.testing.assert_array_equal(np.asarray(lx.compile(turned)(x)), expected)


def test_in_a_loop() -> None:
    x = RANDOM.normal(size=(1001, 3)).astype("f")
    agree(lambda x: lx.fori_loop(0, 3, lambda i, x: x * 0.5 + turned(x) / 9, x), x)


def _shader(function: Callable[..., Any], *shape: int) -> str:
    return str(lx.compile(function).lower(lx.ShapeDtype(shape, "float32")).as_text("glsl"))


@pytest.mark.skipif(backend().profile.kind != "cpu", reason="of CPU drivers")
def test_single_elements_are_components_of_vectors() -> None:
    text = _shader(turned, 8192, 3)
    assert "texelFetch(elements" not in text and text.count("texelFetch(vectors0") == 6
    assert text.count("eights1.data[") == 3


@pytest.mark.skipif(backend().profile.kind != "cpu", reason="of CPU drivers")
def test_elements_of_no_known_vectors_are_no_such_rows() -> None:
    text = _shader(lambda x: lnp.repeat(x[::3], 3, 0)[:8192, ::-1] * 2, 8193, 3)
    assert text.count("eights1.data[") == 1


@pytest.mark.skipif(backend().profile.kind != "cpu", reason="of CPU drivers")
def test_rows_in_order_are_no_such_rows() -> None:
    text = _shader(lambda x: x * 2 + 1, 8192, 3)
    assert text.count("eights1.data[") == 1
