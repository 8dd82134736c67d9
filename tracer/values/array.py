"""Arrays: values whose numbers are in device memory, or are being computed."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import repeat
from threading import RLock
from typing import Any, Self

import numpy as np

from lavax.base.errors import DonatedArrayError
from lavax.ir import DType, TensorType
from lavax.ir.exact_text import exact_text
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.interpreter import held_as
from lavax.ir.location import user_error
from lavax.ir.types import DTYPES
from lavax.tracer.values.abstract import Abstract, abstract
from lavax.tracer.values.backend import Buffer, active, runtime
from lavax.tracer.values.programs import program_for, remember
from lavax.tracer.values.value import PythonScalar, Value


class _Donated:
    """The source of an array whose memory was donated."""


_DONATED, _LOST = _Donated(), _Donated()
_WHY_DONATED = (
    "this array ({}) was donated to a compiled function (donate_argnums), which may have overwritten it: use the "
    "function's result instead, or do not donate this argument"
)
_WHY_LOST = (
    "this array ({}) was donated to a compiled function (donate_argnums) whose call was interrupted or failed: its "
    "numbers are lost, and there is no result. Start again from numbers that are kept elsewhere, such as a checkpoint"
)


_of_memories = RLock()  # held while arrays join, leave or lose a memory: threads may share arrays


class Memory:
    """The memory that arrays have in common: it is allocated for all of them, and given away by all of them.

    An array that is written leaves it, and the others keep the old numbers.
    """

    __slots__ = ("__weakref__", "_members", "is_donated", "is_lost", "numbers")

    def __init__(self, numbers: np.ndarray | None) -> None:
        self.numbers = numbers  # in storage form, until they are on the device
        self.is_donated = False
        self.is_lost = False  # donated to a call that has no result
        self._members: list[weakref.ref[Array]] = []

    def join(self, array: Array) -> None:
        """Makes `array` one of those that have this memory."""
        with _of_memories:
            self._members = self._living()
            self._members.append(weakref.ref(array))
            array._source = self

    def _living(self) -> list[weakref.ref[Array]]:
        return [member for member in self._members if member() is not None]

    def allocate(self) -> Buffer:
        """The buffer of the numbers, for all arrays that have this memory."""
        with _of_memories:
            if self.numbers is not None:  # else another thread was here first
                self._give(active().upload(self.numbers))
                self.numbers = None  # last, so that an interrupt loses nothing
            return next(array._buffer for array in self._arrays() if array._buffer is not None)

    def donate(self) -> None:
        """Gives the memory away, for all arrays that have it."""
        with _of_memories:
            self.is_donated = True
            self._give(None)

    def take_back(self, buffer: Buffer) -> None:
        """Undoes a donation, given the memory."""
        with _of_memories:
            self.is_donated = False
            self._give(buffer)

    def _give(self, buffer: Buffer | None) -> None:
        for array in self._arrays():
            array._buffer = buffer

    def _arrays(self) -> list[Array]:
        found = [member() for member in self._members]
        return [array for array in found if array is not None and array._source is self]


class Array(Value):
    """An n-dimensional array of numbers or truth values in device memory.

    Its numbers may still be in flight: reading them (`numpy.asarray`, `float`, `tolist`, …) waits, nothing else does.
    No function changes its arguments, and no array is a view of another: writing to one (`x[2] = 1`) changes that one
    alone, and whatever was made with its old numbers keeps them.
    """

    # `_source` is the origin of the numbers while there is no buffer: a Python scalar (every element is that one), a
    # NumPy array in storage form, or the mark of donation. So an array needs no device until it is used. A scalar stays
    # after memory was allocated. With or without a buffer, it is the Memory that this array has in common with others.
    __slots__ = ("__weakref__", "_buffer", "_source")

    def __init__(self, abstract: Abstract, buffer: Buffer | None, source: Any = None) -> None:
        self.abstract = abstract
        self._buffer = buffer
        self._source = source

    @property
    def splat(self) -> PythonScalar | None:
        """The one number that all elements equal, if that is known without asking the device."""
        source = self._source
        return source if isinstance(source, (float, int, complex)) else None

    @property
    def buffer(self) -> Buffer:
        """The memory on the device. Raises DonatedArrayError if it was donated."""
        if self._buffer is not None:
            return self._buffer
        source = self._source
        if self.is_donated:
            is_lost = source is _LOST or (isinstance(source, Memory) and source.is_lost)
            raise user_error(DonatedArrayError, (_WHY_LOST if is_lost else _WHY_DONATED).format(self.type))
        if isinstance(source, Memory):
            return source.allocate()
        if isinstance(source, np.ndarray):
            self._buffer, self._source = active().upload(source), None
        else:
            self._buffer = _filled(source, self.type)
        return self._buffer

    @property
    def memory(self) -> Memory | None:
        """What arrays with the same numbers in one memory have in common; None for a splat, and after a donation."""
        with _of_memories:
            source = self._source
            if source is None or isinstance(source, np.ndarray):
                source = Memory(source)
                source.join(self)
            return source if isinstance(source, Memory) and not source.is_donated else None

    def twin(self, weak: bool) -> Array:
        """Another array of the same numbers, in one memory: donating one donates both, writing to one parts them."""
        with _of_memories:
            memory = self.memory
            twin = Array(abstract(self.type, weak), self._buffer if memory else None, self._source)
            if memory is not None:
                memory.join(twin)
            return twin

    def write(self, other: Array) -> None:
        """Takes over the numbers of `other`, an array of this shape and dtype, as they are now.

        Raises DonatedArrayError if the memory of this array was donated.
        """
        if self.is_donated:
            _ = self.buffer
        with _of_memories:
            taken = other.twin(self.weak and other.weak)
            self.abstract = taken.abstract
            self._buffer, self._source = taken._buffer, taken._source
            if isinstance(taken._source, Memory):
                taken._source.join(self)

    def donate(self) -> None:
        """Donates the memory: every later use raises DonatedArrayError."""
        if isinstance(self._source, Memory):
            self._source.donate()
        else:
            self._buffer, self._source = None, _DONATED

    def lose(self) -> None:
        """Says so of a donation to a call that has no result: later errors name the reason."""
        if isinstance(self._source, Memory):
            self._source.is_lost = True
        else:
            self._source = _LOST

    def take_back(self, buffer: Buffer) -> None:
        """Undoes a donation, given the memory that the array had."""
        if isinstance(self._source, Memory):
            self._source.take_back(buffer)
        else:
            self._buffer, self._source = buffer, None

    @property
    def is_donated(self) -> bool:
        source = self._source
        return isinstance(source, _Donated) or (isinstance(source, Memory) and source.is_donated)

    def to_host(self, wanted: str) -> np.ndarray:
        splat = self.splat
        if splat is not None:
            return self.type.dtype.rounded(np.full(self.shape, splat, self._exact))
        source = self._source.numbers if isinstance(self._source, Memory) else self._source
        if isinstance(source, np.ndarray):
            return np.array(self.type.dtype.from_storage(source))
        return active().download(self.buffer, self.type).astype(self.type.dtype.numpy, copy=False)

    @property
    def _exact(self) -> np.dtype:
        """A NumPy dtype that holds a Python scalar of this array exactly."""
        return held_as(self.type.dtype, np.dtype(np.float64))

    def block_until_ready(self) -> Self:
        """Waits until the numbers are computed; returns the array itself."""
        if self._buffer is not None or self.is_donated:
            active().wait(self._buffer or self.buffer)
        return self

    def __repr__(self) -> str:
        if self.is_donated:
            return f"Array({self.type}, donated)"
        numbers = np.array2string(self.to_host("repr()"), separator=", ", prefix="Array(")
        shape = "" if self.size else f"shape={self.shape}, "  # empty brackets do not show it
        return f"Array({numbers}, {shape}dtype={self.dtype.name})"

    def __str__(self) -> str:
        """The numbers as NumPy shows them."""
        return repr(self) if self.is_donated else str(self.to_host("str()"))

    def __copy__(self) -> Array:
        return from_storage(self.type.dtype.to_storage(self.to_host("copy()")), self.type.dtype, self.weak)

    def __deepcopy__(self, memo: Any) -> Array:
        return self.__copy__()

    def __reduce__(self) -> tuple[Callable[..., Array], tuple[np.ndarray, str, bool]]:
        return _unpickled, (self.to_host("pickle"), self.type.dtype.name, self.weak)


def computed_arrays(kinds: Sequence[Abstract], buffers: Sequence[Buffer]) -> list[Array]:
    """Arrays of these kinds in the memory of `buffers`; for many, a third faster than separate calls of Array."""
    if len(buffers) == 1:
        return [Array(kinds[0], buffers[0])]
    arrays = list(map(Array.__new__, repeat(Array, len(buffers))))
    for array, kind, buffer in zip(arrays, kinds, buffers, strict=True):
        array.abstract = kind
        array._buffer = buffer
        array._source = None
    return arrays


def from_storage(numbers: np.ndarray, dtype: DType, weak: bool = False) -> Array:
    """An array of `numbers`, in storage form and not shared; they go to the device when needed."""
    return Array(abstract(TensorType(numbers.shape, dtype), weak), None, numbers)


def splat_array(value: PythonScalar, kind: Abstract) -> Array:
    """An array whose every element is `value`, a Python scalar that fits the dtype."""
    return Array(kind, None, value)


def with_weakness(array: Array, weak: bool) -> Array:
    """The same array if it is weak, or not, as wanted, else its twin."""
    return array if array.weak == weak else array.twin(weak)


def scalar_buffer(value: PythonScalar, dtype: DType) -> Buffer:
    """One element on the device, in memory of its own."""
    return active().upload(dtype.to_storage(np.array(value, held_as(dtype, np.dtype(np.float64)))))


def shared_scalar(value: PythonScalar, dtype: DType) -> Buffer:
    """The same for a buffer that is only read: one per number, kept for reuse."""
    current = runtime()
    key = (dtype, exact_text(value))
    found = current.scalars.get(key)
    if found is None:
        found = remember(current.scalars, key, scalar_buffer(value, dtype))
    return found


def _filled(value: PythonScalar, type: TensorType) -> Buffer:
    """A new buffer with `value` in every element."""
    if not type.shape:
        return scalar_buffer(value, type.dtype)
    single = input_node("value", TensorType((), type.dtype))
    graph = graph_of((single,), (make_node("broadcast", (single,), {"axes": ()}, type),))
    return program_for(graph, eager=True).run([shared_scalar(value, type.dtype)])[0]


def _unpickled(numbers: np.ndarray, dtype: str, weak: bool) -> Array:
    return from_storage(DTYPES[dtype].to_storage(numbers), DTYPES[dtype], weak)
