from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from lavax.backends.vulkan.api.api import vk
from lavax.backends.vulkan.device.device import Device, families_among, get_device
from lavax.backends.vulkan.device.instance import choose_device, list_devices
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, DeviceProfile
from lavax.base.errors import DeviceError

# By extensions that versions of Mesa newer than the oldest that is tested have, or not.
OF_NEWER_MESA = ("reorders_floats", "matrices", "converts_matrices")


def test_the_device_is_the_same_every_time() -> None:
    assert get_device() is get_device()


def test_devices_are_chosen_by_index_and_by_part_of_the_name() -> None:
    for description in list_devices():
        assert choose_device(str(description.index)).name == description.name
        assert choose_device(description.name[1:-1].upper()).name == description.name
    assert choose_device(None).name == list_devices()[0].name


def test_devices_have_what_devices_of_jax_have() -> None:
    for number, device in enumerate(list_devices()):
        assert (device.id, device.process_index, device.device_kind) == (number, 0, device.name)
        assert device.platform == ("cpu" if device.kind == "cpu" else "gpu")


@pytest.mark.parametrize("selector", ["99", "no such device"])
def test_a_selector_that_names_no_device_lists_those_there_are(selector: str) -> None:
    with pytest.raises(DeviceError, match=f"LAVAX_DEVICE={selector}.*0: "):
        choose_device(selector)


@pytest.mark.parametrize(
    ("families", "expected"),
    [
        (["draws computes copies"], (0, 0)),
        (["draws computes copies", "copies", "computes copies"], (2, 1)),
        (["draws computes copies", "computes copies", "computes copies"], (1, 1)),
        (["draws copies", "draws computes copies", "copies other"], (1, 1)),
        (["draws computes", "copies"], (0, 1)),
    ],
)
def test_programs_run_where_nothing_is_drawn_and_downloads_where_nothing_else_is_done(
    families: list[str], expected: tuple[int, int]
) -> None:
    bits = {
        "draws": vk.VK_QUEUE_GRAPHICS_BIT,
        "computes": vk.VK_QUEUE_COMPUTE_BIT,
        "copies": vk.VK_QUEUE_TRANSFER_BIT | vk.VK_QUEUE_SPARSE_BINDING_BIT,
        "other": 1 << 8,
    }
    assert families_among([sum(bits[name] for name in family.split()) for family in families]) == expected


def test_a_device_that_runs_no_shaders_is_refused() -> None:
    with pytest.raises(DeviceError, match="no queue that runs compute shaders"):
        families_among([vk.VK_QUEUE_GRAPHICS_BIT | vk.VK_QUEUE_TRANSFER_BIT])


def test_the_profile_has_the_limits_of_the_device(device: Device) -> None:
    profile = device.profile
    assert isinstance(profile, DeviceProfile)
    assert profile.min_subgroup_size <= profile.subgroup_size <= profile.max_subgroup_size
    assert profile.max_workgroup_invocations >= 128
    assert min(profile.max_workgroup_count) >= 65535


def test_the_profile_for_cpu_drivers_is_what_lavapipe_reports() -> None:
    profile = get_device().profile
    if "llvmpipe" not in profile.name or profile.subgroup_size != CPU_DRIVER.subgroup_size:
        pytest.skip("not lavapipe with 256-bit vectors")
    assert profile == replace(CPU_DRIVER, **{name: getattr(profile, name) for name in ("name", *OF_NEWER_MESA)})


def failure(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_without_a_driver_the_error_says_what_to_install() -> None:
    program = "from lavax.backends.vulkan.device.device import get_device; get_device()"
    message = failure(program, VK_ICD_FILENAMES="/nonexistent.json", VK_DRIVER_FILES="/nonexistent.json")
    assert "DeviceError" in message and "apt install mesa-vulkan-drivers" in message


def test_without_a_loader_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['vulkan'] = None; from lavax.backends.vulkan.device.device import get_device"
    message = failure(program)
    assert "DeviceError" in message and "apt install libvulkan1" in message


def test_without_the_validation_layer_the_error_says_what_to_install() -> None:
    program = (
        "from lavax.backends.vulkan.device import validation\n"
        "validation.LAYER = 'VK_LAYER_that_is_not_there'\n"
        "from lavax.backends.vulkan.device.device import get_device; get_device()"
    )
    message = failure(program, LAVAX_VALIDATE="1")
    assert "DeviceError" in message and "apt install vulkan-validationlayers" in message
