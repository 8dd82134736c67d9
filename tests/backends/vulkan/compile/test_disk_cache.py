from __future__ import annotations

from pathlib import Path

import pytest

from lavax.backends.vulkan.compile.disk_cache import ENTRIES_BETWEEN_TRIMS, DiskCache


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
