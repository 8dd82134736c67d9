from __future__ import annotations

import gc
import threading
import weakref
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.bare_submit import bare_submit
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.measure.profiling import profile_program
from lavax.backends.vulkan.memory.memory import Buffer
from lavax.backends.vulkan.plan.memory_use import RING
from lavax.backends.vulkan.plan.plan import Dispatch, Plan, Result, Shader
from lavax.backends.vulkan.run.program import Program
from lavax.base import config, counters
from tests.backends.vulkan.emit.shaders import ADD, ADD_ONE, SCALE, SLOW, dispatch

IN_FLIGHT = pytest.mark.skipif(config.guard_memory(), reason="calls that are checked wait for the device")
COUNT = 1000
BYTES = 4 * COUNT

VALUES = np.arange(COUNT, dtype=np.float32)


def up(device: Device, array: np.ndarray = VALUES) -> Buffer:
    return device.transfer.upload(np.asarray(array, np.float32))


def down(device: Device, buffer: Buffer) -> np.ndarray:
    return device.transfer.download(buffer, buffer.nbytes).view(np.float32)


def add_one(donor: int | None = None) -> Plan:
    return Plan((BYTES,), (Result(BYTES, donor),), (), (), 0, (dispatch(ADD_ONE, (0, 1), COUNT),))


def chain(length: int) -> Plan:
    """x + length, through two temporaries by turns and a barrier before every step."""
    slots = [0, *(2 + index % 2 for index in range(length - 1)), 1]
    steps = [dispatch(ADD_ONE, (slots[i], slots[i + 1]), COUNT, barrier=i > 0) for i in range(length)]
    return Plan((BYTES,), (Result(BYTES, None),), (), (0, 4096), 8192, tuple(steps))


def slow(rounds: int) -> Plan:
    step = dispatch(SLOW, (0, 1), COUNT, words=(rounds,))
    return Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (step,))


def test_a_program_computes(device: Device) -> None:
    (result,) = Program(device, add_one())(up(device))
    np.testing.assert_array_equal(down(device, result), VALUES + 1)


def test_steps_with_barriers_see_each_others_results(device: Device) -> None:
    (result,) = Program(device, chain(11))(up(device))
    np.testing.assert_array_equal(down(device, result), VALUES + 11)


def test_constants_and_several_results(device: Device) -> None:
    constant = np.linspace(-1, 1, COUNT, dtype=np.float32)
    steps = (dispatch(ADD, (0, 3, 1), COUNT), dispatch(ADD, (0, 0, 2), COUNT))
    plan = Plan((BYTES,), (Result(BYTES, None), Result(BYTES, None)), (constant.tobytes(),), (), 0, steps)
    program = Program(device, plan)
    for _ in range(2 * RING):
        first, second = program(up(device))
        np.testing.assert_array_equal(down(device, first), VALUES + constant)
        np.testing.assert_array_equal(down(device, second), VALUES * 2)


def test_specialization_constants_in_both_signs(device: Device) -> None:
    steps = (
        dispatch(SCALE, (0, 1), COUNT, specialization=(-3, 5)),
        dispatch(SCALE, (0, 2), COUNT, specialization=(2,)),
    )
    plan = Plan((BYTES,), (Result(BYTES, None), Result(BYTES, None)), (), (), 0, steps)
    first, second = Program(device, plan)(up(device))
    np.testing.assert_array_equal(down(device, first), VALUES * -3 + 5)
    np.testing.assert_array_equal(down(device, second), VALUES * 2)


def test_a_shader_runs_in_the_subgroup_size_it_asks_for(device: Device) -> None:
    source = ADD_ONE.replace("local_size_x = 8", f"local_size_x = {device.profile.max_subgroup_size}").replace(
        "SLOT(0).value[i] + 1.0", "float(gl_SubgroupSize)"
    ).replace("#version 460", "#version 460\n#extension GL_KHR_shader_subgroup_basic : require")
    for size in {device.profile.min_subgroup_size, device.profile.max_subgroup_size}:
        step = dispatch(source, (0, 1), COUNT, subgroup_size=size)
        (result,) = Program(device, Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (step,)))(up(device))
        np.testing.assert_array_equal(down(device, result), size)


def test_a_donated_argument_is_written_in_place(device: Device) -> None:
    program = Program(device, add_one(donor=0))
    buffer = up(device)
    address = buffer.address
    for _ in range(3 * RING):
        (buffer,) = program(buffer)
    assert buffer.address == address
    np.testing.assert_array_equal(down(device, buffer), VALUES + 3 * RING)


def test_dispatches_without_work_are_skipped_with_their_barriers_kept(device: Device) -> None:
    nothing = Dispatch(Shader("this is not compiled"), (0, 1), (0,), (1, 0, 1), True, "nothing")
    steps = (dispatch(ADD_ONE, (0, 2), COUNT), nothing, dispatch(ADD_ONE, (2, 1), COUNT))
    plan = Plan((BYTES,), (Result(BYTES, None),), (), (0,), 4096, steps)
    program = Program(device, plan)
    assert [step.barrier for step in program.steps] == [False, True]
    np.testing.assert_array_equal(down(device, program(up(device))[0]), VALUES + 2)


def test_empty_programs_and_empty_buffers(device: Device) -> None:
    assert Program(device, Plan((), (), (), (), 0, ()))() == []
    (result,) = Program(device, Plan((0,), (Result(0, None),), (), (), 0, ()))(device.arrays.allocate(0))
    assert down(device, result).size == 0


@IN_FLIGHT
def test_calls_do_not_wait_and_may_be_many_in_flight(device: Device) -> None:
    rounds = 300_000
    program = Program(device, slow(rounds))
    inputs = [up(device, VALUES * index) for index in range(3 * RING)]
    (warm_up,) = program(inputs[0])
    warm_up.wait()
    results = [program(buffer)[0] for buffer in inputs]
    assert not results[-1].ready()
    results[-1].wait()
    assert all(result.ready() for result in results)
    for result in results:
        np.testing.assert_array_equal(down(device, result), 2.0)


@IN_FLIGHT
def test_calls_that_are_waited_for_share_a_recording_and_write_no_addresses_again(device: Device) -> None:
    program = Program(device, add_one())
    buffer = up(device)
    program(buffer)[0].wait()
    (used,) = (recording for recording in program.recordings if recording.number)
    addresses = used.addresses
    for _ in range(2 * RING):
        program(buffer)[0].wait()
    assert [recording for recording in program.recordings if recording.number] == [used]
    assert [recording for recording in program.recordings if recording.made] == [used], "the others are not made yet"
    assert used.addresses is addresses
    np.testing.assert_array_equal(down(device, program(up(device, -VALUES))[0]), 1 - VALUES)
    long = Program(device, slow(300_000))
    results = [long(buffer)[0] for _ in range(RING)]
    assert len({recording.number for recording in long.recordings}) == RING, "in flight each call has its own"
    assert all(recording.made for recording in long.recordings)
    results[-1].wait()


@IN_FLIGHT
def test_different_programs_are_in_flight_together(device: Device) -> None:
    first, second = Program(device, slow(300_000)), Program(device, chain(2))
    for program in (first, second):
        program(up(device))[0].wait()
    slow_results = [first(up(device))[0] for _ in range(RING)]
    (result,) = second(slow_results[-1])
    (other,) = second(up(device, VALUES * 2))
    assert not slow_results[-1].ready(), "the second program was called while the first still ran"
    np.testing.assert_array_equal(down(device, result), 4.0)
    np.testing.assert_array_equal(down(device, other), VALUES * 2 + 2)


@IN_FLIGHT
def test_uploads_do_not_wait_for_work_in_flight(device: Device) -> None:
    """Neither does a program that reads them; memory that came free while the device reads it is not written."""
    program, after = Program(device, slow(300_000)), Program(device, chain(1))
    for warm_up in (program, after):
        warm_up(up(device))[0].wait()
    results = [program(up(device))[0] for _ in range(RING)]
    copies = [up(device, VALUES + number) for number in range(20)]
    sums = [after(copy)[0] for copy in copies[:RING]]
    assert not results[-1].ready()
    for number, copy in enumerate(copies):
        np.testing.assert_array_equal(down(device, copy), VALUES + number)
    for number, added in enumerate(sums):
        np.testing.assert_array_equal(down(device, added), VALUES + number + 1)
    for result in results:
        np.testing.assert_array_equal(down(device, result), 2.0)


def test_buffers_dropped_while_the_device_uses_them_are_reused_in_order(device: Device) -> None:
    program = Program(device, chain(3))
    results = []
    for index in range(200):
        buffer = up(device, VALUES + index)
        for _ in range(3):
            (buffer,) = program(buffer)
        results.append(buffer)
        if len(results) == 20:
            for offset, result in enumerate(results):
                np.testing.assert_array_equal(down(device, result), VALUES + index - 19 + offset + 9)
            results.clear()


def test_a_program_dropped_in_flight_finishes_and_its_memory_returns(device: Device) -> None:
    def run() -> Buffer:
        return Program(device, slow(100_000))(up(device))[0]

    result = run()
    gc.collect()
    np.testing.assert_array_equal(down(device, result), 2.0)
    del result
    device.queue.drain()
    before = device.arrays.use().in_use, device.tables.use().in_use
    for _ in range(5):
        run()
    gc.collect()
    assert (device.arrays.use().in_use, device.tables.use().in_use) == before


def test_replay_makes_one_submit_a_call_and_nothing_else(device: Device) -> None:
    program = Program(device, chain(5))
    buffer = up(device)
    for _ in range(2):
        program(buffer)
    before, memory = counters.snapshot(), device.arrays.use()
    for _ in range(100):
        program(buffer)
    after = counters.snapshot()
    changed = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert changed == {"submits": 100}
    assert device.arrays.use().allocated == memory.allocated


def test_memory_is_constant_over_ten_thousand_calls(device: Device) -> None:
    program = Program(device, add_one(donor=0))
    fresh = Program(device, add_one())
    (state,) = program(up(device))
    for _ in range(RING):
        fresh(state)
    memory = device.arrays.use()
    for _ in range(5_000):
        (state,) = program(state)
        fresh(state)
    assert device.arrays.use() == memory
    np.testing.assert_array_equal(down(device, state), VALUES + 5_001)


def test_pipelines_are_shared_by_equal_shaders(device: Device) -> None:
    Program(device, chain(2))
    before = counters.snapshot()
    Program(device, chain(7))
    after = counters.snapshot()
    assert after["pipelines"] == before["pipelines"]
    assert after["recordings"] == before["recordings"] + 1


def test_a_pipeline_lives_as_long_as_the_programs_that_use_it(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device.pipelines.made, "limit", 0)
    step = dispatch(f"{SLOW}// of its own", (0, 1), COUNT, words=(1000,))
    plan = Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (step,))
    first, second = Program(device, plan), Program(device, plan)
    pipeline = weakref.ref(first.steps[0].pipeline)
    assert pipeline() is second.steps[0].pipeline
    second(up(device))[0].wait()
    del first
    gc.collect()
    device.destroy_retired()
    assert pipeline() is not None
    (result,) = second(up(device))
    del second
    gc.collect()
    with monkeypatch.context() as unfinished:
        unfinished.setattr(device.queue, "reached", lambda number: False)
        device.destroy_retired()
    assert pipeline() is not None
    result.wait()
    device.destroy_retired()
    assert pipeline() is None
    np.testing.assert_array_equal(down(device, Program(device, plan)(up(device))[0]), 2.0)


def test_arguments_that_do_not_fit_are_refused(device: Device) -> None:
    program = Program(device, add_one())
    with pytest.raises(ValueError, match=r"takes buffers of \(4000\) bytes, and got \(\)"):
        program()
    with pytest.raises(ValueError, match=r"takes buffers of \(4000\) bytes, and got \(3996\)"):
        program(up(device, VALUES[1:]))


def test_dispatches_beyond_the_limits_are_refused(device: Device) -> None:
    over = device.profile.max_workgroup_count[1] + 1
    shader = Shader(ADD_ONE)
    for bad, message in (
        (Dispatch(shader, (0, 1), (1,), (1, over, 1), False, "grid"), "grid has .* workgroups"),
        (Dispatch(shader, (0, 1), (1,) * 29, (1, 1, 1), False, "long"), "long has 31 slots and words"),
    ):
        with pytest.raises(ValueError, match=message):
            Program(device, Plan((BYTES,), (Result(BYTES, None),), (), (), 0, (bad,)))


def test_profiling_times_every_dispatch_and_changes_no_argument(device: Device) -> None:
    buffer = up(device)
    (timed,) = profile_program(Program(device, add_one(donor=0)), [buffer])
    assert timed.name == "shader" and timed.start == 0 and 0 < timed.seconds < 10
    np.testing.assert_array_equal(down(device, buffer), VALUES)
    times = profile_program(Program(device, chain(4)), [buffer])
    assert len(times) == 4
    assert all(a.start + a.seconds <= b.start for a, b in pairwise(times))
    quick, long = (profile_program(Program(device, slow(rounds)), [buffer])[0].seconds for rounds in (1, 1_000_000))
    assert long > quick
    assert profile_program(Program(device, Plan((), (), (), (), 0, ())), []) == []


def test_threads_may_share_a_program(device: Device) -> None:
    program = Program(device, chain(3))
    wrong: list[int] = []

    def work(seed: int) -> None:
        for index in range(60):
            (result,) = program(up(device, VALUES + seed * index))
            if not np.array_equal(down(device, result), VALUES + seed * index + 3):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_bare_submission_counts_as_one(device: Device) -> None:
    for wait in (device.queue.wait, device.queue.sleep):
        submit = bare_submit(device, wait)
        before = counters.snapshot()["submits"]
        submit()
        assert counters.snapshot()["submits"] == before + 1
        assert device.queue.completed == device.queue.submitted
