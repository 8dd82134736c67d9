"""Work that nobody waits for."""
from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from lavax.backends.vulkan.compile import background
from lavax.backends.vulkan.compile.background import in_background, wait_for_background


def test_it_is_done_by_another_thread_and_can_be_waited_for() -> None:
    may_end, done = threading.Event(), list[int]()

    def work() -> None:
        assert may_end.wait(60)
        done.append(threading.get_ident())

    in_background(work)
    in_background(work)
    assert not done
    may_end.set()
    wait_for_background()
    assert len(done) == 2 and threading.get_ident() not in done
    assert not background._at_work


def test_it_is_done_here_if_no_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    done: list[int] = []
    in_background(lambda: done.append(threading.get_ident()))
    assert done == [threading.get_ident()]
    wait_for_background()


def test_the_interpreter_waits_for_it() -> None:
    program = (
        "import time\n"
        "from lavax.backends.vulkan.compile.background import in_background\n"
        "in_background(lambda: (time.sleep(0.3), print('done')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_waits_for_none_of_the_other_one() -> None:
    may_end = threading.Event()
    in_background(lambda: may_end.wait(60))
    child = os.fork()
    if child == 0:
        wait_for_background()
        os._exit(3)
    _, status = os.waitpid(child, 0)
    may_end.set()
    wait_for_background()
    assert os.waitstatus_to_exitcode(status) == 3
