"""Small kernels that come one after the other on a CPU driver: one workgroup runs several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit import small_runs
from lavax.backends.vulkan.emit.loop import workgroup
from lavax.backends.vulkan.emit.loop.turns import Turns
from lavax.backends.vulkan.emit.program import _Emission, by_sizes, emit_program
from lavax.backends.vulkan.emit.small_runs import RUNS_IN_TURNS, SMALL_RUNS, Writing, in_runs, limits_within
from lavax.backends.vulkan.plan.plan import Dispatch, RepeatDispatches, UntilFlag
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.backends.vulkan.target import target_of
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import Repeat, Until, steps_of
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.test_workgroup_loops import LOOPS, agree, is_by_workgroup

TARGET = target_of(CPU_DRIVER, 1 << 34, 1 << 31)
RANDOM = np.random.default_rng(8)


def _normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype("f")


def _program(function: Callable[..., Any], *arguments: Any) -> KernelProgram:
    graph = simplify(inline_calls(lx.trace(function)(*arguments)))
    return schedule(prepare(graph, TARGET), target=TARGET)


def _dispatches(program: KernelProgram) -> list[Dispatch]:
    commands = emit_program(program, CPU_DRIVER).commands
    inner = (each.commands if isinstance(each, RepeatDispatches) else (each,) for each in commands)
    return [each for some in inner for each in some if isinstance(each, Dispatch)]


def _products(x: Any) -> Any:
    return lx.lax.associative_scan(lnp.matmul, x)


def _sums(x: Any) -> Any:
    """Means and deviations of rows and columns by turns: each has to wait for the one before."""
    for axis in (0, 1, 0):
        x = x - lnp.mean(x, axis=axis, keepdims=True)
        x = x / (1 + lnp.max(lnp.abs(x), axis=axis, keepdims=True)) + lnp.flip(x, 1 - axis) * 0.1
    return x


def _two_ways(x: Any, y: Any) -> Any:
    """Kernels of different sizes that do not wait for each other, and a large one that waits for the first of them."""
    small = lnp.sum(x, axis=0)
    large = y * lnp.sum(lnp.cumsum(small)[::-1] * 0.1)
    return lnp.cumsum(lnp.sort(small) * 2) + lnp.max(large), large


def _in_a_loop(x: Any) -> Any:
    return lx.fori_loop(0, 3, lambda i, c: _products(c * (1 + c[-1, 0, 0])) * 0.3, x)


def _in_a_branch(x: Any) -> Any:
    return lx.cond(x[0, 0, 0] > 0, lambda x: _products(x) + 1, lambda x: x, x)


MATRICES = (_normal(40, 2, 2) * 0.4,)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "products by halves": (_products, MATRICES),
    "sums of pairs by halves": (
        lambda x: lx.lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x, x + 1)), (_normal(77),)
    ),
    "rows and columns": (_sums, (_normal(12, 20),)),
    "two ways": (_two_ways, (_normal(9, 50), _normal(300, 400))),
    "in a loop": (_in_a_loop, (abs(MATRICES[0]),)),
    "in a branch that is taken": (_in_a_branch, (abs(MATRICES[0]),)),
    "in a branch that is not": (_in_a_branch, (-abs(MATRICES[0]),)),
    "a gradient": (lx.grad(lambda x: lnp.sum(lnp.sin(_products(x)))), MATRICES),
}


@pytest.fixture
def compiled_anew() -> Iterator[None]:
    """No program is taken from one that was compiled under other limits, nor leaves one to other tests."""
    lx.clear_caches()
    yield
    lx.clear_caches()


@pytest.mark.usefixtures("compiled_anew")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("least", [SMALL_RUNS.least, 2])
def test_results(name: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_runs, "SMALL_RUNS", replace(SMALL_RUNS, least=least, lines=200, accesses=200))
    function, arguments = PROGRAMS[name]
    agree(lambda *given: function(*given), *arguments)


def test_small_kernels_are_one_dispatch() -> None:
    """Each of two runs is a shader whose kernels are functions, and waits for what came before."""
    program = _program(_products, *MATRICES)
    kernels = list(steps_of(program.steps))
    found = _dispatches(program)
    assert len(kernels) > 12 and len(found) == -(-len(kernels) // SMALL_RUNS.kernels)
    for dispatch in found:
        assert dispatch.groups == (1, 1, 1) and dispatch.barrier
        assert dispatch.shader.source.count("kernel0(group);") == 1
    assert found[0].shader.source.count("subgroupBarrier();") == SMALL_RUNS.kernels - 1


def test_few_or_large_kernels_are_dispatches_of_their_own() -> None:
    several = _program(_products, _normal(2, 2, 2))
    assert len(list(steps_of(several.steps))) == len(_dispatches(several)) < SMALL_RUNS.least
    large = _program(_products, _normal(20_000, 2, 2))
    sizes = [len(dispatch.shader.source.split("void kernel")) - 1 for dispatch in _dispatches(large)]
    assert sizes[0] == sizes[-1] == 0 and max(sizes) == SMALL_RUNS.kernels


def test_what_follows_a_run_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step may have waited for a barrier that is inside the run now."""
    monkeypatch.setattr(small_runs, "_is_short", lambda *given: True)
    *steps, last = list(steps_of(_program(_products, *MATRICES).steps))[:6]
    last = replace(last, barrier=False)
    writing = Writing(SMALL_RUNS, lambda step: step is not last, lambda run, of: Turns(1, ()), lambda turns: True)
    run, behind = in_runs([*steps, last], writing)
    assert isinstance(run, Repeat) and len(run.commands) == 5
    assert isinstance(behind, KernelStep) and behind.barrier


def test_temporaries_that_lie_in_memory_of_others_are_no_texels() -> None:
    """A driver may read texels before or after what the same shader writes, so neither may be written in it."""
    program = _program(_sums, _normal(12, 20))
    emission = _Emission(program, CPU_DRIVER, False, by_sizes, lambda dispatch: None, {})
    ends = {name: (begin, begin + program.sizes[name]) for name, begin in program.offsets.items()}
    together = {
        (one, other): ends[one][0] < ends[other][1] and ends[other][0] < ends[one][1] for one in ends for other in ends
    }
    assert any(shared and one != other for (one, other), shared in together.items()) and not all(together.values())
    for (one, other), shared in together.items():
        assert emission._is_within(one, {other}) == shared
    assert not emission._is_within("x", set(ends))


def test_equal_kernels_are_asked_once_how_long_their_shaders_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that Python writes out has hundreds of equal kernels."""
    asked = []
    is_short = small_runs._is_short
    monkeypatch.setattr(small_runs, "_is_short", lambda step, *rest: asked.append(step) or is_short(step, *rest))

    def written_out(x: Any) -> Any:
        for _ in range(40):
            x = lnp.cumsum(x) * 0.5 + lnp.sum(x)
        return x

    emit_program(_program(written_out, _normal(64)), CPU_DRIVER)
    assert 0 < len(asked) <= 8


def test_turns_that_are_written_out_are_asked_once_though_a_large_kernel_parts_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    is_short = small_runs._is_short
    monkeypatch.setattr(small_runs, "_is_short", lambda step, *rest: asked.append(step) or is_short(step, *rest))

    def turns(w: Any, x: Any) -> Any:
        for _ in range(12):
            x = lnp.sin(x @ w)  # more than a small kernel does
            row = lnp.cumsum(lnp.cumsum(lnp.sum(x, axis=0)) * 0.5) + lnp.sum(x)
            x = x + lnp.cumsum(row / lnp.sum(row))
        return x

    emit_program(_program(turns, _normal(128, 128), _normal(64, 128)), CPU_DRIVER)
    assert 0 < len(asked) <= 24


def test_no_loop_is_written_of_what_is_too_long_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    program = _program(_products, *MATRICES)
    emission = _Emission(program, CPU_DRIVER, False, by_sizes, lambda dispatch: None, {})
    monkeypatch.setattr(small_runs, "_has_short_shader", lambda *given: False)
    writing = replace(emission._of_runs, fits=lambda turns: pytest.fail("a loop was written"))
    assert in_runs(program.steps, writing) == list(program.steps)


def _turns_of_many_kernels(x: Any) -> Any:
    """More kernels than one workgroup's loop has, products among them."""

    def turn(i: Any, c: Any) -> Any:
        for number in range(13):
            c = lnp.tanh(c @ x / (1 + lnp.max(lnp.abs(c), axis=number % 2, keepdims=True)) + lnp.flip(c, 0) * 0.1)
        return c

    return lx.fori_loop(0, 8, turn, x)


def test_kernels_of_many_turns_are_few_dispatches() -> None:
    """Products may be among them."""
    x = _normal(12, 12) * 0.3
    program = _program(_turns_of_many_kernels, x)
    (loop,) = (each for each in program.steps if isinstance(each, Repeat))
    (turns,) = (each for each in emit_program(program, CPU_DRIVER).commands if isinstance(each, RepeatDispatches))
    assert turns.count == loop.count == 8
    assert len(turns.commands) <= len(list(steps_of([loop]))) // 2
    agree(_turns_of_many_kernels, x)


@pytest.mark.usefixtures("compiled_anew")
@pytest.mark.parametrize(
    "name",
    ["gradient of two loops, carries", "many updates", "transforms of complex lines", "a while in a scan"]
    + ["a while in a while", "a while in a branch of a loop", "a while under a branch", "gradient of small factors"],
)
def test_turns_of_dispatches_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where carries move through rows, and dispatches wait for conditions."""
    monkeypatch.setattr(workgroup, "WORKGROUP_LOOPS", replace(workgroup.WORKGROUP_LOOPS, kernels=2))
    monkeypatch.setattr(small_runs, "_MANY_TURNS", 2)
    function, arguments = LOOPS[name]
    _, shaders = agree(lambda *given: function(*given), *arguments)
    assert is_by_workgroup(shaders)


def test_small_kernels_beside_a_large_one_are_one_dispatch_of_a_while() -> None:
    def function(x: Any, w: Any) -> Any:
        def turn(c: Any) -> Any:
            row = lnp.cumsum(lnp.sum(lnp.sin(c @ w), axis=0)) / 64
            return c * 0.9 + row / (1 + lnp.max(lnp.abs(row)))

        return lx.while_loop(lambda c: lnp.max(lnp.abs(c)) > 0.5, turn, x)

    arguments = _normal(64, 128), _normal(128, 128)
    commands = emit_program(_program(function, *arguments), CPU_DRIVER).commands
    (loop,) = (each for each in commands if isinstance(each, UntilFlag))
    shaders = [each.shader.source for each in loop.commands if isinstance(each, Dispatch)]
    assert any("void kernel1(" in shader for shader in shaders)
    assert any("void kernel" not in shader for shader in shaders)


def test_turns_of_lanes_that_end_by_themselves_keep_their_workgroups() -> None:
    def function(x: Any) -> Any:
        return lx.vmap(lambda x: lx.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 1.1 + 1, c[1] + 1), (x, 0)))(x)

    (loop,) = (each for each in _program(function, abs(_normal(30))).steps if isinstance(each, Until))
    assert limits_within([Repeat(9, (loop,)), loop]) == SMALL_RUNS
    assert limits_within([Repeat(9, (loop,))]) == limits_within([Repeat(9, (loop,)), Repeat(2, ())]) == RUNS_IN_TURNS
    assert limits_within([Repeat(7, ())]) == limits_within([]) == SMALL_RUNS


def test_a_run_of_too_many_arrays_is_two() -> None:
    steps = list(steps_of(_program(_products, *MATRICES).steps))[:6]
    emission = _Emission(_program(_products, *MATRICES), CPU_DRIVER, False, by_sizes, lambda dispatch: None, {})
    asked: list[int] = []

    def fits(turns: Any) -> bool:
        asked.append(len(turns.members))
        return asked[-1] <= 3

    writing = replace(emission._of_runs, limits=replace(SMALL_RUNS, least=3), fits=fits)
    found = in_runs(steps, writing)
    assert [len(run.commands) for run in found if isinstance(run, Repeat)] == [3, 3]
