"""Forked processes, threads that outlive the main one, and the end of the interpreter."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False
    )


_FORKED = """
import os, signal, sys, numpy as np, lavax as lx, lavax.numpy as lnp
step = lx.compile(lambda x: x @ x + 1)
known = step(np.ones((4, 4), "f"))
np.asarray(known)
def attempt():
    {use}
child = os.fork()
if child == 0:
    signal.alarm(30)
    try:
        attempt()
    except lx.DeviceError as error:
        sys.exit(7 if "spawn" in str(error) else 8)  # with all that runs at exit
    sys.exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), np.asarray(step(np.ones((4, 4), "f")))[0, 0])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize(
    "use",
    [
        "step(known)",
        "np.asarray(lx.compile(lambda x: lnp.tanh(x).sum() * 3)(known))",
        "float(known.sum())",
        "lnp.ones(5).tolist() and (lnp.ones(5) + 1).tolist()",
        "lx.compile(lambda x: (lnp.sort(x), x @ x.T + 5, lnp.cumsum(x)))(known)",
    ],
)
def test_a_forked_process_says_how_to_start_one(use: str) -> None:
    done = run(_FORKED.format(use=use))
    assert done.stdout.split() == ["7", "5.0"], done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems' C libraries cannot leave early")
def test_a_forked_process_ends_without_the_destructors_of_drivers() -> None:
    program = """
import atexit, cffi, os, sys, lavax.numpy as lnp
ffi = cffi.FFI()
ffi.cdef("int on_exit(void (*)(int, void *), void *); void abort(void);")
library = ffi.dlopen(None)
abort = ffi.cast("void (*)(int, void *)", ffi.addressof(library, "abort"))
library.on_exit(abort, ffi.NULL)  # as a driver that harms the process that it is shared with
print(float(lnp.ones(3).sum()), flush=True)
child = os.fork()
if child == 0:
    atexit.register(lambda: print("Python's own", flush=True))
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""
    done = run(program)
    assert done.stdout.splitlines() == ["3.0", "Python's own", "7"], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_forked_before_the_first_use_computes() -> None:
    program = """
import os, lavax.numpy as lnp
child = os.fork()
total = float(lnp.ones(3).sum())
if child == 0:
    os._exit(int(total))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), total)
"""
    assert run(program).stdout.split() == ["3", "3.0"]


_SEVERAL_KERNELS = "lambda x: (lnp.sort(x), x @ x.T, lnp.cumsum(x))"


def test_a_thread_that_outlives_the_main_one_compiles() -> None:
    program = f"""
import threading, time, numpy as np, lavax as lx, lavax.numpy as lnp
def late():
    time.sleep(0.3)
    print([float(np.asarray(each).sum()) for each in lx.compile({_SEVERAL_KERNELS})(np.ones(4, "f"))])
threading.Thread(target=late).start()
"""
    done = run(program)
    assert done.stdout.strip() == "[4.0, 4.0, 10.0]", done.stderr


def test_functions_that_run_at_exit_compile() -> None:
    program = f"""
import atexit, numpy as np, lavax as lx, lavax.numpy as lnp
def late():
    print([float(np.asarray(each).sum()) for each in lx.compile({_SEVERAL_KERNELS})(np.ones(4, "f"))])
atexit.register(late)
lnp.ones(3).sum().block_until_ready()
"""
    done = run(program)
    assert done.stdout.strip() == "[4.0, 4.0, 10.0]", done.stderr
