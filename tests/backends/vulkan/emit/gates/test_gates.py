"""Products of few rows in loops, and what follows them, as one kernel a turn: against the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.gates.choose import GATE_PRODUCTS, GateTile, are_gates, tile_of
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.passes.build.contraction_geometry import Sizes
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import backend_with, run
from tests.sweeps import each_value

random = np.random.default_rng(8)
WIDE_GPU = replace(GENERIC_GPU, float16=True, int8=True, int16=True, storage_8bit=True, storage_16bit=True)
LARGE_GPU = replace(WIDE_GPU, shared_memory_bytes=49152)


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return random.normal(size=shape, scale=scale).astype("f")


def lstm(h: Any, w: Any, b: Any, rows: Any) -> Any:
    """As PyTorch writes it: rows of the weights are gates."""

    def turn(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = lnp.split(x + nn.linear(h, w, b), 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * lnp.tanh(g)
        h = nn.sigmoid(o) * lnp.tanh(c)
        return (h, c), h

    return lx.scan(turn, (h, h * 0.5), rows)


def lstm_by_columns(h: Any, w: Any, b: Any, rows: Any) -> Any:
    """As Flax and Haiku do: columns of the weights are gates."""
    return lstm_of_product(h, lambda h: h @ w + b, rows)


def lstm_of_product(h: Any, product: Callable[[Any], Any], rows: Any) -> Any:
    def turn(state: Any, x: Any) -> Any:
        h, c = state
        i, g, f, o = lnp.split(product(h) + x, 4, axis=-1)
        c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * lnp.tanh(g)
        return (nn.sigmoid(o) * lnp.tanh(c), c), c

    return lx.scan(turn, (h, h), rows)


def peephole(h: Any, w: Any, b: Any, rows: Any) -> Any:
    """Gates that see the cell."""

    def turn(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = lnp.split(x + h @ w, 4, axis=-1)
        p = b[: c.shape[-1]]
        c = nn.sigmoid(f + p * c) * c + nn.sigmoid(i - p * c) * lnp.tanh(g)
        return (nn.sigmoid(o + p * c) * lnp.tanh(c), c), h

    return lx.scan(turn, (h, h), rows)


def gru(h: Any, w: Any, b: Any, rows: Any) -> Any:
    def turn(h: Any, x: Any) -> Any:
        of_x, of_h = lnp.split(x, 3, axis=-1), lnp.split(h @ w + b, 3, axis=-1)
        r, z = (nn.sigmoid(of_x[each] + of_h[each]) for each in range(2))
        n = lnp.tanh(of_x[2] + r * of_h[2])
        h = n + z * (h - n)
        return h, (h, n)

    return lx.scan(turn, h, rows)


def gru_reset_before(h: Any, w: Any, u: Any, rows: Any) -> Any:
    """The second product waits for the first one."""

    def turn(h: Any, x: Any) -> Any:
        r, z = lnp.split(nn.sigmoid(h @ w), 2, axis=-1)
        n = lnp.tanh(x + (r * h) @ u)
        h = (1 - z) * h + z * n
        return h, h

    return lx.scan(turn, h, rows)


def rnn(h: Any, w: Any, rows: Any) -> Any:
    def turn(h: Any, x: Any) -> Any:
        h = lnp.tanh(x + h @ w)
        return h, h

    return lx.scan(turn, h, rows, reverse=True)


def apart(h: Any, w: Any, u: Any, rows: Any) -> Any:
    """Products by matrices of their own, of different factors."""

    def turn(state: Any, x: Any) -> Any:
        h, c = state
        c = nn.sigmoid(h @ w) * c + lnp.tanh(c @ u) * x
        return (lnp.tanh(c), c), c > 0

    return lx.scan(turn, (h, h * 0.5), rows)


def sums(h: Any, w: Any, u: Any, rows: Any) -> Any:
    """Gates of two states, of which one is of this turn, as in layers of which one feeds the other."""

    def turn(state: Any, x: Any) -> Any:
        h, c = state
        h = lnp.tanh(x + h * 0.5)
        f, g = lnp.split(h @ w + c @ u, 2, axis=-1)
        c = nn.sigmoid(f) * c + lnp.tanh(g)
        return (h, c), c

    return lx.scan(turn, (h, h * 0.3), rows)


def gated_twice(h: Any, w: Any, u: Any, rows: Any) -> Any:
    """Some slices of what is made of a product wait for others."""

    def turn(h: Any, x: Any) -> Any:
        gates = h @ w
        a, b = lnp.split(gates, 2, axis=-1)
        both = lnp.concatenate([lnp.tanh(a @ u), a], axis=-1)
        p, q = lnp.split(gates * both, 2, axis=-1)
        return lnp.tanh(p + b * q + x), p

    return lx.scan(turn, h, rows)


def case(function: Callable[..., Any], rows: int, width: int, gates: int, turns: int = 5) -> tuple[Any, ...]:
    w = normal(width, gates * width, scale=width**-0.5)
    w = w.T.copy() if function is lstm else w
    return function, (normal(rows, width), w, normal(gates * width), normal(turns, rows, gates * width))


# Functions of arrays, with the kernels of products in a turn.
CELLS: dict[str, tuple[Any, int]] = {
    "lstm": (case(lstm, 8, 32, 4), 1),
    "lstm by columns": (case(lstm_by_columns, 8, 32, 4), 1),
    "lstm with odd tiles": (case(lstm, 37, 36, 4), 1),
    "by columns with odd tiles": (case(lstm_by_columns, 5, 44, 4), 1),
    "peephole": (case(peephole, 4, 32, 4), 1),
    "gru": (case(gru, 6, 40, 3), 1),
    "two rows": (case(gru, 2, 32, 3), 1),
    "rnn": ((rnn, (normal(9, 64), normal(64, 64, scale=0.1), normal(5, 9, 64))), 1),
    "reset before": (
        (gru_reset_before, (normal(3, 32), normal(32, 64, scale=0.2), normal(32, 32, scale=0.2), normal(4, 3, 32))), 2,
    ),
    "matrices of their own": (
        (apart, (normal(3, 32), normal(32, 32, scale=0.2), normal(32, 32, scale=0.2), normal(4, 3, 32))), 1,
    ),
}  # fmt: skip
TWO_MATRICES = (normal(3, 32), normal(32, 64, scale=0.2), normal(32, 64, scale=0.2), normal(4, 3, 32))
CELLS |= {
    "lstm of one row": (case(lstm, 1, 128, 4), 1),
    "gru of one row": (case(gru, 1, 60, 3), 1),
    "by columns of one row": (case(lstm_by_columns, 1, 64, 4), 1),
    "peephole of one row": (case(peephole, 1, 32, 4), 1),
}
DTYPES = {"f32": np.float32, "bf16": lnp.bfloat16, "f16": np.float16}


def graph_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Graph:
    return simplify(inline_calls(lx.trace(function)(*arguments)))


def program_of(graph: Graph, profile: DeviceProfile = WIDE_GPU) -> KernelProgram:
    target = target_of(profile, 1 << 34, 1 << 32)
    return schedule(prepare(graph, target), target=target)


def gate_kernels(program: KernelProgram) -> list[Kernel]:
    return list(dict.fromkeys(step.kernel for step in steps_of(program.steps) if step.kernel.kind == "gates"))


def kernels_of_turn(program: KernelProgram) -> list[str]:
    return [step.kernel.kind for step in steps_of(program.steps) if ".last0." in step.name]


@pytest.fixture(autouse=True)
def _not_by_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small loops are one dispatch otherwise."""
    monkeypatch.setattr("lavax.backends.vulkan.target.slices_of", lambda scan, profile: 0)


@each_value(name=list(CELLS), dtype=list(DTYPES))
def test_a_turn_is_kernels_of_products_alone(name: str, dtype: str) -> None:
    (function, arguments), kernels = CELLS[name]
    given = tuple(lnp.asarray(x).astype(DTYPES[dtype]) for x in arguments)
    graph = graph_of(function, given)
    program = program_of(graph)
    assert kernels_of_turn(program) == ["gates"] * kernels
    arrays = [np.asarray(x) for x in given]
    for found, wanted in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found.astype("f"), wanted.astype("f"), atol=1e-4 if dtype == "f32" else 0.06)
    results = run(graph, arrays, device=backend_with(kind="gpu"))
    for found, wanted in zip(results, interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found.astype("f"), wanted.astype("f"), atol=2e-5 if dtype == "f32" else 0.06)


# -- gradients ---------------------------------------------------------------------------------------------------------


def gradient_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """In the middle of a graph: the loss bends what the loop carries and stacks."""

    def loss(*arguments: Any) -> Any:
        last, stacked = function(*arguments)
        leaves = [leaf for leaf in lx.tree.leaves((last, stacked)) if leaf.dtype != bool]
        return sum(lnp.sum(lnp.sin(leaf.astype("float32")) * (number + 1)) for number, leaf in enumerate(leaves))

    def gradients(*arguments: Any) -> Any:
        return lx.grad(loss, argnums=tuple(range(len(arguments))))(*arguments)

    return gradients


# With the kernels of a turn of the gradient's loop. The gradient of a vector that every row reads is a sum over rows;
# the gradient of gates that are split after a function of all of them is a map, and so is that of a vector beside one
# row, which nothing waits for.
GRADIENTS = {name: ["gates", "map"] if name.endswith("one row") else ["gates"] for name in CELLS}
GRADIENTS |= {"peephole": ["gates", "row", "map"], "reset before": ["gates", "map", "gates", "map"]}


@each_value(name=list(GRADIENTS), dtype=["f32", "bf16"])
def test_a_turn_of_the_gradient_goes_from_product_to_product(name: str, dtype: str) -> None:
    (function, arguments), kernels = CELLS[name]
    given = tuple(lnp.asarray(x).astype(DTYPES[dtype]) for x in arguments)
    graph = graph_of(gradient_of(function), given)
    program = program_of(graph)
    turns = [step.kernel.kind for step in steps_of(program.steps) if ".turns.body.last0." in step.name]
    forward = [step.kernel.kind for step in steps_of(program.steps) if ".body.last0." in step.name]
    assert turns == GRADIENTS[name] and forward == [*["gates"] * kernels, *turns]
    arrays = [np.asarray(x) for x in given]
    wanted = interpret(graph_of(gradient_of(function), arguments), *arguments)
    for results in (interpret_kernels(program, *arrays), run(graph, arrays, device=backend_with(kind="gpu"))):
        for found, right in zip(results, wanted, strict=True):
            scale = max(1.0, float(np.max(np.abs(right))))
            bound = 3e-5 if dtype == "f32" else 0.1
            np.testing.assert_allclose(found.astype("f"), right.astype("f"), rtol=0, atol=bound * scale)


@pytest.mark.parametrize("function", [sums, gated_twice])
def test_products_of_which_slices_have_more_than_one(function: Callable[..., Any]) -> None:
    """Slices of a sum of products, and slices that wait for others of the same product."""
    h, w, u, rows = TWO_MATRICES
    arguments = (h, w, u if function is sums else u[:, :32], rows)
    for each in (function, gradient_of(function)):
        plain = inline_calls(lx.trace(each)(*arguments))
        graph = simplify(plain)
        assert gate_kernels(program_of(graph))
        results = run(graph, [*arguments], device=backend_with(kind="gpu"))
        for found, wanted in zip(results, interpret(plain, *arguments), strict=True):
            scale = max(1.0, float(np.max(np.abs(wanted))))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-5 * scale)


def test_slices_of_a_sum_of_products_are_one_kernel_with_them() -> None:
    kernels = gate_kernels(program_of(graph_of(sums, TWO_MATRICES)))
    assert max(sum(node.op == "dot" for node in kernel.graph.nodes) for kernel in kernels) == 4


def test_infinite_weights_at_the_end_of_a_sum_are_counted_once() -> None:
    """Also where an invocation has fewer terms than others, so that it loads the last ones again."""
    function, (h, w, rows) = rnn, (np.abs(normal(3, 44)), normal(44, 44), normal(2, 3, 44))
    w[-1, 3] = w[2, 9] = np.inf
    graph = graph_of(function, (h, w, rows))
    assert gate_kernels(program_of(graph))
    results = run(graph, [h, w, rows], device=backend_with(kind="gpu"))
    for found, wanted in zip(results, interpret(graph, h, w, rows), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-5)


def test_devices_without_shuffles_add_up_all_slices_in_shared_memory() -> None:
    function, arguments = CELLS["lstm of one row"][0]
    graph = graph_of(function, arguments)
    has, lacks = (backend_with(kind="gpu", subgroup_shuffle=able) for able in (True, False))
    plans = [device.lower(graph).plan for device in (has, lacks)]
    turns = [each.shader.source for plan in plans for each in plan.dispatches if ".last0." in each.name]
    assert ["subgroupShuffleXor" in turn for turn in turns] == [True, False]
    for found, wanted in zip(run(graph, [*arguments], device=lacks), interpret(graph, *arguments), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-5)


# -- choices -----------------------------------------------------------------------------------------------------------


def product(rows: int, summed: int, columns: int) -> Any:
    kinds = lx.ShapeDtype((rows, summed), "float32"), lx.ShapeDtype((summed, columns), "float32")
    return lx.trace(lambda x, w: x @ w)(*kinds).nodes[0]


def test_gates_are_products_of_few_rows_on_gpus() -> None:
    assert are_gates(product(32, 512, 2048), WIDE_GPU)
    assert not are_gates(product(32, 512, 2048), CPU_DRIVER)
    assert not are_gates(product(32, 512, 2048), GENERIC_GPU)  # it addresses no narrow element by itself
    others = [(512, 512, 64), (32, 4096, 4096), (32, 510, 2048), (32, 512, 2046), (32, 8, 2048), (32, 8192, 64)]
    for sizes in others:
        assert not are_gates(product(*sizes), WIDE_GPU), sizes


@pytest.mark.parametrize("products", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [1, 3, 8, 32, 200])
def test_tiles_fit_workgroups_and_their_memory(products: int, rows: int) -> None:
    for summed, columns in [(32, 4), (512, 512), (2048, 512), (36, 44), (4096, 1024)]:
        tile = tile_of(Sizes((), (rows,), (columns,), (summed,)), products, WIDE_GPU)
        assert tile.rows % tile.register_rows == 0 and 4 * tile.slices <= summed
        assert tile.threads <= GATE_PRODUCTS.threads
        assert tile.shared_bytes(products) <= WIDE_GPU.shared_memory_bytes


def test_the_cell_of_an_lstm_keeps_every_processor_busy() -> None:
    tile = tile_of(Sizes((), (32,), (512,), (512,)), 4, LARGE_GPU)
    assert tile == GateTile(32, 4, 2, 16) and tile.tiles(Sizes((), (32,), (512,), (512,))) == 128


def test_shaders_are_valid_for_every_device() -> None:
    function, arguments = CELLS["lstm with odd tiles"][0]
    plan = emit_program(program_of(graph_of(gradient_of(function), arguments)), WIDE_GPU)
    assert all(compile_glsl(dispatch.shader.source) for dispatch in plan.dispatches)


@pytest.mark.parametrize("turns", [1, 2, 3, 18, 33])
def test_scans_of_any_length_are_rotated(turns: int) -> None:
    """Alone, with one turn between the ends, and with more than are recorded at once."""
    function, arguments = case(lstm, 3, 32, 4, turns)
    graph = graph_of(gradient_of(function), arguments)
    results = run(graph, [*arguments], device=backend_with(kind="gpu"))
    for found, wanted in zip(results, interpret(graph, *arguments), strict=True):
        scale = max(1.0, float(np.max(np.abs(wanted))))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-5 * scale)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_long_sums_of_gates_are_not_computed_in_parts(dtype: str) -> None:
    """As other products of few rows are."""
    shapes = [(32, 512), (2048, 512), (2048,), (3, 32, 2048)]
    kinds = [lx.ShapeDtype(shape, dtype) for shape in shapes]
    graph = simplify(inline_calls(lx.trace(gradient_of(lstm))(*kinds)))
    steps = [step for step in steps_of(program_of(graph, LARGE_GPU).steps) if ".last0." in step.name]
    assert [step.kernel.kind for step in steps] == ["gates", "gates"]


def test_small_cells_are_run_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also their gradients, whose product has four times the terms, once that is a product for each gate."""
    monkeypatch.undo()
    shapes = [(64, 128), (512, 128), (512,), (9, 64, 512)]
    kinds = [lx.ShapeDtype(shape, "float32") for shape in shapes]
    graph = simplify(inline_calls(lx.trace(gradient_of(lstm))(*kinds)))
    steps = steps_of(program_of(graph, LARGE_GPU).steps)
    assert [step.kernel.kind for step in steps if step.kernel.kind in ("slices", "gates")] == ["slices"] * 2
