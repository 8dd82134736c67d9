"""What is written in order so that contractions lie in strides, for devices where those share shaders."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Products, Target
from tests.passes.lowering import assert_computes, f32, i32
from tests.passes.program_checks import check_program

SHARING = Target(Products(shares_shader=lambda dot: True))


def _heads(x: Any) -> Any:
    return x.reshape((2, 8, 3, 4)).swapaxes(1, 2)


def _side_by_side(x: Any) -> Any:
    return x.swapaxes(1, 2).reshape((2, 8, 12))


# the function, its arguments, and the operations of its kernels: where products share shaders, and elsewhere
CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], list[str], list[str]]] = {
    "a product writes its result as the next one reads it": (
        lambda x, y, w: _side_by_side(_heads(x) @ _heads(y).mT @ _heads(x)) @ w,
        (f32(2, 8, 12), f32(2, 8, 12), f32(12, 5)),
        ["dot", "dot transpose", "dot"],
        ["dot", "dot", "transpose dot"],
    ),
    "parts that are put together": (
        lambda x, y, w: lnp.concatenate([x, y], axis=1) @ w,
        (f32(6, 4), f32(6, 4), f32(8, 128)),
        ["concatenate", "dot"],
        ["concatenate dot"],
    ),
    "parts that are read a few times": (
        lambda x, y, w: lnp.concatenate([x, y], axis=1) @ w,
        (f32(6, 4), f32(6, 4), f32(8, 127)),
        ["concatenate dot"],
        ["concatenate dot"],
    ),
    "windows are not written": (
        lambda x, w: nn.conv(x, w, padding="SAME"),
        (f32(2, 3, 8, 8), f32(4, 3, 3, 3)),
        ["pad shear dot transpose transpose"],
        ["pad shear dot transpose transpose"],
    ),
    "gathered elements for the epilogue": (
        lambda x, v, w, table, places: x @ v @ w + table[places],
        (f32(6, 4), f32(4, 128), f32(128, 5), f32(9, 5), i32(6)),
        ["dot", "gather", "dot"],
        ["dot", "dot gather"],
    ),
    "gathered elements for the epilogue of a short sum": (
        lambda x, v, w, table, places: x @ v @ w + table[places],
        (f32(6, 4), f32(4, 127), f32(127, 5), f32(9, 5), i32(6)),
        ["dot", "dot gather"],
        ["dot", "dot gather"],
    ),
    "elements for the epilogue that nobody could have gathered before": (
        lambda x, w, table, places: x @ w + table[places],
        (f32(6, 128), f32(128, 5), f32(9, 5), i32(6)),
        ["dot", "gather"],
        ["dot gather"],
    ),
    "places in the epilogue": (
        lambda x, w: lnp.tril(x @ w),
        (f32(6, 128), f32(128, 6)),
        ["dot", "iota iota"],
        ["iota iota dot"],
    ),
    "places in the epilogue of a short sum": (
        lambda x, w: lnp.tril(x @ w),
        (f32(6, 127), f32(127, 6)),
        ["iota iota dot"],
        ["iota iota dot"],
    ),
    "places in the epilogue of a short sum that is read apart": (
        lambda x, w: nn.softmax(lnp.where(lnp.arange(6)[:, None] >= lnp.arange(6), x @ w, -lnp.inf)),
        (f32(6, 4), f32(4, 6)),
        ["dot", "iota iota"],
        ["iota iota dot", ""],
    ),
}


def _program(function: Callable[..., Any], arguments: tuple[np.ndarray, ...], target: Target) -> KernelProgram:
    graph = remove_stop_gradient(lx.trace(function)(*arguments))
    program = schedule(prepare(graph, target), target=target)
    check_program(program, ())
    return program


def _operations(program: KernelProgram) -> list[str]:
    """Of each kernel, the contractions and what moves elements out of strides or computes places."""
    shown = ("dot", "concatenate", "pad", "shear", "gather", "iota", "transpose")
    kernels = [kernel for step in program.steps for kernel in step.kernels]
    return [" ".join(node.op for node in kernel.graph.nodes if node.op in shown) for kernel in kernels]


@pytest.mark.parametrize("name", CASES)
def test_kernels(name: str) -> None:
    function, arguments, sharing, others = CASES[name]
    assert _operations(_program(function, arguments, SHARING)) == sharing
    assert _operations(_program(function, arguments, Target())) == others


@pytest.mark.parametrize("name", CASES)
def test_they_compute_the_same(name: str) -> None:
    function, arguments, *_ = CASES[name]
    random = np.random.default_rng(0)
    arrays = [random.integers(-3, 4, argument.shape).astype(argument.dtype) for argument in arguments]
    graph = remove_stop_gradient(lx.trace(function)(*arguments))
    assert_computes(_program(function, arguments, SHARING), graph, arrays)
