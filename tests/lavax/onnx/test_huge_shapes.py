"""A file of a few bytes that asks for terabytes is refused in little time, and without the memory."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lavax.onnx.building import graph, model, node

pytest.importorskip("onnx", reason="the package that reads ONNX models")

HUGE = 1 << 20
_X, _Y = {"x": ("f4", [1, 1, 2, 2])}, {"y": ("f4", None)}
_MOST_MEBIBYTES, _MOST_SECONDS = 256, 20
_NODES = {"ConstantOfShape": "Add_2", "Range": "ReduceMax_4"}  # that the errors name; else the first one

# Loads and calls models in a process of their own, whose peak of memory is theirs alone. Each prints two lines.
_RUN = """
import resource, sys, time
import numpy as np
import lavax as lx, lavax.numpy as lnp
import onnx

x = lnp.asarray(np.ones((1, 1, 2, 2), np.float32))
np.asarray(lx.compile(lambda x: x * 2)(x))
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
for path in sys.argv[1:]:
    try:
        model = lx.onnx.load(path)
        model(model.parameters, x=x)
        print("ran")
    except lx.LavaxError as error:
        print(type(error).__name__, str(error)[:300].replace(chr(10), " "))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print((peak - before) / 1024, time.monotonic() - start)
"""


def _endless() -> Any:
    body = graph(
        [node("Identity", "c", "c1"), node("Concat", "v v", "v1", axis=0)],
        {"i": ("i8", []), "c": ("?", []), "v": ("f4", None)}, {"c1": ("?", []), "v1": ("f4", None)},
    )  # fmt: skip
    return node("Loop", "m c x", "y", body=body)


CASES: dict[str, tuple[list[Any], dict[str, np.ndarray]]] = {
    "ConstantOfShape": (
        [node("ConstantOfShape", "s", "c"), node("Add", "x c", "y")], {"s": np.array([HUGE, HUGE, 2, 2])},
    ),
    "Expand": ([node("Expand", "x s", "y")], {"s": np.array([HUGE, HUGE, 2, 2])}),
    "Loop": ([_endless()], {"m": np.array(1 << 40), "c": np.array(True)}),
    "Pad": ([node("Pad", "x s", "y")], {"s": np.array([0, 0, HUGE, HUGE, 0, 0, 0, 0])}),
    "Range": (
        [node("Range", "a b c", "r"), node("Unsqueeze", "r k", "t"), node("Mul", "r t", "q"),
         node("ReduceMax", "q", "m", keepdims=0), node("Add", "x m", "y")],
        {"a": np.float32(0), "b": np.float32(HUGE), "c": np.float32(1), "k": np.array([1])},
    ),
    "Resize": ([node("Resize", "x - - s", "y", mode="linear")], {"s": np.array([1, 1, HUGE, HUGE])}),
    "Tile": ([node("Tile", "x s", "y")], {"s": np.array([1, 1, HUGE, HUGE])}),
}  # fmt: skip


def test_nothing_is_allocated_first(tmp_path: Path) -> None:
    """The peak and the time are those of all together."""
    paths = {name: tmp_path / f"{name}.onnx" for name in CASES}
    for name, (nodes, weights) in CASES.items():
        paths[name].write_bytes(model(nodes, _X, _Y, weights))
    command = [sys.executable, "-c", _RUN, *map(str, paths.values())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.strip().splitlines()
    for name, outcome, figures in zip(CASES, lines[::2], lines[1::2], strict=True):
        mebibytes, seconds = map(float, figures.split())
        assert outcome.startswith(("DeviceError", "ONNXError")), (name, outcome)
        assert re.search(_NODES.get(name, f"{name}_1"), outcome), (name, outcome)
        assert mebibytes < _MOST_MEBIBYTES and seconds < _MOST_SECONDS, (name, outcome, figures)
