"""Windows: the parts of a block of memory that shaders see through descriptors, and the descriptors themselves.

A descriptor shows so many bytes at most, and what a recorded command buffer refers to cannot be changed. So a block is
seen through windows that overlap by half: an array of up to half a window's length lies in one of them wherever it
begins, and a program is recorded for the windows that its arrays lie in.
"""
from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lavax.backends.vulkan.api.api import array, check, created, ffi, lib, structure, vk

TEXEL_BYTES = 16  # what positions in a window are counted in

# By the form in which a shader sees a window: the descriptor's type, and a texel's format.
_TYPES = {
    "vectors": vk.VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
    "elements": vk.VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
    "stores": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
}
_FORMATS = {"vectors": vk.VK_FORMAT_R32G32B32A32_UINT, "elements": vk.VK_FORMAT_R32_UINT}


class Window:
    """`nbytes` bytes of a VkBuffer from the offset `start` on."""

    def __init__(self, device: Any, buffer: Any, start: int, nbytes: int) -> None:
        self.buffer, self.start, self.nbytes = buffer, start, nbytes
        self._device = device
        self._views: dict[str, Any] = {}
        self._lock = threading.Lock()

    def texels(self, form: str) -> Any:
        """A VkBufferView of the window in a form of texels."""
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
        """Gives the views back; the device must be done with them."""
        for view in self._views.values():
            lib.vkDestroyBufferView(self._device, view, ffi.NULL)
        self._views.clear()


class Windows:
    """The windows of one buffer of `size` bytes; made when first asked for, by any thread.

    Each has at most `most` bytes, of which half is a multiple of the device's alignments.
    """

    def __init__(self, device: Any, buffer: Any, size: int, most: int) -> None:
        self._device, self._buffer, self._size = device, buffer, size
        self._most, self._step = most, most // 2 if size > most else size
        self._made: dict[int, Window] = {}

    def at(self, offset: int) -> tuple[Window, int]:
        """The window for an array that begins at the offset, and its position there, in texels."""
        start = offset // self._step * self._step
        window = self._made.get(start)
        if window is None:
            nbytes = min(self._most, self._size - start)
            window = self._made.setdefault(start, Window(self._device, self._buffer, start, nbytes))
        return window, (offset - start) // TEXEL_BYTES

    def close(self) -> None:
        """Gives all windows back; the device must be done with them."""
        for window in self._made.values():
            window.close()


# What a shader sees: a form of a window at each of its bindings.
Seen = tuple[tuple[str, Window], ...]


class Layouts:
    """Layouts of pipelines: push constants of that many bytes, and a binding for each form in which windows are seen.

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
        """The VkPipelineLayout of shaders with these forms at their bindings."""
        with self._lock:
            if forms not in self._pipelines:
                self._pipelines[forms] = self._create(forms)
            return self._pipelines[forms]

    def of_set(self, forms: tuple[str, ...]) -> Any:
        """The VkDescriptorSetLayout of them."""
        with self._lock:
            if forms not in self._sets:
                self._sets[forms] = self._create_set(forms)
            return self._sets[forms]

    def close(self) -> None:
        """Destroys them; no pipeline of theirs may be used any more."""
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
    """A VkDescriptorSet for each of those combinations that shaders see; they live and die together."""

    def __init__(self, device: Any, layouts: Layouts, seen: Iterable[Seen]) -> None:
        self._device = device
        wanted = list(dict.fromkeys(filter(None, seen)))
        self._pool = self._create_pool(wanted) if wanted else None
        self._made: Mapping[Seen, Any] = {one: self._create(layouts, one) for one in wanted}

    def of(self, seen: Seen) -> Any:
        """The set of a combination, as an array of one."""
        return self._made[seen]

    def close(self) -> None:
        """Gives them back; the device must be done with them."""
        if self._pool is not None:
            lib.vkDestroyDescriptorPool(self._device, self._pool, ffi.NULL)

    def _create_pool(self, wanted: Sequence[Seen]) -> Any:
        types = [_TYPES[form] for one in wanted for form, _ in one]
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

    def _create(self, layouts: Layouts, seen: Seen) -> Any:
        layout = array("VkDescriptorSetLayout", [layouts.of_set(tuple(form for form, _ in seen))])
        info = structure(
            "VkDescriptorSetAllocateInfo", descriptorPool=self._pool, descriptorSetCount=1, pSetLayouts=layout
        )
        made = ffi.new("VkDescriptorSet *")
        check(lib.vkAllocateDescriptorSets(self._device, info, made), "Allocating a descriptor set")
        writes = [_write(made[0], number, form, window) for number, (form, window) in enumerate(seen)]
        lib.vkUpdateDescriptorSets(
            self._device, len(writes), array("VkWriteDescriptorSet", [write[0] for write in writes]), 0, ffi.NULL
        )
        return made


def _write(target: Any, number: int, form: str, window: Window) -> Any:
    members: dict[str, Any] = {"dstSet": target, "dstBinding": number, "descriptorCount": 1}
    members["descriptorType"] = _TYPES[form]
    if form in _FORMATS:
        members["pTexelBufferView"] = array("VkBufferView", [window.texels(form)])
    else:
        members["pBufferInfo"] = structure(
            "VkDescriptorBufferInfo", buffer=window.buffer, offset=window.start, range=window.nbytes
        )
    return structure("VkWriteDescriptorSet", **members)
