"""The plugin for pytest: texts that are written into tests, fixtures, the marker for every device."""
from __future__ import annotations

import configparser
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import lavax as lx
import lavax.testing  # before pytester notes which modules there are
import pytest_lavax
from tests.documents import ROOT

pytest_plugins = ["pytester"]

HEAD = '''
import lavax as lx
import lavax.numpy as lnp
from lavax import testing
from lavax.testing import assert_ir

X = lx.ShapeDtype((3,), "float32")
'''

TWICE = '''"""
        graph (x: f32[3]) {
          %0 = add(x, x) : f32[3]
          return %0
        }
    """'''


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other plugins take seconds to start
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\naddopts = -p pytest_lavax -p no:cacheprovider --strict-markers\n")
    return pytester


def write(run: pytest.Pytester, text: str) -> Path:
    path = run.path / "test_it.py"
    path.write_text(f"{HEAD}{text}", encoding="utf-8")
    return path


def updated(run: pytest.Pytester, text: str, passed: int = 1) -> str:
    """The tests, after an update; another update changes nothing, and the tests pass."""
    path = write(run, text)
    result = run.runpytest_inprocess("--lavax-update")
    result.assert_outcomes(passed=passed)
    found = path.read_text(encoding="utf-8").removeprefix(HEAD)
    run.runpytest_inprocess("--lavax-update").stdout.fnmatch_lines(["lavax: all texts are as they should be"])
    assert path.read_text(encoding="utf-8").removeprefix(HEAD) == found
    run.runpytest_inprocess().assert_outcomes(passed=passed)
    return found


def test_the_plugin_is_installed() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    (line,) = settings["options.entry_points"]["pytest11"].strip().splitlines()
    name, value = map(str.strip, line.split("="))
    assert EntryPoint(name, value, "pytest11").load() is pytest_lavax
    assert settings["options"]["py_modules"] == name  # so that `-p pytest_lavax` and the entry point are one plugin


def test_lavax_is_imported_only_when_it_is_used(run: pytest.Pytester) -> None:
    (run.path / "test_other.py").write_text("import sys\ndef test_other():\n    assert 'lavax' not in sys.modules\n")
    run.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_missing_text_is_written(run: pytest.Pytester) -> None:
    text = "def test_twice():\n    assert_ir(lambda x: x + x, (X,))\n"
    assert updated(run, text) == text.replace("(X,))", f"(X,), {TWICE})")


def test_a_wrong_text_is_written_anew(run: pytest.Pytester) -> None:
    text = 'def test_twice():\n    assert_ir(lambda x: x + x, (X,), """\n        graph\n    """)  # twice\n    # ä\n'
    assert updated(run, text) == f"def test_twice():\n    assert_ir(lambda x: x + x, (X,), {TWICE})  # twice\n    # ä\n"


def test_keywords_and_several_calls(run: pytest.Pytester) -> None:
    text = (
        "def test_several():\n"
        "    assert_ir(lambda x: x + x, (X,), text=None, stage='ir'); assert_ir(lambda x: x + x, (X,), 'a' 'b')\n"
        "    testing.assert_ir(lambda x: x + x, (X,), stage='optimized')\n"
        "class TestMore:\n"
        "    def test_more(self):\n"
        "        ä = 'ä'; assert_ir(lambda x: x + x,\n"
        "                  args=(X,), text='''x''')\n"
    )
    found = updated(run, text, passed=2)
    assert found.count("%0 = add(x, x) : f32[3]") == 4
    assert f"(X,), text={TWICE}, stage='ir'); assert_ir(lambda x: x + x, (X,), {TWICE})\n" in found
    assert f"assert_ir(lambda x: x + x, (X,), {TWICE}, stage='optimized')" in found
    assert "ä = 'ä'; assert_ir(lambda x: x + x,\n                  args=(X,), text=\"\"\"\n            graph" in found


def test_a_right_text_keeps_its_form(run: pytest.Pytester) -> None:
    text = (
        "def test_form():\n"
        "    assert_ir(lambda x: x + x, (X,),\n"
        "              '''graph (x: f32[3]) {\n"
        "                   %0 = add(x, x) : f32[3]\n"
        "                   return %0\n"
        "                 }'''.replace('                 ', ''))\n"
        "    assert_ir(lambda x: x + x, (X,), 'graph (x: f32[3]) {\\n  %0 = add(x, x) : f32[3]\\n  return %0\\n}')\n"
    )
    assert updated(run, text) == text


def test_texts_that_cannot_be_written(run: pytest.Pytester) -> None:
    path = write(
        run,
        "import pytest\n"
        "def test_computed():\n    assert_ir(lambda x: x + x, (X,), 'a' + str(1))\n"
        "def test_loop():\n    for n in (1, 2): assert_ir(lambda x: x * float(n + 1), (X,), '')\n"
        "def test_star():\n    assert_ir(*[lambda x: x + x, (X,), ''])\n",
    )
    before = path.read_text()
    result = run.runpytest_inprocess("--lavax-update", "-k", "computed or star")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*the call cannot be found in its file*"])
    assert path.read_text() == before
    result = run.runpytest_inprocess("--lavax-update", "-k", "loop")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*one call has several texts*"])


def test_a_failure_shows_the_test_and_the_difference(run: pytest.Pytester) -> None:
    write(run, "def test_twice():\n    assert_ir(lambda x: x + x, (X,), 'graph')\n")
    result = run.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([">*assert_ir(lambda x: x + x, (X,), 'graph')", "E*- graph", "E*+   %0 = add(x, x)*"])
    result.stdout.no_fnmatch_line("*assertions.py*raise*")


def test_several_processes_do_not_write(run: pytest.Pytester) -> None:
    write(run, "def test_twice():\n    assert_ir(lambda x: x + x, (X,))\n")
    result = run.runpytest_inprocess("-p", "xdist", "-n", "2", "--lavax-update")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*add -n 0*"])


def test_the_cache_is_fresh_in_every_test(run: pytest.Pytester) -> None:
    write(
        run,
        "import numpy as np, pytest\n"
        "from lavax.profiler import counters\n"
        "f = lx.compile(lambda x: x * 1.25)\n"
        "@pytest.mark.parametrize('number', [1, 2])\n"
        "def test_fresh(number, fresh_lavax_cache):\n"
        "    before = counters()\n"
        "    f(np.ones(3, 'f')); f(np.ones(3, 'f'))\n"
        "    assert counters()['glsl_compiles'] - before['glsl_compiles'] == 1\n"
        "    assert counters()['traces'] - before['traces'] == 1\n"
        "    assert list((fresh_lavax_cache / 'spirv').iterdir())\n",
    )
    run.runpytest_inprocess().assert_outcomes(passed=2)


def test_a_test_for_every_device(run: pytest.Pytester) -> None:
    write(
        run,
        "import pytest\n"
        "@pytest.mark.every_lavax_device\n"
        "def test_marked():\n    assert float(lnp.sum(lnp.ones(3))) == 3\n"
        "@pytest.mark.every_lavax_device\n"
        "@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_named(lavax_device, n):\n    assert lavax_device == lx.default_device() and n\n"
        "def test_unmarked(lavax_device):\n    assert lavax_device == lx.default_device()\n",
    )
    count = len(lx.devices())
    result = run.runpytest_inprocess("-v")
    result.assert_outcomes(passed=3 * count + 1)
    result.stdout.fnmatch_lines([f"*test_marked?{lx.devices()[0].name}? PASSED*"])


def test_without_a_device_it_is_skipped(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(name, "/nonexistent.json")
    write(run, "import pytest\n@pytest.mark.every_lavax_device\ndef test_marked():\n    assert False\n")
    result = run.runpytest_subprocess("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*lavax has no device: No Vulkan driver was found*"])
