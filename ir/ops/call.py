"""Calls in the graph: functions with their own derivatives, and functions that the gradient recomputes.

They have several results, which `item` separates. Before kernels are made, each call is replaced by its body.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.graph import Graph
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.control_flow import input_types, output_types
from lavax.ir.types import TensorType, tuple_of

Types = Sequence[TensorType]


def floats(types: Types) -> tuple[TensorType, ...]:
    return tuple(type for type in types if type.dtype.is_inexact)


def _check(what: str, graph: Graph, given: Types, results: Types | None) -> None:
    """Raises ShapeError if a graph does not map `given` to `results`."""
    for role, expected, found in (("takes", given, input_types(graph)), ("gives", results, output_types(graph))):
        if expected is not None and tuple(expected) != found:
            raise ShapeError(
                f"{what} {role} ({', '.join(map(str, found))}), which has to be ({', '.join(map(str, expected))})"
            )


def _infer_custom_vjp(operands: Types, attrs: Attributes, declared: TensorType | None) -> TensorType:
    """`forward` returns the results and residuals. `backward` takes residuals and a cotangent for each float result,
    and returns one for each float among the first `arguments` operands."""
    body, forward, backward = attrs["body"], attrs["forward"], attrs["backward"]
    _check("custom_vjp: the body", body, operands, None)
    results = output_types(body)
    if not isinstance(forward, Graph) or not isinstance(backward, Graph):
        return tuple_of(results)  # rules that contain themselves are checked when they are built
    _check("custom_vjp: the forward rule", forward, operands, (*results, *output_types(forward)[len(results) :]))
    residuals = output_types(forward)[len(results) :]
    wanted = floats(operands[: attrs["arguments"]])
    _check("custom_vjp: the backward rule", backward, (*residuals, *floats(results)), wanted)
    return tuple_of(results)


def _infer_custom_jvp(operands: Types, attrs: Attributes, declared: TensorType | None) -> TensorType:
    """`rule` takes the operands and a tangent for each float among the first `arguments` of them. It returns the
    results and a tangent for each float result."""
    body, rule = attrs["body"], attrs["rule"]
    _check("custom_jvp: the body", body, operands, None)
    results = output_types(body)
    if not isinstance(rule, Graph):
        return tuple_of(results)
    tangents = floats(operands[: attrs["arguments"]])
    _check("custom_jvp: the rule", rule, (*operands, *tangents), (*results, *floats(results)))
    return tuple_of(results)


def _infer_custom_vmap(operands: Types, attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check("custom_vmap: the body", attrs["body"], operands, None)
    return tuple_of(output_types(attrs["body"]))


def _infer_checkpoint(operands: Types, attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check("checkpoint: the body", attrs["body"], operands, None)
    if attrs["keep"] not in ("nothing", "dots"):
        raise ShapeError(f"checkpoint: keep must be nothing or dots, got {attrs['keep']!r}")
    if not 0 <= attrs.get("named", 0) <= len(attrs["body"].outputs):
        raise ShapeError(f"checkpoint: the body has {len(attrs['body'].outputs)} results, got named={attrs['named']!r}")
    return tuple_of(output_types(attrs["body"]))


def _evaluate(arrays: Sequence[Any], attrs: Attributes, type: TensorType, dtype: np.dtype) -> Any:
    from lavax.ir.interpreter import run_nodes  # the interpreter runs these operations in turn

    body = attrs["body"]
    return tuple(run_nodes(body, dict(zip(body.inputs, arrays, strict=True)), dtype))


define(
    Operation("custom_vjp", "region", _infer_custom_vjp, _evaluate, ("arguments", "body", "forward", "backward"))
)
define(Operation("custom_jvp", "region", _infer_custom_jvp, _evaluate, ("arguments", "body", "rule")))
# `batching` makes the graph of a batch: see BatchingFunction.
define(Operation("custom_vmap", "region", _infer_custom_vmap, _evaluate, ("body", "batching")))
# `keep`: which values of the body the gradient need not recompute: "nothing", or the results of "dots". Nor does it
# recompute the last `named` results.
define(
    Operation(
        "checkpoint", "region", _infer_checkpoint, _evaluate, ("keep", "body", "named"), defaults={"named": 0}
    )
)
