"""A function from a file, in a process that has not its source."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax import nn

SCRIPT = """
import sys
import numpy as np
import lavax as lx

step = lx.load_exported(sys.argv[1])
x = np.load(sys.argv[2])
before = lx.profiler.counters()["traces"]
out = step(x, {"steps": np.int32(3)})
assert lx.profiler.counters()["traces"] == before
np.savez(sys.argv[3], y=np.asarray(out["y"]), total=np.asarray(out["total"]))
try:
    step(x[:1], {"steps": np.int32(3)})
except lx.ShapeError as error:
    assert "exported for x" in str(error)
else:
    raise AssertionError("another shape was taken")
"""


def test_in_another_process(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(4, 4)).astype("f")

    def step(x: Any, options: Any) -> Any:
        y = lx.fori_loop(0, options["steps"], lambda _, h: lnp.tanh(h @ weight), x)
        return {"y": nn.softmax(y), "total": lnp.sum(y)}

    x = np.random.default_rng(1).normal(size=(2, 4)).astype("f")
    lx.export(step, x, {"steps": np.int32(0)}).save(tmp_path / "step.lavax")
    np.save(tmp_path / "x.npy", x)
    files = [str(tmp_path / name) for name in ("step.lavax", "x.npy", "out.npz")]
    subprocess.run([sys.executable, "-c", SCRIPT, *files], check=True, cwd=tmp_path, timeout=120)
    expected = lx.compile(step)(x, {"steps": np.int32(3)})
    with np.load(tmp_path / "out.npz") as found:
        for name in ("y", "total"):
            np.testing.assert_array_equal(found[name], np.asarray(expected[name]))
