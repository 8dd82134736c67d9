"""Tensors of a file as NumPy arrays. What a tensor says of its size is checked before anything is allocated."""
from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.errors import ONNXError
from lavax.onnx.reading.external_data import external_bytes
from lavax.onnx.reading.package import onnx_package

LARGEST_DENSE = 1 << 28  # bytes that a sparse tensor may fill, because a file of some bytes can claim any size
_TYPED_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


def numpy_dtype(element_type: int) -> np.dtype | None:
    """The NumPy dtype of an element type of ONNX; objects for strings, None for an unknown number."""
    package = onnx_package()
    try:
        found: np.dtype = np.dtype(package.helper.tensor_dtype_to_np_dtype(element_type))
    except (KeyError, TypeError, ValueError):
        return None
    return found


def bits_of(element_type: int, dtype: np.dtype) -> int:
    """The bits that an element takes in a file: types narrower than a byte are packed."""
    name = onnx_package().TensorProto.DataType.Name(element_type)
    return {"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4}.get(name, 8 * dtype.itemsize)


def array_of(tensor: Any, folder: Path | None) -> np.ndarray:
    """A TensorProto as an array; external data are mapped, not read. Raises ONNXError for one that is damaged."""
    package = onnx_package()
    dtype, shape = numpy_dtype(tensor.data_type), tuple(tensor.dims)
    if dtype is None or tensor.data_type == package.TensorProto.UNDEFINED:
        raise ONNXError(f"onnx.load: tensor {tensor.name!r} has an unknown element type, {tensor.data_type}")
    if min(shape, default=0) < 0:
        raise ONNXError(f"onnx.load: tensor {tensor.name!r} has a negative extent: {shape}")
    count = prod(shape)
    bits = bits_of(tensor.data_type, dtype)
    size = -(-count * bits // 8)
    if tensor.data_location == package.TensorProto.EXTERNAL:
        found = external_bytes(tensor, folder, size)
        if bits == 8 * dtype.itemsize and dtype.kind != "O":
            return found.view(dtype).reshape(shape)
        tensor = _inline(tensor, found.tobytes())
    _check_size(tensor, count, size)
    try:
        made: np.ndarray = package.numpy_helper.to_array(tensor)
    except Exception as error:  # the package lets all kinds of errors through for tensors that are not whole
        raise ONNXError(f"onnx.load: tensor {tensor.name!r} is damaged: {error}") from None
    return made


def dense(sparse: Any, folder: Path | None) -> np.ndarray:
    """A SparseTensorProto as an array."""
    values, places, shape = array_of(sparse.values, folder), array_of(sparse.indices, folder), tuple(sparse.dims)
    name = sparse.values.name
    count = prod(shape)
    if min(shape, default=0) < 0 or count * values.dtype.itemsize > LARGEST_DENSE:
        raise ONNXError(f"onnx.load: the sparse tensor {name!r} would fill {shape}, more than {LARGEST_DENSE} bytes")
    if values.ndim != 1 or places.shape not in ((len(values),), (len(values), len(shape))) or places.dtype != np.int64:
        raise ONNXError(f"onnx.load: the sparse tensor {name!r} has {places.shape} indices for {values.shape} values")
    bounds = np.array([count] if places.ndim == 1 else shape, np.int64)
    if places.size and ((places < 0).any() or (places >= bounds).any()):
        raise ONNXError(f"onnx.load: the sparse tensor {name!r} has an index outside its shape {shape}")
    flat = places if places.ndim == 1 else np.ravel_multi_index(tuple(places.T), shape)
    made = np.zeros(count, values.dtype)
    made[flat] = values
    return made.reshape(shape)


def _inline(tensor: Any, content: bytes) -> Any:
    made = type(tensor)()
    made.CopyFrom(tensor)
    made.data_location = 0
    del made.external_data[:]
    made.raw_data = content
    return made


def _check_size(tensor: Any, count: int, size: int) -> None:
    """The numbers that are there must be as many as the shape says."""
    if tensor.HasField("raw_data"):
        if len(tensor.raw_data) != size:
            raise ONNXError(
                f"onnx.load: tensor {tensor.name!r} of shape {tuple(tensor.dims)} needs {size} bytes, "
                f"has {len(tensor.raw_data)}"
            )
        return
    held = max(len(getattr(tensor, field)) for field in _TYPED_FIELDS)
    # Complex numbers are two entries each; packed types have several in one.
    if held not in (count, 2 * count, -(-count // 2), -(-count // 4)):
        raise ONNXError(f"onnx.load: tensor {tensor.name!r} of shape {tuple(tensor.dims)} has {held} elements")
