"""`compile`: functions that run as one program per kind of arguments."""
from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, overload

from lavax.base.config import runs_uncompiled, trace_settings
from lavax.base.counters import count
from lavax.passes.simplify import remove_stop_gradient
from lavax.tracer.calls.call import CallStructure, ChosenArguments, call_of, chosen_arguments, named_conversion, parted
from lavax.tracer.calls.signature import Signature, signature_of
from lavax.tracer.compiled.collection import without_collection
from lavax.tracer.compiled.executable import Executable, refuse_tracers
from lavax.tracer.compiled.lowered import Lowered
from lavax.tracer.compiled.nan_check import NaNChecked
from lavax.tracer.compiled.retrace import log_lowering, log_trace, log_traced
from lavax.tracer.compiled.shared_programs import programs_of
from lavax.tracer.compiled.stages import StagedExecutable, executable
from lavax.tracer.compiled.traced_function import TracedFunction
from lavax.tracer.compiled.turns import Turns
from lavax.tracer.pytrees.pytree import LEAF, TreeDef, flatten, leaves, unflatten
from lavax.tracer.tracing.convert import abstract_of, argument, lift
from lavax.tracer.tracing.float0 import parted_from_float0
from lavax.tracer.tracing.placement import default_backend, require_default
from lavax.tracer.tracing.sharding import SingleDeviceSharding
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracer import Tracer, python_number
from lavax.tracer.tracing.tracing import Traced, performed, trace_call
from lavax.tracer.values.abstract import Abstract
from lavax.tracer.values.array import Array
from lavax.tracer.values.backend import in_use, runtime
from lavax.tracer.values.compile_log import compiled_for
from lavax.tracer.values.program_cache import CachedProgram, ProgramCache, now
from lavax.tracer.values.value import Value

_Run = Callable[[Sequence[Array]], list[Array]]

# The kind of a value; raises TypeError for anything else, even if that has an attribute of this name.
_kind_of: Callable[[Any], Abstract] = vars(Value)["abstract"].__get__


class _Entry(CachedProgram):
    """A program and its bookkeeping, for one kind of arguments."""

    __slots__ = ("is_leaf", "run", "structure", "traced")

    def __init__(self, run: _Run, traced: Traced, held_bytes: int) -> None:
        super().__init__(held_bytes)
        self.run = run
        self.structure: TreeDef = traced.structure  # of the result
        self.is_leaf = traced.structure is LEAF
        self.traced = traced if traced.effects else None  # of a function with effects on the host


# An entry, the arrays that it is to be run on, and its results if it has been.
_Found = tuple[_Entry, list[Array], list[Array] | None]

# Of the threads that trace and compile. Several that call a function first get one program.
_turns: Turns[_Entry] = Turns()


class CompiledFunction:
    """A function that is traced and compiled at its first call with each kind of arguments, and replayed afterwards."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        static: ChosenArguments,
        donated: ChosenArguments,
        tune: bool,
        eager: bool = False,
    ) -> None:
        """With `eager` shaders take sizes as parameters, so that few serve many shapes."""
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._signature = signature
        self._static = static
        self._has_static = bool(static.positions or static.names)
        self._donated = donated
        self._has_donated = bool(donated.positions or donated.names)
        self._tune = tune
        self._eager = eager
        self._entries: ProgramCache[_Entry] = ProgramCache()
        # Entries for calls whose arguments are arrays, by their kinds and the names of keyword arguments.
        self._of_arrays: ProgramCache[_Entry] = ProgramCache()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Runs the program for these arguments. Inside a trace, the function becomes part of that trace."""
        if active_trace() is not None or runs_uncompiled():
            return self._inlined(args, kwargs)
        leaves: Sequence[Array] = args
        entry = results = None
        if self._of_arrays:
            if kwargs:
                leaves = (*args, *kwargs.values())
            try:
                kinds = map(_kind_of, leaves)
                entry = self._of_arrays.get((in_use.runtime, trace_settings(), *kwargs, *kinds))
            except TypeError:
                entry = None  # an argument that is not an array
        if entry is None:
            entry, leaves, results = self._entry_for(args, kwargs)
        entry.used = now()
        if results is None:
            results = entry.run(leaves)
        if entry.traced is not None:
            results = performed(entry.traced, results)
        return results[0] if entry.is_leaf else unflatten(entry.structure, results)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_entries": ProgramCache(), "_of_arrays": ProgramCache()}  # programs stay here

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument (of a registered class, or static)."""
        return self if instance is None else BoundMethod(self, instance)

    def clear_cache(self) -> None:
        """Drops the programs of this function; other functions compiled from the same one keep theirs."""
        self._entries.clear()
        self._of_arrays.clear()
        programs_of(self._function).clear()

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Traces for these arguments, arrays or anything with `shape` and `dtype`; needs no device."""
        call, leaves = parted_from_float0(*self._parted(args, kwargs))
        kinds = named_conversion(abstract_of, leaves, call, self._signature)
        log_lowering(self._signature, call, kinds)
        with without_collection:
            traced = self._traced(call, kinds)
            optimized = remove_stop_gradient(traced.graph)
        return Lowered(self._signature, call, tuple(kinds), traced, optimized, self._donated_leaves(call), self._tune)

    def trace(self, /, *args: Any, **kwargs: Any) -> TracedFunction:
        """Traces as `lower` does: the result has the graph as `jaxpr`."""
        return TracedFunction(self.lower(*args, **kwargs))

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result with a ShapeDtype for each array: `lower(*args, **kwargs).out_info`."""
        return self.lower(*args, **kwargs).out_info

    def _parted(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[CallStructure, list[Any]]:
        if self._has_static and active_trace() is not None:
            args = [_setting(arg) if p in self._static.positions else arg for p, arg in enumerate(args)]
            kwargs = {name: _setting(arg) if name in self._static.names else arg for name, arg in kwargs.items()}
        args, kwargs, statics = parted(self._static, self._signature, args, kwargs)
        return call_of(args, kwargs, statics)

    def _traced(self, call: CallStructure, kinds: Sequence[Abstract]) -> Traced:
        count("traces")
        start = time.perf_counter()
        traced = trace_call(self._function, self._signature, call, kinds, "compile")
        log_traced(self._signature, traced, start)
        return traced

    def _entry_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Found:
        """The entry for these arguments, made and run if there is none yet, and their leaves as arrays."""
        statics: tuple[Any, ...] = ()
        if self._has_static:
            args, kwargs, statics = parted(self._static, self._signature, args, kwargs)
        leaves, positional = flatten(args)
        keywords = None
        if kwargs:
            more, keywords = flatten(kwargs)
            leaves += more
        try:
            kinds = [leaf.abstract for leaf in leaves]
            entry = self._entries.get((runtime(), trace_settings(), positional, keywords, statics, *kinds))
        except AttributeError:  # a leaf that is not an array yet
            entry = None
        if entry is None:
            return self._prepared(leaves, CallStructure(positional, keywords, statics))
        if len(leaves) == len(args) + len(kwargs) and not self._has_static and _are_arrays(args, kwargs):
            self._of_arrays.keep((runtime(), trace_settings(), *kwargs, *kinds), entry)
        return entry, leaves, None

    def _prepared(self, leaves: list[Any], call: CallStructure) -> _Found:
        """The entry for these arguments, and the arguments as arrays. If there is none yet, it is made and run: the
        collector rests until the device has something to do.
        """
        refuse_tracers(leaves)
        call, leaves = parted_from_float0(call, leaves)
        arrays = named_conversion(argument, leaves, call, self._signature)
        current, settings = runtime(), trace_settings()
        key = (current, settings, call.positional, call.keywords, call.statics, *[array.abstract for array in arrays])
        entry = self._entries.get(key)
        if entry is None:
            place = (self._static, self._donated, self._tune, current.refuses_nans, *key)
            with without_collection:
                entry = _turns.made(
                    (id(self._function), *place),
                    lambda: self._entries.get(key) or programs_of(self._function).get(place),
                    lambda: self._entered(place, call, arrays, key),
                )
                self._entries.keep(key, entry)
                return entry, arrays, entry.run(arrays)
        return entry, arrays, None

    def _entered(
        self, place: tuple[Any, ...], call: CallStructure, arrays: Sequence[Array], key: tuple[Any, ...]
    ) -> _Entry:
        """A new entry, in the tables where other threads look for it."""
        programs = programs_of(self._function)
        return self._entries.keep(key, programs.keep(place, self._made(call, arrays, key)))

    def _made(self, call: CallStructure, arrays: Sequence[Array], key: tuple[Any, ...]) -> _Entry:
        """A new trace and its program."""
        kinds = [array.abstract for array in arrays]
        log_trace(self._function, self._signature, call, kinds, (*self._entries, key))
        traced = self._traced(call, kinds)
        with compiled_for(self._signature.function):
            run = self._program(traced, call)
        return _Entry(run, traced, run.held_bytes)

    def _program(self, traced: Traced, call: CallStructure) -> Executable | StagedExecutable | NaNChecked:
        donated = self._donated_leaves(call)
        if runtime().refuses_nans:
            return NaNChecked(self._signature.function, traced.graph, traced.weak, traced.captured, donated)
        graph = remove_stop_gradient(traced.graph)
        return executable(graph, traced.weak, traced.captured, donated, self._tune, self._eager)

    def _inlined(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        call, leaves = parted_from_float0(*self._parted(args, kwargs))
        convert = _own if active_trace() is None else lift
        args, kwargs = call.arguments(named_conversion(convert, leaves, call, self._signature))
        return self._function(*args, **kwargs)

    def _donated_leaves(self, call: CallStructure) -> list[int]:
        return call.leaves_of(self._donated.positions, self._donated.names) if self._has_donated else []


def _own(leaf: Any) -> Value:
    """`leaf` as a value that a function may write to: a compiled function would not change its arguments."""
    value = lift(leaf)
    return value.twin(value.weak) if isinstance(value, Array) else value


def _setting(static: Any) -> Any:
    """A static argument inside a trace: the Python number again where a derivative or `vmap` traces one."""
    return python_number(static) if isinstance(static, Tracer) else static


def _are_arrays(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments themselves are the leaves, in order: arrays, with keywords in the order of their names."""
    return all(isinstance(arg, Array) for arg in (*args, *kwargs.values())) and sorted(kwargs) == list(kwargs)


class BoundMethod:
    """A compiled method of one instance."""

    def __init__(self, function: CompiledFunction, instance: Any) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.__self__ = instance

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.__self__, *args, **kwargs)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """As CompiledFunction.lower, with the instance as first argument."""
        return self.function.lower(self.__self__, *args, **kwargs)

    def trace(self, /, *args: Any, **kwargs: Any) -> TracedFunction:
        """As CompiledFunction.trace, with the instance as first argument."""
        return self.function.trace(self.__self__, *args, **kwargs)

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """As CompiledFunction.eval_shape, with the instance as first argument."""
        return self.function.eval_shape(self.__self__, *args, **kwargs)


@overload
def compile(
    fun: Callable[..., Any],
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    tune: bool = False,
    inline: bool = False,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> CompiledFunction: ...
@overload
def compile(
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    tune: bool = False,
    inline: bool = False,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Callable[[Callable[..., Any]], CompiledFunction]: ...
def compile(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    tune: bool = False,
    inline: bool = False,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Any:
    """Makes `fun` run as one program on the device. A decorator, with or without options, or a function.

    Arguments are pytrees of arrays, NumPy arrays and numbers. The function is traced once per structure, shapes,
    dtypes and static values of its arguments, and replayed for all further calls.
    `static_argnums`, `static_argnames`: arguments that are settings: hashable Python values, passed to the function
    unchanged while it is traced.
    `donate_argnums`, `donate_argnames`: arguments whose memory the results may take over; their arrays cannot be used
    afterwards.
    `tune`: kernel schedules are chosen by timing the candidates on the device, once per kernel, device and driver; the
    fastest is kept on disk. The rounding of sums follows from the chosen schedule. `LAVAX_TUNE=1` does this for
    everything.
    `inline` and `keep_unused` are taken as JAX takes them, and change nothing: functions within functions are always
    inlined, and unused arguments cost nothing. Everything runs on one device: `device` and `backend`, "cpu" or "gpu",
    are taken if it is that one; `in_shardings` and `out_shardings` are None, an array's `sharding`, or trees of them.
    Raises ValueError for a number or name that no parameter has, for another device, and for shardings.
    """
    for name, given in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        if not all(isinstance(leaf, SingleDeviceSharding) for leaf in leaves(given)):
            raise ValueError(
                f"compile: {name} must be None, the sharding of an array, or a tree of these: everything runs on one "
                "device, and arrays are not divided among several; leave it out"
            )
        for leaf in leaves(given):
            require_default("compile", leaf)
    if device is not None:
        require_default("compile", device)
    if backend is not None and backend != default_backend():
        raise ValueError(f"compile: everything runs on one device, a {default_backend()}; got backend={backend!r}")
    if fun is None:
        return functools.partial(
            compile,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            tune=tune,
        )
    signature = signature_of(fun, "compile")
    static = chosen_arguments(signature, static_argnums, static_argnames, "static")
    donated = chosen_arguments(signature, donate_argnums, donate_argnames, "donate")
    both = {*map(signature.name_at, static.positions & donated.positions), *(static.names & donated.names)}
    if both:
        raise ValueError(f"{min(both)} of {signature.function} cannot be both static and donated")
    return CompiledFunction(fun, signature, static, donated, tune)
