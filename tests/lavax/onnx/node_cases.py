"""The node tests of the ONNX repository, which the onnx package brings: each runs, is refused by name, or fails."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import lavax as lx
from lavax.onnx.reading.package import onnx_package

OLDEST = 13
# Their results are random: what they must give is their shape and dtype.
RANDOM = ("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial")


@dataclass(frozen=True)
class Outcome:
    """What became of a case: "passed", "refused" or "failed", and why."""

    kind: str
    why: str = ""


@functools.cache
def cases() -> dict[str, Any]:
    """The cases of opset 13 and newer, and of the domains besides the standard's own, by name."""
    onnx_package()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    return {case.name: case for case in found if opset_of(case) is None or opset_of(case) >= OLDEST}


def opset_of(case: Any) -> int | None:
    """The opset of the standard that a case is for; None if it is of another domain only."""
    return next((entry.version for entry in case.model.opset_import if entry.domain in ("", "ai.onnx")), None)


def operators_of(case: Any) -> set[str]:
    """The operators in a case."""
    return {node.op_type for node in case.model.graph.node}


def outcome(case: Any) -> Outcome:
    """Runs a case."""
    with lx.enable_x64():
        try:
            model = lx.onnx.load(case.model.SerializeToString())
        except lx.ONNXError as error:
            return Outcome("refused", str(error))
        try:
            for inputs, outputs in case.data_sets:
                names = [given.name for given in model.graph.inputs]
                given = {name: _held(value) for name, value in zip(names, inputs, strict=False)}
                made = model(model.parameters, **given)
                if not operators_of(case) & set(RANDOM):
                    for name, wanted in zip(model.output_names, outputs, strict=False):
                        _compare(made[name], wanted, case.rtol, case.atol)
        except lx.ONNXError as error:  # what only the call's inputs show, such as that a Dropout is to train
            return Outcome("refused" if error.__cause__ is None else "failed", str(error))
        except Exception as error:
            return Outcome("failed", f"{type(error).__name__}: {error}")
    return Outcome("passed")


def _held(value: Any) -> Any:
    if value is None or isinstance(value, np.ndarray):
        return value
    if isinstance(value, onnx_package().TensorProto):  # of a type that NumPy does not have
        return onnx_package().numpy_helper.to_array(value)
    return tuple(map(np.asarray, value)) if isinstance(value, (list, tuple)) else np.asarray(value)


def _compare(made: Any, wanted: Any, rtol: float, atol: float) -> None:
    if wanted is None or made is None:
        assert made is wanted, f"{made} is not {wanted}"
        return
    if isinstance(wanted, (list, tuple)):
        assert len(made) == len(wanted), f"{len(made)} tensors, not {len(wanted)}"
        for one, other in zip(made, wanted, strict=True):
            _compare(one, other, rtol, atol)
        return
    found, wanted = np.asarray(made), _held(wanted)
    assert found.shape == wanted.shape, f"shape {found.shape}, not {wanted.shape}"
    assert _holds(found.dtype, wanted.dtype), f"dtype {found.dtype}, not {wanted.dtype}"
    narrow = {"float16": 4e-3, "bfloat16": 2e-2}.get(wanted.dtype.name, 0.0)  # two or three of their steps
    kind = np.float64 if wanted.dtype.kind in "fV" or wanted.dtype.name == "bfloat16" else wanted.dtype
    kind = np.int64 if wanted.dtype.name in ("int4", "uint4", "int2", "uint2") else kind
    finite = np.abs(wanted.astype(np.float64))
    largest = np.max(finite, where=np.isfinite(finite), initial=0)
    np.testing.assert_allclose(found.astype(kind), wanted.astype(kind), max(rtol, narrow), max(atol, 1e-6 * largest))


def _holds(made: np.dtype, wanted: np.dtype) -> bool:
    """Integers of 2 and 4 bits are held in 8."""
    narrow = {"int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8"}
    return made.name == narrow.get(wanted.name, wanted.name)


def outcomes() -> Iterator[tuple[str, Outcome]]:
    """All cases with their outcomes."""
    for name, case in cases().items():
        yield name, outcome(case)
