"""Scatters large enough to be done in several kernels, on the device against NumPy."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import Graph, TensorType, interpret
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.passes.prepare.decompose import scatter as decompose_scatter
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.target.kernel_limits import Lists, Places, Rows
from tests import denormals
from tests.backends.vulkan.run.execution import assert_agrees, backend, run
from tests.backends.vulkan.test_decompositions import OF_NUMPY, as_gpu, graph

RANDOM = np.random.default_rng(3)


def joins_in_place() -> bool:
    """Whether the device joins updates of a large array to their places in memory, in their order; others sort them, or
    join integers at once."""
    scatters = backend().target.scatters
    return "i32" in scatters.joined_in_place and not scatters.at_once


def has_longs() -> bool:
    """Whether a GPU like the device adds whole numbers of 64 bits atomically."""
    return "i64" in as_gpu().target.scatters.joined_in_place


def operations(op_graph: Graph) -> set[str]:
    return {node.op for node in prepare(op_graph, backend().target).nodes}


def scattered(op: str, array: np.ndarray, updates: np.ndarray, indices: Sequence[np.ndarray], axes: Any) -> Graph:
    return graph(f"scatter_{op}", [array, updates, *indices], axes=axes)


# Shape of the array, indexed axes, number of updates, the operation that shows which way is taken.
WAYS = [
    ((10,), (0,), (5000,), "sum"),
    ((3, 7), (1,), (3000,), "sum"),
    ((3, 4), (0, 1), (50, 60), "sum"),
    ((100_000,), (0,), (3000,), "join_places"),
    ((100_000,), (0,), (100,), "join_places"),
    ((6,), (0,), (400,), "join_places"),
    ((6, 700), (0, 1), (80, 60), "join_places"),
    ((7, 3), (0,), (3000,), "join_rows"),
    ((100_000, 2), (0,), (3000,), "join_rows"),
    ((100_000, 2), (0,), (100,), "join_rows"),
    ((30, 4, 36), (0, 1), (50, 3), "join_rows"),
    ((50, 8, 13), (0,), (70,), "join_rows"),
    ((2, 50_000), (1,), (3000,), "join_runs"),
    ((2, 50_000), (1,), (100,), "join_runs"),
    ((4, 30, 3), (0, 2), (50,), "join_runs"),
    ((6, 5000), (0,), (100,), "join_lists"),
    ((30, 2, 9), (0,), (70, 30), "join_lists"),
    ((4, 3, 44), (0, 1), (800,), "join_lists"),
    ((100_000,), (0,), (20,), "scatter_add"),
    ((2, 40, 3), (0, 2), (4, 5), "scatter_add"),
    ((5, 3000), (1,), (2500,), "join_runs"),
    ((2, 40, 60), (1, 2), (2600,), "join_runs"),
]


@pytest.mark.parametrize("op", ["add", "multiply", "minimum", "maximum", "set"])
@pytest.mark.parametrize(("shape", "axes", "count", "way"), WAYS)
def test_scatter(op: str, shape: Any, axes: Any, count: Any, way: str) -> None:
    array = RANDOM.integers(-3, 4, shape).astype(np.int32)
    window = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    updates = RANDOM.integers(-3, 4, (*count, *window)).astype(np.int32)
    indices = [RANDOM.integers(-2, shape[axis] + 2, count).astype(np.int32) for axis in axes]
    program = scattered(op, array, updates, indices, axes)
    at_once = backend().target.scatters.at_once
    if op == "add" and (joins_in_place() or way in ("scatter_add", "join_runs") or (way == "sum" and not at_once)):
        assert way in operations(program)
    assert_agrees(program, [array, updates, *indices])


# Shape of the array, the indexed axis, number of updates: fewer than places, or not, so that places are gone over.
@pytest.mark.parametrize("op", ["add", "multiply"])
@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [
        ((60_000, 8), 0, 300), ((60_000, 2), 0, 3000), ((60_000, 4), 0, 40_000),
        ((5000, 4), 0, 9000), ((4500,), 0, 40_000), ((5000, 3), 0, 5000), ((3, 1500, 8), 1, 1800),
    ],
    ids=str,
)  # fmt: skip
def test_scatter_with_the_schedules_of_gpus(op: str, shape: tuple[int, ...], axis: int, count: int) -> None:
    """Half of the updates go to one place: a run of many chunks. All sums and products are exact."""
    array = RANDOM.integers(-3, 4, shape).astype(np.float32)
    extent, window = shape[axis], (*shape[:axis], *shape[axis + 1 :])
    updates = RANDOM.choice(np.array([1, -1], np.float32), (count, *window))
    index = np.where(RANDOM.random(count) < 0.5, 7, RANDOM.integers(-2, extent + 2, count)).astype(np.int32)
    program = scattered(op, array, updates, [index], (axis,))
    sources = as_gpu().lower(program).as_text("glsl")
    assert ("behind" in sources) == (count >= extent), "places are gone over"
    (found,) = run(program, [array, updates, index], device=as_gpu())
    np.testing.assert_array_equal(found, interpret(program, array, updates, index)[0])


@pytest.mark.parametrize(
    ("places", "width", "count", "way"), [(3, 512, 2049, "join_runs"), (3, 512, 2048, "sum"), (3, 2, 9000, "sum")]
)
def test_gpus_sort_what_would_be_long_shares_of_copies(places: int, width: int, count: int, way: str) -> None:
    """An invocation joins at most 256 updates, one after the other."""
    array, updates = (RANDOM.integers(-3, 4, (n, width)).astype(np.float32) for n in (places, count))
    index = RANDOM.integers(-2, places + 2, count).astype(np.int32)
    program = scattered("add", array, updates, [index], (0,))
    assert way in [node.op for node in prepare(program, as_gpu().target).nodes]
    (found,) = run(program, [array, updates, index], device=as_gpu())
    np.testing.assert_array_equal(found, interpret(program, array, updates, index)[0])


@pytest.mark.parametrize("op", ["add", "minimum", "maximum", "set"])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
@pytest.mark.parametrize(("length", "count"), [(5, 40), (300, 8192), (300, 9001), (9000, 4000), (9000, 40_000)])
def test_gpus_join_whole_numbers_to_their_places_at_once(op: str, dtype: str, length: int, count: int) -> None:
    """In shared memory first, if many updates meet: to a copy, or what fits of it. Floats are compared as words, and
    set by number."""
    array, updates = (RANDOM.integers(0, 9, n).astype(dtype) for n in (length, count))
    index = np.where(RANDOM.random(count) < 0.3, 3, RANDOM.integers(-2, length + 2, count)).astype(np.int32)
    program = scattered(op, array, updates, [index], (0,))
    joins = [node for node in prepare(program, as_gpu().target).nodes if node.op == "join_places"]
    assert len(joins) == (1 if dtype != "float32" or op != "add" else 2 if length != 300 and has_longs() else 0)
    source = as_gpu().lower(program).as_text("glsl")
    assert ("int held[300]" in source) == bool(joins and length == 300)
    assert ("int owners[" in source) == bool(joins and count == 40_000 and (op != "minimum" or dtype == "float32"))
    assert ("atomicMax(U32" in source) <= (" < v" in source), "an extreme is read first"
    (found,) = run(program, [array, updates, index], device=as_gpu())
    np.testing.assert_array_equal(found, interpret(program, array, updates, index)[0])


@pytest.mark.parametrize("length", [700, 9000, 50_000])
def test_sums_of_floats_at_their_places_are_equal_on_every_run(length: int) -> None:
    array, updates = (RANDOM.normal(size=n).astype(np.float32) for n in (length, 30_000))
    index = RANDOM.integers(-1, length + 1, 30_000).astype(np.int32)
    program = scattered("add", array, updates, [index], (0,))
    if length > 700 and joins_in_place() and backend().profile.adds_floats:
        assert "join_places" in operations(program)
    runs = [run(program, [array, updates, index])[0] for _ in range(3)]
    np.testing.assert_allclose(runs[0], interpret(program, array, updates, index)[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_updates_beyond_what_one_kernel_joins_go_to_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompose_scatter, "PLACES", Places(most=1000))
    for op, count in (("add", 3000), ("set", 2500)):
        array, updates = (RANDOM.integers(-9, 9, n).astype(np.int32) for n in (4000, count))
        index = RANDOM.integers(-2, 600, count).astype(np.int32)
        program = scattered(op, array, updates, [index], (0,))
        if joins_in_place():
            assert [node.op for node in prepare(program, backend().target).nodes].count("join_places") == 3
        assert_agrees(program, [array, updates, index])


@pytest.mark.parametrize(("op", "dtype"), [*((op, "i") for op in ("add", "minimum", "maximum", "set")), ("add", "f")])
@pytest.mark.parametrize(("length", "copies"), [(3000, 4), (6000, 3), (9001, 2), (20_000, 1)])
def test_copies_of_a_large_array_share_many_updates(op: str, dtype: str, length: int, copies: int) -> None:
    """A third of the updates go to one place; their number is no multiple of what a copy's share is."""
    array, updates = (RANDOM.integers(-9, 9, n).astype(dtype) for n in (length, 9001))
    index = np.where(RANDOM.random(9001) < 0.3, 7, RANDOM.integers(-2, length + 2, 9001)).astype(np.int32)
    program = scattered(op, array, updates, [index], (0,))
    if joins_in_place() and (dtype == "i" or backend().profile.adds_floats):
        joins = [node for node in prepare(program, backend().target).nodes if node.op == "join_places"]
        assert [node.shape for node in joins] == [(copies, length) if copies > 1 else (length,)]
    assert_agrees(program, [array, updates, index])


@pytest.mark.parametrize("op", ["minimum", "maximum"])
@pytest.mark.parametrize("length", [700, 40_000])
def test_extremes_of_floats_at_their_places(op: str, length: int) -> None:
    """Of infinities and zeros of both signs; NaN wins. A driver may take a denormal number for a zero."""
    array, updates = (RANDOM.normal(size=n).astype(np.float32) for n in (length, 9001))
    denormal = () if denormals.are_flushed() else (np.float32(1e-40),)
    for start, value in enumerate((np.inf, -np.inf, 0.0, -0.0, *denormal, np.nan, -np.nan)):
        updates[start::600] = value
    array[::3] = 0.0
    index = RANDOM.integers(-2, length + 2, 9001).astype(np.int32)
    program = scattered(op, array, updates, [index], (0,))
    if length > 700 and joins_in_place():
        assert "join_places" in operations(program)
    inside = (index >= 0) & (index < length)
    expected = array.copy()
    with np.errstate(invalid="ignore"):
        getattr(np, op).at(expected, index[inside], updates[inside])
    np.testing.assert_array_equal(run(program, [array, updates, index])[0], expected)


@pytest.mark.parametrize("op", ["minimum", "maximum"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16"])
def test_extremes_of_narrow_elements_at_their_places(op: str, dtype: str) -> None:
    array, updates = (RANDOM.integers(0, 120, n).astype(dtype) for n in (700, 1500))
    if dtype == "float16":
        updates[::90], updates[1::90], updates[2::90] = np.nan, -np.inf, -0.0
    index = RANDOM.integers(-2, 702, 1500).astype(np.int32)
    program = scattered(op, array, updates, [index], (0,))
    if joins_in_place():
        assert "join_places" in operations(program)
    inside = (index >= 0) & (index < 700)
    expected = array.copy()
    with np.errstate(invalid="ignore"):
        getattr(np, op).at(expected, index[inside], updates[inside])
    np.testing.assert_array_equal(run(program, [array, updates, index])[0], expected)


@pytest.mark.parametrize("width", [3, 16, 64, 200])
def test_rows_are_joined_in_their_order(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit what the sums in turn are, of float32, also over several kernels."""
    if "f32" not in backend().target.scatters.joined_by_rows:
        pytest.skip("rows are joined in their order on CPU drivers only")
    monkeypatch.setattr(decompose_scatter, "ROWS", Rows(most=400))
    monkeypatch.setattr(decompose_scatter, "LISTS", Lists(most=400))
    array, updates = (RANDOM.normal(size=(n, width)).astype(np.float32) for n in (700, 1000))
    updates[::50], updates[1::50], updates[2::50, 0] = np.inf, -0.0, np.nan
    index = RANDOM.integers(-2, 92, 1000).astype(np.int32)
    for op in ("add", "maximum", "set"):
        program = scattered(op, array, updates, [index], (0,))
        way = "join_rows" if op == "set" or width < 64 else "join_lists"
        assert [node.op for node in prepare(program, backend().target).nodes].count(way) == 3
        np.testing.assert_array_equal(run(program, [array, updates, index])[0], joined(op, array, updates, index))


def joined(op: str, array: np.ndarray, updates: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The array with rows joined, one after the other."""
    expected = array.copy()
    for place, update in zip(index, updates, strict=True):
        if 0 <= place < len(array):
            held = expected[place]
            with np.errstate(invalid="ignore"):
                sums = {"add": held + update, "maximum": np.maximum(held, update), "set": update}
            expected[place] = sums[op]
    return expected


# Rows and their elements, updates, lists of each row; lanes have up to eight vectors, or eight elements.
@pytest.mark.parametrize(
    ("rows", "width", "count", "lists"),
    [
        (9, 64, 700, 1), (9, 64, 2400, 4), (300, 16, 2100, 1), (30, 15, 5001, 2), (40, 20, 2500, 1), (20, 100, 3000, 2),
        (3, 9, 4000, 4), (4000, 8, 4100, 1), (1, 300, 150, 2),
    ],
)  # fmt: skip
def test_rows_are_joined_by_lists(rows: int, width: int, count: int, lists: int) -> None:
    """Bit by bit what joining one after the other gives. A third of the updates go to one place."""
    if "f32" not in backend().target.scatters.joined_by_rows:
        pytest.skip("rows are joined in their order on CPU drivers only")
    array, updates = (RANDOM.normal(size=(n, width)).astype(np.float32) for n in (rows, count))
    updates[::50], updates[1::50], updates[2::50, 0] = np.inf, -0.0, np.nan
    index = np.where(RANDOM.random(count) < 0.3, 2, RANDOM.integers(-2, rows + 2, count)).astype(np.int32)
    for op in ("add", "maximum"):
        program = scattered(op, array, updates, [index], (0,))
        joins = [node for node in prepare(program, backend().target).nodes if node.op == "join_lists"]
        assert [node.attrs["lists"] for node in joins] == [lists]
        np.testing.assert_array_equal(run(program, [array, updates, index])[0], joined(op, array, updates, index))


def test_long_lists_of_rows_are_walked_along_to_their_end() -> None:
    """Some drivers end loops after 65,535 turns."""
    index = np.where(np.arange(90_000) % 7, 1, 0).astype(np.int32)
    array, updates = np.zeros((2, 8), np.int32), RANDOM.integers(0, 9, (90_000, 8)).astype(np.int32)
    program = scattered("add", array, updates, [index], (0,))
    assert "join_lists" in operations(program) or not joins_in_place()
    assert_agrees(program, [array, updates, index])


# Rows and their elements, updates, copies of the array that share them, and the elements of their lines: a lane's eight
# or four.
@pytest.mark.parametrize(
    ("rows", "width", "count", "shape"),
    [
        (30, 7, 5001, (32, 30, 8)), (12, 3, 11_000, (32, 12, 4)), (200, 5, 7000, (5, 200, 8)), (5, 2, 900, (1, 5, 2)),
        (9000, 7, 5000, (1, 9000, 8)), (30_000, 7, 5000, (1, 30_000, 7)), (9000, 15, 2500, (1, 9000, 16)),
    ],
)  # fmt: skip
def test_copies_of_an_array_share_rows(rows: int, width: int, count: int, shape: Any) -> None:
    """Each joins those of its share in their order, and copies are joined in their order."""
    if "f32" not in backend().target.scatters.joined_by_rows:
        pytest.skip("rows are joined in their order on CPU drivers only")
    array, updates = (RANDOM.normal(size=(n, width)).astype(np.float32) for n in (rows, count))
    updates[::50], updates[1::50], updates[2::50, 0] = np.inf, -0.0, np.nan
    index = np.where(RANDOM.random(count) < 0.3, 2, RANDOM.integers(-2, rows + 2, count)).astype(np.int32)
    share = -(-count // (4 * shape[0])) * 4
    for op, identity in (("add", 0.0), ("maximum", -np.inf)):
        program = scattered(op, array, updates, [index], (0,))
        assert [n.shape for n in prepare(program, backend().target).nodes if n.op == "join_rows"] == [shape]
        shares = [slice(start, start + share) for start in range(0, count, share)]
        start = np.full_like(array, identity) if len(shares) > 1 else array
        expected, *copies = [joined(op, start, updates[own], index[own]) for own in shares]
        with np.errstate(invalid="ignore"):
            together = {"add": np.add, "maximum": np.maximum}[op]
            for copy in copies:
                expected = together(expected, copy)
            expected = together(array, expected) if copies else expected
        np.testing.assert_array_equal(run(program, [array, updates, index])[0], expected)


def test_gradients_of_rows_that_are_taken_and_added() -> None:
    """Of embeddings, in the middle of a graph: their gradient is a scatter of rows, that of a scatter a gather."""
    table, weights = (RANDOM.normal(size=shape) for shape in ((50, 12), (300, 12)))
    places = RANDOM.integers(-50, 50, 300).astype(np.int32)

    def loss(table: Any, added: Any) -> Any:
        taken = lnp.sin(table)[places]
        sums = lnp.zeros((50, 12)).at[places].add(lnp.cos(added) * taken)
        return 1.5 * lnp.sum(weights.astype(np.float32)[:50] * sums)

    gradients = lx.compile(lx.grad(loss, argnums=(0, 1)))
    given = (table.astype(np.float32), weights.astype(np.float32))
    assert "join_rows" in gradients.lower(*given).as_text("prepare") or not joins_in_place()
    by_table, by_added = (np.asarray(gradient) for gradient in gradients(*given))
    at, scale = places % 50, 1.5 * weights[:50]
    expected = np.zeros((50, 12))
    np.add.at(expected, at, scale[at] * np.cos(weights))
    np.testing.assert_allclose(by_table, expected * np.cos(table), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_added, -scale[at] * np.sin(weights) * np.sin(table)[at], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("window", "way"), [((), "join_places"), ((3,), "join_rows")])
def test_the_last_of_several_updates_is_set(window: tuple[int, ...], way: str) -> None:
    array, updates = RANDOM.normal(size=(2, 300, *window)).astype(np.float32)
    index = RANDOM.integers(-2, 40, 300).astype(np.int32)
    program = scattered("set", array, updates, [index], (0,))
    assert way in operations(program) or not joins_in_place()
    expected = array.copy()
    for place, update in zip(index, updates, strict=True):
        if 0 <= place < 300:
            expected[place] = update
    np.testing.assert_array_equal(run(program, [array, updates, index])[0], expected)


def test_a_batch_of_scatters_is_dealt_out_too() -> None:
    array, updates = np.zeros((2, 5), np.float32), RANDOM.integers(0, 9, (2, 4000)).astype(np.float32)
    index = RANDOM.integers(0, 5, (2, 4000)).astype(np.int32)
    batch = np.broadcast_to(np.arange(2, dtype=np.int32)[:, None], (2, 4000))
    arrays = (array, updates, index)
    inputs = [input_node(f"x{n}", TensorType(a.shape, OF_NUMPY[a.dtype])) for n, a in enumerate(arrays)]
    counts = make_node("iota", (), {"axis": 0}, inputs[2].type)
    node = make_node("scatter_add", (*inputs[:2], counts, inputs[2]), {"axes": (0, 1)})
    (found,) = run(graph_of(inputs, [node]), [array, updates, index])
    np.add.at(array, (batch, index), updates)
    np.testing.assert_array_equal(found, array)


def whole_sums(array: np.ndarray, updates: np.ndarray, index: np.ndarray) -> np.ndarray:
    """What a GPU adds as whole numbers."""
    program = scattered("add", array, updates, [index], (0,))
    joins = [node for node in prepare(program, as_gpu().target).nodes if node.op == "join_places"]
    assert [node.dtype.name for node in joins] == ["u32", "i64"]
    (found,) = run(program, [array, updates, index], device=as_gpu())
    return found


@pytest.mark.skipif("not has_longs()")
@pytest.mark.parametrize("length", [900, 9000, 50_000])
def test_sums_of_floats_as_whole_numbers_have_the_same_bits_in_any_order(length: int) -> None:
    """A third of the updates meet, exponents differ by 2^-40 to 2^40, and signs cancel."""
    array, count = RANDOM.normal(size=length).astype(np.float32), 30_000
    updates = (RANDOM.normal(size=count) * 2.0 ** RANDOM.integers(-40, 40, count)).astype(np.float32)
    index = np.where(RANDOM.random(count) < 0.3, 7, RANDOM.integers(-2, length + 2, count)).astype(np.int32)
    found, order = whole_sums(array, updates, index), RANDOM.permutation(count)
    np.testing.assert_array_equal(found, whole_sums(array, updates[order], index[order]))
    inside = (index >= 0) & (index < length)
    exact, sizes = array.astype(np.float64), np.abs(array).astype(np.float64)
    np.add.at(exact, index[inside], updates[inside].astype(np.float64))
    np.maximum.at(sizes, index[inside], np.abs(updates[inside]))
    # One rounding of the sum, one of what is added to it, and what 48 bits lose of each update.
    bound = 2.0**-23 * (np.abs(exact) + np.abs(array)) + count * 2.0**-46 * sizes
    np.testing.assert_array_less(np.abs(found - exact), bound)


@pytest.mark.skipif("not has_longs()")
def test_sums_as_whole_numbers_of_infinities_and_of_what_has_no_hidden_bit() -> None:
    inf, nan, most = np.inf, np.nan, np.finfo(np.float32).max
    tiny = 0.0 if denormals.are_flushed() else 1e-45
    special = [[inf, 1, 2], [-inf, inf, 1], [nan, 1, 2], [-nan, -inf, 3], [-inf, -inf, most], [most, most, 0]]
    small = [[1e-38, -1e-38, tiny], [tiny, tiny, tiny], [0.0, -0.0, 0.0], [-(2.0**-126), -(2.0**-126), 1.0]]
    rows, length = [*special, [most, -most, 0], *small], 700
    places = [np.repeat(np.arange(len(rows)), 3), RANDOM.integers(len(rows), length - 1, 900)]
    index, updates = np.concatenate(places).astype(np.int32), np.append(rows, np.ones(900)).astype(np.float32)
    array = np.zeros(length, np.float32)
    array[-1] = -0.0
    with np.errstate(all="ignore"):
        exact = array.astype(np.float64)
        np.add.at(exact, index, updates.astype(np.float64))
        expected = exact.astype(np.float32)
    found = whole_sums(array, updates, index)
    np.testing.assert_array_equal(found, expected)
    assert np.signbit(found[-1])


@pytest.mark.skipif("not has_longs()")
@pytest.mark.parametrize(
    ("shape", "axes", "count"), [((2, 50_000), (0, 1), 30_000), ((300, 100), (1,), 300), ((1, 9000, 1), (1,), 9000)]
)
def test_sums_as_whole_numbers_of_several_axes(shape: tuple[int, ...], axes: tuple[int, ...], count: int) -> None:
    """Rows of an array, too, whose updates are elements of the same rows."""
    array = RANDOM.normal(size=shape).astype(np.float32)
    counts = (count, 40) if len(shape) == 2 else (count,)
    indices = [RANDOM.integers(-2, shape[axis] + 2, counts).astype(np.int32) for axis in axes]
    updates = RANDOM.normal(size=(*counts, 1, 1) if len(shape) > 2 else counts).astype(np.float32)
    if shape == (300, 100):
        indices.insert(0, np.repeat(np.arange(shape[0], dtype=np.int32)[:, None], 40, 1))
        axes = (0, 1)
    program = scattered("add", array, updates, indices, axes)
    assert "i64" in {node.dtype.name for node in prepare(program, as_gpu().target).nodes if node.op == "join_places"}
    (found,) = run(program, [array, updates, *indices], device=as_gpu())
    np.testing.assert_allclose(found, interpret(program, array, updates, *indices)[0], rtol=1e-5, atol=1e-5)
