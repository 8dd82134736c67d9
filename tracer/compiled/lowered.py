"""A compiled function before it runs, as text and as a program."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from lavax.base import config
from lavax.base.errors import DtypeError, ShapeError, TreeMismatchError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.location import user_error
from lavax.passes.build.host_calls import divided, holds_host_calls
from lavax.passes.reports import Cost, Memory, Profile
from lavax.tracer.calls.call import CallStructure, call_of, named_conversion
from lavax.tracer.calls.signature import Signature
from lavax.tracer.compiled.collection import without_collection
from lavax.tracer.compiled.executable import ComputedPart, Executable, memory_of, plan, refuse_tracers
from lavax.tracer.compiled.stages import StagedExecutable, executable
from lavax.tracer.pytrees.pytree import TreeDef, structure, unflatten
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, shape_of
from lavax.tracer.tracing.convert import argument
from lavax.tracer.tracing.tracing import Traced, performed
from lavax.tracer.values.abstract import Abstract
from lavax.tracer.values.array import Array
from lavax.tracer.values.backend import LoweredProgram, active
from lavax.tracer.values.compile_log import compiled_for

BACKEND_STAGES = ("prepare", "kernels", "fusion", "glsl", "spirv")
STAGES = ("ir", "optimized", *BACKEND_STAGES)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A function traced for arguments of certain kinds."""

    signature: Signature
    call: CallStructure
    kinds: tuple[Abstract, ...]
    traced: Traced
    optimized: Graph
    donated: Sequence[int]
    tune: bool

    @cached_property
    def _parts(self) -> ComputedPart:
        return plan(self.optimized, self.donated)

    @cached_property
    def programs(self) -> list[LoweredProgram]:
        """What the backend made of it: one, unless the function calls the host: then those before and after the calls.
        """
        tune = self.tune or config.tune()
        with without_collection:
            if holds_host_calls(self.optimized):
                return [active().lower(plan(stage.graph).graph, tune=tune) for stage in divided(self.optimized)[1]]
            return [active().lower(self._parts.graph, self._parts.donated, tune=tune)]

    @property
    def in_tree(self) -> TreeDef:
        """The structure of the arguments that are traced: a tuple of the positional ones and a dict of the others."""
        return structure(self._arguments(range(self.call.leaf_count)))

    @property
    def in_avals(self) -> Any:
        """The arguments that are traced, with a ShapeDtype for each array: positional ones, and a dict of others."""
        return self._arguments([ShapeDtype(k.type.shape, k.type.dtype.user, weak_type=k.weak) for k in self.kinds])

    def _arguments(self, leaves: Sequence[Any]) -> tuple[Any, Any]:
        count = self.call.positional.leaf_count
        keywords = self.call.keywords
        return (
            unflatten(self.call.positional, leaves[:count]),
            {} if keywords is None else unflatten(keywords, leaves[count:]),
        )

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the result."""
        return self.traced.structure

    @property
    def out_info(self) -> Any:
        """The result with a ShapeDtype for each array."""
        count = self.out_tree.leaf_count
        return unflatten(self.out_tree, [shape_of(node) for node in self.traced.graph.outputs[:count]])

    def as_text(self, stage: str = "optimized") -> str:
        """The function at a stage of its way: "ir", "optimized", "prepare", "kernels", "fusion", "glsl" or "spirv".

        "prepare:NAME" and "prepare:NUMBER" are the graph after that pass of those that prepare it for kernels; they
        are listed in docs/dumps.md. Raises ValueError for another stage.
        """
        kind = stage.partition(":")[0]
        if kind not in STAGES or (kind != stage and kind != "prepare"):
            raise ValueError(f"stage {stage!r} is none of {', '.join(STAGES)}")
        if kind in BACKEND_STAGES:
            with without_collection:
                return "\n\n".join(program.as_text(stage) for program in self.programs)
        return str(self.traced.graph if stage == "ir" else self.optimized)

    def memory(self) -> Memory:
        """Bytes of device memory that a call will need, as Compiled.memory: nothing is allocated for the answer.

        Without a device, it is for the limits that every device has.
        """
        with without_collection:
            return memory_of(self._parts, self.programs[0] if self._parts.graph.outputs else None, self.traced.captured)

    def cost_analysis(self) -> dict[str, float]:
        """As Compiled.cost_analysis. Needs a device."""
        return self.compile().cost_analysis()

    def compile(self) -> Compiled:
        """The program, for arguments of exactly these kinds. Needs a device."""
        with without_collection, compiled_for(self.signature.function):
            run = executable(self.optimized, self.traced.weak, self.traced.captured, self.donated, self.tune)
        return Compiled(self, run)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program for arguments of certain kinds; it is never traced again."""

    lowered: Lowered
    run: Executable | StagedExecutable

    def as_text(self, stage: str = "optimized") -> str:
        """As Lowered.as_text."""
        return self.lowered.as_text(stage)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Runs it; static arguments are left out.

        Raises TreeMismatchError, ShapeError or DtypeError where the arguments are of another kind.
        """
        traced = self.lowered.traced
        return unflatten(traced.structure, performed(traced, self.run(self._arrays(args, kwargs))))

    @property
    def in_tree(self) -> TreeDef:
        """As Lowered.in_tree."""
        return self.lowered.in_tree

    @property
    def in_avals(self) -> Any:
        """As Lowered.in_avals."""
        return self.lowered.in_avals

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the result."""
        return self.lowered.out_tree

    @property
    def out_info(self) -> Any:
        """As Lowered.out_info."""
        return self.lowered.out_info

    def cost_analysis(self) -> dict[str, float]:
        """The sums of `cost` by the names of JAX: "flops", and "bytes accessed"."""
        cost = self.cost()
        return {"flops": float(cost.operations), "bytes accessed": float(cost.bytes_read + cost.bytes_written)}

    def memory_analysis(self) -> Memory:
        """As `memory`, whose numbers also have the names of JAX, such as `temp_size_in_bytes`."""
        return self.memory()

    def cost(self) -> Cost:
        """Floating-point operations, and bytes read and written at least once, per kernel and per call.

        Prints as a table. A loop whose end depends on data counts as one iteration.
        """
        return self.run.cost()

    def memory(self) -> Memory:
        """Bytes of device memory: arguments, results, temporaries, constants, and the `peak` of a call.

        Prints as a table.
        """
        return self.run.memory()

    def profile(self, /, *args: Any, **kwargs: Any) -> Profile:
        """Runs it a few times with timestamps around every kernel: time, share, GB/s and GFLOP/s per kernel.

        Prints as a table; `to_perfetto(path)` writes it as a trace. Kernels run one after another, so their sum may
        exceed the time of a call. Takes the arguments of a call, and does not donate them. Raises the errors of a call,
        and ValueError if there is nothing to compute.
        """
        return self.run.profile(self._arrays(args, kwargs))

    def _arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Array]:
        """The arguments as arrays. Raises an error if they are not of the right kinds."""
        signature, call = self.lowered.signature, self.lowered.call
        given, leaves = call_of(args, kwargs)
        if given.positional is not call.positional or given.keywords is not call.keywords:
            raise user_error(
                TreeMismatchError,
                f"{signature.function} was compiled for the arguments {call.positional!r} {call.keywords or ''}, "
                f"got {given.positional!r} {given.keywords or ''}",
            )
        # Kinds are compared by identity first: a model and its optimizer's state are hundreds of arrays.
        if set(map(type, leaves)) == {Array} and [leaf.abstract for leaf in leaves] == [*self.lowered.kinds]:
            return leaves
        refuse_tracers(leaves)
        arrays: list[Array] = named_conversion(argument, leaves, call, signature)
        for position, (array, kind) in enumerate(zip(arrays, self.lowered.kinds, strict=True)):
            if array.type != kind.type:
                mistake = ShapeError if array.shape != kind.type.shape else DtypeError
                name = call.names(signature)[position]
                raise user_error(
                    mistake, f"{signature.function} was compiled for {name}: {kind.type}, got {array.type}"
                )
        return arrays
