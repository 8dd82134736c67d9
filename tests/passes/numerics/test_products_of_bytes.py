"""Products of integers of 8 bits as products of floats: the same numbers, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, MatrixShape
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret, parse
from lavax.passes.numerics.products_of_bytes import with_products_of_bytes_as_floats
from lavax.passes.target.target import Target
from tests.backends.vulkan.run.execution import run_as_gpu

WITH_MATRICES = replace(GENERIC_GPU, matrices=(MatrixShape("bf16", 16, 16, 16),), memory_model=True)


def target(profile: object = GENERIC_GPU) -> Target:
    return target_of(profile, 1 << 34, 1 << 32)  # type: ignore[arg-type]


def product(m: int, k: int, n: int, left: str = "i8", right: str = "i8", total: str = "i32") -> Graph:
    return parse(f"""
graph (a: {left}[{m},{k}], b: {right}[{n},{k}]) {{
  %0 = cast(a) : {total}[{m},{k}]
  %1 = cast(b) : {total}[{n},{k}]
  %2 = transpose(%1) axes=[1,0] : {total}[{k},{n}]
  %3 = dot(%0, %2) contract=[1]x[0] : {total}[{m},{n}]
  return %3
}}
""")


def products_of(graph: Graph) -> list[tuple[str, str, tuple[int, ...]]]:
    found = with_products_of_bytes_as_floats(graph, target())
    return [(node.dtype.name, node.attrs["precision"], node.shape) for node in found.nodes if node.op == "dot"]


def test_sums_that_float32_holds_are_one_product() -> None:
    assert products_of(product(32, 1024, 48)) == [("f32", "", (32, 48))]
    assert products_of(product(32, 258, 48, "u8", "u8", "u32")) == [("f32", "", (32, 48))]


def test_longer_sums_are_added_in_parts() -> None:
    assert products_of(product(32, 1028, 48)) == [("f32", "", (2, 32, 48))]
    assert products_of(product(32, 260, 48, "u8", "u8")) == [("f32", "", (2, 32, 48))]


@pytest.mark.parametrize(
    "graph",
    [
        product(32, 64 * 1024 + 4, 48),  # more parts than are worth their memory
        product(32, 64, 48, "i16", "i8"),
        product(32, 64, 48, "i32", "i8"),
        product(32, 64, 48, "i8", "u8", "u32"),  # -1 is 2^32 - 1
    ],
)
def test_other_products_stay_integers(graph: Graph) -> None:
    assert products_of(graph)[0][0] == graph.outputs[0].dtype.name


def test_the_device_says_how() -> None:
    graph = product(32, 64, 48)
    (dot,) = [node for node in graph.nodes if node.op == "dot"]
    (small,) = [node for node in product(1, 64, 48).nodes if node.op == "dot"]
    assert target(CPU_DRIVER).products.of_bytes(dot) is None
    assert [target(WITH_MATRICES).products.of_bytes(each) for each in (dot, small)] == ["bf16", ""]
    assert with_products_of_bytes_as_floats(graph, target(CPU_DRIVER)).nodes == graph.nodes


@pytest.mark.parametrize(
    ("kinds", "sizes"),
    [
        (("i8", "i8"), (33, 1024, 20)),
        (("i8", "i8"), (20, 2051, 18)),
        (("u8", "u8"), (17, 777, 16)),
        (("u8", "i8"), (1, 4099, 3)),
    ],
)
def test_values_are_exact_where_all_are_largest(kinds: tuple[str, str], sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(k)
    arrays = []
    for kind, rows in zip(kinds, (m, n), strict=True):
        low, high = (-128, 128) if kind == "i8" else (0, 256)
        array = rng.integers(low, high, (rows, k))
        array[0] = low if kind == "i8" else high - 1
        arrays.append(array.astype(np.int8 if kind == "i8" else np.uint8))
    graph = product(m, k, n, *kinds)
    (got,) = run_as_gpu(graph, arrays)
    np.testing.assert_array_equal(got, arrays[0].astype(np.int64) @ arrays[1].astype(np.int64).T)
    np.testing.assert_array_equal(got, interpret(graph, *arrays)[0])
