"""The compute pipelines of a device: created in parallel, one per shader, with the driver's cache kept on disk."""
from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from lavax.backends.vulkan.api.api import check, created, ffi, lib, structure, vk
from lavax.backends.vulkan.api.queue import refuse_forked
from lavax.backends.vulkan.compile.ahead import Ahead
from lavax.backends.vulkan.compile.driver_cache import DriverCache
from lavax.backends.vulkan.compile.pipeline_workers import PipelineWorkers, available, driver_of
from lavax.backends.vulkan.compile.shader_compiler import compile_again, compile_glsl
from lavax.backends.vulkan.memory.descriptor_ranges import PipelineLayouts
from lavax.backends.vulkan.plan.plan import Shader
from lavax.base import counters
from lavax.base.errors import DeviceError
from lavax.base.recent import Recent

PUSH_CONSTANT_BYTES = 128

# The most pipelines kept that no program uses any more. Drivers need up to a megabyte for each.
RECENT = 256


class Pipeline:
    """One compute pipeline, destroyed when it is dropped. Programs that use it keep it until the device is done."""

    def __init__(self, device: Any, handle: Any, layout: Any) -> None:
        self.handle = handle
        self.layout = layout
        self.destroy = weakref.finalize(self, lib.vkDestroyPipeline, device, handle, ffi.NULL)
        self.destroy.atexit = False


class Pipelines:
    """The pipelines of one device. Safe in several threads.

    Their `layouts` have push constants, and a descriptor per binding of the shader. With `names_subgroup_size`, they
    request the subgroup size of shaders that have one. A shader's pipeline is reused as long as a program uses it, or
    it is among the most recently requested ones.
    """

    def __init__(self, physical: Any, device: Any, names_subgroup_size: bool) -> None:
        self._device = device
        self.names_subgroup_size = names_subgroup_size
        self.made: Recent[Pipeline] = Recent(RECENT)
        self._forgotten: list[Recent[Pipeline]] = []
        self._lock = threading.Lock()
        self._driver_cache = DriverCache(physical, device)
        self.layouts = PipelineLayouts(device, PUSH_CONSTANT_BYTES)

    def ahead(self) -> Ahead[Shader, Pipeline]:
        """Creates pipelines from now on, while further shaders are written, for a later call of `get`."""
        return Ahead(self._create, lambda shader: self.made.get(shader) is not None, self._workers())

    def get(
        self, shaders: Iterable[Shader], ahead: Ahead[Shader, Pipeline] | None = None
    ) -> dict[Shader, Pipeline]:
        """The pipelines of all `shaders`; missing ones are compiled and created now, in several threads, or are those
        begun `ahead`."""
        wanted = dict.fromkeys(shaders)
        with self._lock:
            return self._found_or_created(wanted, ahead)

    def forget(self) -> None:
        """From now on pipelines are created anew; programs keep theirs. For tests of what is compiled."""
        with self._lock:
            self._forgotten.append(self.made)
            self.made.clear()
            self.made = Recent(RECENT)

    def abandon(self) -> None:
        """In a forked process: new pipelines raise DeviceError."""
        self._lock = threading.Lock()  # another thread may have held it
        self._create = refuse_forked  # type: ignore[assignment, method-assign]

    def save(self) -> None:
        """Writes the driver's cache to disk if it has grown."""
        self._driver_cache.save()

    def close(self) -> None:
        """Destroys everything; the device must be done with it."""
        for made in (self.made, *self._forgotten):
            for pipeline in made.values():
                pipeline.destroy()
        self.layouts.close()
        self._driver_cache.close()

    def _found_or_created(
        self, wanted: Iterable[Shader], ahead: Ahead[Shader, Pipeline] | None
    ) -> dict[Shader, Pipeline]:
        found = {shader: kept for shader in wanted if (kept := self.made.get(shader)) is not None}
        lacking = [shader for shader in wanted if shader not in found]
        begun = {shader: None if ahead is None else ahead.begun(shader) for shader in lacking}
        others = [shader for shader in lacking if begun[shader] is None]
        created = self._created_together(others)
        for shader, future in begun.items():
            pipeline = created[shader] if future is None else future.result()
            self.made.enter(shader, pipeline)
            found[shader] = pipeline
        counters.count("pipelines", len(lacking))
        return found

    def _created_together(self, shaders: Sequence[Shader]) -> dict[Shader, Pipeline]:
        """The pipelines of these shaders: that of the last is created by this thread, and the others by others."""
        with self.ahead() as ahead:
            for shader in shaders:
                ahead.want(shader)
            begun = {shader: ahead.begun(shader) for shader in reversed(shaders)}
            return {shader: self._create(shader) if each is None else each.result() for shader, each in begun.items()}

    def _workers(self) -> PipelineWorkers[Pipeline] | None:
        """The extension's threads, if it has such; none of them runs before it has work."""
        if not available():
            return None
        driver = driver_of(self._device, self._driver_cache.handle)
        return PipelineWorkers(driver, self._description, self._pipeline, self._create)

    def _create(self, shader: Shader) -> Pipeline:
        """The pipeline of a shader. If the driver refuses what the cache on disk had, it is compiled once more."""
        spirv = compile_glsl(shader.source)
        try:
            return self._created(shader, spirv)
        except DeviceError:
            again = compile_again(shader.source)
            if again == spirv:
                raise
            return self._created(shader, again)

    def _created(self, shader: Shader, spirv: bytes) -> Pipeline:
        words = ffi.new("uint32_t[]", len(spirv) // 4)
        ffi.memmove(words, spirv, len(spirv))
        code = structure("VkShaderModuleCreateInfo", codeSize=len(spirv), pCode=words)
        module = created(lib.vkCreateShaderModule, self._device, code, "VkShaderModule")
        info, kept = self._description(shader)
        info.stage.module = module
        pipeline = ffi.new("VkPipeline *")
        result = lib.vkCreateComputePipelines(self._device, self._driver_cache.handle, 1, info, ffi.NULL, pipeline)
        lib.vkDestroyShaderModule(self._device, module, ffi.NULL)
        del kept
        check(result, "Creating a compute pipeline")
        return self._pipeline(shader, pipeline[0])

    def _description(self, shader: Shader) -> tuple[Any, Any]:
        """How a shader's pipeline is described to the driver, but for its module; and what must live as long."""
        stage = _stage(shader, self.names_subgroup_size)
        return structure("VkComputePipelineCreateInfo", stage=stage[0], layout=self._layout(shader)), stage

    def _pipeline(self, shader: Shader, handle: Any) -> Pipeline:
        return Pipeline(self._device, handle, self._layout(shader))

    def _layout(self, shader: Shader) -> Any:
        return self.layouts.of_pipeline(tuple(form for form, _ in shader.bindings))


def _stage(shader: Shader, names_subgroup_size: bool) -> Any:
    """The shader stage of a pipeline: entry point main, with the shader's constants and subgroup size."""
    subgroup: dict[str, Any] = {}
    if shader.subgroup_size is not None:
        if names_subgroup_size:
            kind = "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo"
            subgroup["pNext"] = structure(kind, requiredSubgroupSize=shader.subgroup_size)
        subgroup["flags"] = lib.VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
    return structure(
        "VkPipelineShaderStageCreateInfo",
        stage=vk.VK_SHADER_STAGE_COMPUTE_BIT,
        pName=ffi.new("char[]", b"main"),
        pSpecializationInfo=_specialization(shader.specialization),
        **subgroup,
    )


def _specialization(values: tuple[int, ...]) -> Any:
    """Specialization constant i is the 32-bit word values[i]; negative values are in two's complement."""
    entries = ffi.new("VkSpecializationMapEntry[]", [(index, 4 * index, 4) for index in range(len(values))])
    words = ffi.new("uint32_t[]", [value & 0xFFFFFFFF for value in values])
    return structure(
        "VkSpecializationInfo", mapEntryCount=len(values), pMapEntries=entries, dataSize=4 * len(values), pData=words
    )
