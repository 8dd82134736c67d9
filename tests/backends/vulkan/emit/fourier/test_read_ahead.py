"""Cache lines that steps read before they write them: which steps do, that they are those written, and the values."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier import read_ahead, turns
from lavax.backends.vulkan.emit.fourier.read_ahead import ReadAhead
from lavax.backends.vulkan.emit.fourier.turns import LineLoop
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from tests.backends.vulkan.emit.emission import dispatch_of, main_of

RANDOM = np.random.default_rng(11)
_FETCH = re.compile(r"texelFetch\(vectors1, w1 \+ ([^|;]+)\)\.x")
_PAIRS = re.compile(r"longs1\.data\[2 \* w1 \+ ([^\]]+)\] = ")
_STORE = re.compile(r"quartets1\.data\[w1 \+ ([^\]]+)\] = ")
_INTEGER = re.compile(r"^\s*int (\w+) = (.+);")
_LANES = 8


def _step(points: int, rest: int, behind: int, dtype: str = "f32", lines: int = 1) -> str:
    return f"""
        graph (x: {dtype}[{lines},{points},{rest},{behind},2]) {{
          %0 = fourier_step(x) reverse=false : {dtype}[{lines},{rest},1,{points * behind},2]
          return %0
        }}
    """


_ACROSS = {
    "from_reals": """
        graph (x: f32[2,40,20,1024]) {
          %0 = fourier_across_from_reals(x) : f32[2,20,1,21504,2]
          return %0
        }
    """,
    "to_half": """
        graph (x: f32[2,20,13,12,1024,2]) {
          %0 = fourier_across_to_half(x) columns=22 : f32[2,2861,1024,2]
          return %0
        }
    """,
    "from_half": """
        graph (x: f32[2,2861,1024,2]) {
          %0 = fourier_across_from_half(x) length=5720 columns=22 rest=13 : f32[2,13,1,245760,2]
          return %0
        }
    """,
    "to_reals": """
        graph (x: f32[2,20,13,1024,2]) {
          %0 = fourier_across_to_reals(x) columns=24 : f32[2,480,1024]
          return %0
        }
    """,
}


def _reads(graph: str, profile: DeviceProfile = CPU_DRIVER) -> int:
    return len(_FETCH.findall(main_of(dispatch_of(graph, profile))))


def test_steps_that_write_many_rows_far_apart_read_them_before() -> None:
    assert _reads(_step(25, 25, 1600)) == 7  # one of four rows each
    assert _reads(_step(25, 25, 800, "f64")) == 13
    assert not _reads(_step(16, 64, 1600)) and not _reads(_step(25, 1, 64, lines=640))
    assert _reads(_step(25, 24, 1601)) == 7  # an odd number of neighbours, whose numbers are written one by one
    assert not _reads(_step(25, 25, 64))  # few
    assert not _reads(_step(35, 35, 400))  # too many points for two lines
    assert not _reads(_step(25, 25, 1600), GENERIC_GPU)


def _lines_of_cache(graph: str, start: int) -> tuple[set[int], set[int]]:
    """The cache lines that the invocations of a subgroup read and write, the first of which is that number."""
    text = main_of(dispatch_of(graph, CPU_DRIVER))
    read: set[int] = set()
    written: set[int] = set()
    for lane in range(_LANES):
        known: dict[str, Any] = {"min": min, "max": max, "uint": int, "i": start + lane}
        for line in text[text.index("int i = ") :].splitlines()[1:]:
            line = line.replace("int(gl_LocalInvocationID.x)", str(lane))
            if found := _INTEGER.search(line):
                known[found[1]] = eval(found[2].replace("/", "//"), known)
            for places, pattern, each in ((read, _FETCH, 4), (written, _STORE, 4), (written, _PAIRS, 8)):
                places |= {eval(text.replace("/", "//"), known) // each for text in pattern.findall(line)}
    return read, written


@pytest.mark.parametrize(
    "graph", [_step(25, 25, 1600), _step(25, 25, 800, "f64"), _ACROSS["from_reals"], _ACROSS["to_reals"]]
)
def test_all_that_is_written_is_read_before(graph: str) -> None:
    for start in (0, 8, 4096):
        read, written = _lines_of_cache(graph, start)
        assert read == written and len(read) > 10


def test_of_rows_that_begin_anywhere_most_is_read_before() -> None:
    for start in (0, 8, 4096):
        read, written = _lines_of_cache(_step(25, 24, 1601), start)
        assert read < written and len(read) > 0.7 * len(written)


@pytest.mark.parametrize("name", ["to_half", "from_half"])
def test_steps_between_half_a_spectrum_and_columns_read_them_too(name: str) -> None:
    assert _reads(_ACROSS[name]) >= 5


@pytest.mark.parametrize(
    ("function", "shape", "axis"),
    [
        *(((lnp.fft.fft, np.fft.fft), shape, 0) for shape in ((625, 18), (600, 66), (600, 67), (1024, 20))),
        *(((lnp.fft.rfft, np.fft.rfft), (shape), 0) for shape in ((480, 36), (1331, 12))),
        ((lnp.fft.fft, np.fft.fft), (3, 289, 22), 1),
    ],
)
def test_the_values(
    function: tuple[Callable[..., Any], Callable[..., Any]],
    shape: tuple[int, ...],
    axis: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "LINE_LOOP", LineLoop(turns=(3,), busy=1))
    monkeypatch.setattr(read_ahead, "READ_AHEAD", ReadAhead(rows=2, apart=8))
    lx.clear_caches()
    x = RANDOM.normal(size=shape).astype(np.float32)
    ours, theirs = function
    expected = theirs(x.astype(np.float64), axis=axis)
    found = np.asarray(lx.compile(lambda x: ours(x, axis=axis))(x))
    assert np.linalg.norm(found - expected) <= 2**-24 * np.log2(shape[axis]) * np.linalg.norm(expected)
