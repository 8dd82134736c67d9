"""lavax's plugin for pytest.

It stands beside the package, so that a run of tests that do not use lavax does not import it.
"""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_MARKER = "every_lavax_device"
_written: dict[str, int] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --lavax-update."""
    words = "write the texts of lavax.testing.assert_ir into the tests, in place of comparing them"
    parser.getgroup("lavax").addoption("--lavax-update", action="store_true", help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker; begins to record texts if they are to be written."""
    config.addinivalue_line("markers", f"{_MARKER}: runs the test once on each device that lavax can use")
    if not config.getoption("lavax_update"):
        return
    if config.getoption("numprocesses", None):
        raise pytest.UsageError("--lavax-update writes to the tests' files, and needs one process: add -n 0")
    from lavax.testing import snapshots

    snapshots.begin_update()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the texts."""
    if session.config.getoption("lavax_update"):
        from lavax.testing import snapshots

        _written.update(snapshots.end_update())


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Says what was written."""
    if config.getoption("lavax_update"):
        for path, count in sorted(_written.items()):
            terminalreporter.write_line(f"lavax: {count} text{'' if count == 1 else 's'} written to {path}")
        if not _written:
            terminalreporter.write_line("lavax: all texts are as they should be")
        _written.clear()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeats the marked tests on every device."""
    if metafunc.definition.get_closest_marker(_MARKER) is None:
        return
    if "lavax_device" not in metafunc.fixturenames:
        metafunc.fixturenames.append("lavax_device")
    metafunc.parametrize("lavax_device", _devices(), indirect=True)


def _devices() -> list[Any]:
    """The numbers of all devices, with their names; or one that is skipped."""
    import lavax

    try:
        found = lavax.devices()
    except lavax.DeviceError as error:
        reason = f"lavax has no device: {error}"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="no device")]
    return [pytest.param(device.index, id=device.name) for device in found]


@pytest.fixture
def lavax_device(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The description of the device that the test runs on: each in turn under the marker, else the one in use."""
    import lavax
    from lavax.testing.devices import using_device

    index = getattr(request, "param", None)
    if index is None:
        yield lavax.default_device()
        return
    with using_device(index) as device:
        yield device


@pytest.fixture
def fresh_lavax_cache(tmp_path: Path) -> Iterator[Path]:
    """The folder of a cache that is empty, on disk and in memory: what the test uses is compiled in the test."""
    from lavax.testing.caches import fresh_caches

    with fresh_caches(tmp_path / "lavax-cache") as folder:
        yield folder
