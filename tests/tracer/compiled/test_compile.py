from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, StaticArgumentError
from lavax.tracer.values.backend import register, runtime
from tests.numpy_backend import NumpyBackend

Counted = Callable[[str], int]


def test_one_trace_for_each_kind_of_arguments(counted: Counted, backend: NumpyBackend) -> None:
    step = lx.compile(lambda x, y: x * y + 1)
    for _ in range(3):
        assert step(np.ones(3), np.ones(3)).tolist() == [2, 2, 2]
        assert step(lx.device_put(np.ones(3, "f")), np.ones(3)).tolist() == [2, 2, 2]
    assert counted("traces") == 1
    step(np.ones(4), np.ones(4))  # shape
    step(np.ones(4, int), np.ones(4))  # dtype
    step(np.ones(4, int), 1.0)  # weakness
    step(np.ones(4, int), np.float32(1.0))
    step(np.ones(4, int), y=1.0)  # keyword
    assert counted("traces") == 6
    assert counted("submits") == 6 + 5


def test_structure_is_part_of_the_key(counted: Counted) -> None:
    total = lx.compile(lambda tree: sum(lx.tree.leaves(tree), 0.0))
    for tree in ([1.0, 2.0], (1.0, 2.0), {"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}, [1.0, 2.0, None]):
        assert float(total(tree)) == 3.0
    assert counted("traces") == 4


def test_arrays_by_themselves_and_in_containers_are_told_apart(counted: Counted) -> None:
    @lx.tree.register_dataclass
    @dataclass
    class Pair:
        first: Any

        @property
        def abstract(self) -> Any:
            return self.first.abstract

    def kinds(*args: Any) -> list[Any]:
        return [x.first * 10 if isinstance(x, Pair) else x[0] * 100 if isinstance(x, list) else x for x in args]

    f, x = lx.compile(kinds), lx.device_put(np.float32(2))
    for _ in range(3):
        assert [float(result) for result in f(x, x)] == [2, 2]
        assert [float(result) for result in f([x], x)] == [200, 2]
        assert [float(result) for result in f(x, Pair(x))] == [2, 20]
        assert [float(result) for result in f(x)] == [2]
        assert [float(result) for result in f(x, np.float32(3))] == [2, 3]
        assert [float(result) for result in f(x, 3.0)] == [2, 3]
    assert counted("traces") == 5


def test_arrays_by_keyword_are_told_apart_by_name(counted: Counted) -> None:
    f = lx.compile(lambda x, y=1.0, z=10.0: x + y * 2 + z * 3)
    x, y, z = (lx.device_put(np.float32(n)) for n in (100, 1, 2))
    for _ in range(3):
        assert float(f(x, y=y, z=z)) == float(f(x, z=z, y=y)) == float(f(z=z, x=x, y=y)) == float(f(x, y, z=z)) == 108
        assert float(f(x, z=y, y=z)) == 107
        assert float(f(x, y)) == float(f(x, y=y)) == 132
        assert float(f(x, z=y)) == 105
        assert float(f(x, y=1.0, z=z)) == 108
    assert counted("traces") == 7


def test_each_backend_and_precision_has_programs_of_its_own(counted: Counted) -> None:
    f, x = lx.compile(lambda x: x @ x), lx.device_put(np.ones((2, 2), "f"))
    for _ in range(2):
        assert f(x).tolist() == [[2, 2], [2, 2]]
        with lx.matmul_precision("bfloat16"):
            assert f(x).tolist() == [[2, 2], [2, 2]]
    assert counted("traces") == 2
    before = register(NumpyBackend)
    assert f(lx.device_put(np.ones((2, 2), "f"))).tolist() == [[2, 2], [2, 2]]
    register(before)
    assert counted("traces") == 3


def test_results_are_trees_of_arrays() -> None:
    result = lx.compile(lambda x: {"a": (x, None), "b": [x * 2, 3, True]})(np.ones(2, "f"))
    assert isinstance(result["a"][0], lx.Array) and result["a"][1] is None
    assert [np.asarray(part).tolist() for part in result["b"]] == [[2, 2], 3, True]


def test_equal_functions_share_a_program(backend: NumpyBackend) -> None:
    for _ in range(3):
        lx.compile(lambda x: lnp.sin(x) * 3)(np.ones(3))
    assert len(backend.compiled) == 1


def test_python_scalars_are_data_not_constants(counted: Counted, backend: NumpyBackend) -> None:
    scale = lx.compile(lambda x, rate: x * rate)
    assert [float(scale(2.0, rate)) for rate in (1.0, 2.0, 3.0)] == [2, 4, 6]
    assert counted("traces") == 1
    assert scale(np.ones(2, int), 2).dtype == np.int32
    assert scale(np.ones(2, int), 2.5).dtype == np.float32
    assert scale(np.ones(2, "f"), 2).dtype == np.float32


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": (-1,)}])
def test_static_arguments(options: dict[str, Any], counted: Counted) -> None:
    @lx.compile(**options)
    def power(x: Any, n: int) -> Any:
        result = x
        for _ in range(n - 1):
            result = result * x
        return result

    assert float(power(2.0, 3)) == 8
    assert float(power(2.0, n=3)) == 8
    assert float(power(3.0, 3)) == 27
    assert counted("traces") == 2  # by position and by keyword
    assert float(power(2.0, 4)) == 16
    assert counted("traces") == 3


def test_static_values_of_different_types_differ() -> None:
    describe = lx.compile(lambda x, flag: x + (1.5 if flag is True else 0), static_argnames="flag")
    assert (float(describe(1, True)), float(describe(1, 1))) == (2.5, 1.0)


def test_a_static_argument_in_front() -> None:
    assert float(lx.compile(lambda f, x, y: f(x) - y, static_argnums=0)(lnp.exp, 0.0, 3.0)) == -2


def test_an_unhashable_static_argument_is_named() -> None:
    with pytest.raises(StaticArgumentError, match=r"widths.*list.*tuple"):
        lx.compile(lambda x, widths: x, static_argnames="widths")(1.0, [1, 2])


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": 2},
        {"static_argnames": "z"},
        {"donate_argnums": 5},
        {"static_argnums": 0, "donate_argnums": 0},
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        lx.compile(lambda x, y: x, **options)


def test_an_argument_that_is_no_data_is_named() -> None:
    with pytest.raises(DtypeError, match=r"config\.mode of .*static_argnames"):
        lx.compile(lambda x, config: x)(1.0, {"mode": "fast"})


def test_a_result_that_is_no_data_is_named() -> None:
    with pytest.raises(DtypeError, match=r"result at name.*'a'"):
        lx.compile(lambda x: {"x": x, "name": "a"})(1.0)


def test_keyword_arguments_and_defaults() -> None:
    @lx.compile
    def f(x: Any, *rest: Any, scale: Any = 2.0, **more: Any) -> Any:
        return x * scale + sum(rest, 0.0) + sum(more.values(), 0.0)

    assert float(f(1.0)) == 2
    assert float(f(1.0, 10.0, 20.0, scale=3.0, a=100.0)) == 133


def test_closures_are_inputs_that_the_program_keeps(backend: NumpyBackend, counted: Counted) -> None:
    weights = lx.device_put(np.arange(3, dtype="f"))
    f = lx.compile(lambda x: x * weights + weights)
    assert f(np.ones(3)).tolist() == [0, 2, 4]
    uploads = backend.uploads
    assert f(np.ones(3)).tolist() == [0, 2, 4]
    assert backend.uploads == uploads + 1
    assert len(backend.compiled[-1].inputs) == 2


def test_programs_are_dropped_with_the_functions_that_keep_them(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = runtime().programs
    monkeypatch.setattr(programs, "limit", 1)
    first, second = (lx.compile(lambda x: lnp.sin(x) * 2) for _ in range(2))
    other = lx.compile(lambda x: x + 1)
    for f in (first, second, other):
        f(np.ones(3))
    assert len(programs.values()) == 2, "equal functions share a program"
    del first
    gc.collect()
    assert len(programs.values()) == 2
    del second
    gc.collect()
    (left,) = programs.values()
    other(np.ones(3))
    assert programs.values() == [left]


def test_functions_outside_compile_find_their_program_again(backend: NumpyBackend) -> None:
    for _ in range(3):
        lx.grad(lambda x: lnp.sin(x).sum())(np.ones(3))
    assert len(backend.compiled) == 1


def test_inside_a_trace_it_is_inlined(counted: Counted, backend: NumpyBackend) -> None:
    inner = lx.compile(lambda x, n: lnp.sin(x) * n)
    outer = lx.compile(lambda x: inner(x, 2.0) + 1)
    assert np.allclose(outer(np.zeros(2)), 1)
    assert (counted("traces"), counted("submits")) == (1, 1)
    assert "sin" in str(lx.trace(inner)(1.0, 2.0))
    assert np.allclose(lx.grad(lambda x: inner(x, 3.0))(0.0), 3)


def test_methods() -> None:
    @lx.tree.register_dataclass
    @dataclass
    class Model:
        w: Any

        @lx.compile
        def __call__(self, x: Any) -> Any:
            return self.w * x

        @functools.partial(lx.compile, static_argnums=2)
        def power(self, x: Any, n: int) -> Any:
            return self.w * x**n

    model = Model(3.0)
    assert float(model(2.0)) == 6
    model.w = 4.0
    assert float(model(2.0)) == 8
    assert float(model.power(2.0, 3)) == 32
    assert "self.w" in model.power.lower(2.0, 3).as_text("ir")


def test_a_method_of_an_unregistered_class_says_what_to_do() -> None:
    class Model:
        @lx.compile
        def f(self, x: Any) -> Any:
            return x

    with pytest.raises(DtypeError, match="self"):
        Model().f(1.0)


def test_the_wrapped_function_shows() -> None:
    @lx.compile
    def f(x: Any) -> Any:
        """Doubles."""
        return x * 2

    assert (f.__name__, f.__doc__, f.__wrapped__(2)) == ("f", "Doubles.", 4)  # type: ignore[attr-defined]


def test_results_that_need_no_program(backend: NumpyBackend, counted: Counted) -> None:
    x = lx.device_put(np.ones(3, "f"))
    same, zero = lx.compile(lambda x: (x, lnp.zeros(3)))(x)
    assert same is not x and same.buffer is x.buffer
    assert zero.tolist() == [0, 0, 0]
    assert counted("submits") == 0


def test_a_passed_through_numpy_argument_is_a_copy() -> None:
    data = np.ones(3, "f")
    same = lx.compile(lambda x: x)(data)
    data[:] = 5
    assert same.tolist() == [1, 1, 1]


def test_an_exception_leaves_no_trace_behind() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        lx.compile(fail)(1.0)
    assert float(lnp.sin(0.0)) == 0


def test_functions_without_arguments_and_without_results() -> None:
    assert lx.compile(lambda: lnp.zeros(2) + 1)().tolist() == [1, 1]
    assert lx.compile(lambda x: None)(1.0) is None


def test_empty_arrays() -> None:
    assert lx.compile(lambda x: x + 1)(np.zeros((0, 3))).shape == (0, 3)


def test_jit_is_compile() -> None:
    assert lx.jit is lx.compile


def test_an_error_of_a_first_call_is_shown_alone() -> None:
    """Looking for a program that is not there yet is no error of the user's."""
    with pytest.raises(ZeroDivisionError) as raised:
        lx.compile(lambda x: x * (1 // 0))(np.ones(3, np.float32))
    assert raised.value.__context__ is None
