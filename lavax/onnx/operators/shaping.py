"""Operators that change shapes and move elements, and those that tell of shapes."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.onnx.operators.elementwise import unsupported_type
from lavax.onnx.operators.operator import MOST_KNOWN, REQUIRED, Call, Operator, converted, device_dtype
from lavax.onnx.reading.tensors import numpy_dtype


def _reshape(call: Call, x: Any, shape: Any) -> Any:
    wanted = list(call.integers(shape, "shape"))
    if not call.allowzero:
        for axis, extent in enumerate(wanted):
            if extent == 0:
                if axis >= x.ndim:
                    raise call.error(f"shape {wanted} keeps axis {axis}, which the input {x.shape} does not have")
                wanted[axis] = x.shape[axis]
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise call.error(f"shape {wanted} must have at most one -1")
    count, rest = prod(x.shape), prod(extent for extent in wanted if extent >= 0)
    if -1 in wanted:
        if rest == 0 or count % rest:
            raise call.error(f"the input {x.shape} has no shape {wanted}")
        wanted[wanted.index(-1)] = count // rest
    if prod(wanted) != count:
        raise call.error(f"the input {x.shape} has {count} elements, the shape {wanted} has {prod(wanted)}")
    return x.reshape(tuple(wanted))


def _flatten(call: Call, x: Any) -> Any:
    axis = call.axis + x.ndim if call.axis < 0 else call.axis
    return x.reshape((prod(x.shape[:axis]), prod(x.shape[axis:])))


def _shape(call: Call, x: Any) -> Any:
    end = x.ndim if call.end is None else call.end
    return np.array(tuple(x.shape)[slice(call.start, end)], np.int64)


def _size(call: Call, x: Any) -> Any:
    return np.array(prod(x.shape), np.int64)


def _axes(call: Call, axes: Any) -> tuple[int, ...] | None:
    return call.axes if axes is None else call.integers(axes, "axes")


def _squeeze(call: Call, x: Any, axes: Any = None) -> Any:
    given = _axes(call, axes)
    gone = {k % x.ndim for k in given} if given is not None else {k for k, extent in enumerate(x.shape) if extent == 1}
    if any(x.shape[axis] != 1 for axis in gone):
        raise call.error(f"axes {sorted(gone)} of the input {x.shape} must have one element each")
    return x.reshape(tuple(extent for axis, extent in enumerate(x.shape) if axis not in gone))


def _unsqueeze(call: Call, x: Any, axes: Any = None) -> Any:
    given = _axes(call, axes) or ()
    rank = x.ndim + len(given)
    places, kept = {axis % rank for axis in given}, iter(x.shape)
    return x.reshape(tuple(1 if axis in places else next(kept) for axis in range(rank)))


def _transpose(call: Call, x: Any) -> Any:
    return call.np.transpose(x, call.perm or tuple(reversed(range(x.ndim))))


def _concat(call: Call, *inputs: Any) -> Any:
    return call.np.concatenate(inputs, axis=call.axis)


def _split(call: Call, x: Any, sizes: Any = None) -> Any:
    axis = call.axis % x.ndim
    given = call.split if sizes is None else call.integers(sizes, "split")
    if given is None:
        count = call.num_outputs or call.outputs
        each = -(-x.shape[axis] // count)
        given = [min(each, max(x.shape[axis] - each * part, 0)) for part in range(count)]
    if sum(given) != x.shape[axis]:
        raise call.error(f"the parts {tuple(given)} must add up to the {x.shape[axis]} elements of axis {axis}")
    ends = np.cumsum(given)
    return tuple(_cut(x, axis, int(end - size), int(end)) for end, size in zip(ends, given, strict=True))


def _cut(x: Any, axis: int, start: int, end: int) -> Any:
    return x[tuple(slice(start, end) if k == axis else slice(None) for k in range(x.ndim))]


def _expand(call: Call, x: Any, shape: Any) -> Any:
    wanted = np.broadcast_shapes(x.shape, call.integers(shape, "shape"))
    return call.np.broadcast_to(x, wanted) if not _is_large(call, wanted) else lnp.broadcast_to(x, wanted)


def _is_large(call: Call, shape: tuple[int, ...]) -> bool:
    return call.is_known and prod(shape) > MOST_KNOWN


def _tile(call: Call, x: Any, repeats: Any) -> Any:
    counts = call.integers(repeats, "repeats")
    wanted = tuple(extent * count for extent, count in zip(x.shape, counts, strict=True))
    return lnp.tile(x, counts) if _is_large(call, wanted) else call.np.tile(x, counts)


def _constant(call: Call) -> Any:
    given = {name: value for name, value in call.attributes.items() if value is not None}
    if len(given) != 1:
        raise call.error("one of its attributes must hold the value")
    ((name, value),) = given.items()
    dtypes = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    return np.asarray(value, dtypes.get(name))


def _constant_of_shape(call: Call, shape: Any) -> Any:
    wanted = call.integers(shape, "shape")
    value = np.zeros(1, np.float32) if call.value is None else call.value
    if min(wanted, default=0) < 0:
        raise call.error(f"the shape {wanted} has a negative extent")
    if prod(wanted) > MOST_KNOWN:
        return lnp.full(wanted, value.reshape(()).item(), device_dtype(value.dtype))
    return np.full(wanted, value.reshape(()), value.dtype)


def _range(call: Call, start: Any, limit: Any, delta: Any) -> Any:
    first, end, step = (call.known(part, "the range").reshape(()) for part in (start, limit, delta))
    if not step:
        raise call.error("delta is 0")
    count = max(int(np.ceil((end.astype(np.float64) - first) / step)), 0)
    if count > MOST_KNOWN:
        return lnp.arange(count, dtype=device_dtype(first.dtype)) * step.item() + first.item()
    return (np.arange(count) * step.astype(np.float64 if step.dtype.kind == "f" else step.dtype) + first).astype(
        first.dtype
    )


def _eye_like(call: Call, x: Any) -> Any:
    dtype = device_dtype(x.dtype) if call.dtype is None else device_dtype(_dtype(call.dtype))
    return lnp.eye(x.shape[0], x.shape[1], k=call.k, dtype=dtype)


def _dtype(element_type: int) -> np.dtype:
    found = numpy_dtype(element_type)
    assert found is not None, "refused while loading"
    return found


def _trilu(call: Call, x: Any, k: Any = None) -> Any:
    offset = 0 if k is None else k.reshape(())
    below = call.np.arange(x.shape[-2]).reshape(-1, 1) + offset
    right = call.np.arange(x.shape[-1]).reshape(1, -1)
    kept = right >= below if call.upper else right <= below
    return call.np.where(kept, x, call.np.zeros_like(x))


def _depth_to_space(call: Call, x: Any) -> Any:
    count, channels, height, width = x.shape
    size = call.blocksize
    if call.mode == "DCR":
        apart = x.reshape(count, size, size, channels // size**2, height, width)
        order: tuple[int, ...] = (0, 3, 4, 1, 5, 2)
    else:
        apart = x.reshape(count, channels // size**2, size, size, height, width)
        order = (0, 1, 4, 2, 5, 3)
    return call.np.transpose(apart, order).reshape(count, channels // size**2, height * size, width * size)


def _space_to_depth(call: Call, x: Any) -> Any:
    count, channels, height, width = x.shape
    size = call.blocksize
    apart = x.reshape(count, channels, height // size, size, width // size, size)
    if call.mode == "CRD":
        moved = call.np.transpose(apart, (0, 1, 3, 5, 2, 4))
    else:
        moved = call.np.transpose(apart, (0, 3, 5, 1, 2, 4))
    return moved.reshape(count, channels * size**2, height // size, width // size)


def _reverse_sequence(call: Call, x: Any, lengths: Any) -> Any:
    time, batch = call.time_axis, call.batch_axis
    moved = call.np.moveaxis(x, (batch, time), (0, 1))
    step = call.np.arange(moved.shape[1]).reshape(1, -1)
    ends = lengths.reshape(-1, 1)
    places = call.np.where(step < ends, ends - 1 - step, step).reshape(*moved.shape[:2], *([1] * (x.ndim - 2)))
    found = call.np.take_along_axis(moved, call.np.broadcast_to(places, moved.shape), axis=1)
    return call.np.moveaxis(found, (0, 1), (batch, time))


def _pad(call: Call, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    given = call.pads if pads is None else call.integers(pads, "pads")
    along = tuple(range(x.ndim)) if axes is None else call.integers(axes, "axes")
    widths = [(0, 0)] * x.ndim
    for number, axis in enumerate(along):
        widths[axis % x.ndim] = (given[number], given[number + len(along)])
    cut = tuple(
        slice(max(-before, 0), extent - max(-after, 0)) for extent, (before, after) in zip(x.shape, widths, strict=True)
    )
    x, widths = x[cut], [(max(before, 0), max(after, 0)) for before, after in widths]
    wide = tuple(extent + sum(width) for extent, width in zip(x.shape, widths, strict=True))
    library = lnp if _is_large(call, wide) else call.np
    if call.mode != "constant":
        return library.pad(x, widths, mode=call.mode)
    padded = library.pad(x, widths)
    if value is None:
        return padded
    inside = library.pad(library.ones(x.shape, bool), widths)
    return library.where(inside, padded, converted(value.reshape(()), x.dtype))


def _center_crop_pad(call: Call, x: Any, shape: Any) -> Any:
    wanted = call.integers(shape, "shape")
    axes = range(x.ndim) if call.axes is None else call.axes
    cut, widths = [slice(None)] * x.ndim, [(0, 0)] * x.ndim
    for axis, extent in zip(axes, wanted, strict=True):
        own = x.shape[axis]
        if extent <= own:
            cut[axis] = slice((own - extent) // 2, (own - extent) // 2 + extent)
        else:
            widths[axis] = ((extent - own) // 2, extent - own - (extent - own) // 2)
    return call.np.pad(x[tuple(cut)], widths)


def _identity(call: Call, x: Any) -> Any:
    return (x,)  # a sequence is a tuple, too


_AXES = {"axes": None}

OPERATORS = (
    Operator("CenterCropPad", _center_crop_pad, {"axes": None}, known=(1,), folds=True),
    Operator("Concat", _concat, {"axis": REQUIRED}, folds=True),
    Operator(
        "Constant", _constant,
        dict.fromkeys(("value", "value_float", "value_floats", "value_int", "value_ints", "sparse_value")), folds=True,
    ),
    Operator("ConstantOfShape", _constant_of_shape, {"value": None}, known=(0,), folds=True),
    Operator("DepthToSpace", _depth_to_space, {"blocksize": REQUIRED, "mode": "DCR"}, folds=True),
    Operator("Expand", _expand, known=(1,), folds=True),
    Operator(
        "EyeLike", _eye_like, {"dtype": None, "k": 0}, of_shape=True,
        refuse=lambda node: unsupported_type(node.attributes["dtype"]) if "dtype" in node.attributes else None,
    ),
    Operator("Flatten", _flatten, {"axis": 1}, folds=True),
    Operator("Identity", _identity, folds=True),
    Operator("Pad", _pad, {"mode": "constant", "pads": None}, known=(1, 3), folds=True, since=11),
    Operator("Range", _range, {"stash_type": 1}, known=(0, 1, 2), folds=True),
    Operator("Reshape", _reshape, {"allowzero": 0}, known=(1,), folds=True, since=5),
    Operator("ReverseSequence", _reverse_sequence, {"batch_axis": 1, "time_axis": 0}, folds=True),
    Operator("Shape", _shape, {"start": 0, "end": None}, folds=True, of_shape=True),
    Operator("Size", _size, folds=True, of_shape=True),
    Operator("SpaceToDepth", _space_to_depth, {"blocksize": REQUIRED, "mode": "DCR"}, folds=True),
    Operator("Split", _split, {"axis": 0, "num_outputs": None, "split": None}, known=(1,), folds=True),
    Operator("Squeeze", _squeeze, _AXES, known=(1,), folds=True),
    Operator("Tile", _tile, known=(1,), folds=True, since=6),
    Operator("Transpose", _transpose, {"perm": None}, folds=True),
    Operator("Trilu", _trilu, {"upper": 1}, folds=True),
    Operator("Unsqueeze", _unsqueeze, _AXES, known=(1,), folds=True),
)  # fmt: skip
