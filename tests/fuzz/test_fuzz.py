"""A slice of the fuzzer's programs, and the fuzzer itself: it has all operations, and finds what is wrong."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lavax.ir import OPERATIONS, Graph, interpret, parse
from tests.fuzz import compare
from tests.fuzz.corpus import entry_of, text_of
from tests.fuzz.engines import INTERPRETERS
from tests.fuzz.noise import IllConditionedError, expected
from tests.fuzz.programs import GENERATORS, NOT_GENERATED, program
from tests.fuzz.run import Report, engines_for, run_one
from tests.fuzz.shrink import shows, shrink
from tests.fuzz.transformations import TRANSFORMATIONS

PARTS, PROGRAMS_OF_A_PART = 4, 30
# The programs that the device runs too, each on one engine.
_ON_DEVICES = 12


def test_every_operation_has_a_generator_or_a_reason() -> None:
    assert OPERATIONS.keys() - GENERATORS.keys() - NOT_GENERATED.keys() == set(), "operations without a generator"
    assert GENERATORS.keys() & NOT_GENERATED.keys() == set()
    assert GENERATORS.keys() <= OPERATIONS.keys()


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_agree_on_all_interpreters(part: int) -> None:
    report = Report()
    for number in range(part * PROGRAMS_OF_A_PART, (part + 1) * PROGRAMS_OF_A_PART):
        _, found = run_one(number, list(INTERPRETERS), report)
        assert not found, f"{number}: {found[0]}: python -m tests.fuzz --start {number} makes it small"
    assert report.programs > 0.9 * PROGRAMS_OF_A_PART


@pytest.mark.parametrize("number", range(1000, 1000 + _ON_DEVICES))
def test_random_programs_agree_on_devices(number: int) -> None:
    engines = ("device", "as a GPU", "eager")
    _, found = run_one(number, [engines[number % 3]], Report())
    assert not found, f"{number}: {found[0]}"


def test_programs_hang_on_their_number_alone() -> None:
    assert [str(program(3).graph), program(3).arrays[0].tolist()] == [
        str(program(3).graph), program(3).arrays[0].tolist()
    ]  # fmt: skip


def test_programs_have_nearly_all_operations_and_transformations() -> None:
    """Of some hundred programs; the weights leave rare ones to longer runs."""
    names: set[str] = set()
    transformed: set[str] = set()
    for number in range(120):
        try:
            drawn = program(number)
        except IllConditionedError:
            continue
        names.update(node.op for node in drawn.graph.nodes)
        transformed.update(drawn.transformations)
    assert transformed == TRANSFORMATIONS.keys()
    assert len(names) > 80


def test_engines_take_turns() -> None:
    assert engines_for(1, share=0) == list(INTERPRETERS)
    assert set.union(*(set(engines_for(number)) for number in range(16))) == compare.ENGINES.keys()


def test_a_discontinuity_is_no_difference() -> None:
    graph = parse("graph (x: f32[2]) {\n  %0 = sin(x) : f32[2]\n  %1 = subtract(%0, %0) : f32[2]\n"
                  "  %2 = floor(%0) : f32[2]\n  return %1, %2\n}")  # fmt: skip
    assert expected(graph, [np.array([0.5, 1.0], np.float32)]).values[0].tolist() == [0, 0]
    with pytest.raises(IllConditionedError):
        expected(parse("graph (x: f32[1]) {\n  %0 = sin(x) : f32[1]\n  %1 = less(%0, %0) : bool[1]\n"
                       "  %2 = cos(x) : f32[1]\n  %3 = multiply(%2, %2) : f32[1]\n  %4 = multiply(%0, %0) : f32[1]\n"
                       "  %5 = add(%3, %4) : f32[1]\n  %6 = floor(%5) : f32[1]\n  return %6\n}"),
                 [np.array([0.7], np.float32)])  # fmt: skip


def test_a_value_too_large_for_its_dtype_is_no_difference() -> None:
    """float64, in which it is expected, has no infinity there."""
    graph = parse("graph (x: f16[4]) {\n  %0 = sum(x) axes=[0] : f16[]\n  return %0\n}")
    assert expected(graph, [np.full(4, 1e4, np.float16)]).values[0] == 4e4
    with pytest.raises(IllConditionedError, match="too large"):
        expected(graph, [np.full(4, 3e4, np.float16)])


def test_where_a_function_has_no_derivative_doubles_have_tolerances_of_their_own() -> None:
    """The arc sine of 1 moves by the root of a rounding, so the float32 program's tolerance says nothing of float64."""
    graph = parse("graph (x: c64[4]) {\n  %0 = divide(x, x) : c64[4]\n  %1 = asin(%0) : c64[4]\n  return %1\n}")
    arrays = [np.ones(4, np.complex64)]
    wanted = expected(graph, arrays, in_doubles=True)
    assert wanted.tolerances[0] is not None and wanted.of_doubles is not None and wanted.of_doubles[0] is not None
    assert (wanted.of_doubles[0] > 1e-9).all() and (wanted.of_doubles[0] < 1e-6).all()
    assert (wanted.of_doubles[0] > 10 * 2.0**-29 * 64 * wanted.tolerances[0]).all()


def test_numbers_that_are_one_in_their_own_dtype_have_its_tolerance() -> None:
    """Zeros have signs by bits of float32, of which two numbers that float64 tells apart have the same."""
    graph = parse("""graph (x: f32[3]) {
      %0 = constant() value=1.0e-09 : f32[3]
      %1 = iota() axis=0 : f32[3]
      %2 = multiply(%0, %1) : f32[3]
      %3 = add(x, %2) : f32[3]
      %4 = top_order(%3) axis=0 count=1 signed_zeros=true : i32[1]
      %5 = gather(%3, %4) axes=[0] : f32[1]
      return %5
    }""")
    arrays = [np.ones(3, np.float32)]
    assert INTERPRETERS["kernels"](graph, arrays)[0] == 1  # the first of equal ones
    assert not compare.differences(["kernels"], graph, arrays, expected(graph, arrays, in_doubles=True))
    plain = parse(str(graph).replace("signed_zeros=true", "signed_zeros=false"))
    assert not compare.differences(["kernels"], plain, arrays, expected(plain, arrays, in_doubles=True))
    assert INTERPRETERS["kernels"](plain, arrays)[0] > 1


def test_floats_that_a_gpu_joins_by_their_bits_have_the_tolerance_of_their_dtype() -> None:
    graph = parse("""graph (places: i32[68], x: f32[68]) {
      %0 = tanh(x) : f32[68]
      %1 = constant() value=0.0 : f32[3]
      %2 = scatter_maximum(%1, %0, places) axes=[0] : f32[3]
      return %2
    }""")
    arrays = [np.zeros(68, np.int32), np.linspace(-1, 1, 68, dtype=np.float32)]
    (found,), wanted = INTERPRETERS["kernels of a GPU"](graph, arrays), expected(graph, arrays, in_doubles=True)
    assert 0 < abs(found[0] - np.tanh(1.0)) < 1e-7
    assert not compare.differences(["kernels of a GPU"], graph, arrays, wanted)


def test_a_difference_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that takes every tangent for a sine."""

    def wrong(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return interpret(parse(str(graph).replace(" tan(", " sin(")), *arrays)

    monkeypatch.setitem(compare.ENGINES, "wrong", wrong)
    graph = parse("""graph (x: f32[4], y: f32[2,4]) {
      %0 = exp(x) : f32[4]
      %1 = tanh(%0) : f32[4]
      %2 = tan(%1) : f32[4]
      %3 = broadcast(%2) axes=[1] : f32[2,4]
      %4 = multiply(%3, y) : f32[2,4]
      %5 = sum(%4) axes=[0,1] : f32[]
      %6 = add(%1, %1) : f32[4]
      return %6, %5
    }""")
    arrays = [np.ones(4, np.float32), np.ones((2, 4), np.float32)]
    (found,) = compare.differences(["wrong"], graph, arrays, expected(graph, arrays))
    small, given = shrink(graph, arrays, shows("wrong", found.kind))
    assert [node.op for node in small.nodes] == ["tan"]
    entry = entry_of(text_of(found.engine, found.text, small, given))
    assert (str(entry.graph), entry.engine) == (str(small), "wrong")
    assert compare.differences(["wrong"], entry.graph, entry.arrays, expected(entry.graph, entry.arrays))
