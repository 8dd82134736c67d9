"""Logs, read back by other means."""
from __future__ import annotations

import io
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lavax import train
from lavax.train.progress import short
from lavax.train.tensorboard import crc32c

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_a_table_gets_columns_as_they_come(tmp_path: Path) -> None:
    log = train.CSVLog(tmp_path / "new" / "log.csv")
    log.begin(0)
    log.write(10, {"loss": 0.5})
    log.write(20, {"loss": 0.25, "eval/loss": 1e-7})
    log.write(30, {"loss": 0.125})
    assert log.path.read_text().split() == ["step,loss,eval/loss", "10,0.5,", "20,0.25,1e-07", "30,0.125,"]


def test_a_resumed_table_has_every_step_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    first = train.CSVLog(path)
    first.begin(0)
    for step in (10, 20, 30):
        first.write(step, {"loss": step / 10})
    second = train.CSVLog(path)
    second.begin(20)
    second.write(30, {"loss": 3.5, "memory": 1})
    assert second.rows() == [
        {"step": "10", "loss": "1.0", "memory": ""},
        {"step": "20", "loss": "2.0", "memory": ""},
        {"step": "30", "loss": "3.5", "memory": "1"},
    ]
    anew = train.CSVLog(path)
    anew.begin(0)
    assert anew.rows() == []


def test_the_checksum_is_that_of_the_standard() -> None:
    """RFC 3720, appendix B.4, and the usual check value."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def records(path: Path) -> Iterator[bytes]:
    """The contents of an event file's records, with their checksums looked at."""
    content = path.read_bytes()
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        for part, place in ((content[:8], 8), (content[12 : 12 + length], 12 + length)):
            (masked,) = struct.unpack("<I", content[place : place + 4])
            turned = (masked - 0xA282EAD8) & 0xFFFFFFFF
            assert (turned >> 17 | turned << 15) & 0xFFFFFFFF == crc32c(part)
        yield content[12 : 12 + length]
        content = content[16 + length :]


def fields(message: bytes) -> dict[int, Any]:
    """The fields of a protobuf message by their numbers: numbers, or bytes; repeated ones in a list."""
    found: dict[int, Any] = {}
    file = io.BytesIO(message)

    def varint() -> int:
        value = shift = 0
        while True:
            (byte,) = file.read(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while file.tell() < len(message):
        number, wire = divmod(varint(), 8)
        match wire:
            case 0:
                value: Any = varint()
            case 1:
                (value,) = struct.unpack("<d", file.read(8))
            case 2:
                value = file.read(varint())
            case 5:
                (value,) = struct.unpack("<f", file.read(4))
        found.setdefault(number, []).append(value)
    return found


def test_event_files_of_tensorboard(tmp_path: Path) -> None:
    log = train.TensorBoardLog(tmp_path / "run")
    log.begin(0)
    log.write(300, {"loss": 0.75, "eval/loss": 1e-3})
    log.begin(300)
    assert log.path.name.startswith("events.out.tfevents.")
    version, values, start = map(fields, records(log.path))
    assert version[3] == [b"brain.Event:2"] and version[1][0] > 1.6e9
    assert values[2] == [300]
    (summary,) = values[5]
    scalars = [fields(value) for value in fields(summary)[1]]
    assert [(scalar[1][0].decode(), scalar[2][0]) for scalar in scalars] == [
        ("loss", 0.75),
        ("eval/loss", np.float32(1e-3)),
    ]
    assert start[2] == [300] and fields(start[7][0]) == {1: [1]}


def test_tensorboard_reads_them(tmp_path: Path) -> None:
    name = "tensorboard.backend.event_processing.event_accumulator"
    accumulator = pytest.importorskip(name, reason="tensorboard is not installed")
    log = train.TensorBoardLog(tmp_path)
    for step in range(3):
        log.write(step, {"loss": 1.5 * step})
    found = accumulator.EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(event.step, event.value) for event in found.Scalars("loss")] == [(0, 0.0), (1, 1.5), (2, 3.0)]


def test_a_bar_shows_steps_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    bar = train.ProgressBar(5)
    bar.begin(2)
    bar.write(3, {"loss": 0.123456, "examples per second": 12345.0})
    bar.advance()
    bar.close()
    shown = capsys.readouterr().err
    assert "3/5" in shown and "loss=0.1235" in shown and "12.3k" in shown


def test_a_bar_without_tqdm_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"pip install 'lavax\[models\]'"):
        train.ProgressBar(5)


def test_numbers_for_terminals() -> None:
    assert [short(x) for x in (0.0, 1.23456, 999.9, 1234.5, -2e7, 3e9, float("nan"), float("inf"))] == [
        "0", "1.235", "999.9", "1.23k", "-20M", "3G", "nan", "inf",
    ]  # fmt: skip


def test_fit_writes_to_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.lavax.train.regression import OPTIMIZER, loader, loss, state

    table, events = train.CSVLog(tmp_path / "log.csv"), train.TensorBoardLog(tmp_path)
    step = train.training_step(loss, OPTIMIZER)
    train.fit(step, state(), loader(), steps=6, log_every=2, logs=[table, events], learning_rate=lambda n: 0.1 * n)
    rows = table.rows()
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    assert [float(row["learning rate"]) for row in rows] == pytest.approx([0.1, 0.3, 0.5])
    assert [fields(record).get(2) for record in records(events.path)] == [None, [2], [4], [6]]
    assert "6/6" in capsys.readouterr().err
