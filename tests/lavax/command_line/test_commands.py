"""The commands of lavax, as users start them: what they write and how they end."""
from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from lavax.base import config
from lavax.command_line import selftest
from lavax.command_line.conformance import CHECKS, Check, DifferenceError, compare
from lavax.command_line.main import main
from tests.documents import ROOT

PROGRAM = '''
import lavax as lx
import lavax.numpy as lnp

def loss(w, x):
    return lnp.sum(lnp.tanh(x @ w))

@lx.compile
def scaled(p, scale=2.0):
    return p["w"] * scale

class Model:
    @staticmethod
    def shift(x):
        return x + 1

def broken(x):
    raise RuntimeError("on purpose")

example = ({"w": lx.ShapeDtype((3,), "float32")},)

def keywords():
    return {"p": {"w": lx.ShapeDtype((4,), "float32")}, "scale": 3}

number = 3
'''


def lavax(*words: str, cwd: Path = ROOT, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lavax", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def lavax_inside(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """The same in this process, which starts sooner."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # commands put the folders of users' files there

    def run(*words: str) -> Done:
        try:
            code = main(words)
        except SystemExit as error:
            code = int(str(error.code))
        return Done(code, *capfd.readouterr())

    return run


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text(PROGRAM)
    return path


def test_the_version_and_the_help() -> None:
    assert lavax("--version").stdout == f"lavax {config.VERSION}\n"
    done = lavax("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("devices", "selftest", "cache", "dump", "bench"))


def test_the_program_is_installed() -> None:
    """What setup.cfg names exists."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    (line,) = settings["options.entry_points"]["console_scripts"].strip().splitlines()
    name, value = map(str.strip, line.split("="))
    assert name == "lavax"
    assert EntryPoint(name, value, "console_scripts").load() is main


@pytest.mark.parametrize("words", [(), ("nothing",), ("cache", "everything"), ("selftest", "--only", "nothing")])
def test_words_that_make_no_sense(words: tuple[str, ...], lavax_inside: Callable[..., Done]) -> None:
    done = lavax_inside(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr and "Traceback" not in done.stderr


def test_devices_are_described_with_their_schedules(lavax_inside: Callable[..., Done]) -> None:
    done = lavax_inside("devices")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum("<- used" in line for line in lines) == 1
    for word in ("driver", "memory", "subgroups", "shared memory", "has ", "lacks", "schedules:"):
        assert word in done.stdout
    product = lines[lines.index("    product of 1024 × 1024") + 1]
    assert "Tile(" in product
    brief = lavax_inside("devices", "--brief").stdout.splitlines()
    assert brief and all("lacks" not in line for line in brief)


@pytest.mark.parametrize("command", ["devices", "selftest"])
def test_without_a_driver_there_is_an_error(command: str) -> None:
    done = lavax(command, VK_DRIVER_FILES="/nonexistent.json", VK_ICD_FILENAMES="/nonexistent.json")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"lavax {command}: DeviceError: No Vulkan driver was found")


def test_a_device_that_is_not_there_is_not_chosen(
    lavax_inside: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAVAX_DEVICE", "no such device")
    done = lavax_inside("devices", "--brief")
    assert done.returncode == 0 and "<- used" not in done.stdout


def test_selftest_passes_and_gives_a_block_to_report() -> None:
    names = ["transfers", "integers", "products", "donated memory"]
    done = lavax("selftest", *(word for name in names for word in ("--only", name)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"ok        {name}" in done.stdout for name in names)
    _, block, _ = done.stdout.split("```")
    for word in (f"lavax: {config.VERSION}", "device: ", "driver: ", "system: ", "Python: ", "checks: 4 of 4 passed"):
        assert word in block


def test_what_there_is_no_time_for_is_left_out(lavax_inside: Callable[..., Done]) -> None:
    done = lavax_inside("selftest", "--seconds", "0", "--only", "products")
    assert done.returncode == 0
    assert "left out  products" in done.stdout and "checks: 0 of 1 passed, 0 failed" in done.stdout


def test_checks_have_names(lavax_inside: Callable[..., Done]) -> None:
    assert lavax_inside("selftest", "--list").stdout.splitlines() == list(CHECKS)


def test_the_cache_is_shown_and_cleared(
    tmp_path: Path, lavax_inside: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    (folder / "spirv").mkdir(parents=True)
    (folder / "spirv" / ("a" * 64)).write_bytes(bytes(3000))
    (folder / "spirv" / "writing-1").write_bytes(bytes(72))
    for kept in (folder / "spirv" / "notes.txt", folder / "b", folder / "tuning"):
        kept.write_text("the user's own")
    shown = lavax("cache", LAVAX_CACHE=str(folder))
    assert shown.returncode == 0 and str(folder) in shown.stdout
    assert "2 entries  3 KiB" in shown.stdout
    monkeypatch.setenv("LAVAX_CACHE", str(folder))
    assert "removed 0 entries" in lavax_inside("cache", "clear", "--only", "pipelines").stdout
    cleared = lavax_inside("cache", "clear")
    assert cleared.returncode == 0 and "removed 2 entries, 3 KiB" in cleared.stdout
    assert sorted(path.name for path in folder.rglob("*")) == ["b", "notes.txt", "spirv", "tuning"]


def test_a_cache_that_is_not_there_yet(
    tmp_path: Path, lavax_inside: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path / "nothing"))
    done = lavax_inside("cache")
    assert done.returncode == 0 and "not there yet" in done.stdout


def test_a_dump_shows_every_stage(program: Path) -> None:
    done = lavax("dump", f"{program}:loss", "f32[3,2]", "f32[5,3]")
    assert done.returncode == 0, done.stderr
    parts = re.split("^== ", done.stdout, flags=re.MULTILINE)
    assert [part.split(" ==")[0] for part in parts[1:]] == ["ir", "optimized", "kernels", "glsl"]
    assert "tanh(%0)" in parts[1] and "kernel k0" in parts[3] and "#version" in parts[4]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("loss", "f32[3,2]", "x=f32[5,3]", "--grad", "1"), "-> "),
        (("scaled", "{'w': float32[3]}", "scale=f32[]"), "graph (p.w: f32[3], scale: f32[])"),
        (("scaled", "--example", "example"), "graph (p.w: f32[3])"),
        (("scaled", "--example", "keywords"), "graph (p.w: f32[4], scale: i32[])"),
        (("Model.shift", "i32"), "graph (x: i32[])"),
    ],
)
def test_arguments_of_a_dump(
    words: tuple[str, ...], expected: str, program: Path, lavax_inside: Callable[..., Done]
) -> None:
    done = lavax_inside("dump", f"{program}:{words[0]}", *words[1:], "--stage", "ir")
    if "--grad" in words:
        assert "dot(x" in done.stdout and "return" in done.stdout
    else:
        assert done.stdout.startswith(expected), done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("loss",), 2, "names no function"),
        (("nowhere.py:loss",), 2, "there is no file"),
        (("no_such_module:f",), 2, "there is no module 'no_such_module'"),
        (("train.py:los",), 2, "has no 'los'; it has loss"),
        (("train.py:number",), 2, "is 3, which is no function"),
        (("train.py:loss", "f33[3]"), 2, "there is no dtype 'f33'"),
        (("train.py:loss", "f32[-3]"), 2, "sizes are numbers from 0 on"),
        (("train.py:loss", "import os"), 2, "is no argument"),
        (("train.py:loss", "w=f32[3,2]", "f32[5,3]"), 2, "after a keyword"),
        (("train.py:loss", "f32[3]", "--example", "example"), 2, "not both"),
        (("train.py:loss", "--example", "number"), 2, "a tuple of arguments"),
        (("train.py:loss", "f32[3,2]", "f32[5,3]", "--stage", "nothing"), 2, "there is no stage 'nothing'"),
        (("train.py:loss", "f32[3,2]", "f32[5,3]", "--stage", "prepare:nothing"), 2, "there is no pass 'nothing'"),
        (("train.py:loss", "f32[3,2]", "f32[4,4]"), 1, "train.py:6"),
        (("train.py:loss", "f32[3,2]"), 1, "missing 1 required positional argument: 'x'"),
        (("train.py:broken", "f32[3]"), 1, "RuntimeError: on purpose"),
    ],
)
def test_a_dump_that_cannot_be(
    words: tuple[str, ...],
    code: int,
    expected: str,
    program: Path,
    lavax_inside: Callable[..., Done],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(program.parent)
    done = lavax_inside("dump", *words)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.startswith("lavax dump: ") and expected in done.stderr
    assert "command_line" not in done.stderr


def test_a_dump_as_a_page(program: Path, tmp_path: Path, lavax_inside: Callable[..., Done]) -> None:
    page = tmp_path / "loss.html"
    words = ("dump", f"{program}:loss", "f32[3,2]", "f32[5,3]", "--stage", "ir", "--html")
    assert lavax_inside(*words, str(page)).returncode == 0
    assert "loss</span>, explained" in page.read_text(encoding="utf-8")
    done = lavax_inside(*words, str(tmp_path / "nowhere" / "page.html"))
    assert done.returncode == 2 and "cannot be written" in done.stderr


def test_a_file_that_fails(tmp_path: Path, lavax_inside: Callable[..., Done]) -> None:
    (tmp_path / "bad.py").write_text("x = 1 / 0\n")
    done = lavax_inside("dump", f"{tmp_path / 'bad.py'}:f")
    assert done.returncode == 1 and "bad.py" in done.stderr and "ZeroDivisionError" in done.stderr


def test_a_reader_that_has_read_enough(program: Path) -> None:
    command = f"{sys.executable} -m lavax dump {program}:loss 'f32[3,2]' 'f32[5,3]' | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.stdout, done.stderr) == ("== ir ==\n", "")


def test_a_function_is_timed(program: Path, lavax_inside: Callable[..., Done]) -> None:
    done = lavax_inside("bench", f"{program}:loss", "f32[3,2]", "f32[5,3]", "--seconds", "0.05")
    assert done.returncode == 0, done.stderr
    assert "first call" in done.stdout and "a call" in done.stdout and "of the limit" in done.stdout
    assert "train.py:6" in done.stdout


# -- a device that fails ------------------------------------------------------------------------------------------


def script(text: str) -> list[str]:
    """A process in place of the one that runs the checks."""
    lines = "import json, os, time\ndef say(name, state, words=''):\n"
    lines += "    print(json.dumps(dict(name=name, state=state, words=words)), flush=True)\n"
    return [sys.executable, "-c", lines + text]


def test_a_check_that_ends_its_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "first": "say('first', 'began')\nsay('first', 'passed')\nsay('second', 'began')\nos.abort()",
        "third": "say('third', 'began')\nsay('third', 'failed', 'differs')",
    }
    monkeypatch.setattr(selftest, "command_for", lambda names: script(texts[names[0]]))
    found = list(selftest._in_other_processes(["first", "second", "third"], 30))
    assert [(outcome.name, outcome.state) for outcome in found] == [
        ("first", "passed"), ("second", "failed"), ("third", "failed")
    ]
    assert "signal 6" in found[1].words
    text = selftest.report({"device": "one"}, found)
    assert "fails 2 of the checks" in text and "FAILED    second" in text and "differs" in text


def test_words_of_a_driver_are_let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "print('loading')\nsay('first', 'began')\nprint('[1]')\nsay('first', 'passed', 'well')\nprint('{}')"
    monkeypatch.setattr(selftest, "command_for", lambda names: script(text))
    (found,) = selftest._in_other_processes(["first"], 30)
    assert (found.state, found.words) == ("passed", "well")


def test_a_check_that_hangs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "PATIENCE", 0.3)
    monkeypatch.setattr(selftest, "command_for", lambda names: script("say('first', 'began')\ntime.sleep(60)"))
    (found,) = selftest._in_other_processes(["first"], 30)
    assert found.state == "failed" and "hangs" in found.words


def test_a_process_that_says_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "command_for", lambda names: script("raise RuntimeError('no driver')"))
    (found,) = selftest._in_other_processes(["first"], 30)
    assert found.state == "failed" and "exit code 1" in found.words and "no driver" in found.words


def test_wrong_numbers_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    x = np.array([1.0, np.nan, 3.0], np.float32)
    assert compare(lambda x: x + 1, [x], 1e-6) <= 1e-6
    for wrong in (lambda x: x + 1.001, lambda x: x * 0, lambda x: x[:2]):
        monkeypatch.setattr("lavax.command_line.conformance.compile", lambda _, wrong=wrong: wrong)
        with pytest.raises(DifferenceError):
            Check(lambda x: x + 1, lambda: [x], 1e-6).run()
