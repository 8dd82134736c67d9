"""Pipelines made by the extension's threads, of GLSL or of modules that are kept, while Python writes more shaders."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from lavax.backends.vulkan.api.api import ffi, lib
from lavax.backends.vulkan.compile import workers
from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.compile.exact_floats import EXACT_FLOATS
from lavax.backends.vulkan.compile.in_process import compiles_in_process
from lavax.backends.vulkan.compile.ordered_floats import ORDERED_FLOATS
from lavax.backends.vulkan.compile.shader_compiler import count_compilation, keep_modules, known_module
from lavax.backends.vulkan.plan.plan import Shader

_Made = TypeVar("_Made")

# What the threads call the changes that shaders ask for by their marks.
CHANGES = {BRAIN_FLOATS: "brain_floats", EXACT_FLOATS: "exact_floats", ORDERED_FLOATS: "ordered_floats"}

_MODULE_OFFSET = ffi.offsetof("VkComputePipelineCreateInfo", "stage") + ffi.offsetof(
    "VkPipelineShaderStageCreateInfo", "module"
)


def driver_of(device: Any, cache: Any) -> workers.Driver:
    """What the threads need of a device and its VkPipelineCache."""
    calls = (lib.vkCreateShaderModule, lib.vkDestroyShaderModule, lib.vkCreateComputePipelines)
    return workers.Driver(*(number_of(each) for each in (device, cache, *calls)))


def number_of(pointer: Any) -> int:
    """A handle or a function's address as a number."""
    return int(ffi.cast("uintptr_t", pointer))


class PipelineWorkers(Generic[_Made]):
    """The threads of one program's shaders, for Ahead.

    `describe` gives a shader's VkComputePipelineCreateInfo without its module, and what must live as long; `take` gives
    what is made of its handle. What the threads cannot make, `otherwise` makes, or it raises what there is to raise.
    """

    def __init__(
        self,
        driver: workers.Driver,
        describe: Callable[[Shader], tuple[Any, Any]],
        take: Callable[[Shader, Any], _Made],
        otherwise: Callable[[Shader], _Made],
    ) -> None:
        self._workers = workers.Workers(driver)
        self.describe, self.take, self.otherwise = describe, take, otherwise
        self._begun: list[_Begun[_Made]] = []
        self.compiled: dict[str, bytes] = {}

    def begin(self, shader: Shader, /) -> _Begun[_Made] | None:
        """Has a shader's pipeline made soon; None if no thread can be started."""
        source = shader.source
        spirv = known_module(source)
        info, stage = self.describe(shader)
        changes = [name for mark, name in CHANGES.items() if mark in source]
        job = self._workers.begin(source, spirv, changes, number_of(info), _MODULE_OFFSET, (info, stage))
        if job is None:
            return None
        if spirv is None:
            count_compilation()
        begun = _Begun(self, shader, job, is_known=spirv is not None)
        self._begun.append(begun)
        return begun

    def made(self, job: Any) -> workers.Made | None:
        """What a thread has made, when it is there; None if it could not."""
        return self._workers.made(job)

    def end(self) -> None:
        """Waits for what is begun. Pipelines that nobody asked for are destroyed; their modules are kept."""
        self._workers.end()
        for begun in self._begun:
            begun.settle()
        self._begun.clear()
        if self.compiled:
            keep_modules(self.compiled)
        self._workers.drop()


class _Begun(Generic[_Made]):
    """A pipeline that a thread makes."""

    def __init__(self, threads: PipelineWorkers[_Made], shader: Shader, job: Any, is_known: bool) -> None:
        self._threads, self._shader, self._job, self._is_known = threads, shader, job, is_known
        self._is_settled = False
        self._found: _Made | None = None

    def result(self) -> _Made:
        """The pipeline, once it is there. Raises what is wrong with the shader, or the driver's refusal."""
        self.settle()
        if self._found is None:
            self._found = self._threads.otherwise(self._shader)
        return self._found

    def settle(self) -> None:
        """Waits for the thread, and takes what it made."""
        if self._is_settled:
            return
        made = self._threads.made(self._job)
        self._is_settled = True
        if made is None:
            return
        self._found = self._threads.take(self._shader, ffi.cast("VkPipeline", made.pipeline))
        if not self._is_known:
            self._threads.compiled[self._shader.source] = made.spirv


def available() -> bool:
    """Whether shaders are compiled in process, by an extension that has such threads."""
    return compiles_in_process() and workers.available()
