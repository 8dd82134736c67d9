"""Programs that take long are cut into submissions: bounded, interruptible, and with the same results."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.api import queue as queues
from lavax.backends.vulkan.api.queue import Stall, Submission
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.compile.pipelines import Pipelines
from lavax.backends.vulkan.device.device import Device, get_device
from lavax.backends.vulkan.glsl.launch import WORKGROUP
from lavax.backends.vulkan.plan.plan import Dispatch, Plan, RepeatDispatches, Result, UntilFlag, Work
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.backends.vulkan.run import cuts
from lavax.backends.vulkan.run.cuts import BOUNDS, Cuts, Pace
from lavax.backends.vulkan.run.estimate import Estimate, Rates
from lavax.backends.vulkan.run.long_dispatches import shader_as_cut, with_long_dispatches_cut
from lavax.backends.vulkan.run.program import Program
from lavax.backends.vulkan.run.segments import Batch, Loop, batches_of, segments_of
from lavax.backends.vulkan.run.sequence import LongTurns, Once, Part, ShortTurns, parts_of
from lavax.tracer.values.backend import register
from tests.backends.vulkan.emit.shaders import ADD_ONE, SLOW, dispatch

COUNT = 1000
BYTES = 4 * COUNT
RATES = Rates(copy=1e9, arithmetic=4e9, dispatch=10e-6)
SECOND = Work(nbytes=10**9)  # of a device with these rates


class Interrupt(BaseException):
    """As KeyboardInterrupt, but of this test's own."""


@pytest.fixture
def device() -> Device:
    return get_device()


@pytest.fixture
def anew() -> Iterator[Callable[[], VulkanBackend]]:
    """Starts over with a backend that has compiled nothing yet, on the same device."""
    before = register(None)

    def start() -> VulkanBackend:
        backend = VulkanBackend()
        register(lambda: backend)
        return backend

    yield start
    register(before)


# -- random cuts give the same bits ------------------------------------------------------------------------------------


def counted(x: Any) -> Any:
    return lx.fori_loop(0, 23, lambda i, y: lnp.tanh(y @ x) + i, x)


def nested(x: Any) -> Any:
    def turn(total: Any, row: Any) -> Any:
        total = lx.fori_loop(0, 4, lambda _, y: lnp.sin(y) + row, total)
        return total, lx.while_loop(lambda y: lnp.sum(y) < 40, lambda y: y * 2 + 1, total)

    return lx.scan(turn, lnp.zeros(12), x)


def branching(x: Any) -> Any:
    def turn(i: Any, y: Any) -> Any:
        return lx.switch(i % 3, [lambda z: z @ x, lambda z: lnp.tanh(z) + x, lambda z: lnp.cumsum(z, axis=1)], y)

    return lx.fori_loop(0, 9, turn, x)


def straight(x: Any) -> Any:
    table = lnp.arange(5000.0).reshape(50, 100) * lnp.sum(x)
    rows = lnp.exp(table - lnp.max(table, axis=1, keepdims=True))
    return lnp.sort(rows / lnp.sum(rows, axis=1, keepdims=True), axis=1), lnp.cumsum(table), (table.T @ table)


def derivative(x: Any) -> Any:
    return lx.value_and_grad(lambda w: lnp.sum(counted(w) ** 2) + lnp.mean(straight(w)[0]))(x)


def eager(x: Any) -> Any:
    """The last one has more sizes than push constants hold."""
    many = lnp.arange(6**5).reshape((2, 3) * 5)
    return lnp.sum(lnp.asarray(x) * 2, axis=0), lnp.asarray(x) @ x, lnp.transpose(many, tuple(reversed(range(10))))


@pytest.mark.usefixtures("no_register_loops")
@pytest.mark.parametrize("function", [counted, nested, branching, straight, derivative, eager])
def test_cuts_at_random_points_change_no_bit(
    function: Callable[..., Any], anew: Callable[[], VulkanBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).normal(size=(12, 12)).astype(np.float32) / 4

    def bits() -> tuple[list[bytes], int]:
        """The results of two calls, and the number of submissions of the second."""
        compiled = function if function is eager else lx.compile(function)
        first, before = lx.tree.leaves(compiled(x)), queue.submitted
        second, after = lx.tree.leaves(compiled(x)), queue.submitted
        return [np.asarray(leaf).tobytes() for leaf in (*first, *second)], after - before

    backend = anew()
    queue = backend.device.queue
    expected, whole = bits()
    submissions = 0
    for seed in range(3):
        monkeypatch.setenv("LAVAX_RANDOM_CUTS", str(seed))
        anew()
        found, number = bits()
        assert found == expected
        submissions += number
    is_one_dispatch = function is counted and backend.profile.kind == "gpu"
    assert submissions > 3 * whole or is_one_dispatch


# -- where cuts are ----------------------------------------------------------------------------------------------------


NOTHING = Work()


def command(work: Work = NOTHING, groups: int = 8) -> Dispatch:
    return Dispatch(dispatch(ADD_ONE, (0, 1), COUNT).shader, (0, 1), (COUNT,), (groups, 1, 1), True, "k", work=work)


CUTS = Cuts(Estimate(CPU_DRIVER, RATES))


def parts(device: Device, *commands: Any) -> tuple[Part, ...]:
    segments = segments_of(commands, CUTS)
    return parts_of(segments, dict.fromkeys(batches_of(segments), queues.ffi.NULL), device.queue, CUTS)


def test_short_programs_are_one_submission(device: Device) -> None:
    loop = RepeatDispatches(1000, (command(), command()))
    assert [type(part) for part in parts(device, command(), loop, command())] == [Once]


def test_long_loops_are_submissions_of_bounded_length(device: Device) -> None:
    for count in (10**6, 10**8):
        first, loop, last = parts(device, command(), RepeatDispatches(count, (command(), command())), command())
        assert isinstance(first, Once) and isinstance(last, Once) and isinstance(loop, ShortTurns)
        assert loop.count == count
        assert loop.most * loop.command_buffers <= BOUNDS.command_buffers
    (whole,) = parts(device, RepeatDispatches(1000, (RepeatDispatches(10**7, (command(),)),)))
    assert isinstance(whole, LongTurns) and isinstance(whole.parts[0], ShortTurns)
    (deep,) = parts(device, RepeatDispatches(10**7, (RepeatDispatches(3, (command(),)), UntilFlag(0, (command(),)))))
    assert isinstance(deep, LongTurns) and [type(part) for part in deep.parts] == [Once, ShortTurns]


def test_long_sequences_are_cut_between_dispatches(device: Device) -> None:
    tenth = Work(nbytes=SECOND.nbytes // 25)
    assert [type(part) for part in parts(device, *[command(tenth)] * 10)] == [Once] * 5
    segments = segments_of([command(tenth)] * 10, CUTS)
    assert all(isinstance(batch, Batch) and batch.seconds <= BOUNDS.seconds for batch in segments)


def test_a_loop_has_as_many_turns_a_submission_as_measured() -> None:
    pace = Pace(1e-6)
    assert pace.turns() == 1
    pace.note(1, 5.0, True)  # in which a driver compiled
    assert 1 < pace.turns() < BOUNDS.seconds / 1e-6
    pace.note(100, 1.0, True)
    assert pace.turns() == round(BOUNDS.seconds * 100)
    pace.note(10, 5.0, is_exact=False)  # the host was late, and does not know when it ended
    assert pace.turns() == round(BOUNDS.seconds * 100)
    pace.note(10, 0.01, is_exact=False)
    assert pace.turns() == round(BOUNDS.seconds * 1000)


def test_estimates_count_bytes_operations_and_idle_processors() -> None:
    estimate = Estimate(CPU_DRIVER, RATES)
    assert estimate.seconds(command()) == pytest.approx(10e-6)
    assert estimate.seconds(command(SECOND)) == pytest.approx(1, rel=1e-3)
    assert estimate.seconds(command(Work(operations=10**9))) == pytest.approx(1, rel=1e-3)
    assert estimate.seconds(command(SECOND, groups=1)) == pytest.approx(8, rel=1e-3)
    assert estimate.total([RepeatDispatches(3, (command(SECOND),))]) == pytest.approx(3, rel=1e-3)


def test_dispatches_know_their_work() -> None:
    x = np.zeros((64, 64), np.float32)
    lowered = VulkanBackend().lower(lx.trace(lambda x: lnp.tanh(x @ x))(x))
    (dispatched,) = lowered.plan.dispatches
    assert dispatched.work.nbytes == 2 * x.nbytes
    assert 2 * 64**3 < dispatched.work.operations < 2 * 64**3 + 64 * 64 * 60


# -- long dispatches ---------------------------------------------------------------------------------------------------

NUMBERED = ADD_ONE.replace("gl_GlobalInvocationID.x", f"{WORKGROUP} * 8 + gl_LocalInvocationID.x")


def numbered(groups: tuple[int, int, int], work: Work) -> Dispatch:
    return Dispatch(dispatch(NUMBERED, (0, 1), 0).shader, (0, 1), (COUNT,), groups, False, "numbered", work=work)


@pytest.mark.parametrize("groups", [(125, 1, 1), (25, 5, 1), (40, 4, 1)])
def test_a_long_dispatch_is_cut_along_its_workgroups(
    device: Device, groups: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (numbered(groups, SECOND),))
    monkeypatch.setattr(Estimate, "_share", lambda *_: 1.0)  # whatever the device
    program = Program(device, plan, lambda: RATES)
    assert len(program.steps) == 5
    assert sum(step.groups[0] for step in program.steps) == groups[0] * groups[1]
    before = device.queue.submitted
    numbers = np.arange(COUNT, dtype=np.float32)
    (found,) = program(device.transfer.upload(numbers))
    assert np.array_equal(device.transfer.download(found, BYTES).view(np.float32), numbers + 1)
    assert device.queue.submitted - before >= 5


def test_parts_can_be_cut_again() -> None:
    plan = Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (numbered((100, 1, 1), SECOND),))
    once = with_long_dispatches_cut(plan, lambda _: 2)
    twice = with_long_dispatches_cut(once, lambda _: 2)
    assert [part.groups[0] for part in twice.dispatches] == [25] * 4
    assert [part.words[-1] for part in twice.dispatches] == [0, 25, 50, 75]
    assert len({part.shader for part in twice.dispatches}) == 1
    assert sum(part.work.nbytes for part in twice.dispatches) == SECOND.nbytes


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("groups", [(COUNT, 1, 1), (10, 100, 1), (1, 1, 1), (2, 2, 2)])
def test_the_shader_of_a_dispatch_that_will_be_cut_is_known_before(groups: tuple[int, int, int], pieces: int) -> None:
    whole = numbered(groups, SECOND)
    cut = with_long_dispatches_cut(Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (whole,)), lambda _: pieces)
    assert {part.shader for part in cut.dispatches} == {shader_as_cut(whole, pieces)}
    again = with_long_dispatches_cut(cut, lambda _: pieces)
    assert {part.shader for part in again.dispatches} == {shader_as_cut(cut.dispatches[0], pieces)}


def test_no_pipeline_is_created_for_a_shader_that_does_not_run(
    anew: Callable[[], VulkanBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = anew()
    monkeypatch.setattr(cuts, "BOUNDS", replace(BOUNDS, seconds=1e-4, dispatch_seconds=1e-3, part_seconds=5e-4))
    monkeypatch.setattr(VulkanBackend, "_rates", RATES)
    backend.device.pipelines.forget()
    take, created = Pipelines._pipeline, []
    monkeypatch.setattr(
        Pipelines, "_pipeline", lambda self, shader, handle: created.append(shader) or take(self, shader, handle)
    )
    x = np.linspace(-1, 1, 64 * 4096, dtype=np.float32).reshape(64, 4096)
    compiled = lx.compile(lambda x: (lnp.cumsum(lnp.sin(x), axis=1) @ x.T, lnp.sum(x)))
    product, _ = compiled(x)
    np.testing.assert_allclose(product, np.cumsum(np.sin(x), axis=1) @ x.T, rtol=1e-4, atol=1e-1)
    plan = compiled.lower(x).programs[0].plan
    pieces = [cuts.pieces_of(each, backend.profile, lambda: RATES) for each in plan.dispatches]
    assert max(pieces) > 1
    assert min(pieces) == 1 or backend.profile.kind == "gpu"
    assert set(created) == set(map(shader_as_cut, plan.dispatches, pieces))


def test_dispatches_that_cannot_be_cut_stay() -> None:
    for groups, source in [((1, 1, 1), NUMBERED), ((8, 1, 1), ADD_ONE)]:
        whole = Dispatch(dispatch(source, (0, 1), 0).shader, (0, 1), (COUNT,), groups, False, "k", work=SECOND)
        plan = Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (whole,))
        assert with_long_dispatches_cut(plan, lambda _: 2) is plan


@pytest.mark.parametrize("taken", [True, False])
def test_long_dispatches_under_guards_are_cut(
    taken: bool, anew: Callable[[], VulkanBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    def function(x: Any, flag: Any) -> Any:
        return lx.cond(flag, lambda y: lx.fori_loop(0, 3, lambda i, z: lnp.tanh(z @ y) + i, y), lambda y: y * 3, x)

    x = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32)
    anew()
    expected = np.asarray(lx.compile(function)(x, taken))
    monkeypatch.setattr(Cuts, "pieces", lambda *_: 3)
    anew()
    assert np.array_equal(np.asarray(lx.compile(function)(x, taken)), expected)


# -- interrupts --------------------------------------------------------------------------------------------------------


def long_loop(x: Any) -> Any:
    """Dispatches of many turns each, one after another."""
    return lx.fori_loop(0, 10**6, lambda i, y: lnp.tanh(y[::-1]) + 1, x)


@pytest.fixture
def short_submissions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dispatch is a submission, however fast the device is."""
    monkeypatch.setattr(cuts, "BOUNDS", replace(BOUNDS, seconds=1e-9))
    lx.clear_caches()


@pytest.mark.usefixtures("no_register_loops", "short_submissions")
def test_an_interrupted_loop_is_not_submitted_further(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = lx.compile(long_loop, donate_argnums=0)
    x = lx.device_put(np.ones(8, np.float32))
    loop.lower(x).compile()  # which also measures the device
    twin, queue = x.twin(weak=False), device.queue
    wait, waits = queue.wait, itertools.count()

    def interrupted(number: int) -> None:
        wait(number)
        if next(waits) == 4:
            raise Interrupt

    before = queue.submitted
    with monkeypatch.context() as patch, pytest.raises(Interrupt):
        patch.setattr(queue, "wait", interrupted)
        loop(x)
    assert before + 2 < queue.submitted < before + 12
    for array in (x, twin):
        with pytest.raises(lx.DonatedArrayError, match="interrupted or failed: its numbers are lost"):
            np.asarray(array)
    assert np.all(np.asarray(lnp.ones(3) + 1) == 2)


@pytest.mark.usefixtures("no_register_loops", "short_submissions")
def test_a_donation_is_not_undone_if_the_device_fails_later(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = lx.compile(long_loop, donate_argnums=0)
    x = lx.device_put(np.ones(8, np.float32))
    loop.lower(x).compile()
    queue, lost = device.queue, -4  # VK_ERROR_DEVICE_LOST
    submit, calls = queue._submit, itertools.count()
    with monkeypatch.context() as patch, pytest.raises(lx.DeviceError):
        patch.setattr(queue, "_submit", lambda *args: lost if next(calls) > 2 else submit(*args))
        loop(x)
    with pytest.raises(lx.DonatedArrayError, match="numbers are lost"):
        np.asarray(x)


_STOPPED = """
import faulthandler, resource, signal, time, numpy as np, lavax as lx, lavax.numpy as lnp
x = lx.device_put(np.ones(64, "f"))
loop = lx.compile(lambda x: lx.fori_loop(0, 10**8, lambda i, y: lnp.tanh(y) + 1, x))
loop.lower(x).compile()
np.asarray(x + 1)
faulthandler.dump_traceback_later(100, exit=True)
signal.signal(signal.SIGALRM, signal.default_int_handler)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
signal.alarm(2)
try:
    loop(x).block_until_ready()
    print("ended")
except KeyboardInterrupt:
    begin = time.perf_counter()
    assert float((x + 1)[0]) == 2
    print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
"""


def test_a_hundred_million_turns_are_stopped_by_a_signal() -> None:
    environment = {**os.environ, "LAVAX_RANDOM_CUTS": ""}
    command = [sys.executable, "-c", _STOPPED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    seconds, kilobytes = map(float, done.stdout.split())
    assert seconds < 3
    assert kilobytes < 40_000


# -- measured times ----------------------------------------------------------------------------------------------------


def test_a_program_that_is_slower_than_estimated_is_cut_anew(device: Device) -> None:
    steps = tuple(dispatch(ADD_ONE, (0, 1) if not k else (1, 1), COUNT, barrier=True) for k in range(6))
    program = Program(device, Plan((BYTES,), (Result(BYTES, None),), (), (), 0, steps))
    queue, numbers = device.queue, np.arange(COUNT, dtype=np.float32)
    argument = device.transfer.upload(numbers)

    def submissions() -> int:
        before = queue.submitted
        (found,) = program(argument)
        assert np.array_equal(device.transfer.download(found, BYTES).view(np.float32), numbers + 6)
        return queue.submitted - before

    device.transfer.flush()
    assert submissions() == 1
    for expected in (1, 2):  # the first run of a program is no measure
        queue.stalls.appendleft(Stall(queue.submitted, 0.18))
        queue.stalled += 1
        if program.recordings[0].number != queue.submitted:
            pytest.skip("the device copies by submissions of its own")
        assert submissions() == expected
    assert all(submissions() == 2 for _ in range(6))


def test_a_program_that_is_faster_than_estimated_is_cut_anew(device: Device) -> None:
    plan = Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (numbered((125, 1, 1), SECOND),) * 2)
    program = Program(device, plan, lambda: RATES)
    queue, argument = device.queue, device.transfer.upload(np.arange(COUNT, dtype=np.float32))
    device.transfer.flush()
    counts: list[int] = []
    while len(counts) < 300 and 1 not in counts:  # on a busy machine few times are measures
        before = queue.submitted
        (found,) = program(argument)
        counts.append(queue.submitted - before)
        assert np.array_equal(device.transfer.download(found, BYTES).view(np.float32), np.arange(1, COUNT + 1))
    assert counts[0] >= 10
    assert counts[-1] == 1
    assert program.plan.commands == plan.commands


def test_who_waits_long_notes_the_submission(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "SLEEP_NANOSECONDS", 1_000_000)
    step = dispatch(SLOW, (0, 1), COUNT, words=(3_000_000,))
    program = Program(device, Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (step,)))
    argument = device.transfer.upload(np.zeros(COUNT, np.float32))
    program(argument)[0].wait()
    before = device.queue.stalled
    (found,) = program(argument)
    found.wait()
    assert device.queue.stalled > before
    assert device.queue.stalls[0].number == found.produced
    noted = device.queue.stalled - before  # once a millisecond, after the first
    assert device.queue.stalls[0].seconds == pytest.approx(0.001 * noted)


# -- programs that nobody waits for ------------------------------------------------------------------------------------


def test_few_programs_are_in_flight_if_nobody_waits(device: Device) -> None:
    step = dispatch(SLOW, (0, 1), COUNT, words=(5_000,))
    plan = Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (step,))
    programs = [Program(device, plan) for _ in range(3 * queues.MOST_IN_FLIGHT)]
    argument, queue = device.transfer.upload(np.zeros(COUNT, np.float32)), device.queue
    most = 0
    for program in programs:
        program(argument)
        queue.reached(queue.attempted)
        most = max(most, queue.attempted - queue.completed)
    assert queues.LEFT_IN_FLIGHT <= most <= queues.MOST_IN_FLIGHT + 1
    queue.drain()


def test_a_submission_takes_some_of_its_command_buffers(device: Device) -> None:
    submission = Submission(device.queue, [queues.ffi.NULL] * 5)
    submission.take(3)
    assert (submission.plain[0].commandBufferCount, submission.with_one_in_front[0].commandBufferCount) == (3, 4)


def test_loops_know_their_size() -> None:
    (loop,) = segments_of([RepeatDispatches(7, (command(), RepeatDispatches(2, (command(),))))], CUTS)
    assert isinstance(loop, Loop)
    assert loop.command_buffers == 7 * 3
    assert loop.seconds == pytest.approx(7 * 3 * 10e-6)
