"""Exceptions that arrive anywhere in a call, as Ctrl-C does: what is computed afterwards is right."""
from __future__ import annotations

import gc
import itertools
import linecache
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.api.api import ffi, structure
from lavax.backends.vulkan.api.queue import Submission
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.device.commands import CommandPool, Recorder
from lavax.backends.vulkan.device.device import Device, get_device
from lavax.backends.vulkan.device.instance import choose_device
from lavax.backends.vulkan.memory.free_ranges import FreeRanges, Range
from lavax.backends.vulkan.plan.plan import Plan, Result
from lavax.backends.vulkan.run.program import MOST_CUTS, Program
from lavax.base import config
from lavax.tracer.values.backend import register
from tests.backends.vulkan.emit.shaders import ADD_ONE, dispatch

PACKAGE = str(Path(lx.__file__).parent.parent)
SIZE = 64


class Interrupt(BaseException):
    """As KeyboardInterrupt, but of this test's own."""


def interrupted_at(position: int, call: Callable[[], object]) -> bool:
    """Calls, and raises Interrupt at the line of lavax with this number, in order of execution; False if it ended.

    Not where a `with` block ends, which Python reports as that line once more: it hears no signal between a block and
    the release of the block's lock.
    """
    left, last = position, dict[FrameType, int]()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) or "/tests/" in file or "/site-packages/" in file:
            return None
        if frame.f_code.co_name in ("__del__", "_receive"):  # where Python reports exceptions and goes on
            return None
        if event == "line":
            before, last[frame] = last.get(frame, 0), frame.f_lineno
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            if text.startswith("with ") and before > frame.f_lineno:
                return trace
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
        last.clear()  # the frames hold what they were working on
    return False


def every_line(call: Callable[[], object], check: Callable[[], None]) -> int:
    """Interrupts the call at each of its lines in turn, with a check after each; returns their number."""
    gc.collect()  # finalizers of earlier programs report exceptions and go on
    position = 0
    while interrupted_at(position, call):
        check()
        position += 1
    check()
    return position


@pytest.fixture
def device() -> Device:
    return get_device()


@pytest.fixture
def local_only() -> Iterator[Device]:
    """A device in use whose arrays the host cannot see: transfers are staged. It is never closed, as interrupts may
    leave objects behind."""
    backend = VulkanBackend()
    vars(backend)["device"] = device = Device(choose_device(config.device_selector()), local_only=True)
    before = register(lambda: backend)
    yield device
    register(before)


def product(x: Any) -> Any:
    return x @ x * (1 / SIZE)


def product_plus_one(x: Any) -> Any:
    return x @ x + 1


def test_a_call_may_be_interrupted_at_every_line() -> None:
    first, second = lx.compile(product), lx.compile(product_plus_one)
    ones, twos = (lx.device_put(np.full((SIZE, SIZE), n, np.float32)) for n in (1, 2))
    np.asarray(first(ones)), np.asarray(second(twos))

    def check() -> None:
        both = first(twos), second(ones)
        assert np.all(np.asarray(both[0]) == 4)
        assert np.all(np.asarray(both[1]) == SIZE + 1)

    assert every_line(lambda: (first(ones), second(twos)), check) > 50


def test_an_eager_call_may_be_interrupted_at_every_line() -> None:
    numbers = np.arange(5, dtype=np.float32)

    def check() -> None:
        assert (lnp.asarray(numbers) * 2 + 1).tolist() == [1, 3, 5, 7, 9]

    check()
    assert every_line(lambda: lnp.asarray(numbers) * 2 + 1, check) > 50


def test_an_interrupted_donation_takes_all_or_none() -> None:
    """Arrays are taken just before the device gets the work; from then on they are gone, whatever happens."""
    step = lx.compile(lambda x, y: (x + 1, y * 2), donate_argnums=(0, 1))
    np.asarray(step(lnp.zeros(8), lnp.ones(8))[0])
    outcomes = set()
    position = 0
    while True:
        x, y = lx.device_put(np.zeros(8, "f")), lx.device_put(np.full(8, 3, "f"))
        was_interrupted = interrupted_at(position, lambda x=x, y=y: step(x, y))
        outcomes.add((x.is_donated, y.is_donated))
        if not x.is_donated:
            assert np.all(np.asarray(x) == 0)
        if not y.is_donated:
            assert np.all(np.asarray(y) == 3)
        if not was_interrupted:
            break
        position += 1
    assert {(False, False), (True, True)} <= outcomes


def test_staged_copies_are_made_once_whenever_interrupted(local_only: Device) -> None:
    add, numbers = lx.compile(lambda x, y: x + y), np.arange(SIZE, dtype=np.float32)
    np.asarray(add(numbers, numbers))
    kept: list[Any] = []

    def call() -> None:
        for factor in (1, 2):
            kept.append(lx.device_put(factor * numbers))
            kept.append(add(kept[-1], factor * numbers))

    def check() -> None:
        assert np.array_equal(np.asarray(add(numbers, numbers)), 2 * numbers)
        for array, factor in zip(kept, (1, 2, 2, 4), strict=False):
            assert np.array_equal(np.asarray(array), factor * numbers)
        assert not local_only.transfer.pending
        kept.clear()

    assert every_line(call, check) > 50


def test_a_download_may_be_interrupted_at_every_line(local_only: Device) -> None:
    array = lnp.asarray(np.arange(5000, dtype=np.float32)) + 1
    other = lnp.asarray(np.arange(5000, dtype=np.float32)) * 2

    def check() -> None:
        assert np.array_equal(np.asarray(other), 2 * np.arange(5000))

    assert every_line(lambda: np.asarray(array), check) > 20


def test_a_loop_that_depends_on_data_may_be_interrupted_at_every_line() -> None:
    double = lx.compile(lambda x: lx.while_loop(lambda y: lnp.sum(y) < 1000, lambda y: y * 2, x))
    start = lnp.ones(4)
    assert np.all(np.asarray(double(start)) == 256)

    def check() -> None:
        assert np.all(np.asarray(double(start)) == 256)

    assert every_line(lambda: double(start), check) > 50


def test_a_program_of_several_submissions_may_be_interrupted_at_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its donated argument is taken with the first of them, and then it has a result, or says that it is lost."""
    monkeypatch.setenv("LAVAX_RANDOM_CUTS", "0")
    backend = VulkanBackend()
    before = register(lambda: backend)
    loop = lx.compile(lambda x, y: lx.fori_loop(0, 5, lambda i, z: z * 2 + y, x), donate_argnums=0)
    y = lnp.arange(4.0)
    outcomes = set()

    def check() -> None:
        assert np.asarray(loop(lnp.zeros(4), y)).tolist() == [0, 31, 62, 93]

    check()
    position = 0
    while True:
        x = lx.device_put(np.ones(4, np.float32))
        was_interrupted = interrupted_at(position, lambda x=x: loop(x, y))
        outcomes.add(x.is_donated)
        if x.is_donated:
            with pytest.raises(lx.DonatedArrayError):
                np.asarray(x)
        else:
            assert np.all(np.asarray(x) == 1)
        check()
        if not was_interrupted:
            break
        position += 1
    register(before)
    assert outcomes == {True, False}
    assert position > 100


def test_cutting_a_program_anew_may_be_interrupted_at_every_line(device: Device) -> None:
    plan = Plan((32,), (Result(32, None),), (), (), 0, tuple(dispatch(ADD_ONE, (0, 1), 8) for _ in range(2)))
    program = Program(device, plan)
    argument, whole = device.transfer.upload(np.arange(8, dtype=np.float32)), program._cut

    def run() -> None:
        program._is_warm, program._cuts_left, program._cut = True, MOST_CUTS, whole
        program._learn(10_000.0)
        program(argument)

    def check() -> None:
        (found,) = program(argument)
        assert device.transfer.download(found, 32).view(np.float32).tolist() == list(range(1, 9))

    check()
    assert every_line(run, check) > 50


def submission_of(device: Device, pool: CommandPool) -> Submission:
    commands = pool.allocate()
    with Recorder(commands):
        pass
    return Submission(device.queue, [commands])


@pytest.mark.parametrize("is_done", [True, False])
def test_the_queue_knows_whether_an_interrupted_submission_was_made(
    device: Device, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, pool = device.queue, CommandPool(device.handle, device.queue.family)
    submission, noted = submission_of(device, pool), list[int]()

    class Interrupting(list[int]):
        """A list of results, with an exception before or after the driver is called."""

        def extend(self, results: Any) -> None:
            if is_done:
                super().extend(results)
            raise Interrupt

    queue.drain()
    before = queue.submitted
    with monkeypatch.context() as patch:
        patch.setattr(queue, "_results", Interrupting())
        with queue.lock, pytest.raises(Interrupt):
            queue.submit(submission, then=noted.append)
        assert queue.submitted == before
        assert queue.known(queue.attempted) == before + is_done
    assert noted == [before + 1] * is_done
    queue.drain()
    assert queue.reached(before + 1)
    with queue.lock:
        number = queue.submit(submission)
    assert number == before + 1 + is_done == queue.submitted
    queue.wait(number)
    pool.close()


def test_ranges_are_never_free_twice() -> None:
    """Giving and taking, interrupted at every line: no two ranges that are taken overlap."""

    def run(ranges: FreeRanges, taken: list[Range]) -> None:
        for size in (3, 5, 2):
            found = ranges.take(size)
            if found is not None:
                taken.append(found)
        for _ in range(2):
            if taken:
                ranges.give(taken.pop(0))

    position = 0
    while True:
        ranges, taken = FreeRanges(), list[Range]()
        ranges.give(Range(0, 0, 16, 0))
        run(ranges, taken)
        if not interrupted_at(position, lambda: run(ranges, taken)):  # noqa: B023
            break
        for _ in range(4):
            run(ranges, taken)
            places = sorted((each.offset, each.offset + each.size) for each in taken)
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(places)), places
        position += 1
    assert position > 50


def test_a_donated_array_goes_to_one_thread() -> None:
    step = lx.compile(lambda x: x + 1, donate_argnums=0)
    np.asarray(step(lx.device_put(np.zeros(20_000, "f"))))
    for _ in range(50):
        array, gate = lx.device_put(np.zeros(20_000, "f")), threading.Barrier(4)
        outcomes: list[float | None] = []

        def take(array: Any = array, gate: Any = gate, outcomes: Any = outcomes) -> None:
            gate.wait()
            try:
                outcomes.append(float(np.asarray(step(array))[0]))
            except lx.DonatedArrayError:
                outcomes.append(None)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes, key=str) == [1.0, None, None, None]


def test_a_donation_that_the_device_refuses_is_undone(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    step = lx.compile(lambda x: x + 1, donate_argnums=0)
    np.asarray(step(lnp.zeros(8)))
    array = lx.device_put(np.full(8, 5, "f"))
    twin = array.twin(weak=False)
    with monkeypatch.context() as patch:
        patch.setattr(device.queue, "_submit", lambda *_: -2)  # VK_ERROR_OUT_OF_DEVICE_MEMORY
        with pytest.raises(lx.DeviceError):
            step(array)
    assert not array.is_donated and not twin.is_donated
    assert np.all(np.asarray(step(array)) == 6) and twin.is_donated


def test_nothing_of_python_runs_when_a_structure_is_freed() -> None:
    """An interrupt that is heard in a function that a dying object calls is lost."""
    value = structure("VkSemaphoreWaitInfo", semaphoreCount=1, pValues=ffi.new("uint64_t[1]", [3]))
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    del value
    sys.setprofile(None)
    assert called == []
