"""Kernels of convolution and pooling: few, none that only moves elements, and right."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.ir import Node, interpret
from lavax.ir.operation import OPERATIONS
from lavax.passes.build import contraction_geometry
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Products, Target
from tests.operation_cases import cases_of
from tests.passes.lowering import f32, program_of_function
from tests.passes.program_checks import check_program

NHWC = ("NHWC", "HWIO", "NHWC")


def _conv(x: Any, w: Any) -> Any:
    return nn.conv(x, w, 1, "SAME", dimension_numbers=NHWC)


def _layer(x: Any, w: Any, b: Any) -> Any:
    return nn.relu(_conv(x, w) + b)


def _channels_first(x: Any, w: Any, b: Any) -> Any:
    return nn.relu(nn.conv(x, w, 2, "SAME") + b[:, None, None])


def _pool(name: str, **more: Any) -> Callable[..., Any]:
    return lambda x: getattr(nn, name)(x, (2, 2), 2, axes=(1, 2), **more)


def _gradient(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Of a function's arguments, with what the result's gradient is as one more argument."""
    return lambda *arrays: lx.vjp(function, *arrays[:count])[1](arrays[count])


X, W, B, G = f32(2, 8, 8, 4), f32(3, 3, 4, 8), f32(8), f32(2, 8, 8, 8)
KINDS: dict[str, tuple[list[str], Callable[..., Any], tuple[Any, ...]]] = {
    "convolution with bias and relu": (["contract"], _layer, (X, W, B)),
    "channels first": (["contract"], _channels_first, (f32(2, 4, 8, 8), f32(8, 4, 3, 3), B)),
    "groups": (["contract"], lambda x, w: nn.conv(x, w, feature_group_count=2), (f32(2, 4, 8), f32(8, 2, 3))),
    "depthwise": (["row"], lambda x, w: nn.conv(x, w, feature_group_count=4), (f32(2, 4, 8), f32(4, 1, 3))),
    "transposed": (["contract"], lambda x, w: nn.conv_transpose(x, w, 2), (f32(2, 4, 8), f32(8, 4, 3))),
    "gradients of a convolution": (["contract", "contract"], _gradient(_conv, 2), (X, W, G)),
    "gradients of a layer": (["contract", "contract", "contract", "row"], _gradient(_layer, 3), (X, W, B, G)),
    "max pooling": (["row"], _pool("max_pool"), (X,)),
    "average pooling": (["row"], _pool("avg_pool"), (X,)),
    "average pooling without padding": (["row"], _pool("avg_pool", padding=1, count_include_pad=False), (X,)),
    "gradient of max pooling": (["row", "map"], _gradient(_pool("max_pool"), 1), (X, f32(2, 4, 4, 4))),
    "gradient of padded max pooling": (
        ["row", "map"], _gradient(_pool("max_pool", padding=1), 1), (X, f32(2, 5, 5, 4)),
    ),
    "gradient of sum pooling": (["map"], _gradient(_pool("sum_pool", padding=1), 1), (X, f32(2, 5, 5, 4))),
    "value and gradient of max pooling": (
        ["row", "map"], lambda x, g: (_pool("max_pool")(x), *_gradient(_pool("max_pool"), 1)(x, g)),
        (X, f32(2, 4, 4, 4)),
    ),
    "convolution, then pooling": (["contract", "row"], lambda x, w, b: _pool("max_pool")(_layer(x, w, b)), (X, W, B)),
}  # fmt: skip


def kernels_of(program: KernelProgram) -> list[Kernel]:
    return [kernel for step in program.steps for kernel in step.kernels]  # type: ignore[union-attr]


def only_moves(kernel: Kernel) -> bool:
    return kernel.kind == "map" and all(
        OPERATIONS[node.op].family in ("movement", "source") for node in kernel.graph.nodes
    )


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_kernels(name: str) -> None:
    kinds, function, arguments = KINDS[name]
    program = program_of_function(function, *arguments)
    assert [kernel.kind for kernel in kernels_of(program)] == kinds, program
    random = np.random.default_rng(0)
    arrays = [random.normal(size=argument.shape) for argument in arguments]
    graph = lx.trace(function)(*arguments)
    for found, expected in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_what_is_pooled_is_not_stored_larger() -> None:
    """No kernel writes the windows, which are as many times larger as a window has elements."""
    for name in ("max_pool", "avg_pool"):
        program = program_of_function(_gradient(_pool(name, padding=1), 1), X, f32(2, 5, 5, 4))
        written = [output.shape for kernel in kernels_of(program) for output in kernel.graph.outputs]
        assert max(np.prod(shape) for shape in written) == X.size, program


def test_a_costly_value_is_stored_and_not_its_windows() -> None:
    """What is too costly to compute at each read of a convolution is stored once, not once for each window."""

    def function(x: Any, w: Any) -> Any:
        return nn.conv(nn.silu(lnp.tanh(x)), w, 1, 1)

    shapes = f32(2, 4, 8, 8), f32(8, 4, 3, 3)
    program = program_of_function(function, *shapes)
    costly, product = kernels_of(program)
    assert (costly.kind, product.kind) == ("map", "contract"), program
    assert costly.graph.outputs[0].type.size == shapes[0].size
    arrays = [np.random.default_rng(0).normal(size=argument.shape) for argument in shapes]
    graph = lx.trace(function)(*shapes)
    for found, expected in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_a_training_step_copies_nothing() -> None:
    def loss(w: Any, b: Any, v: Any, c: Any, x: Any) -> Any:
        y = _pool("max_pool")(_layer(x, w, b))
        return lnp.sum(_pool("avg_pool")(nn.relu(_conv(y, v) + c)) ** 2)

    program = program_of_function(lx.value_and_grad(loss, (0, 1, 2, 3)), W, B, f32(3, 3, 8, 8), B, X)
    assert not [kernel for kernel in kernels_of(program) if only_moves(kernel)], program
    assert [kernel.kind for kernel in kernels_of(program)].count("contract") == 5  # two forward, three gradients


@pytest.mark.parametrize("case", [case for case in cases_of("conv") if case.node.type.size], ids=str)
def test_a_convolution_is_a_dot(case: Any) -> None:
    """Every case as it is prepared, simplified or not."""
    for graph in (case.graph, simplify(case.graph)):
        prepared = prepare(graph)
        assert not any(node.op == "conv" for node in prepared.nodes)
        (found,), (expected,) = interpret(prepared, *case.arrays), interpret(case.graph, *case.arrays)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def dot_of(x: Any, w: Any, layout: tuple[str, str, str]) -> Node:
    graph = prepare(lx.trace(lambda x, w: nn.conv(x, w, 1, "SAME", dimension_numbers=layout))(x, w))
    (dot,) = (node for node in graph.nodes if node.op == "dot")
    return dot


def test_windows_are_rows_where_channels_are_neighbours_and_columns_where_pixels_are() -> None:
    last = dot_of(X, W, NHWC)
    assert last.operands[0].op == "shear"
    assert last.attrs["contract"] == ((4, 5, 3), (0, 1, 2)), "as the channels of a pixel lie in memory"
    first = dot_of(f32(2, 4, 8, 8), f32(8, 4, 3, 3), ("NCHW", "OIHW", "NCHW"))
    assert first.operands[1].op == "shear"
    assert first.attrs["contract"] == ((1, 2, 3), (1, 4, 5)), "as the kernel lies in memory"


def test_staged_windows_are_rows_unless_channels_come_first_in_all_that_becomes_of_them() -> None:
    def windows(function: Callable[..., Any]) -> list[int]:
        traced = lx.trace(function)(f32(2, 4, 8, 8), f32(8, 4, 3, 3))
        graph = prepare(simplify(traced), Target(Products(stages_operands=True)))
        dots = (node for node in graph.nodes if node.op == "dot")
        return [[operand.op for operand in dot.operands].index("shear") for dot in dots]

    assert windows(lambda x, w: nn.conv(x, w)) == [1]
    assert windows(lambda x, w: lnp.sum(nn.conv(x, w), axis=(2, 3))) == [0]
    assert windows(lambda x, w: nn.conv(nn.relu(nn.conv(x, w, padding="SAME")), w[:, :1], feature_group_count=8)) == [0]


def _two_layers(first: Any, second: Any, x: Any) -> Any:
    """Channels first, as the layout is by default."""
    x = nn.relu(nn.conv(nn.relu(nn.conv(x, first, padding="SAME")), second, padding="SAME"))
    return lnp.sum(lnp.mean(x, axis=(2, 3)) ** 2)


def test_staged_convolutions_keep_channels_last_and_copy_kernels_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both operands are staged: what lies between layers has its channels side by side, what the gradient needs
    of it is stored once and not as truth values, and the kernels that neighbours in memory are none of are copied."""
    when = contraction_geometry.Copies(reads=64, products=1)
    monkeypatch.setattr(contraction_geometry, "_REORDERED", when)
    arguments = f32(8, 3, 3, 3), f32(12, 8, 3, 3), f32(2, 3, 6, 8)
    target = Target(Products(stages_operands=True))
    graph = simplify(lx.trace(lx.grad(_two_layers, (0, 1)))(*arguments))
    program = schedule(prepare(graph, target), target=target)
    check_program(program)
    kernels = kernels_of(program)
    copies = [kernel.graph.outputs[0].shape for kernel in kernels if only_moves(kernel)]
    assert sorted(copies) == [(3, 3, 8, 12), (3, 3, 12, 8)], program
    written = [output for kernel in kernels if kernel.kind == "contract" for output in kernel.graph.outputs]
    assert all(output.dtype.is_float for output in written), program
    assert {output.shape for output in written if output.type.rank == 4} >= {(2, 6, 8, 8), (2, 6, 8, 12)}, program
    random = np.random.default_rng(0)
    arrays = [random.normal(size=argument.shape) for argument in arguments]
    for found, expected in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_second_derivatives_are_convolutions() -> None:
    def curvature(x: Any, w: Any) -> Any:
        slope = lx.grad(lambda x, w: lnp.sum(_conv(x, w) ** 3), 1)
        return lx.grad(lambda x, w: lnp.sum(slope(x, w) ** 2))(x, w)

    program = program_of_function(curvature, X, W)
    kinds = [kernel.kind for kernel in kernels_of(program)]
    assert not [kernel for kernel in kernels_of(program) if only_moves(kernel)], program
    assert set(kinds) <= {"contract", "map"}
    random = np.random.default_rng(0)
    arrays = [random.normal(size=array.shape) for array in (X, W)]
    (found,), (expected,) = interpret_kernels(program, *arrays), interpret(lx.trace(curvature)(X, W), *arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
