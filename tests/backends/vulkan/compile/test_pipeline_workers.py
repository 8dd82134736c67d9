"""Pipelines made by the extension's threads: the modules that the driver gets, and what cannot be made."""
from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lavax.backends.vulkan.api.api import ffi
from lavax.backends.vulkan.compile import pipeline_workers, pipelines, shader_compiler, workers
from lavax.backends.vulkan.compile.background import wait_for_background
from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.compile.exact_floats import EXACT_FLOATS
from lavax.backends.vulkan.compile.ordered_floats import ORDERED_FLOATS
from lavax.backends.vulkan.compile.pipelines import Pipeline, Pipelines
from lavax.backends.vulkan.compile.shader_compiler import CHANGES, compile_glsl
from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.glslang import compile_shader
from lavax.backends.vulkan.plan.plan import Shader
from lavax.base import counters
from lavax.base.errors import DeviceError, ShaderCompilerError
from lavax.testing.caches import fresh_caches
from tests.backends.vulkan.emit.shaders import ADD, ADD_ONE

pytestmark = pytest.mark.skipif(
    not pipeline_workers.available(), reason="the extension was not built, or by an earlier version"
)

# All that changes of modules look for: halves, the extension of matrices and another, `precise` arithmetic and other.
CHANGEABLE = """#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_spirv_intrinsics : require
spirv_execution_mode(extensions = ["SPV_KHR_cooperative_matrix", "SPV_KHR_float_controls"], 4461, 32);
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { vec4 data[]; };
layout(set = 0, binding = 1) buffer Halves { float16_t halves[]; };
void main() {
    vec4 x = data[0], y = data[1];
    precise vec4 kept = x * y;
    data[2] = (x + y) - x + kept / (2.5 * x) - vec4(dot(x, y)) + mod(x, y) + (-y);
    halves[1] = halves[0] * float16_t(x.x);
}
"""


@pytest.fixture(autouse=True)
def no_pipelines() -> None:
    """The device that these tests open may not be the one that fresh_caches knows of."""
    get_device().pipelines.forget()


class Driver:
    """A driver whose functions are Python's: it keeps the modules that it is given, and numbers pipelines from 7 on."""

    def __init__(self, before: Callable[[], None] = lambda: None, refuses: str = "") -> None:
        self.modules: list[bytes] = []
        self.placed: list[int] = []
        self.destroyed: list[int] = []
        info = ffi.new("VkComputePipelineCreateInfo *")
        self.info = info

        def create_module(device: Any, code: Any, allocator: Any, module: Any) -> int:
            self.modules.append(bytes(ffi.buffer(code.pCode, code.codeSize)))
            module[0] = ffi.cast("VkShaderModule", 40 + len(self.modules))
            return -1 if refuses == "module" else 0

        def destroy_module(device: Any, module: Any, allocator: Any) -> None:
            self.destroyed.append(int(ffi.cast("uintptr_t", module)))

        def create(device: Any, cache: Any, count: int, given: Any, allocator: Any, pipeline: Any) -> int:
            before()
            self.placed.append(int(ffi.cast("uintptr_t", given.stage.module)))
            ffi.cast("VkPipeline *", pipeline)[0] = ffi.cast("VkPipeline", 6 + len(self.placed))
            return -1 if refuses == "pipeline" else 0

        create_code = "int32_t(VkDevice, VkShaderModuleCreateInfo *, VkAllocationCallbacks *, VkShaderModule *)"
        create_form = "int32_t(VkDevice, VkPipelineCache, uint32_t, VkComputePipelineCreateInfo *, void *, void *)"
        self.calls = (
            ffi.callback(create_code, create_module),
            ffi.callback("void(VkDevice, VkShaderModule, void *)", destroy_module),
            ffi.callback(create_form, create),
        )
        driver = workers.Driver(1, 2, *(pipeline_workers.number_of(call) for call in self.calls))
        self.threads = workers.Workers(driver)

    def begin(self, source: str, spirv: bytes | None = None, changes: Iterable[str] = ()) -> Any:
        place = pipeline_workers.number_of(self.info)
        return self.threads.begin(source, spirv, changes, place, pipeline_workers._MODULE_OFFSET, self.info)

    def end(self) -> None:
        self.threads.end()
        self.threads.drop()


@pytest.mark.parametrize(
    "marks",
    [(), *((mark,) for mark in CHANGES), (BRAIN_FLOATS, EXACT_FLOATS), (BRAIN_FLOATS, ORDERED_FLOATS)],
)
def test_modules_are_changed_as_those_that_python_changes(marks: tuple[str, ...]) -> None:
    expected = plain = compile_shader(CHANGEABLE)
    for mark in marks:
        expected = CHANGES[mark](expected)
    assert (expected == plain) == (not marks)
    driver = Driver()
    names = [pipeline_workers.CHANGES[mark] for mark in marks]
    made = driver.threads.made(driver.begin(CHANGEABLE, None, names))
    assert made is not None and made.spirv == expected and made.pipeline == 7
    assert made.compiler_seconds > 0 and made.driver_seconds > 0
    assert driver.modules == [expected] and driver.placed == driver.destroyed == [41]
    driver.end()


def test_the_threads_make_all_changes() -> None:
    assert list(pipeline_workers.CHANGES) == list(CHANGES)
    assert tuple(pipeline_workers.CHANGES.values()) == workers.CHANGES


def test_a_module_that_is_there_is_taken_as_it_is() -> None:
    spirv = compile_shader(CHANGEABLE)
    driver = Driver()
    made = driver.threads.made(driver.begin("no GLSL", spirv, workers.CHANGES))
    assert made is not None and made.spirv == spirv and driver.modules == [spirv]
    driver.end()


def test_what_glslang_or_the_driver_refuses_is_not_made() -> None:
    driver = Driver()
    assert driver.threads.made(driver.begin("#version 460\nvoid main() { nothing; }\n")) is None
    assert driver.modules == []
    driver.end()
    for refuses, destroyed in (("module", []), ("pipeline", [41])):
        driver = Driver(refuses=refuses)
        assert driver.threads.made(driver.begin(ADD_ONE)) is None
        assert len(driver.modules) == 1 and driver.destroyed == destroyed
        driver.end()


def test_what_has_no_thread_at_the_end_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    begun, may_end = threading.Semaphore(0), threading.Event()

    def before() -> None:
        begun.release()
        assert may_end.wait(60)

    driver = Driver(before)
    jobs = [driver.begin(ADD_ONE) for _ in range(5)]
    assert begun.acquire(timeout=60) and begun.acquire(timeout=60), "two threads are at it"
    threading.Timer(0.2, may_end.set).start()
    driver.threads.end()
    assert [driver.threads.made(job) is not None for job in jobs] == [True, True, False, False, False]
    assert len(driver.placed) == 2
    driver.threads.drop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_waits_for_no_thread_of_the_other_one() -> None:
    may_end = threading.Event()

    def before() -> None:
        assert may_end.wait(60)

    driver = Driver(before)
    job = driver.begin(ADD_ONE)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends the process if it waits
        made, more = driver.threads.made(job), driver.begin(ADD)
        driver.end()
        os._exit(3 if made is None and more is None else 4)
    _, status = os.waitpid(child, 0)
    may_end.set()
    assert os.waitstatus_to_exitcode(status) == 3
    assert driver.threads.made(job) is not None
    driver.end()


def test_threads_that_an_interrupt_leaves_are_ended_before_what_they_read_is_freed() -> None:
    begun, may_end, order = threading.Event(), threading.Event(), list[str]()

    def before() -> None:
        begun.set()
        assert may_end.wait(60)
        order.append("read")

    class Kept:
        pass

    driver, kept = Driver(before), Kept()
    weakref.finalize(kept, order.append, "freed")
    place = pipeline_workers.number_of(driver.info)
    driver.threads.begin(ADD_ONE, None, (), place, pipeline_workers._MODULE_OFFSET, kept)
    del kept
    assert begun.wait(60)
    threading.Timer(0.2, may_end.set).start()
    del driver.threads
    assert order == ["read", "freed"]


def _await(begun: Any) -> None:
    """Returns when the thread is done, and takes nothing of what it made."""
    begun._threads.made(begun._job)


def _broken() -> str:
    return ADD_ONE.replace("+ 1.0", "+ nothing")


def test_errors_are_those_of_pipelines_that_python_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler's message with its lines; and a driver's refusal, after the driver was asked once more."""
    with fresh_caches(tmp_path):
        every = get_device().pipelines
        with every.ahead() as ahead:
            for source in (_broken(), ADD):
                ahead.want(Shader(source))
            begun = ahead.begun(Shader(_broken()))
            assert begun is not None
            with pytest.raises(ShaderCompilerError, match="nothing"):
                begun.result()
        monkeypatch.setattr(workers.Workers, "made", lambda self, job: None)

        def refused(self: Pipelines, shader: Shader, spirv: bytes) -> Pipeline:
            raise DeviceError("Creating a compute pipeline failed.")

        monkeypatch.setattr(Pipelines, "_created", refused)
        with every.ahead() as ahead:
            for source in (ADD_ONE, ADD):
                ahead.want(Shader(source))
            with pytest.raises(DeviceError, match="Creating a compute pipeline failed"):
                every.get([Shader(ADD_ONE)], ahead)


def test_modules_are_kept_in_memory_and_on_disk(tmp_path: Path) -> None:
    """Also those of pipelines that nobody asked for; and what is kept is not compiled again."""
    with fresh_caches(tmp_path):
        every = get_device().pipelines
        before = counters.snapshot()["glsl_compiles"]

        def made() -> tuple[int, int]:
            with every.ahead() as ahead:
                for source in (ADD_ONE, ADD):
                    ahead.want(Shader(source))
                ahead.begin_last()
                for source in (ADD_ONE, ADD):
                    _await(ahead.begun(Shader(source)))
            return counters.snapshot()["glsl_compiles"] - before, len(every.made.values())

        assert made() == (2, 0)
        wait_for_background()
        assert len(list((tmp_path / "spirv").glob("*"))) == 2
        assert shader_compiler.known_module(ADD) == compile_shader(ADD)
        assert made() == (2, 0), "memory has them"
        shader_compiler.forget_compiled()
        assert made() == (2, 0), "the disk has them"
        assert compile_glsl(ADD_ONE) == compile_shader(ADD_ONE)
        assert counters.snapshot()["glsl_compiles"] - before == 2


@pytest.mark.parametrize("by", ["the extension's threads", "threads of Python's"])
def test_pipelines_that_were_not_begun_are_created_together(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a plan from disk: all but the last by other threads, and one alone by this one."""
    if by == "threads of Python's":
        monkeypatch.setattr(pipelines, "available", lambda: False)
    shaders = [Shader(source) for source in (ADD_ONE, ADD, ADD_ONE.replace("+ 1.0", "+ 2.0"))]
    here: list[Shader] = []
    create = Pipelines._create

    def creating(self: Pipelines, shader: Shader) -> Pipeline:
        if threading.current_thread() is threading.main_thread():
            here.append(shader)
        return create(self, shader)

    monkeypatch.setattr(Pipelines, "_create", creating)
    with fresh_caches(tmp_path):
        every = get_device().pipelines
        before = counters.snapshot()["pipelines"]
        found = every.get(shaders)
        assert set(found) == set(shaders) and here == shaders[-1:]
        assert len({int(ffi.cast("uintptr_t", each.handle)) for each in found.values()}) == 3
        assert every.get(shaders) == found
        assert counters.snapshot()["pipelines"] - before == 3
        every.forget()
        every.get(shaders[:1])
        assert here == [shaders[-1], shaders[0]]


def test_pipelines_that_nobody_asked_for_are_destroyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []
    take = Pipelines._pipeline

    def taking(self: Pipelines, shader: Shader, handle: Any) -> Pipeline:
        pipeline = take(self, shader, handle)
        taken.append(pipeline.destroy)
        return pipeline

    monkeypatch.setattr(Pipelines, "_pipeline", taking)
    with fresh_caches(tmp_path):
        with get_device().pipelines.ahead() as ahead:
            for source in (ADD_ONE, ADD):
                ahead.want(Shader(source))
            _await(ahead.begun(Shader(ADD_ONE)))
        (destroy,) = taken
        del ahead
        assert not destroy.alive


def test_an_extension_of_an_earlier_version_is_left_to_pythons_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Extension:
        lib = object()

    monkeypatch.setattr(workers.glslang, "started", Extension)
    assert not workers.available()
    assert get_device().pipelines._workers() is None
    assert pipelines.available is pipeline_workers.available
