"""A loaded model: a function of its parameters and named inputs."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ONNXError, ShapeError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType, dtype_of_data
from lavax.onnx.evaluation import Evaluator
from lavax.onnx.library import Library
from lavax.onnx.masked_writes import OWN, with_masked_writes
from lavax.onnx.needs import Needs
from lavax.onnx.operators.operator import NARROW, as_array, on_device
from lavax.onnx.reading.graph import Graph, Input
from lavax.onnx.reading.modernizing import modern
from lavax.onnx.reading.parsing import broken_rule, model_of, parsed
from lavax.passes.reports import Profile
from lavax.tracer.compiled.compile import CompiledFunction, compile
from lavax.tracer.compiled.lowered import Lowered
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value

_FEW = 64  # elements up to which a constant is part of the program, not an argument
_MOST_PROGRAMS = 64  # that are kept for different values of inputs that must be known


@dataclass(frozen=True, eq=False)
class Model:
    """A function of the model's parameters and inputs: `model(parameters, **inputs)` gives a dict of its outputs.

    `parameters` are its floating initializers by name: give them, or others of their shapes. Integers, truth values,
    single numbers (as scales of attention are) and what shapes are computed from belong to the model. Inputs are
    arrays, by name; `static_input_names` are those that shapes depend on, which must be NumPy arrays or arrays with
    known numbers: each of their values makes a program of its own. 64-bit numbers are 32-bit ones on the device, unless
    64 bits are enabled. Usable under every transformation; by itself it is compiled, once for each set of shapes.
    """

    graph: Graph
    static_input_names: frozenset[str]
    scalars: bool  # whether numbers of rank 0 are parameters
    _evaluator: Evaluator
    _programs: dict[Any, CompiledFunction] = field(default_factory=dict)

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs that a call needs; those with a default in the file may be given, too."""
        return [given.name for given in self._inputs.values() if given.name not in self.graph.initializers]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return list(self.graph.output_names)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The floating initializers, on the device."""
        return {name: as_array(numbers) for name, numbers in self._split[0].items()}

    @cached_property
    def _constants(self) -> dict[str, Any]:
        return {name: as_array(numbers) for name, numbers in self._split[1].items()}

    @cached_property
    def _split(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The initializers: parameters, large constants, and those that the program holds or needs to know."""
        parameters, large, known = {}, {}, {}
        needed = self._evaluator.needs.of(self.graph)
        for name, numbers in self.graph.initializers.items():
            held = dtype_of_data(numbers.dtype)
            if name in needed or held is None:
                known[name] = numbers
            elif held.is_float and (numbers.ndim or self.scalars):
                parameters[name] = numbers
            elif numbers.size > _FEW:
                large[name] = numbers
            else:
                known[name] = numbers
        return parameters, large, known

    @cached_property
    def _inputs(self) -> dict[str, Input]:
        return {given.name: given for given in self.graph.inputs}

    def __call__(self, parameters: Mapping[str, Any], /, **inputs: Any) -> dict[str, Any]:
        """The outputs by name. Raises ONNXError, ShapeError or DtypeError for inputs that do not fit the model."""
        program, arguments = self._prepared(parameters, inputs)
        outputs: dict[str, Any] = program(*arguments)
        return {name: outputs[name] for name in self.graph.output_names}

    def lower(self, parameters: Mapping[str, Any], /, **inputs: Any) -> Lowered:
        """The program for inputs of these shapes: its stages as text, its memory, its compiled form."""
        program, arguments = self._prepared(parameters, inputs)
        return program.lower(*arguments)

    def profile(self, parameters: Mapping[str, Any], /, **inputs: Any) -> Profile:
        """Runs the model a few times: the time of each kernel, which prints as a table."""
        program, arguments = self._prepared(parameters, inputs)
        return program.lower(*arguments).compile().profile(*arguments)

    def _prepared(self, parameters: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[CompiledFunction, Any]:
        """The program for the values of the static inputs, and its arguments."""
        self._check_names(parameters, inputs)
        static = {name: self._known(name, value) for name, value in inputs.items() if name in self.static_input_names}
        arrays = {
            name: _prepared(value, self._inputs[name]) for name, value in inputs.items() if name not in static
        }
        _check_dtypes(self._inputs, {**arrays, **static})
        _check_shapes(self._inputs, {**arrays, **static})
        key = tuple((name, value.shape, value.dtype.str, value.tobytes()) for name, value in sorted(static.items()))
        program = self._programs.get(key)
        if program is None:
            while len(self._programs) >= _MOST_PROGRAMS:
                del self._programs[next(iter(self._programs))]
            program = self._programs[key] = compile(self._program(static))
        return program, (dict(parameters), self._constants, arrays)

    def _program(self, static: Mapping[str, np.ndarray]) -> Any:
        known = self._split[2]

        def model(parameters: dict[str, Any], constants: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
            given = {name: None for name, own in self._inputs.items() if own.is_optional and name not in inputs}
            values = {**given, **known, **constants, **parameters, **inputs, **static}
            outputs = self._evaluator.run(self.graph, values, {})
            return {name: on_device(value) for name, value in zip(self.graph.output_names, outputs, strict=True)}

        return model

    def _check_names(self, parameters: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
        required = {name for name in self.input_names if not self._inputs[name].is_optional}
        missing, unknown = sorted(required - set(inputs)), sorted(set(inputs) - set(self._inputs))
        if missing or unknown:
            text = "; ".join(
                f"{what} {', '.join(map(repr, names))}"
                for what, names in (("there is no value for", missing), ("there is no input", unknown))
                if names
            )
            raise ONNXError(f"this model has the inputs {self.input_names}: {text}")
        held: Any = parameters
        wrong = set(held) ^ set(self._split[0]) if isinstance(held, Mapping) else {type(held).__name__}
        if wrong:
            raise ONNXError(
                f"give the model its `model.parameters`, or others of the same {len(self._split[0])} names; "
                f"missing, unknown or of a wrong type: {', '.join(sorted(map(str, wrong))[:8])}"
            )
        for name, numbers in self._split[0].items():
            shape = np.shape(numbers) if isinstance(held[name], (int, float)) else getattr(held[name], "shape", None)
            if shape is not None and tuple(shape) != numbers.shape:
                raise ShapeError(f"onnx: the parameter {name!r} has the shape {numbers.shape}, got {tuple(shape)}")

    def _known(self, name: str, value: Any) -> np.ndarray:
        if isinstance(value, Value) and not isinstance(value, Array):
            raise ONNXError(
                f"the input {name!r} is traced, but shapes depend on its numbers; give them as a NumPy array, outside "
                "of `compile` or as a static argument"
            )
        found = np.asarray(value)
        declared = self._inputs[name].dtype
        is_same = declared is None or found.dtype == declared or found.dtype.kind not in "iuf"
        return found if is_same else found.astype(declared)


def _prepared(value: Any, declared: Input) -> Any:
    if value is None:
        if not declared.is_optional:
            raise ONNXError(f"onnx: the input {declared.name!r} needs a value, got None")
        return None
    if isinstance(value, (tuple, list)) and (declared.is_sequence or declared.is_optional):
        return tuple(_prepared(part, declared) for part in value)
    if isinstance(value, Value):
        return value
    is_plain = isinstance(value, (bool, int, float, list, tuple))  # what has no dtype gets the input's
    return as_array(np.asarray(value, declared.dtype if is_plain else None))


def _check_dtypes(inputs: Mapping[str, Input], given: Mapping[str, Any]) -> None:
    """A float is a float of any width, so that a model may run in another precision; integers likewise."""
    for name, value in given.items():
        declared = inputs[name].dtype
        held = None if declared is None else dtype_of_data(np.dtype(NARROW.get(declared.name, declared)))
        for part in value if isinstance(value, tuple) else (value,):
            found = None if part is None else dtype_of_data(np.dtype(part.dtype))
            if held is not None and found is not None and _sort(found) != _sort(held):
                raise DtypeError(
                    f"onnx: the input {name!r} takes {declared}, got {part.dtype}: convert it by astype"
                )


def _sort(dtype: DType) -> str:
    return "integer" if dtype.kind in ("int", "uint") else dtype.kind


def _check_shapes(inputs: Mapping[str, Input], given: Mapping[str, Any]) -> None:
    """Each input must have the declared extents; a named one is the same number wherever its name stands."""
    named: dict[str, tuple[int, str]] = {}
    for name, value in given.items():
        declared = inputs[name].shape
        if declared is None or value is None or isinstance(value, tuple):
            continue
        shape = tuple(value.shape)
        wanted = tuple("?" if extent is None else extent for extent in declared)
        if len(shape) != len(declared):
            raise ShapeError(f"onnx: the input {name!r} has the shape {wanted}, got {shape}")
        for extent, number in zip(declared, shape, strict=True):
            if isinstance(extent, int) and extent != number:
                raise ShapeError(f"onnx: the input {name!r} has the shape {wanted}, got {shape}")
            if isinstance(extent, str):
                before, owner = named.setdefault(extent, (number, name))
                if before != number:
                    raise ShapeError(
                        f"onnx: {extent!r} is {before} in the input {owner!r}, but {number} in {name!r} {shape}"
                    )


def load(source: str | os.PathLike[str] | bytes, *, padded: bool = False, scalars: bool = False) -> Model:
    """The model in an ONNX file or in its bytes, as a function of its parameters and named inputs.

        model = lx.onnx.load("resnet50.onnx")
        logits = model(model.parameters, pixels=images)["logits"]

    A shape that depends on data is an error. With `padded`, NonMaxSuppression and NonZero give as many places as there
    can be: those behind the last that was found are -1. With `scalars`, single numbers are parameters, too: the scales
    and bounds of a file are not meant to be trained, but a learnt temperature is. Opsets 13 and newer are read as they
    are, older ones converted by the onnx package. External data are mapped, and read only from within the model's
    folder.

    Raises ONNXError for files that are damaged or break the rules of ONNX, and for models with nodes that cannot be
    run, all of which it names; FileNotFoundError; and ImportError without the onnx package
    (`pip install 'lavax[onnx]'`).
    """
    proto, folder = model_of(source)
    broken = broken_rule(proto)
    try:
        model = _read(proto, folder, padded, scalars)
    except ONNXError:  # it names all nodes that are wrong; the checker only one
        raise
    except Exception:
        if broken is None:
            raise
        raise ONNXError(broken) from None  # what breaks a rule of ONNX may be of any form
    if broken is not None:
        raise ONNXError(broken)
    return model


def _read(proto: Any, folder: Path | None, padded: bool, scalars: bool) -> Model:
    found = parsed(modern(proto), folder)
    graph = with_masked_writes(found.graph)
    library = Library(found.functions, padded, OWN)
    needs = Needs(library)
    names = needs.find(graph)
    needs.refuse_inputs(graph)
    if needs.problems:
        listed = "".join(f"\n  {problem}" for problem in reversed(needs.problems))  # they are found from the end
        raise ONNXError(f"onnx.load: the model cannot be run, for {len(needs.problems)} reasons:{listed}")
    static = frozenset(given.name for given in graph.inputs if given.name in names)
    return Model(graph, static, scalars, Evaluator(library, needs))
