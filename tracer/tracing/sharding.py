"""Where the parts of an array are: all of them on the one device, under JAX's names."""
from __future__ import annotations

from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.tracer.values.array import Array
from lavax.tracer.values.backend import active

Places = tuple[slice, ...]  # the part of an array that a device holds, axis by axis


@dataclass(frozen=True)
class SingleDeviceSharding:
    """The whole array on `device`. Two are equal if their devices are."""

    device: Any
    memory_kind: str = "device"

    is_fully_addressable = is_fully_replicated = True
    num_devices = 1

    @property
    def device_set(self) -> set[Any]:
        """The device."""
        return {self.device}

    addressable_devices = device_set

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a device's part of an array of this shape, which is all of it."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Any, Places]:
        """The device, with the part of an array of this shape that it holds: all of every axis."""
        return {self.device: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether the parts of an array of `ndim` axes are in the same places by `other`."""
        return bool(self == other)


@dataclass(frozen=True, eq=False)
class Shard:
    """The part of an array that a device holds, here all of it: `data`, at `index` of the array."""

    device: Any
    index: Places
    data: Any
    replica_id: int = 0


def sharding_of(array: Any) -> SingleDeviceSharding:
    """Where an array's parts are. Raises AttributeError for a traced value, which is nowhere yet."""
    _require_memory(array, "sharding")
    return SingleDeviceSharding(active().default_device())


def shards_of(array: Any) -> list[Shard]:
    """The parts of an array, one per device. Raises AttributeError for a traced value."""
    _require_memory(array, "shards")
    device = active().default_device()
    return [Shard(device, (slice(None),) * array.ndim, array)]


def shard_data(array: Any, index: int) -> Any:
    """The part of an array on device number `index`, of which there is one."""
    return shards_of(array)[index].data


def is_committed(array: Any) -> bool:
    """False: there is no other device that an array could be kept from. Raises AttributeError for a traced value."""
    _require_memory(array, "committed")
    return False


def device_in(place: Any) -> Any:
    """The device of a sharding; anything else is a device itself, or None."""
    return place.device if isinstance(place, SingleDeviceSharding) else place


def _require_memory(array: Any, what: str) -> None:
    words = getattr(array, "words", array)  # of an array of random keys
    if not isinstance(words, Array):
        raise AttributeError(f"a traced value ({words.type}) has no {what}: it has no memory until its function runs")
