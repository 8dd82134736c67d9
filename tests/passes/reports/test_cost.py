"""What is counted of kernels, against counts by hand."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import OPERATIONS, TensorType, float32
from lavax.ir.graph import input_node, make_node
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.reports import Cost, cost_of_program
from lavax.passes.reports.counting import WHOLE
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from tests.passes.lowering import f32, i32

EXP = 12  # operations of exp, see lavax.passes.fuse.costs


def cost_of(function: Callable[..., Any], *arguments: Any) -> Cost:
    return cost_of_program(schedule(prepare(remove_stop_gradient(lx.trace(function)(*arguments)))))


def counted(function: Callable[..., Any], *arguments: Any) -> tuple[int, int, int]:
    """Operations, elements read and elements written, all of four bytes."""
    cost = cost_of(function, *arguments)
    return cost.operations, cost.bytes_read // 4, cost.bytes_written // 4


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (lambda x, y: x * 2 + y, (f32(7, 5), f32(7, 5)), (70, 70, 35)),
        (lambda x: lnp.exp(x), (f32(10),), (10 * EXP, 10, 10)),
        (lambda x: x + 1, (i32(9),), (0, 9, 9)),  # no floating-point operations
        (lambda x: lnp.where(x == 0.5, x, 1.0), (f32(9),), (9, 9, 9)),
        (lambda x, y: x + y, (f32(5), f32(7, 5)), (35, 40, 35)),  # a row is read once, however often it is used
        (lambda x, y: lnp.exp(x) + y, (f32(5), f32(7, 5)), (5 * EXP + 35, 40, 35)),  # and its exp is worked out once
        (lambda x: x.T + 1, (f32(7, 5),), (35, 35, 35)),
        (lambda x: x[2:4] * 2, (f32(7, 5),), (10, 10, 10)),
        (lambda x: x[::2] + x[1::2], (f32(8),), (4, 8, 4)),
        (lambda x: lnp.exp(x)[2:4] * 2, (f32(7, 5),), (10 * EXP + 10, 10, 10)),
        (lambda x: lnp.pad(x, 3) + 1, (f32(4),), (10, 4, 10)),
        (lambda x, y: lnp.concatenate([x, y]) * 2, (f32(4), f32(6)), (10, 10, 10)),
        (lambda x, i: lnp.take(x, i, axis=0) * 2.0, (f32(100, 8), i32(3)), (24, 24 + 3, 24)),
        (lambda x: lnp.sum(x * x, axis=1), (f32(7, 5),), (70, 35, 7)),
        (lambda x, y: x @ y, (f32(7, 5), f32(5, 3)), (2 * 7 * 5 * 3, 35 + 15, 21)),
        (lambda x, y: lnp.einsum("bij,bjk->bik", x, y), (f32(2, 7, 5), f32(2, 5, 3)), (420, 100, 42)),
        (lambda x: lnp.cumsum(x, axis=1), (f32(7, 5),), (35, 35, 35)),
    ],
)
def test_operations_and_bytes(
    function: Callable[..., Any], arguments: tuple[Any, ...], expected: tuple[int, int, int]
) -> None:
    assert counted(function, *arguments) == expected


def test_temporaries_are_written_and_read_again() -> None:
    cost = cost_of(lambda x, y: lnp.sum(lnp.tanh(x @ y)), f32(64, 32), f32(32, 16))
    first, second = cost.kernels.values()
    assert (first.kind, first.bytes_read, first.bytes_written) == ("contract", 4 * (64 * 32 + 32 * 16), 4 * 64 * 16)
    assert (second.kind, second.bytes_read, second.bytes_written) == ("row", 4 * 64 * 16, 4)
    assert first.bytes_moved == first.bytes_read + first.bytes_written
    assert cost.bytes_read == first.bytes_read + second.bytes_read


def test_parts_of_a_merged_kernel_share_what_they_read() -> None:
    parameters = [f32(100 + number) for number in range(12)]

    def update(rate: Any, parameters: Any, gradients: Any) -> Any:
        return [p - rate * g for p, g in zip(parameters, gradients, strict=True)]

    cost = cost_of(update, f32(), parameters, parameters)
    size = sum(p.size for p in parameters)
    assert len(cost.kernels) == 1
    assert (cost.operations, cost.bytes_read, cost.bytes_written) == (2 * size, 4 * (2 * size + 1), 4 * size)


def test_loops_count_their_turns() -> None:
    def inner(carry: Any, _: Any) -> Any:
        return carry[::-1] * 0.5 + 1.0, None

    def outer(carry: Any, row: Any) -> Any:
        return lx.scan(inner, carry + row, None, length=7)[0], None

    cost = cost_of(lambda x: lx.scan(outer, x[0], x)[0], f32(11, 32))
    assert not cost.is_least
    assert sorted({kernel.times for kernel in cost.kernels.values()}) == [1, 11, 77]
    assert cost.operations == 11 * 32 + 77 * 2 * 32


def test_a_loop_in_one_kernel_counts_its_turns() -> None:
    def outer(carry: Any, row: Any) -> Any:
        return lx.fori_loop(0, 7, lambda _, x: x * 0.5 + 1.0, carry + row), None

    cost = cost_of(lambda x: lx.scan(outer, x[0], x)[0], f32(11, 32))
    (loop,) = (kernel for kernel in cost.kernels.values() if kernel.kind == "loop")
    assert (loop.times, loop.operations) == (1, 11 * 32 + 77 * 2 * 32)
    assert (loop.bytes_read, loop.bytes_written) == (4 * 12 * 32, 4 * 32)


def test_of_a_loop_that_ends_by_its_data_one_turn_counts() -> None:
    cost = cost_of(lambda x: lx.while_loop(lambda c: lnp.sum(c) < 100, lambda c: c * 2, x), f32(32))
    assert cost.is_least
    assert any(kernel.kind == "guard" and kernel.operations == 0 for kernel in cost.kernels.values())
    assert cost.operations == 32 + 32 + 1
    assert "1+" in str(cost)


def test_both_ways_of_a_branch_count() -> None:
    cost = cost_of(lambda p, x: lx.cond(p, lambda x: x * 2, lambda x: x + 1, x), np.bool_(True), f32(32))
    assert (cost.operations, cost.is_least) == (64, False)


def test_a_convolution_counts_the_products_of_its_windows() -> None:
    axes: dict[str, Any] = {"window": ((1,), (1,)), "contract": ((2,), (2,)), "batch": ((), ())}
    sizes: dict[str, Any] = {"stride": (1,), "low": (0,), "high": (0,), "interior": (0,), "dilation": (1,)}
    inputs = input_node("x", TensorType((4, 20, 3), float32)), input_node("w", TensorType((8, 5, 3), float32))
    node = make_node("conv", inputs, {**axes, **sizes})
    assert WHOLE["conv"](node) == 2 * (4 * 16 * 8) * (5 * 3)


def test_matrices_count_by_their_batch() -> None:
    node = make_node("cholesky", (input_node("a", TensorType((7, 30, 30), float32)),))
    assert WHOLE["cholesky"](node) == 7 * 30**3 // 3


def test_every_operation_that_reads_all_of_its_operands_has_a_count() -> None:
    families = ("reduction", "contraction", "routine", "indexing", "lowered")
    names = {name for name, operation in OPERATIONS.items() if operation.family in families}
    moves, loops = {"gather"}, {"wavefront"}  # whose kernels are counted
    assert names - moves - loops - set(WHOLE) == set()


def test_kernels_know_the_lines_they_were_made_from() -> None:
    """Through gradients, simplification, preparation and fusion."""

    def loss(w: Any, x: Any) -> Any:
        hidden = lnp.tanh(x @ w)
        ordered = lnp.sort(hidden, axis=0)
        summed = lnp.cumsum(ordered, axis=0)
        return lnp.mean(summed)

    def step(w: Any, x: Any, v: Any) -> Any:
        return w - lx.grad(loss)(w, x), x @ v, lnp.sum(x)

    cost = cost_of(step, f32(64, 32), f32(3000, 64), f32(64))
    begin = loss.__code__.co_firstlineno
    end = step.__code__.co_firstlineno + 1
    lines = {line for kernel in cost.kernels.values() for line in kernel.locations}
    assert {int(line.rpartition(":")[2]) for line in lines} == {*range(begin + 1, begin + 5), end}
    assert all(line.rpartition(":")[0] == __file__ for line in lines)
    assert [kernel.name for kernel in cost.kernels.values() if not kernel.locations] == []


def test_the_table_names_kernels_and_sums_up() -> None:
    cost = cost_of(lambda x: lnp.exp(x), f32(1 << 20))
    head, kernel, total = str(cost).splitlines()
    assert head.split() == ["kernel", "kind", "times", "operations", "read", "written", "source", "lines"]
    assert kernel.split()[:8] == ["k0", "map", "1", "12,582,912", "4", "MiB", "4", "MiB"]
    assert kernel.split()[8].startswith("test_cost.py:")
    assert total.split() == ["all", "12,582,912", "4", "MiB", "4", "MiB"]
