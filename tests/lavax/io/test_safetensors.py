"""Safetensors files: every dtype bit for bit, kinds of leaves, settings, and damage refused by name."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import io, nn

pytestmark = pytest.mark.usefixtures("reference_backend")


class Pair(NamedTuple):
    first: Any
    second: Any


def tree() -> Any:
    return {
        "state": Pair(lnp.int32(7), (lnp.arange(5, dtype="uint32"), None, [])),
        "key": lx.random.key(3),
        "numbers": [1, 2.5, True, np.float32(0.1), np.arange(6, dtype=np.int64).reshape(2, 3)],
        "wide": np.array([1 / 3, 1e300]),
        "weak": lx.device_put(1.0),
    }


def test_every_leaf_comes_back_as_what_it_was(tmp_path: Path) -> None:
    """Weak arrays as weak ones, so that a compiled step is not traced again; Python's numbers as such."""
    io.save(tmp_path / "new folder" / "a.safetensors", tree())
    found = io.load(tmp_path / "new folder" / "a.safetensors", like=tree())
    assert lx.tree.structure(found) is lx.tree.structure(tree())
    for one, other in zip(lx.tree.leaves(tree()), lx.tree.leaves(found), strict=True):
        assert type(other) is type(one) and getattr(other, "weak", None) == getattr(one, "weak", None)
        if isinstance(one, lx.Array) and lx.numpy.issubdtype(one.dtype, lx.dtypes.prng_key):
            one, other = lx.random.key_data(one), lx.random.key_data(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


DTYPES = ["float16", "bfloat16", "float32", "float64", "bool"]
DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
def test_every_dtype_bit_for_bit(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    numpy_dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    bits = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 256, (*shape, numpy_dtype.itemsize), np.uint8)
    numbers = np.frombuffer(bits.tobytes(), numpy_dtype).reshape(shape)  # NaNs and infinities with them
    with lx.enable_x64():
        array = lx.device_put(numbers)
        io.save(tmp_path / "a.safetensors", array)
        back = io.load(tmp_path / "a.safetensors", like=lx.ShapeDtype(shape, dtype))
        assert back.dtype == array.dtype == numpy_dtype
        assert np.asarray(back).tobytes() == np.asarray(array).tobytes()
        assert io.load(tmp_path / "a.safetensors").tobytes() == numbers.tobytes()


def test_the_package_of_the_format_reads_it_and_is_read(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy", reason="the format's own package is an extra")
    tensors = {"b": np.arange(3, dtype=np.int8), "a.w": np.arange(4, dtype=np.float32).reshape(2, 2)}
    io.save(tmp_path / "ours.safetensors", tensors)
    theirs = package.load_file(tmp_path / "ours.safetensors")
    package.save_file(tensors, tmp_path / "theirs.safetensors")
    ours = io.load(tmp_path / "theirs.safetensors")
    for name, numbers in tensors.items():
        for found in (theirs[name], ours[name]):
            assert found.dtype == numbers.dtype and np.array_equal(found, numbers)


def test_arrays_of_other_byte_orders_and_strides(tmp_path: Path) -> None:
    numbers = np.arange(12, dtype=">f4").reshape(3, 4)
    io.save(tmp_path / "a.safetensors", {"x": numbers, "t": numbers.T[::2]})
    found = io.load(tmp_path / "a.safetensors")
    assert np.array_equal(found["x"], numbers) and np.array_equal(found["t"], numbers.T[::2])
    with pytest.raises(ValueError, match="read-only"):
        found["x"][0, 0] = 1


class Scaled(nn.Module):
    w: Any
    scale: float = nn.field(static=True)
    function: Any = nn.field(static=True, default=nn.relu)


def test_other_settings_are_refused_by_path(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    io.save(path, [Scaled(np.zeros(2), 1.0)])
    assert io.load(path, like=[Scaled(np.ones(2), 1.0)])[0].w.tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"at 0 the file has Scaled\(\(1\.0, relu\).*`like` has Scaled\(\(2\.0"):
        io.load(path, like=[Scaled(np.ones(2), 2.0)])
    with pytest.raises(ValueError, match=r"at 0 .*relu.*gelu"):
        io.load(path, like=[Scaled(np.ones(2), 1.0, nn.gelu)])
    assert io.load(path, like=[Scaled(np.ones(2), 2.0)], check_structure=False)[0].scale == 2.0
    with pytest.raises(ValueError, match=r"at the top the file has list, `like` has tuple"):
        io.load(path, like=(Scaled(np.ones(2), 1.0),))
    assert b" at 0x" not in path.read_bytes(), "functions are known by name, in every process"


def damaged(content: bytes) -> dict[str, bytes]:
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])

    def with_header(changed: Any) -> bytes:
        text = json.dumps(changed).encode()
        return len(text).to_bytes(8, "little") + text + content[8 + length :]

    a, b = header["a"], header["b"]
    return {
        "nothing": b"",
        "no header": content[:5],
        "long header": b"\xff" * 64,
        "not JSON": (64).to_bytes(8, "little") + b"\xff" * 64,
        "a list": with_header([1, 2]),
        "cut short": content[:-1],
        "too much": content + b"\0",
        "unknown dtype": with_header({**header, "a": {**a, "dtype": "F31"}}),
        "other shape": with_header({**header, "a": {**a, "shape": [7]}}),
        "negative": with_header({**header, "a": {**a, "shape": [-4]}}),
        "same bytes": with_header({**header, "b": a}),
        "no offsets": with_header({**header, "b": {"dtype": "F32", "shape": [2]}}),
        "swapped": with_header({**header, "b": {**b, "data_offsets": b["data_offsets"][::-1]}}),
    }


@pytest.mark.parametrize("kind", [
    "nothing", "no header", "long header", "not JSON", "a list", "cut short", "too much", "unknown dtype",
    "other shape", "negative", "same bytes", "no offsets", "swapped",
])  # fmt: skip
def test_a_damaged_file_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    whole = tmp_path / "whole.safetensors"
    tensors = {"a": np.arange(4, dtype=np.float32), "b": np.arange(2, dtype=np.float32)}
    io.save(whole, tensors)
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(damaged(whole.read_bytes())[kind])
    with pytest.raises(ValueError, match=r"bad\.safetensors: this is no whole safetensors file"):
        io.load(bad, like=tensors)


def test_what_a_file_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"a\.1 is a str: files hold arrays and numbers"):
        io.save(tmp_path / "a.safetensors", {"a": [1, "text"]})
    with pytest.raises(ValueError, match=r"cannot hold x, which is complex128"):
        io.save(tmp_path / "a.safetensors", {"x": np.zeros(2, complex)})
    with pytest.raises(ValueError, match=r"two leaves have the path a\.b"):
        io.save(tmp_path / "a.safetensors", {"a.b": 1, "a": {"b": 2}})
    with pytest.raises(FileNotFoundError):
        io.load(tmp_path / "a.safetensors", like={})
    assert list(tmp_path.iterdir()) == []



def test_a_file_is_read_a_tensor_at_a_time(tmp_path: Path) -> None:
    """Reading through a file takes the memory of its largest tensor, not that of the file."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the peak of memory is in /proc on Linux only")
    io.save(tmp_path / "a.safetensors", {f"t{i}": np.full(1 << 20, i, "f") for i in range(16)})  # 64 MiB
    program = (
        "import sys, numpy as np\n"
        "from lavax import io\n"
        "def peak(): return int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
        "before = peak()\n"
        "tensors = io.load(sys.argv[1])\n"
        "assert [float(tensors[f't{i}'].max()) for i in range(16)] == list(range(16))\n"
        "print(peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.safetensors")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 24 << 10  # KiB: a few tensors
