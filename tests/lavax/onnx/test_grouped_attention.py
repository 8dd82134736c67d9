"""GroupQueryAttention with its caches, against onnxruntime; rows that it leaves open are not compared."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.lavax.onnx.building import model, node, run_reference

pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")

RNG = np.random.default_rng(31)
HEADS, GROUPS, SIZE = 4, 2, 16
PLACES = (
    "q", "k", "v", "past_key", "past_value", "lengths", "total", "cos", "sin", "places", "bias", "sink", "k_scale",
    "v_scale", "q_norm", "k_norm", "counts",
)  # fmt: skip


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def tokens(batch: int, time: int) -> dict[str, np.ndarray]:
    return {name: normal(batch, time, n * SIZE) for name, n in (("q", HEADS), ("k", GROUPS), ("v", GROUPS))}


def caches(batch: int, room: int) -> dict[str, np.ndarray]:
    return {name: normal(batch, GROUPS, room, SIZE) for name in ("past_key", "past_value")}


def built(given: dict[str, np.ndarray], lengths: list[int], total: int | None, **attributes: Any) -> bytes:
    fixed = {"lengths": np.array(lengths, np.int32), "total": np.array(total or max(lengths) + 1, np.int32)}
    present = {*given, *fixed}
    last = max(PLACES.index(name) for name in present) + 1
    names = " ".join(name if name in present else "-" for name in PLACES[:last])
    kept = given["past_key"].dtype.str[1:] if "past_key" in given else "f4"
    return model(
        [node("GroupQueryAttention", names, "y keys values", domain="com.microsoft", num_heads=HEADS,
              kv_num_heads=GROUPS, **attributes)],
        {name: (value.dtype.str[1:], value.shape) for name, value in given.items()},
        {"y": ("f4", None), "keys": (kept, None), "values": (kept, None)}, fixed, com_microsoft=1,
    )  # fmt: skip


def compare(
    given: dict[str, np.ndarray], lengths: list[int], total: int | None = None,
    rows: Callable[[int], int] | None = None, tolerance: float = 1e-5, **attributes: Any,
) -> None:
    """`rows` of the caches count, by the number of tokens in them; of the result the rows in `counts`."""
    data = built(given, lengths, total, **attributes)
    loaded = lx.onnx.load(data)
    found = loaded(loaded.parameters, **given)
    y, *kept = run_reference(data, given)
    for image, length in enumerate(lengths):
        real = int(given["counts"][image]) if "counts" in given else y.shape[1]
        np.testing.assert_allclose(np.asarray(found["y"])[image, :real], y[image, :real], tolerance, tolerance)
        held = length + 1 if rows is None else rows(length + 1)
        for name, wanted in zip(("keys", "values"), kept, strict=True):
            own = np.asarray(found[name])
            assert (own.shape, own.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(own[image, :, :held], wanted[image, :, :held], tolerance, tolerance)


@pytest.mark.parametrize("attributes", [{"smooth_softmax": 1}, {}, {"softcap": 3.0, "local_window_size": 3}])
def test_a_head_may_look_away(attributes: dict[str, Any]) -> None:
    given = tokens(1, 2) | caches(1, 6)
    compare(given, [7], **attributes)
    sinks = {"sink": normal(HEADS), "bias": normal(1, HEADS, 2, 8)}
    compare(given | ({} if "smooth_softmax" in attributes else sinks), [7], **attributes)


def resident(room: int, window: int) -> Callable[[int], int]:
    """By the operator's documentation."""
    slack = room - window + 1
    return lambda held: held if held <= room else held - slack * -(-(held - room) // slack)


@pytest.mark.parametrize("time, before, room", [(1, 9, 4), (1, 9, 6), (1, 2, 6), (3, 9, 6), (9, 0, 6), (2, 5, 5)])
def test_a_cache_that_holds_a_window(time: int, before: int, room: int) -> None:
    window = {"local_window_size": 4, "sliding_window_cache": 1, "rows": resident(room, 4)}
    given = tokens(1, time) | caches(1, room)
    compare(given, [before + time - 1], **window)
    compare(given | {"bias": normal(1, 1, time, before + time)}, [before + time - 1], **window)


def test_a_window_of_each_sequence_and_rotated_queries() -> None:
    given = tokens(2, 1) | caches(2, 5)
    window = {"local_window_size": 4, "sliding_window_cache": 1, "rows": resident(5, 4)}
    compare(given, [9, 3], **window)
    angle = normal(16, SIZE // 2)
    compare(given | {"cos": np.cos(angle), "sin": np.sin(angle)}, [9, 3], do_rotary=1, **window)


def test_chunks_that_are_filled_up_on_the_right() -> None:
    given = tokens(2, 3) | caches(2, 10) | {"counts": np.array([2, 3], np.int32)}
    compare(given, [6, 4], total=10)
    window = {"local_window_size": 4, "sliding_window_cache": 1, "rows": resident(6, 4)}
    compare(tokens(2, 3) | caches(2, 6) | {"counts": np.array([2, 0], np.int32)}, [8, 4], total=10, **window)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("before", [0, 5])
def test_a_quantised_cache(bits: int, kind: str, before: int) -> None:
    size, time = SIZE * bits // 8, 1 if before else 3
    kept = RNG.integers(0, 256, (2, 1, GROUPS, before, size)).astype(np.uint8)
    kept = kept.view(np.int8) if bits == 8 else kept
    scale = np.full(1, 0.02, "f") if kind == "PER_TENSOR" else 0.01 + 0.02 * RNG.random((1, GROUPS, 1, SIZE), "f")
    given = tokens(1, time) | {"past_key": kept[0], "past_value": kept[1], "k_scale": scale, "v_scale": 2 * scale}
    quantised = {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}
    compare(given, [before + time - 1], tolerance=1e-4, **quantised)


def test_queries_and_keys_are_normalised_by_head_and_have_gradients() -> None:
    given = tokens(1, 2) | {"q_norm": normal(SIZE), "k_norm": normal(SIZE), "sink": normal(HEADS)}
    loaded = lx.onnx.load(built(given, [1], None, qk_norm_epsilon=1e-3))
    plain = lx.onnx.load(built({name: given[name] for name in ("q", "k", "v", "sink")}, [1], None))

    def normed(x: Any, weight: Any, heads: int) -> Any:
        apart = x.reshape(1, 2, heads, SIZE)
        return (apart / lnp.sqrt(lnp.mean(apart**2, axis=-1, keepdims=True) + 1e-3) * weight).reshape(x.shape)

    def by_hand(q: Any) -> Any:
        changed = {"q": normed(q, given["q_norm"], HEADS), "k": normed(given["k"], given["k_norm"], GROUPS)}
        return plain({}, v=given["v"], sink=given["sink"], **changed)["y"]

    w = normal(1, 2, HEADS * SIZE)
    found = lx.value_and_grad(lambda q: 3 * lnp.sum(w * loaded({}, **given | {"q": q})["y"]))(lnp.asarray(given["q"]))
    wanted = lx.value_and_grad(lambda q: 3 * lnp.sum(w * by_hand(q)))(lnp.asarray(given["q"]))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-5)


def test_what_a_cache_needs_is_said_before_it_runs() -> None:
    given = tokens(1, 1) | caches(1, 4)
    for attributes, why in (
        ({"k_quant_type": "PER_TENSOR"}, "needs k_scale"), ({"sliding_window_cache": 1}, "local_window_size"),
        ({"qk_output": 1}, "qk_output"), ({"kv_cache_bit_width": 3}, "must be 4 or 8"),
    ):  # fmt: skip
        with pytest.raises(lx.ONNXError, match=why):
            lx.onnx.load(built(given, [4], None, **attributes))
