from __future__ import annotations

import math
import re

import numpy as np
import pytest

import lavax as lx
from lavax.base.errors import DtypeError, ShapeError
from lavax.ir import TensorType, float32, int32
from lavax.tracer import bind, constant, lift
from tests.numpy_backend import NumpyBackend

THIS_FILE = re.escape(__file__)


def test_eager_operations_compile_once_for_each_kind_of_operands(backend: NumpyBackend) -> None:
    for value in (1.0, 2.0, 3.0):
        x = lift(np.full(3, value))
        assert np.allclose(bind("multiply", x, constant(value, x.type)), value * value)
    assert len(backend.compiled) == 1
    bind("multiply", lift(np.ones(4)), lift(np.ones(4)))
    assert len(backend.compiled) == 2


def test_attributes_are_part_of_the_key() -> None:
    x = lift(np.ones((2, 1)))
    pad = dict(low=(1, 0), high=(0, 0), interior=(0, 0))
    positive = np.asarray(bind("pad", x, **pad, value=0.0))
    negative = np.asarray(bind("pad", x, **pad, value=-0.0))
    assert math.copysign(1, positive[0, 0]) == 1
    assert math.copysign(1, negative[0, 0]) == -1


def test_a_broadcast_constant_needs_no_program(backend: NumpyBackend) -> None:
    row = bind("broadcast", lift(2.0), axes=(), type=TensorType((3,), float32))
    assert np.asarray(row).tolist() == [2, 2, 2]
    assert backend.compiled == []


@pytest.mark.parametrize("trace", [lambda f: f, lx.compile, lx.trace])
def test_mistakes_name_operation_types_and_line(trace: object) -> None:
    def mistaken(x: object, y: object) -> object:
        return bind("add", lift(x), lift(y))

    with pytest.raises(ShapeError, match=rf"add.*f32\[2\].*f32\[3\](.|\n)*{THIS_FILE}:\d+"):
        trace(mistaken)(np.ones(2), np.ones(3))  # type: ignore[operator]
    with pytest.raises(DtypeError, match=rf"add.*f32\[2\].*i32\[2\](.|\n)*{THIS_FILE}:\d+"):
        trace(mistaken)(np.ones(2), np.ones(2, int))  # type: ignore[operator]


def test_weakness_of_what_is_lifted() -> None:
    assert lift(1.0).weak and lift(1).weak
    assert not any(lift(x).weak for x in (True, np.float32(1), np.int64(1), np.ones(2), [1.0]))
    assert lift(2, float32).type == TensorType((), float32)
    assert not lift(2, float32).weak
    assert not bind("add", lift(1), lift(1)).weak


def test_scalars_are_constants_of_a_trace_and_arrays_its_inputs() -> None:
    array, scalar = lift(np.ones(3)), lift(2.0)

    def f(x: lx.Array) -> object:
        doubled = bind("multiply", x, bind("broadcast", scalar, axes=(), type=array.type))
        return bind("add", bind("add", doubled, array), array)

    text = str(lx.trace(f)(np.ones(3)))
    assert text.splitlines()[0] == "graph (x: f32[3], captured0: f32[3]) {"
    assert text.count("constant() value=2.0 : f32[]") == 1


def test_operations_on_concrete_operands_are_recorded_too() -> None:
    array = lift(np.ones(3))
    graph = lx.trace(lambda x: bind("add", x, bind("negate", array)))(np.ones(3))
    assert [node.op for node in graph.nodes] == ["negate", "add"]


def test_nodes_know_the_users_line() -> None:
    graph = lx.trace(lambda x: bind("sin", x))(np.ones(3))
    assert re.fullmatch(rf"{THIS_FILE}:\d+", graph.nodes[0].location or "")


def test_lists_that_hold_values_are_not_read_out_in_silence() -> None:
    with pytest.raises(TypeError, match="stack"):
        lx.grad(lambda x: lift([x, x]))(2.0)


def test_unsigned_constants_are_checked() -> None:
    with pytest.raises(DtypeError, match="range"):
        constant(-1, TensorType((), lift(np.uint32(1)).type.dtype))
    assert lift(-1).type == TensorType((), int32)
