"""Raw access to the Vulkan loader: structures, calls and result codes, by the `vulkan` package's cffi definitions.

The package's Python wrappers cost several times the call itself, so only its `ffi` and `lib` are used. Import this
module late: importing it loads Vulkan, and raises DeviceError if there is no loader.
"""
from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from lavax.base.errors import DeviceError

try:
    from vulkan import _vulkan
except (ImportError, OSError) as _error:
    raise DeviceError(
        "The Vulkan loader was not found. Install it with a driver (Debian and Ubuntu: apt install libvulkan1 "
        "mesa-vulkan-drivers, or your GPU vendor's driver; Windows and macOS: the driver or the Vulkan SDK)."
    ) from _error

# Constants are members of `vk`. It lacks some that began as extensions; `lib` has those.
vk: Any = _vulkan
ffi: Any = vk.ffi
lib: Any = vk.lib

# The 64-bit words before a structure's own members: sType and pNext.
HEADER_WORDS = 2

# Structures hold only pointers, so the objects that they point to are kept here for as long as the structure lives.
# What removes them is no Python function, as that of a WeakKeyDictionary is: Python loses an interrupt that it hears in
# such a function, and structures are often freed just after a call for which somebody waited.
_pointed_to: dict[weakref.ref[Any], Any] = {}


def _keep(pointed_to: Any, value: Any) -> None:
    _pointed_to[weakref.ref(value, _pointed_to.pop)] = pointed_to


def structure(kind: str, **members: Any) -> Any:
    """A new Vulkan structure with its sType set. It keeps alive what its members point to."""
    value = ffi.new(f"{kind} *")
    code = _structure_code(kind)
    if code is not None:
        value.sType = code
    for name, member in members.items():
        setattr(value, name, member)
    _keep(members, value)
    return value


def untyped_structure(code: int, nbytes: int, following: Any) -> Any:
    """A new structure of a type unknown to the package: HEADER_WORDS words for sType and pNext, then `nbytes` zeros."""
    value = ffi.new("uint64_t[]", HEADER_WORDS + -(-nbytes // 8))
    value[0] = code
    value[1] = int(ffi.cast("uintptr_t", following))
    _keep(following, value)
    return value


def array(kind: str, items: Iterable[Any]) -> Any:
    """A new C array of `kind` with copies of `items`. It keeps alive what pointers among them point to."""
    kept = list(items)
    value = ffi.new(f"{kind}[]", kept)
    _keep(kept, value)
    return value


def strings(texts: Iterable[str]) -> Any:
    """A new array of C strings."""
    return array("char *", [ffi.new("char[]", text.encode()) for text in texts])


def text(characters: Any) -> str:
    """The Python text of a C string."""
    return bytes(ffi.string(characters)).decode(errors="replace")


def version(major: int, minor: int) -> int:
    """A Vulkan version number."""
    return major << 22 | minor << 12


_ADVICE = {
    vk.VK_ERROR_DEVICE_LOST: (
        " The driver has given the device up, as after work of many seconds or a fault of its own, and nothing runs on "
        "it any more: start another process."
    )
}


def check(result: int, action: str) -> None:
    """Raises DeviceError, naming `action` and the code, unless `result` is a success."""
    if result < 0:
        raise DeviceError(f"{action} failed: {result_name(result)}.{_ADVICE.get(result, '')}")


def result_name(result: int) -> str:
    """The name of a VkResult."""
    return _result_names().get(result, f"VkResult {result}")


def created(call: Callable[..., int], owner: Any, info: Any, kind: str) -> Any:
    """The handle that a vkCreate… or vkAllocate… call with the usual parameters returns."""
    handle = ffi.new(f"{kind} *")
    check(call(owner, info, ffi.NULL, handle), f"Creating a {kind}")
    return handle[0]


def enumerated(call: Callable[..., Any], kind: str, *arguments: Any) -> Any:
    """All items from a call that returns their number first, and the items when called again."""
    count = ffi.new("uint32_t *")
    call(*arguments, count, ffi.NULL)
    items = ffi.new(f"{kind}[]", count[0])
    call(*arguments, count, items)
    return items


_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-z])(?=[0-9])")


@functools.cache
def _structure_code(kind: str) -> int | None:
    """VkMemoryBarrier2 -> VK_STRUCTURE_TYPE_MEMORY_BARRIER_2; None for structures without sType."""
    if "sType" not in dict(ffi.typeof(kind).fields):
        return None
    words = re.sub(_WORD_ENDS, "_", kind.removeprefix("Vk")).upper()
    code: int = getattr(vk, "VK_STRUCTURE_TYPE_" + re.sub(r"VULKAN_1(?=[0-9])", "VULKAN_1_", words))
    return code


@functools.cache
def _result_names() -> dict[int, str]:
    return {getattr(vk, name): name for name in dir(vk) if re.fullmatch(r"VK_ERROR_[A-Z_0-9]*[A-Z0-9]", name)}
