from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lavax.backends.vulkan.compile import disk_cache
from lavax.backends.vulkan.compile.disk_cache import ENTRIES_BETWEEN_TRIMS, DiskCache, folder_of
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_what_was_stored_is_loaded_by_another_cache(tmp_path: Path) -> None:
    DiskCache(tmp_path / "deep" / "folder", 1000).store("key", b"payload")
    other = DiskCache(tmp_path / "deep" / "folder", 1000)
    assert other.load("key") == b"payload"
    assert other.load("another key") is None


@pytest.mark.parametrize("damage", [b"", b"short", lambda entry: entry[:-1], lambda entry: entry[:-1] + b"?"])
def test_a_damaged_entry_is_a_miss_and_can_be_stored_again(tmp_path: Path, damage: object) -> None:
    cache = DiskCache(tmp_path, 1000)
    cache.store("key", b"payload")
    entry = only_file(tmp_path)
    entry.write_bytes(damage(entry.read_bytes()) if callable(damage) else damage)
    assert cache.load("key") is None
    cache.store("key", b"payload")
    assert cache.load("key") == b"payload"


def test_the_entry_of_another_key_is_a_miss(tmp_path: Path) -> None:
    """Its own hash is right: only the key that it carries tells."""
    cache = DiskCache(tmp_path, 1000)
    cache.store("key", b"payload")
    source = only_file(tmp_path)
    cache.store("another key", b"another payload")
    (target,) = (file for file in tmp_path.iterdir() if file != source)
    shutil.copyfile(source, target)
    assert (cache.load("key"), cache.load("another key")) == (b"payload", None)


def test_an_entry_that_was_dropped_is_a_miss(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1000)
    cache.drop("key")
    cache.store("key", b"payload")
    cache.drop("key")
    assert cache.load("key") is None
    assert not list(tmp_path.iterdir())


def test_an_entry_of_no_bytes_is_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1000)
    cache.store("key", b"")
    assert cache.load("key") == b""


def _socket(path: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.close()


def _sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)


STRANGE: dict[str, Callable[[Path], None]] = {
    "pipe": lambda path: os.mkfifo(path),
    "folder": lambda path: path.mkdir(),
    "socket": _socket,
    "loop of links": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "terabyte": _sparse,
    "without permission": lambda path: (path.write_bytes(b"?"), path.chmod(0))[1],
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_file_of_the_cache_is_a_miss(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    first = DiskCache(tmp_path, 10_000)
    first.store("key", b"payload")
    entry = only_file(tmp_path)
    entry.unlink()
    STRANGE[name](Path(entry.name))
    open_before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    cache = DiskCache(tmp_path, 10_000)
    assert cache.load("key") is None
    cache.store("key", b"payload")  # lists the folder, too
    assert cache.load("key") == (None if name == "folder" else b"payload")
    if open_before:
        assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file" / "cache", 1000)
    cache.store("key", b"payload")
    assert cache.load("key") is None


def test_the_oldest_entries_go_when_the_folder_is_too_large(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit_bytes=10_000)
    for index in range(ENTRIES_BETWEEN_TRIMS + 1):
        cache.store(str(index), bytes(1000))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 10_000
    assert cache.load(str(ENTRIES_BETWEEN_TRIMS)) is not None
    assert cache.load("0") is None


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no limits there")
def test_a_full_disk_is_no_error(tmp_path: Path) -> None:
    """A limit of the process stands for it: a file gets some of its bytes, and then none."""
    program = (
        "import resource, sys, numpy as np, lavax as lx\n"
        "from pathlib import Path\n"
        "from lavax.backends.vulkan.compile.disk_cache import DiskCache\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "cache = DiskCache(Path(sys.argv[1]), 1 << 20)\n"
        "cache.store('key', bytes(5000))\n"
        "print(cache.load('key'), list(Path(sys.argv[1]).iterdir()))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "None []\n"


def test_processes_that_store_load_and_trim_at_once_see_whole_entries(tmp_path: Path) -> None:
    """Each stores and loads the same few keys in a folder that is always too full; what is loaded is a payload of the
    key's."""
    program = (
        "import random, sys\n"
        "from pathlib import Path\n"
        "from lavax.backends.vulkan.compile import disk_cache\n"
        "disk_cache.ENTRIES_BETWEEN_TRIMS = 2\n"
        "cache, chance, hits = disk_cache.DiskCache(Path(sys.argv[1]), 9000), random.Random(int(sys.argv[2])), 0\n"
        "for _ in range(400):\n"
        "    key = chance.randrange(8)\n"
        "    cache.store(str(key), bytes([key]) * chance.randrange(500, 3000))\n"
        "    key = chance.randrange(8)\n"
        "    found = cache.load(str(key))\n"
        "    assert found is None or (set(found) == {key} and 500 <= len(found) < 3000), (key, found[:9])\n"
        "    hits += found is not None\n"
        "print(hits)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, text=True) for seed in range(2)]
    hits = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert all(int(hit) > 20 for hit in hits), "there is something to load"
    left = [file for file in tmp_path.iterdir() if not file.name.startswith("writing-")]
    assert sum(file.stat().st_size for file in left) <= 9000 + 2 * 2 * 3200, "a few entries above the limit at most"
    assert len(left) == len(list(tmp_path.iterdir())), "nothing half written stays"


def _without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who is in no list of users, as in a container that is run with a number for a user."""
    for name in ("LAVAX_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME", "USERPROFILE", "HOMEPATH"):
        monkeypatch.delenv(name, raising=False)
    pwd = pytest.importorskip("pwd", reason="users have other lists here")

    def unknown(*_: object) -> None:
        raise KeyError("no such user")

    monkeypatch.setattr(pwd, "getpwuid", unknown)


def test_without_a_home_the_cache_is_off_and_the_log_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _without_home(monkeypatch)
    disk_cache._log_that_cache_is_off.cache_clear()
    for name in ("spirv", "pipelines"):
        cache = DiskCache(folder_of(name), 1000)
        cache.store("key", b"payload")
        assert cache.load("key") is None
    (record,) = caplog.records
    assert record.name == "lavax.cache"
    assert record.getMessage().startswith("nothing is cached on disk (Could not determine home directory)")


def test_without_a_home_shaders_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_home(monkeypatch)
    assert compile_glsl("#version 460\nvoid main() { uint without_home = 1u; }\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_folder_holds_no_cache(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    STRANGE[name](Path("place"))
    cache = DiskCache(tmp_path / "place" / "spirv", 10_000)
    cache.store("key", b"payload")
    assert cache.load("key") == (b"payload" if name == "folder" else None)
    cache.drop("key")
