"""Compiled functions that another process can run without their Python source."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from lavax.base.errors import DtypeError, ShapeError, SideEffectError, TreeMismatchError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of
from lavax.ir.location import user_error
from lavax.passes.build.finite_rules import finite_rules
from lavax.passes.build.host_calls import calls_python
from lavax.passes.simplify import remove_stop_gradient, simplify
from lavax.tracer.compiled.compile import CompiledFunction, compile
from lavax.tracer.compiled.executable import Executable, apply_graph, refuse_tracers
from lavax.tracer.compiled.stages import StagedExecutable, executable
from lavax.tracer.pytrees.plain_trees import plain, plain_order
from lavax.tracer.pytrees.pytree import TreeDef, flatten, unflatten
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, shape_of
from lavax.tracer.tracing.convert import argument, lift
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class Exported:
    """A graph with the arrays that it closes over, for arguments of certain kinds.

    In arguments and results, named tuples and registered classes are dicts of their fields; arguments may be given in
    either form. Static arguments are part of it, and calls leave them out.
    """

    function: str  # the name of the function
    graph: Graph  # its inputs are the arguments' leaves, then the constants
    constants: tuple[Array, ...]
    arguments: TreeDef  # of (args, kwargs)
    result: TreeDef
    weak: tuple[bool, ...]  # one per output

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph, or inside a trace makes it part of that trace.

        Raises TreeMismatchError, ShapeError or DtypeError if the arguments are of another kind.
        """
        leaves = self._leaves(args, kwargs)
        if active_trace() is not None:
            results: Sequence[Value] = apply_graph(self.graph, [*leaves, *self.constants], self.weak)
        else:
            results = self._run(leaves)  # type: ignore[arg-type]  # outside a trace all are arrays
        return unflatten(self.result, results)

    call = __call__

    def save(self, path: str | Path) -> None:
        """Writes a file: a zip archive of the graph's text, the constants as .npy and the structures as JSON."""
        self._write(Path(path))

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The bytes that `save` writes. Derivatives of any order are part of them, whatever `vjp_order` says."""
        file = BytesIO()
        self._write(file)
        return bytearray(file.getbuffer())

    def _write(self, file: Path | BinaryIO) -> None:
        from lavax.tracer.compiled.export_file import Contents, write  # late: it imports zip archives and JSON

        write(file, Contents(self.function, self.graph, self.constants, self.arguments, self.result, self.weak))

    def as_text(self) -> str:
        """The text of its graph."""
        return str(self.graph)

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.function

    @property
    def in_tree(self) -> TreeDef:
        """The structure of (args, kwargs)."""
        return self.arguments

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the result."""
        return self.result

    @property
    def in_avals(self) -> tuple[ShapeDtype, ...]:
        """The shapes and dtypes of the arguments' leaves."""
        return tuple(map(shape_of, self.graph.inputs[: self.arguments.leaf_count]))

    @property
    def out_avals(self) -> tuple[ShapeDtype, ...]:
        """The shapes and dtypes of the result's leaves."""
        return tuple(map(shape_of, self.graph.outputs))

    def has_vjp(self) -> bool:
        """True: the graph can be differentiated."""
        return True

    @cached_property
    def _run(self) -> Executable | StagedExecutable:
        return executable(remove_stop_gradient(self.graph), self.weak, self.constants)

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Value]:
        """The arguments' leaves as values. Raises an error if they are not of the right kinds."""
        leaves, structure = flatten(plain((args, kwargs)))
        if structure is not self.arguments:
            raise user_error(
                TreeMismatchError,
                f"{self.function} was exported for the arguments {self.arguments!r}, got {structure!r}",
            )
        inside = active_trace() is not None
        if not inside:
            refuse_tracers(leaves)
        values: list[Value] = [lift(leaf) if inside else argument(leaf) for leaf in leaves]
        for value, node in zip(values, self.graph.inputs, strict=False):
            if value.type != node.type:
                mistake = ShapeError if value.shape != node.shape else DtypeError
                raise user_error(
                    mistake, f"{self.function} was exported for {node.name}: {node.type}, got {value.type}"
                )
        return values


def exported_for(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Exported:
    """`function`, compiled or not, for arguments of these kinds, in a form that can be saved.

    Arguments are pytrees of arrays, numbers or anything with `shape` and `dtype`; needs no device. The rules of
    custom_vjp and custom_jvp, checkpoints and stop_gradient are part of it, so its derivatives are those of
    `function`. But if a rule calls its own function, that call keeps its rule for two derivatives; further derivatives
    through such calls are those of its operations. Donated arguments are kept. Raises SideEffectError if the function
    prints or calls Python on the host, ExportError if dicts in arguments or results have keys that are neither strings
    nor integers (when saved).
    """
    compiled = function if isinstance(function, CompiledFunction) else compile(function)
    lowered = compiled.lower(*args, **kwargs)
    traced, call = lowered.traced, lowered.call
    if traced.effects or calls_python(traced.graph):
        raise user_error(
            SideEffectError,
            f"export of {lowered.signature.function}: functions on the host (debug.print, debug.callback, "
            "pure_callback, io_callback) cannot be written to a file: take them out, or return the value",
        )
    given = unflatten(call.positional, range(call.positional.leaf_count))
    named = {}
    if call.keywords is not None:
        named = unflatten(call.keywords, range(call.positional.leaf_count, len(lowered.kinds)))
    order, arguments = flatten(plain((given, named)))
    result, result_order = plain_order(traced.structure)
    graph = finite_rules(simplify(traced.graph))
    inputs: list[Node] = [*(graph.inputs[leaf] for leaf in order), *graph.inputs[len(order) :]]
    return Exported(
        lowered.signature.function,
        graph_of(inputs, [graph.outputs[leaf] for leaf in result_order]),
        tuple(_constant(value) for value in traced.captured),
        arguments,
        result,
        tuple(traced.weak[leaf] for leaf in result_order),
    )


def _constant(value: Value) -> Array:
    refuse_tracers([value])
    assert isinstance(value, Array)
    return value


def load_exported(path: str | Path | BinaryIO) -> Exported:
    """The function that `Exported.save` wrote; its graph is verified. Runs no code from the file.

    Raises ExportError if the file is damaged, is not an exported function, or has another version of the format.
    """
    from lavax.tracer.compiled.export_file import read  # late: it imports zip archives and JSON

    found = read(Path(path) if isinstance(path, str) else path)
    return Exported(found.function, found.graph, found.constants, found.arguments, found.result, found.weak)
