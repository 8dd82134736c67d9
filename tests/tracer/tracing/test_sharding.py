"""Where arrays are, under JAX's names, and what is known of them without their numbers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.sharding import SingleDeviceSharding


def test_an_array_is_on_the_one_device() -> None:
    x = lnp.asarray(np.zeros((2, 3), np.complex64))
    place = x.sharding
    assert place == SingleDeviceSharding(lx.default_device()) and hash(place) == hash(lnp.ones(4).sharding)
    assert place.device_set == place.addressable_devices == x.devices() and place.num_devices == 1
    assert place.shard_shape(x.shape) == x.shape and place.is_equivalent_to(lnp.ones(()).sharding, 2)
    assert place.devices_indices_map(x.shape) == {lx.default_device(): (slice(None), slice(None))}
    assert x.is_fully_addressable and x.is_fully_replicated and not x.committed
    assert x.addressable_data(0) is x and x.on_device_size_in_bytes() == 48
    (part,) = x.addressable_shards
    assert part.data is x and part.index == (slice(None), slice(None)) and part.device == lx.default_device()


def test_a_sharding_is_taken_where_a_device_is() -> None:
    place, numbers = lnp.ones(2).sharding, np.arange(3, dtype="f")
    for found in (
        lx.device_put(numbers, place),
        lnp.asarray(numbers, device=place),
        lnp.asarray(numbers).to_device(place),
        lx.jit(lambda x: x, in_shardings=place, out_shardings=[place])(numbers),
        lx.jit(lambda x: x, out_shardings=(None, {"a": place}))(numbers),
    ):
        np.testing.assert_array_equal(found, numbers)
    elsewhere = SingleDeviceSharding("elsewhere")
    for call in (
        lambda: lx.device_put(numbers, elsewhere),
        lambda: lnp.ones(2, device=elsewhere),
        lambda: lx.jit(lambda x: x, in_shardings=elsewhere),
        lambda: lx.jit(lambda x: x, out_shardings="elsewhere"),
    ):
        with pytest.raises(ValueError, match=r"one device|arrays are made on"):
            call()


def test_a_traced_value_has_no_place() -> None:
    for name in ("sharding", "committed", "is_fully_replicated", "addressable_shards"):
        with pytest.raises(AttributeError, match="has no memory until its function runs"):
            lx.jit(lambda x: (getattr(x, name), x)[1])(lnp.ones(2))  # noqa: B023


def test_shape_and_dtype_are_known_of_traced_values_and_keys_too() -> None:
    seen: list[Any] = []
    x, key = lnp.ones((2, 3), "complex64"), lx.random.key(0)
    lx.jit(lambda x, key: (seen.extend((x.aval, key.aval)), x)[1])(x, key)
    assert seen == [x.aval, key.aval] == [lx.ShapeDtype((2, 3), "complex64"), lx.ShapeDtype((), key.dtype)]
    assert [each.str_short() for each in seen] == ["complex64[2,3]", "key<fry>[]"]
    assert key.sharding == x.sharding and key.on_device_size_in_bytes() == 8


def test_weakness_is_known_of_shapes() -> None:
    weak = lx.ShapeDtypeStruct((), "float32", weak_type=True)
    assert lnp.asarray(1.0).aval.weak_type and not lnp.ones(2).aval.weak_type
    assert lx.eval_shape(lambda x: x * np.float16(2), weak).dtype == np.float16
    assert lx.eval_shape(lambda x: 2 * x, weak).weak_type
    assert not lx.eval_shape(lambda x: 2 * x, weak.update(weak_type=False)).weak_type
    assert lx.jit(lambda x: x * np.float16(2)).lower(weak).compile()(1.0).dtype == np.float16
