"""How a forked process ends: without the destructors of drivers.

A driver's connection to its device is shared with the process that forked. Some drivers close it when their library is
unloaded; the first process then computes wrong numbers in silence, or hangs. Python's own functions at exit still run.
"""
from __future__ import annotations

from cffi import FFI

_DECLARATIONS = """
int on_exit(void (*function)(int, void *), void *argument);
void _exit(int status);
"""


def exit_without_destructors() -> None:
    """Makes this process leave at once, with its status, where the C library would unload libraries."""
    ffi = FFI()
    ffi.cdef(_DECLARATIONS)
    try:
        library = ffi.dlopen(None)
        register, leave = library.on_exit, ffi.addressof(library, "_exit")
    except (AttributeError, OSError):  # only GNU's C library gives such functions the status
        return
    # Functions at exit run from the last to the first, and this is the last one yet.
    register(ffi.cast("void (*)(int, void *)", leave), ffi.NULL)
