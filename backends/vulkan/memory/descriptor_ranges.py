"""Descriptor ranges: the parts of a memory block that shaders see through descriptors, and the descriptors.

A descriptor covers a limited number of bytes, and a recorded command buffer cannot be changed to refer to others. So a
block has ranges that overlap by half: an array of up to half a range's length lies within one of them, wherever it
starts. A program is recorded for the ranges that its arrays lie in.
"""
from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lavax.backends.vulkan.api.api import array, check, created, ffi, lib, structure, vk

TEXEL_BYTES = 16  # the unit of positions in a range

# The forms in which a shader sees a range: the descriptor's type, and the format of texels.
_TYPES = {
    "vectors": vk.VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
    "couples": vk.VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
    "elements": vk.VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
    "fours": vk.VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER,
    "ones": vk.VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER,
    "eights": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    "stores": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    "pairs": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    "longs": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    "singles": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    "octets": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    "quartets": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
    **{f"shifted{words}_": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER for words in (1, 2, 3)},
}
_FORMATS = {
    "vectors": vk.VK_FORMAT_R32G32B32A32_UINT,
    "couples": vk.VK_FORMAT_R32G32_UINT,
    "elements": vk.VK_FORMAT_R32_UINT,
    "fours": vk.VK_FORMAT_R32G32B32A32_UINT,
    "ones": vk.VK_FORMAT_R32_UINT,
}


class DescriptorRange:
    """`nbytes` bytes of a VkBuffer from the offset `start` on."""

    def __init__(self, device: Any, buffer: Any, start: int, nbytes: int) -> None:
        self.buffer, self.start, self.nbytes = buffer, start, nbytes
        self._device = device
        self._views: dict[str, Any] = {}
        self._lock = threading.Lock()

    def texels(self, form: str) -> Any:
        """The VkBufferView of the range in a form with texels."""
        with self._lock:
            if form not in self._views:
                info = structure(
                    "VkBufferViewCreateInfo",
                    buffer=self.buffer,
                    format=_FORMATS[form],
                    offset=self.start,
                    range=self.nbytes,
                )
                self._views[form] = created(lib.vkCreateBufferView, self._device, info, "VkBufferView")
            return self._views[form]

    def close(self) -> None:
        """Destroys the views; the device must be done with them."""
        for view in self._views.values():
            lib.vkDestroyBufferView(self._device, view, ffi.NULL)
        self._views.clear()


class DescriptorRanges:
    """The ranges of one buffer of `size` bytes, created when first used, by any thread.

    Each has at most `most` bytes; half of that is a multiple of the device's alignments.
    """

    def __init__(self, device: Any, buffer: Any, size: int, most: int) -> None:
        self._device, self._buffer, self._size = device, buffer, size
        self._most, self._step = most, most // 2 if size > most else size
        self._made: dict[int, DescriptorRange] = {}

    def at(self, offset: int) -> tuple[DescriptorRange, int]:
        """The range for an array that starts at `offset`, and the array's position in it, in texels."""
        start = offset // self._step * self._step
        found = self._made.get(start)
        if found is None:
            nbytes = min(self._most, self._size - start)
            found = self._made.setdefault(start, DescriptorRange(self._device, self._buffer, start, nbytes))
        return found, (offset - start) // TEXEL_BYTES

    def close(self) -> None:
        """Destroys all ranges; the device must be done with them."""
        for each in self._made.values():
            each.close()


# A shader's bindings: per binding a range, and the form in which the shader sees it.
BoundRanges = tuple[tuple[str, DescriptorRange], ...]


class PipelineLayouts:
    """Layouts of pipelines: push constants of a fixed number of bytes, and bindings with one form each.

    Safe in several threads.
    """

    def __init__(self, device: Any, push_constant_bytes: int) -> None:
        self._device = device
        self._constants = structure(
            "VkPushConstantRange", stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=push_constant_bytes
        )
        self._lock = threading.RLock()
        self._sets: dict[tuple[str, ...], Any] = {}
        self._pipelines: dict[tuple[str, ...], Any] = {}

    def of_pipeline(self, forms: tuple[str, ...]) -> Any:
        """The VkPipelineLayout of shaders whose bindings have these forms."""
        with self._lock:
            if forms not in self._pipelines:
                self._pipelines[forms] = self._create(forms)
            return self._pipelines[forms]

    def of_set(self, forms: tuple[str, ...]) -> Any:
        """The VkDescriptorSetLayout of bindings with these forms."""
        with self._lock:
            if forms not in self._sets:
                self._sets[forms] = self._create_set(forms)
            return self._sets[forms]

    def close(self) -> None:
        """Destroys the layouts; no pipeline that has one may be used any more."""
        for layout in self._pipelines.values():
            lib.vkDestroyPipelineLayout(self._device, layout, ffi.NULL)
        for layout in self._sets.values():
            lib.vkDestroyDescriptorSetLayout(self._device, layout, ffi.NULL)

    def _create(self, forms: tuple[str, ...]) -> Any:
        info = structure(
            "VkPipelineLayoutCreateInfo",
            pushConstantRangeCount=1,
            pPushConstantRanges=self._constants,
            setLayoutCount=1 if forms else 0,
            pSetLayouts=array("VkDescriptorSetLayout", [self.of_set(forms)] if forms else []),
        )
        return created(lib.vkCreatePipelineLayout, self._device, info, "VkPipelineLayout")

    def _create_set(self, forms: tuple[str, ...]) -> Any:
        bindings = [
            structure(
                "VkDescriptorSetLayoutBinding",
                binding=number,
                descriptorType=_TYPES[form],
                descriptorCount=1,
                stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT,
            )[0]
            for number, form in enumerate(forms)
        ]
        info = structure(
            "VkDescriptorSetLayoutCreateInfo",
            bindingCount=len(bindings),
            pBindings=array("VkDescriptorSetLayoutBinding", bindings),
        )
        return created(lib.vkCreateDescriptorSetLayout, self._device, info, "VkDescriptorSetLayout")


class DescriptorSets:
    """A VkDescriptorSet for each combination of ranges; all are destroyed together."""

    def __init__(self, device: Any, layouts: PipelineLayouts, combinations: Iterable[BoundRanges]) -> None:
        self._device = device
        wanted = list(dict.fromkeys(filter(None, combinations)))
        self._pool = self._create_pool(wanted) if wanted else None
        self._made: Mapping[BoundRanges, Any] = {bound: self._create(layouts, bound) for bound in wanted}

    def of(self, bound: BoundRanges) -> Any:
        """The set for a combination, as an array of one element."""
        return self._made[bound]

    def close(self) -> None:
        """Destroys the sets; the device must be done with them."""
        if self._pool is not None:
            lib.vkDestroyDescriptorPool(self._device, self._pool, ffi.NULL)

    def _create_pool(self, wanted: Sequence[BoundRanges]) -> Any:
        types = [_TYPES[form] for bound in wanted for form, _ in bound]
        sizes = [
            structure("VkDescriptorPoolSize", type=kind, descriptorCount=types.count(kind))[0]
            for kind in dict.fromkeys(types)
        ]
        info = structure(
            "VkDescriptorPoolCreateInfo",
            maxSets=len(wanted),
            poolSizeCount=len(sizes),
            pPoolSizes=array("VkDescriptorPoolSize", sizes),
        )
        return created(lib.vkCreateDescriptorPool, self._device, info, "VkDescriptorPool")

    def _create(self, layouts: PipelineLayouts, bound: BoundRanges) -> Any:
        layout = array("VkDescriptorSetLayout", [layouts.of_set(tuple(form for form, _ in bound))])
        info = structure(
            "VkDescriptorSetAllocateInfo", descriptorPool=self._pool, descriptorSetCount=1, pSetLayouts=layout
        )
        made = ffi.new("VkDescriptorSet *")
        check(lib.vkAllocateDescriptorSets(self._device, info, made), "Allocating a descriptor set")
        writes = [_write(made[0], number, form, shown) for number, (form, shown) in enumerate(bound)]
        lib.vkUpdateDescriptorSets(
            self._device, len(writes), array("VkWriteDescriptorSet", [write[0] for write in writes]), 0, ffi.NULL
        )
        return made


def _write(target: Any, number: int, form: str, shown: DescriptorRange) -> Any:
    members: dict[str, Any] = {"dstSet": target, "dstBinding": number, "descriptorCount": 1}
    members["descriptorType"] = _TYPES[form]
    if form in _FORMATS:
        members["pTexelBufferView"] = array("VkBufferView", [shown.texels(form)])
    else:
        members["pBufferInfo"] = structure(
            "VkDescriptorBufferInfo", buffer=shown.buffer, offset=shown.start, range=shown.nbytes
        )
    return structure("VkWriteDescriptorSet", **members)
