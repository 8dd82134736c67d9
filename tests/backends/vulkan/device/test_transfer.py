from __future__ import annotations

import numpy as np
import pytest

from lavax.backends.vulkan.api.queue import Queue
from lavax.backends.vulkan.device import transfer
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.plan.plan import Plan, Result
from lavax.backends.vulkan.run.program import Program
from lavax.base import counters
from tests.backends.vulkan.emit.shaders import ADD_ONE, SLOW, dispatch


@pytest.mark.parametrize("count", [0, 1, 63, 64, 5000, 300_000])
def test_what_goes_up_comes_down(device: Device, count: int) -> None:
    array = np.arange(count, dtype=np.float64)
    before = counters.snapshot()
    buffer = device.transfer.upload(array)
    array[:] = -1
    back = device.transfer.download(buffer, buffer.nbytes).view(np.float64)
    np.testing.assert_array_equal(back, np.arange(count))
    after = counters.snapshot()
    assert after["bytes_to_device"] - before["bytes_to_device"] == 8 * count
    assert after["bytes_to_host"] - before["bytes_to_host"] == 8 * count


@pytest.mark.parametrize("array", [
    np.arange(24, dtype=np.int32).reshape(4, 6)[::-1, ::2],
    np.arange(24, dtype=np.int32).reshape(4, 6).T,
    np.array(7, np.int32),
])
def test_arrays_of_any_layout_arrive_in_c_order(device: Device, array: np.ndarray) -> None:
    array.flags.writeable = False
    buffer = device.transfer.upload(array)
    back = device.transfer.download(buffer, buffer.nbytes).view(np.int32)
    np.testing.assert_array_equal(back.reshape(array.shape), array)


def test_large_arrays_go_through_staging_memory_in_parts(
    staged_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "STAGING_BYTES", 1000)
    monkeypatch.setattr(transfer, "LARGEST_PENDING_BYTES", 3000)
    array = np.random.default_rng(0).integers(0, 256, 12_345, np.uint8)
    buffer = staged_device.transfer.upload(array)
    assert len(staged_device.transfer.pending) <= 3
    np.testing.assert_array_equal(staged_device.transfer.download(buffer, 12_345), array)
    np.testing.assert_array_equal(staged_device.transfer.download(buffer, 2_500), array[:2_500])


def test_uploads_do_not_run_ahead_without_bound(staged_device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "LARGEST_PENDING_BYTES", 3000)
    step = dispatch(SLOW, (0, 1), 250, words=(1_000_000,))
    program = Program(staged_device, Plan((1000,), (Result(1000, None),), (), (), 0, (step,)))
    numbers = np.arange(250, dtype=np.float32)
    program(staged_device.transfer.upload(numbers))[0].wait()
    (slow,) = program(staged_device.transfer.upload(numbers))
    pieces = staged_device.staging.use().in_use
    uploads = [staged_device.transfer.upload(numbers + k) for k in range(40)]
    assert slow.ready(), "the third submission of copies waits for the first, which is behind the program"
    assert staged_device.staging.use().in_use - pieces < 16 * 1024
    for k, buffer in enumerate(uploads):
        back = staged_device.transfer.download(buffer, 1000).view(np.float32)
        np.testing.assert_array_equal(back, numbers + k)


def test_staged_uploads_go_out_with_the_next_program(staged_device: Device) -> None:
    plan = Plan((256,), (Result(256, None),), (), (), 0, (dispatch(ADD_ONE, (0, 1), 64),))
    program = Program(staged_device, plan)
    before = counters.snapshot()["submits"]
    results = []
    for step in range(20):
        buffer = staged_device.transfer.upload(np.full(64, step, np.float32))
        results += program(buffer)
    assert counters.snapshot()["submits"] - before == 20
    for step, result in enumerate(results):
        back = staged_device.transfer.download(result, 256).view(np.float32)
        np.testing.assert_array_equal(back, step + 1)


def test_a_queue_for_downloads_waits_for_the_submission_that_made_the_buffer(staged_device: Device) -> None:
    # The same VkQueue, a timeline of its own.
    copy_queue = Queue(staged_device.handle, staged_device.queue.family, "cpu")
    copying = transfer.Transfer(
        staged_device.handle, staged_device.queue, copy_queue, staged_device.arrays, staged_device.staging
    )
    rounds = 100_000
    plan = Plan((256,), (Result(256, None),), (), (), 0, (dispatch(SLOW, (0, 1), 64, words=(rounds,)),))
    program = Program(staged_device, plan)
    for step in range(5):
        (result,) = program(staged_device.transfer.upload(np.full(64, step, np.float32)))
        np.testing.assert_array_equal(copying.download(result, 256).view(np.float32), 2.0)
    assert copy_queue.submitted == copy_queue.completed == 5
    copying.close()
    copy_queue.close()


def test_an_upload_that_is_dropped_at_once_does_no_harm(device: Device) -> None:
    for step in range(50):
        device.transfer.upload(np.full(1000, step, np.uint8))
    kept = device.transfer.upload(np.full(1000, 77, np.uint8))
    device.transfer.upload(np.full(1000, 78, np.uint8))
    np.testing.assert_array_equal(device.transfer.download(kept, 1000), 77)
