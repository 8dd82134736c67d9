"""The Khronos validation layer: enabled with the instance; this module collects its messages."""
from __future__ import annotations

import sys
from typing import Any

from lavax.backends.vulkan.api.api import array, check, enumerated, ffi, lib, structure, text, vk
from lavax.base.errors import DeviceError

LAYER = "VK_LAYER_KHRONOS_validation"
EXTENSIONS = ("VK_EXT_debug_utils", "VK_EXT_validation_features")

_messages: list[str] = []


def messages() -> list[str]:
    """The messages of the validation layer in this process so far; empty if all is well."""
    return list(_messages)


def require_layer() -> None:
    """Raises DeviceError if the layer is not installed."""
    layers = enumerated(lib.vkEnumerateInstanceLayerProperties, "VkLayerProperties")
    if LAYER not in [text(layer.layerName) for layer in layers]:
        raise DeviceError(
            "LAVAX_VALIDATE is set, but the Khronos validation layer is not installed. Install it (Debian and Ubuntu: "
            "apt install vulkan-validationlayers) or unset LAVAX_VALIDATE."
        )


def layer_settings() -> Any:
    """The structure that enables synchronization validation, for the instance's pNext."""
    enabled = array("VkValidationFeatureEnableEXT", [vk.VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT])
    return structure("VkValidationFeaturesEXT", enabledValidationFeatureCount=1, pEnabledValidationFeatures=enabled)


def collect_messages(instance: Any) -> None:
    """Prints the layer's warnings and errors to standard error, and keeps them for `messages()`."""
    info = structure(
        "VkDebugUtilsMessengerCreateInfoEXT",
        messageSeverity=vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT
        | vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        messageType=vk.VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT
        | vk.VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        pfnUserCallback=_callback,
    )
    address = lib.vkGetInstanceProcAddr(instance, b"vkCreateDebugUtilsMessengerEXT")
    create = ffi.cast("PFN_vkCreateDebugUtilsMessengerEXT", address)
    messenger = ffi.new("VkDebugUtilsMessengerEXT *")
    check(create(instance, info, ffi.NULL, messenger), "Listening to the validation layer")


def _receive(_severity: int, _kinds: int, data: Any, _user: Any) -> int:
    message = text(data.pMessage)
    if is_about_descriptor_ranges(message):
        return 0
    _messages.append(message)
    sys.stderr.write(message + "\n")
    return 0


def is_about_descriptor_ranges(message: str) -> bool:
    """Whether a message reports a conflict only because two dispatches use the same descriptor range.

    The layer knows the range of a descriptor, but not which arrays within it a shader reads and writes. So a dispatch
    that reads its workgroup counts from the same block seems to read what others write there. It does not see accesses
    by address. Tests on programs check the barriers instead (tests/passes/program_checks.py).
    """
    counts = "for indirect VkBuffer" in message and "prior_usage: SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE" in message
    return "SYNC-HAZARD" in message and ("VkDescriptorSet" in message or counts)


_callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", _receive)
