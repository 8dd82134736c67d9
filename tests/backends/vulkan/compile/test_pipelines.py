"""Pipelines from damaged caches: whatever the disk has, a process computes the same numbers."""
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lavax.backends.vulkan.compile import driver_cache, pipelines, shader_compiler
from lavax.backends.vulkan.compile.disk_cache import HEADER_BYTES, MARK, DiskCache
from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.plan.plan import Shader
from lavax.base.errors import DeviceError
from tests.backends.vulkan.emit.shaders import ADD_ONE

ROOT = Path(__file__).resolve().parents[4]

PROGRAM = """
import numpy as np, lavax as lx, lavax.numpy as lnp
f = lx.compile(lambda x: (lnp.sum(lnp.sin(x) * 3), lnp.cumsum(x), x @ x))
print([float(np.asarray(each).sum()) for each in f(np.ones((9, 9), "f"))])
"""


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
        env={**os.environ, "LAVAX_CACHE": str(folder)},
    )


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _noise(folder: Path) -> None:
    for path in _entries(folder):
        path.write_bytes(os.urandom(300))


def _one_over_others(folder: Path) -> None:
    for inner in folder.iterdir():
        entries = _entries(inner)
        for path in entries[1:]:
            path.write_bytes(entries[0].read_bytes())


def _rewritten(folder: Path, change: Callable[[bytes], bytes]) -> None:
    """Every payload changed, with headers that fit what is there."""
    for path in _entries(folder):
        entry = path.read_bytes()
        payload = change(entry[HEADER_BYTES:])
        key = entry[len(MARK) + 8 :][:32]
        header = MARK + len(payload).to_bytes(8, "little") + key + hashlib.sha256(payload).digest()
        path.write_bytes(header + payload)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "noise": _noise,
    "one entry over all others": _one_over_others,
    "payloads of nothing": lambda folder: _rewritten(folder, lambda payload: b""),
    "payloads of noise": lambda folder: _rewritten(folder, lambda payload: os.urandom(len(payload))),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The cache of a process that ran through, and what it printed."""
    folder = tmp_path_factory.mktemp("sound")
    done = run(folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_cache_is_a_miss(name: str, sound: tuple[Path, str], tmp_path: Path) -> None:
    kept, printed = sound
    folder = tmp_path / "damaged"
    shutil.copytree(kept, folder)
    assert len(_entries(folder)) > 3
    DAMAGE[name](folder)
    done = run(folder)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_a_module_that_the_driver_refuses_is_compiled_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path))
    shader_compiler.forget_compiled()
    good = shader_compiler.compile_glsl(ADD_ONE)
    bad = good[:-8] + good[-4:]
    key = shader_compiler._key(shader_compiler._compiler(), ADD_ONE)
    shader_compiler._spirv_cache().store(key, bad)
    shader_compiler.forget_compiled()
    given = []

    def driver(self: object, shader: object, spirv: bytes) -> bytes:
        given.append(spirv)
        if spirv != good:
            raise DeviceError("Creating a compute pipeline failed.")
        return spirv

    monkeypatch.setattr(pipelines.Pipelines, "_created", driver)
    shader = Shader(ADD_ONE)
    assert get_device().pipelines._create(shader) == good
    assert given == [bad, good]
    assert shader_compiler._spirv_cache().load(key) == good


def test_a_module_that_is_refused_twice_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path))
    given = []

    def driver(self: object, shader: object, spirv: bytes) -> None:
        given.append(spirv)
        raise DeviceError("Creating a compute pipeline failed.")

    monkeypatch.setattr(pipelines.Pipelines, "_created", driver)
    with pytest.raises(DeviceError, match="Creating a compute pipeline failed"):
        get_device().pipelines._create(Shader(ADD_ONE))
    assert len(given) == 1, "a compiler that gives the same again is not asked for a third"


def test_a_drivers_cache_of_another_driver_is_not_given_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path))
    physical = get_device().physical.handle
    own = driver_cache.header_of(physical)
    whole = driver_cache._HEADER.pack(*own) + b"?" * 8
    assert driver_cache.is_of(own, whole)
    for wrong in (b"", whole[:31], b"?" * 64, *(_with(own, place) for place in range(5))):
        assert not driver_cache.is_of(own, wrong)
    given = []

    def created(device: object, blob: bytes) -> object:
        given.append(blob)
        if blob:
            raise DeviceError("Creating a VkPipelineCache failed")
        return None

    monkeypatch.setattr(driver_cache, "_created", created)
    disk = DiskCache(tmp_path / "pipelines", 1 << 20)
    key = driver_cache.identity_of(physical)
    disk.store(key, _with(own, 4))
    driver_cache.DriverCache(physical, None)
    assert given == [b""], "it has another UUID"
    disk.store(key, whole)
    driver_cache.DriverCache(physical, None)
    assert given == [b"", whole, b""], "one that the driver refuses is left out"


def _with(header: tuple[object, ...], place: int) -> bytes:
    changed = [*header]
    value = changed[place]
    changed[place] = bytes(16) if isinstance(value, bytes) else int(np.uint32(~np.uint32(value)))
    return driver_cache._HEADER.pack(*changed) + b"?" * 8
