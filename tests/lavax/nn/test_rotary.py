"""Rotary embeddings: frequencies against transformers and recorded values, rotations against complex numbers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import nn
from lavax.base.errors import ShapeError
from lavax.nn import rotary
from tests.lavax.nn.windows import check_derivatives
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

LONG = {"short_factor": [1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75], "long_factor": [1, 2, 3, 4, 5, 6, 7, 8]}
# The scaling's name, its settings, the length in use.
SCALED: list[tuple[str, dict[str, Any], int | None]] = [
    ("linear", {"factor": 4.0}, None),
    ("dynamic", {"factor": 2.0}, None),
    ("dynamic", {"factor": 2.0}, 5000),
    ("llama3", {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 256}, None),
    ("yarn", {"factor": 4.0, "original_max_position_embeddings": 512}, None),
    ("yarn", {"factor": 40.0, "original_max_position_embeddings": 512, "mscale": 1.0, "mscale_all_dim": 0.8,
              "beta_fast": 16, "beta_slow": 2, "truncate": False}, None),
    ("longrope", {**LONG, "original_max_position_embeddings": 512}, 300),
    ("longrope", {**LONG, "original_max_position_embeddings": 512}, 600),
    ("proportional", {"partial_rotary_factor": 0.5}, None),
]  # fmt: skip
# The second, fourth and sixth frequency and the factor, by transformers 5.23.0 in float32, for heads of 16, theta
# 500000 and 2048 positions.
RECORDED = [
    [0.04848069, 0.0018231663, 6.8562047e-05, 1],
    [0.19392276, 0.0072926651, 0.00027424819, 1],
    [0.15975887, 0.004077509, 0.00010406983, 1],
    [0.19392276, 0.00091158313, 3.4281024e-05, 1],
    [0.14544207, 0.0018231663, 6.8562047e-05, 1.1386294],
    [0.19279195, 0.00018231662, 6.8562044e-06, 1.0569663],
    [0.15513819, 0.0041672373, 0.00012188807, 1.1055416],
    [0.096961379, 0.0018231663, 4.5708028e-05, 1.1055416],
    [0.19392276, 0.0072926651, 0, 1],
]


def scaled(case: tuple[str, dict[str, Any], int | None]) -> rotary.RotaryFrequencies:
    name, settings, length = case
    parameters = {"rope_type": name, "rope_theta": 5e5, **settings}
    return rotary.frequencies(16, scaling=parameters, max_position_embeddings=2048, length=length)


@pytest.mark.parametrize(("case", "recorded"), list(zip(SCALED, RECORDED, strict=True)), ids=str)
def test_scalings_are_those_recorded(case: Any, recorded: list[float]) -> None:
    found = scaled(case)
    np.testing.assert_allclose([*found.radians[1:6:2], found.attention_factor], recorded, rtol=1e-6)


@pytest.mark.parametrize("case", SCALED, ids=str)
def test_scalings_are_those_of_transformers(case: Any) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is the oracle of rotary scalings")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    name, settings, length = case
    config = transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=4, head_dim=16, max_position_embeddings=2048,
        rope_parameters={"rope_type": name, "rope_theta": 5e5, **settings},
    )  # fmt: skip
    expected, factor = ROPE_INIT_FUNCTIONS[name](config, seq_len=length)
    found = scaled(case)
    np.testing.assert_allclose(found.radians, expected.numpy(), rtol=1e-6)
    assert found.attention_factor == pytest.approx(factor, rel=1e-12)


def test_the_default_is_the_papers() -> None:
    found = rotary.frequencies(8)
    np.testing.assert_allclose(found.radians, [1, 0.1, 0.01, 0.001], rtol=1e-6)
    assert found.radians.dtype == np.float32 and found.attention_factor == 1
    np.testing.assert_array_equal(rotary.frequencies(16, partial_rotary_factor=0.5).radians, found.radians)
    np.testing.assert_array_equal(rotary.frequencies(8, scaling={"type": "linear", "factor": 1}).radians, found.radians)


@pytest.mark.parametrize("case", [SCALED[2], SCALED[6], SCALED[7]], ids=str)
def test_a_traced_length_gives_the_same_frequencies(case: Any) -> None:
    name, settings, length = case
    found = lx.compile(lambda length: scaled((name, settings, length)).radians)(np.int32(length))
    np.testing.assert_allclose(found, scaled(case).radians, rtol=1e-6)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("pairs", [4, 2])
def test_pairs_turn_as_complex_numbers(layout: Any, pairs: int) -> None:
    x, positions = sample((2, 3, 5, 8)), np.array([[0, 1, 7], [4, 100, 2]])
    radians = rotary.frequencies(2 * pairs)
    found = rotary.rotate(x, *rotary.tables(positions, radians), layout)
    part = x[..., : 2 * pairs].astype(np.float64)
    numbers = part[..., :pairs] + 1j * part[..., pairs:] if layout == "half" else part[..., ::2] + 1j * part[..., 1::2]
    angles = positions[:, :, None] * radians.radians.astype(np.float64)
    turned = numbers * np.exp(1j * angles)[:, :, None, :]
    pair = [turned.real, turned.imag]
    expected = np.concatenate(pair, -1) if layout == "half" else np.stack(pair, -1).reshape(part.shape)
    # An angle of 100 radians rounds by 100 · 6e-8.
    np.testing.assert_allclose(found, np.concatenate([expected, x[..., 2 * pairs :]], -1), atol=3e-5)


def test_tables_hold_the_attention_factor() -> None:
    cosines, sines = rotary.tables(np.arange(3), rotary.RotaryFrequencies(np.array([0.5], np.float32), 2.0))
    np.testing.assert_allclose(cosines, 2 * np.cos([[0], [0.5], [1]]), rtol=1e-6)
    np.testing.assert_allclose(sines, 2 * np.sin([[0], [0.5], [1]]), rtol=1e-6)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_derivatives(layout: Any) -> None:
    arrays = [sample((2, 3, 2, 6)), sample((3, 2), seed=1), sample((3, 2), seed=2)]
    check_derivatives(lambda x, cosines, sines: rotary.rotate(x, cosines, sines, layout), arrays)


def test_low_precision_is_rounded_once() -> None:
    x = lx.numpy.asarray(sample((3, 1, 4)), "bfloat16")
    cosines, sines = rotary.tables(np.arange(3), rotary.frequencies(4))
    found = rotary.rotate(x, cosines, sines)
    assert found.dtype == x.dtype
    expected = rotary.rotate(lx.numpy.asarray(x, "float32"), cosines, sines)
    np.testing.assert_allclose(np.asarray(found, np.float32), expected, rtol=2**-8)


def test_what_does_not_fit() -> None:
    cosines, sines = rotary.tables(np.arange(3), rotary.frequencies(4))
    refused: list[tuple[type[Exception], str, Any]] = [
        (ValueError, "no scaling 'none'; there are default, linear", lambda: rotary.frequencies(
            8, scaling={"rope_type": "none"})),
        (ValueError, r"the scaling {'rope_type': 'linear'} lacks 'factor'", lambda: rotary.frequencies(
            8, scaling={"rope_type": "linear"})),
        (ValueError, "'dynamic' needs max_position_embeddings", lambda: rotary.frequencies(
            8, scaling={"rope_type": "dynamic", "factor": 2})),
        (ValueError, "5 of 5 elements cannot turn in pairs", lambda: rotary.frequencies(5)),
        (ShapeError, r"x is \[..., T, heads, H\], got f32\[3,4\]", lambda: rotary.rotate(
            np.ones((3, 4), "f"), cosines, sines)),
        (ShapeError, "at most 1 pairs", lambda: rotary.rotate(np.ones((3, 1, 2), "f"), cosines, sines)),
        (ShapeError, r"the positions of f32\[3,2\] are not those of f32\[2,1,4\]", lambda: rotary.rotate(
            np.ones((2, 1, 4), "f"), cosines, sines)),
        (ValueError, "the layout is 'half' or 'interleaved', got 'pairs'", lambda: nn.rotary.rotate(
            np.ones((3, 1, 4), "f"), cosines, sines, "pairs")),  # type: ignore[arg-type]
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
