from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan import backend
from lavax.backends.vulkan.compile import disk_cache, plan_cache
from lavax.backends.vulkan.plan.plan_file import written
from lavax.base import config
from lavax.base.counters import snapshot
from lavax.testing.caches import fresh_caches
from lavax.tracer.values.backend import active, runtime

X = np.linspace(-1.0, 1.0, 48, dtype=np.float32).reshape(6, 8)


def long(x: Any) -> Any:
    """A function whose graph is long enough to be kept, and whose two kernels are simple."""
    for number in range(40):
        x = x * (1.0 + number / 64.0) - 0.25
    return x, lnp.sum(x)


@pytest.fixture(autouse=True)
def kept_plans(monkeypatch: pytest.MonkeyPatch, verified_passes: None) -> None:
    monkeypatch.setenv("LAVAX_PLANS", "1")
    monkeypatch.setenv("LAVAX_VERIFY", "0")


@contextmanager
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A context whose value lists what was planned in it."""
    plans: list[Any] = []
    made = backend.schedule

    def noted(*arguments: Any, **named: Any) -> Any:
        plans.append(arguments)
        return made(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(backend, "schedule", noted)
        yield plans


def first_call(folder: Path, function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, int]:
    """The results of a first call, with nothing known but what is on disk, and how many plans came from there."""
    with fresh_caches(folder):
        before = snapshot()["plans_from_disk"]
        results = lx.compile(lambda *given: function(*given), **options)(*map(lnp.array, arguments))
        return lx.tree.map(np.asarray, results), snapshot()["plans_from_disk"] - before


def files_of(folder: Path) -> list[Path]:
    plans = folder / "plans"
    return sorted(plans.iterdir()) if plans.is_dir() else []


def test_a_second_first_call_plans_nothing_and_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with planned(monkeypatch) as plans:
        expected, found = first_call(tmp_path, long, X)
    assert (len(plans), found, len(files_of(tmp_path))) == (1, 0, 1)
    with planned(monkeypatch) as plans:
        results, found = first_call(tmp_path, long, X)
    assert (len(plans), found) == (0, 1)
    for result, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, other)


def test_another_process_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = first_call(tmp_path, long, X)
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path))
    program = (
        "import numpy as np, lavax as lx\n"
        "from tests.backends.vulkan.compile.test_plan_cache import long, X\n"
        "results = lx.compile(long)(lx.numpy.array(X))\n"
        "print(lx.profiler.counters()['plans_from_disk'], *[np.asarray(r).tobytes().hex() for r in results])\n"
    )
    command, root = [sys.executable, "-c", program], Path(__file__).parents[4]
    text = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert text.split() == ["1", *(result.tobytes().hex() for result in expected)]


def test_reports_of_a_plan_from_disk_are_those_of_one_that_was_made(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with fresh_caches(tmp_path):
            compiled = lx.compile(long).lower(X).compile()
            times = compiled.profile(X).kernels
            found.append((str(compiled.cost()), str(compiled.memory()), list(times), compiled.as_text("glsl")))
    assert found[0] == found[1]


def test_outputs_that_are_arguments_are_copied(tmp_path: Path) -> None:
    """Whoever donates the argument must not give away the output with it."""
    traced = lx.trace(lambda x, y: (y, *long(x)))(X, X)
    y = X + 1.0
    for number in range(2):
        with fresh_caches(tmp_path):
            before = snapshot()["plans_from_disk"]
            found = active().lower(traced).compile()
            assert snapshot()["plans_from_disk"] - before == number
            buffers = [active().upload(given) for given in (X, y)]
            same, values, _ = found(*buffers)
            assert same is not buffers[1]
            np.testing.assert_array_equal(active().download(same, traced.outputs[0].type), y)
            np.testing.assert_allclose(active().download(values, traced.outputs[1].type), _long_by_numpy(), rtol=1e-5)


def _long_by_numpy() -> np.ndarray:
    x = X.astype(np.float64)
    for number in range(40):
        x = x * (1.0 + number / 64.0) - 0.25
    return x


def test_donated_memory_is_taken_over_as_before(tmp_path: Path) -> None:
    expected, _ = first_call(tmp_path, long, X)
    for found_before in (0, 1):
        results, found = first_call(tmp_path, long, X, donate_argnums=0)
        assert found == found_before, "a plan that donates is another one"
        np.testing.assert_array_equal(results[0], expected[0])


def _other_shape(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    return first_call(folder, long, X[:5])


def _other_dtype(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    return first_call(folder, long, X.astype(np.float16))


def _other_constant(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    return first_call(folder, lambda x: (long(x)[0] + 1.0, long(x)[1]), X)


def _other_code(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    patch.setattr(plan_cache, "_own_code", lambda: "another version")
    return first_call(folder, long, X)


def _other_memory(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    patch.setitem(vars(runtime().backend), "memory_sizes", (1 << 30, 1 << 28))
    return first_call(folder, long, X)


def _other_profile(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    facts = vars(runtime().backend)
    patch.setitem(facts, "profile", replace(facts["profile"], adds_floats=not facts["profile"].adds_floats))
    return first_call(folder, long, X)


def _switched_off(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    patch.setenv("LAVAX_PLANS", "0")
    return first_call(folder, long, X)


def _verified(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    patch.setenv("LAVAX_VERIFY", "1")
    return first_call(folder, long, X)


def _other_precision(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    with lx.matmul_precision("bfloat16"):
        return first_call(folder, _long_product, X)


def _long_product(x: Any) -> Any:
    return long(x.T @ x)


OTHERS = (
    *(_other_shape, _other_dtype, _other_constant, _other_code, _other_memory, _other_profile),
    *(_switched_off, _verified),
)


@pytest.mark.parametrize("other", OTHERS)
def test_what_a_plan_hangs_on_is_in_its_key(
    other: Callable[..., tuple[Any, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_call(tmp_path, long, X)
    with monkeypatch.context() as patch:
        assert other(tmp_path, patch)[1] == 0
    assert first_call(tmp_path, long, X)[1] == 1


def test_the_precision_of_products_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first_call(tmp_path, _long_product, X)
    assert _other_precision(tmp_path, monkeypatch)[1] == 0
    assert _other_precision(tmp_path, monkeypatch)[1] == 1
    assert first_call(tmp_path, _long_product, X)[1] == 1


# Every setting of the environment: values that could change a program, or why it cannot.
SETTINGS = {
    "LAVAX_CHECK_KEY_REUSE": "1",
    "LAVAX_DEBUG_NANS": "programs are of single operations then, whose graphs are too small to be kept",
    "LAVAX_DEVICE": "another device has another profile, which is in the key",
    "LAVAX_GLSL": "compiles the plan's shaders, which have a cache of their own",
    "LAVAX_CACHE": "says where plans are",
    "LAVAX_GUARD_MEMORY": "1",
    "LAVAX_IDLE_MEMORY_SECONDS": "0",
    "LAVAX_KEPT_PROGRAMS": "1",
    "LAVAX_KEPT_PROGRAM_BYTES": "0",
    "LAVAX_LOG_COMPILES": "1",
    "LAVAX_PLANS": "switches this cache on",
    "LAVAX_RANDOM_CUTS": "7",
    "LAVAX_TUNE": "1",
    "LAVAX_VALIDATE": "read when a device is opened, and changes no profile",
    "LAVAX_VERIFY": "1",
    "LAVAX_X64": "1",
}


def test_every_setting_leaves_plans_as_they_are_or_gives_them_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(re.findall(r"LAVAX_[A-Z0-9_]+", Path(config.__file__).read_text())) - {"LAVAX_"} == SETTINGS.keys()
    for name, value in SETTINGS.items():
        if " " in value:
            continue
        found = []
        for chosen in ("", value):
            monkeypatch.setenv(name, chosen)
            with fresh_caches(tmp_path / name):
                (program,) = lx.compile(long).lower(lnp.array(X)).programs
                found.append((program._key(), written(program.plan)))
        monkeypatch.delenv(name)
        (key, plan), (other_key, other_plan) = found
        assert plan == other_plan or key != other_key or other_key is None, name


def test_plans_of_small_graphs_and_of_measured_schedules_are_not_kept(tmp_path: Path) -> None:
    first_call(tmp_path, lnp.sin, X)
    first_call(tmp_path, long, X, tune=True)
    assert not files_of(tmp_path)


def test_a_plan_with_large_tables_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_cache, "MOST_BYTES", 100)
    first_call(tmp_path, long, X)
    assert not files_of(tmp_path)


@pytest.mark.parametrize("damage", [lambda entry: entry[:-1], lambda entry: b"", lambda entry: entry[:-1] + b"?"])
def test_a_damaged_file_is_planned_and_written_again(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    expected, _ = first_call(tmp_path, long, X)
    (file,) = files_of(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    results, found = first_call(tmp_path, long, X)
    assert found == 0
    np.testing.assert_array_equal(results[0], expected[0])
    assert file.read_bytes() == whole
    assert first_call(tmp_path, long, X)[1] == 1


def test_a_whole_file_that_holds_no_plan_is_planned_and_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(plan_cache, "written", lambda plan: b"no plan")
        first_call(tmp_path, long, X)
    assert first_call(tmp_path, long, X)[1] == 0
    assert first_call(tmp_path, long, X)[1] == 1


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "plans").write_text("in the way")
    expected, _ = first_call(tmp_path, long, X)
    results, found = first_call(tmp_path, long, X)
    assert found == 0
    np.testing.assert_array_equal(results[0], expected[0])


def test_plans_of_a_folder_that_is_read_only_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first_call(tmp_path, long, X)

    def refused(*arguments: Any, **named: Any) -> Any:
        raise OSError(errno.EROFS, "a file system that is read-only")

    for module, name in ((tempfile, "mkstemp"), (os, "replace"), (os, "unlink")):
        monkeypatch.setattr(module, name, refused)
    assert first_call(tmp_path, long, X)[1] == 1
    first_call(tmp_path, long, X[:5])
    assert len(files_of(tmp_path)) == 1


def test_plans_take_no_more_room_than_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_cache, "LIMIT_BYTES", 6_000)
    monkeypatch.setattr(disk_cache, "ENTRIES_BETWEEN_TRIMS", 1)
    plan_cache._plans.cache_clear()
    try:
        for rows in range(1, 7):
            first_call(tmp_path, long, np.zeros((rows, 8), np.float32))
            assert sum(file.stat().st_size for file in files_of(tmp_path)) <= 6_000
        assert files_of(tmp_path), "the last one stays"
        assert len(files_of(tmp_path)) < 6, "some were too many"
    finally:
        plan_cache._plans.cache_clear()


def test_the_key_names_every_file_whose_code_makes_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of each room that is changed, and one that is added, give another key; what Python caches does not."""
    root = tmp_path / "lavax"
    base = root / "base"
    for folder in (base, *(tmp_path / room for room in plan_cache._ROOMS)):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "rule.py").write_text("1")
    monkeypatch.setattr(plan_cache, "_BASE", base)
    keys = [plan_cache._own_code.__wrapped__()]
    for folder in (base, *(tmp_path / room for room in plan_cache._ROOMS)):
        (folder / "deep" / "rule.py").write_text("12")
        keys.append(plan_cache._own_code.__wrapped__())
    (tmp_path / "passes" / "new.py").write_text("1")
    keys.append(plan_cache._own_code.__wrapped__())
    assert None not in keys
    assert len(set(keys)) == len(keys)
    (tmp_path / "ir" / "__pycache__").mkdir()
    (tmp_path / "ir" / "__pycache__" / "rule.pyc").write_text("1")
    assert plan_cache._own_code.__wrapped__() == keys[-1]
    monkeypatch.setattr(plan_cache, "_BASE", tmp_path / "nowhere" / "base")
    assert plan_cache._own_code.__wrapped__() is None, "an archive has no files to look at"


def test_a_checkout_keeps_none_unless_it_is_told_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for value, kept in ((None, False), ("", False), ("0", False), ("1", True)):
        monkeypatch.delenv("LAVAX_PLANS") if value is None else monkeypatch.setenv("LAVAX_PLANS", value)
        assert config.keeps_plans() is kept, value
    (tmp_path / "lavax" / "base").mkdir(parents=True)
    (tmp_path / "lavax" / "ir").mkdir()
    monkeypatch.delenv("LAVAX_PLANS", raising=False)
    monkeypatch.setattr(config, "__file__", str(tmp_path / "lavax" / "base" / "config.py"))
    assert config.keeps_plans(), "an installed package has its rooms in one folder"
