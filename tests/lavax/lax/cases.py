"""Calls of jax.lax, written once for both libraries: each takes the module and arrays, and gives arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.lavax.lax.edges import EDGES

draw = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return draw.normal(size=shape).astype(np.float32)


X, Y, P = floats(3, 4), floats(3, 4), np.abs(floats(3, 4)) + np.float32(0.3)
Q = P[::-1].copy()
CUBE, LINE, SQUARE = floats(2, 3, 4), floats(7), floats(4, 4)
K, J = (draw.integers(-9, 9, (3, 4)).astype(np.int32) for _ in range(2))
N = np.where(J == 0, 3, J).astype(np.int32)
U = draw.integers(0, 2**32, (3, 4), dtype=np.uint32)
NARROW = draw.integers(-128, 128, 12).astype(np.int8)
EXTREMES = np.int32([-(2**31), 2**31 - 1, -(2**31), -7, 2**31 - 1, 5])
IMAGE, KERNEL = floats(2, 4, 7, 6), floats(6, 4, 3, 2)
SMALL = np.tanh(X) * np.float32(0.9)
PLACES = np.array([[0, 1], [2, 3], [9, 0], [1, -2]], np.int32)
MATRIX = np.eye(4, dtype=np.float32) * 3 + floats(4, 4) / 4

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def named(names: str, *arguments: Any, suffix: str = "", **settings: Any) -> dict[str, Case]:
    """The functions of these names, of the same arguments."""
    return {
        name + suffix: (lambda lax, *given, name=name: getattr(lax, name)(*given, **settings), arguments)
        for name in names.split()
    }


def root(lax: Any, a: Any) -> Any:
    def solve(f: Any, guess: Any) -> Any:
        return lax.fori_loop(0, 40, lambda _, x: x - f(x) / (3 * x * x), guess)

    return lax.custom_root(lambda x: x * x * x - a, a * 0 + 1.5, solve, lambda g, y: y / g(1.0))


def system(lax: Any, matrix: Any, b: Any, symmetric: bool = False) -> Any:
    def solve(product: Any, right: Any) -> Any:  # Richardson's iteration
        return lax.fori_loop(0, 60, lambda _, x: x + 0.2 * (right - product(x)), right * 0)

    return lax.custom_linear_solve(lambda v: lax.dot(matrix, v), b, solve, solve, symmetric=symmetric)


def factored(lax: Any, matrix: Any, b: Any) -> Any:
    """A solver that closes over the matrix itself."""

    def solve(_: Any, right: Any) -> Any:
        return lax.fori_loop(0, 60, lambda _, x: x + 0.2 * (right - lax.dot(matrix, x)), right * 0)

    def transpose_solve(_: Any, right: Any) -> Any:
        return lax.fori_loop(0, 60, lambda _, x: x + 0.2 * (right - lax.dot(x, matrix)), right * 0)

    return lax.custom_linear_solve(lambda v: lax.dot(matrix, v), b, solve, transpose_solve)


def gathered(lax: Any, x: Any, places: Any, sizes: Any, mode: Any = None, **numbers: Any) -> Any:
    return lax.gather(x, np.int32(places), lax.GatherDimensionNumbers(**numbers), sizes, mode=mode)


def rows(lax: Any) -> Any:
    return lax.ScatterDimensionNumbers((1,), (0,), (0,))


ELEMENTWISE: dict[str, Case] = {
    **named("abs asinh atan bessel_i0e bessel_i1e cbrt ceil cos cosh erf erfc exp exp2 expm1 floor is_finite", X),
    **named("logistic neg reciprocal sign sin sinh square tan tanh", X),
    **named("digamma lgamma log log1p rsqrt sqrt", P),
    **named("acos asin atanh erf_inv", SMALL),
    **named("acosh", P + np.float32(1)),
    **named("add atan2 div eq ge gt le lt max min mul ne rem sub nextafter", X, Y),
    **named("igamma igammac igamma_grad_a pow", P, Q),
    **named("add bitwise_and bitwise_or bitwise_xor max min mul sub", K, J, suffix=" of integers"),
    **named("div rem", K, N, suffix=" of integers"),
    **named("bitwise_not population_count clz", U),
    **named("mulhi", U, U[::-1].copy()),
    **named("mulhi", NARROW, NARROW[::-1].copy(), suffix=" of bytes"),
    **named("population_count clz", K, suffix=" of signed integers"),
    **named("population_count clz", NARROW, suffix=" of bytes"),
    **named("div", EXTREMES, np.int32([3, 3, -7, 5, 1, 0]), suffix=" of extremes"),
    "add of extents of 1": (lambda lax, x, y: lax.add(x=x, y=y), (X, Y[:1])),
    "shift_right_arithmetic of unsigned": (lambda lax, x: lax.shift_right_arithmetic(x, np.uint32(1)), (U,)),
    **named("polygamma", np.float32([[1], [2], [3]]) + 0 * P, P),
    **named("zeta", P + np.float32(1), P),
    **named("betainc", P, P, np.float32(0.5) + SMALL / 2),
    "clamp": (lambda lax, x: lax.clamp(-0.5, x, 0.6), (X,)),
    "clamp by arrays": (lambda lax, x, y: lax.clamp(-abs(y), x, abs(y)), (X, Y)),
    "integer_pow": (lambda lax, x: lax.integer_pow(x, 3), (X,)),
    "integer_pow, negative": (lambda lax, x: lax.integer_pow(x, -2), (P,)),
    "shift_left": (lambda lax, x: lax.shift_left(x, np.int32(3)), (K,)),
    "shift_right_arithmetic": (lambda lax, x: lax.shift_right_arithmetic(x, np.int32(1)), (K,)),
    "shift_right_logical": (lambda lax, x: lax.shift_right_logical(x, np.int32(28)), (K,)),
    "round": (lambda lax, x: lax.round(x), (np.float32([-2.5, -0.5, 0.5, 1.5, 2.4, 2.6]),)),
    "round, even": (lambda lax, x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), (np.float32([-2.5, 0.5, 1.5]),)),
    "reduce_precision": (lambda lax, x: lax.reduce_precision(x, 5, 4), (X * np.float32(1e4),)),
    "reduce_precision, bfloat16": (lambda lax, x: lax.reduce_precision(x, 8, 7), (X,)),
    "select": (lambda lax, x, y: lax.select(x > 0, x, y), (X, Y)),
    "select by a scalar": (lambda lax, x, y: lax.select(x[0, 0] > 9, x, y), (X, Y)),
    "select_n": (lambda lax, w, x, y: lax.select_n(w, x, y, x * y), (np.abs(K) % 3, X, Y)),
}

SHAPES: dict[str, Case] = {
    "convert_element_type": (lambda lax, x: lax.convert_element_type(x, np.int32), (X * 5,)),
    "bitcast_convert_type": (lambda lax, x: lax.bitcast_convert_type(x, np.int32), (X,)),
    "full": (lambda lax: lax.full((2, 3), 4.5, np.float32), ()),
    "full_like": (lambda lax, x: lax.full_like(x, 2), (X,)),
    "iota": (lambda lax: lax.iota(np.int32, 5), ()),
    "broadcasted_iota": (lambda lax: lax.broadcasted_iota(np.float32, (2, 3), 1), ()),
    "broadcast": (lambda lax, x: lax.broadcast(x, (2,)), (X,)),
    "broadcast_in_dim": (lambda lax, x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), (X,)),
    "broadcast_to_rank": (lambda lax, x: lax.broadcast_to_rank(x, 4), (X,)),
    "collapse": (lambda lax, x: lax.collapse(x, 1, 3), (CUBE,)),
    "concatenate": (lambda lax, x, y: lax.concatenate([x, y], 1), (X, Y)),
    "expand_dims": (lambda lax, x: lax.expand_dims(x, (0, 2)), (X,)),
    "pad": (lambda lax, x: lax.pad(x, np.float32(2), ((1, 2, 1), (-1, 3, 0))), (X,)),
    "pad by a computed number": (lambda lax, x, y: lax.pad(x, y[0, 0], ((1, -1, 2), (2, 0, 1))), (X, Y)),
    "reshape": (lambda lax, x: lax.reshape(x, (4, 6), (2, 0, 1)), (CUBE,)),
    "rev": (lambda lax, x: lax.rev(x, (0, 2)), (CUBE,)),
    "squeeze": (lambda lax, x: lax.squeeze(x[:, :1], (1,)), (CUBE,)),
    "split": (lambda lax, x: lax.split(x, (1, 3), 1), (X,)),
    "tile": (lambda lax, x: lax.tile(x, (2, 3)), (X,)),
    "transpose": (lambda lax, x: lax.transpose(x, (2, 0, 1)), (CUBE,)),
    "slice": (lambda lax, x: lax.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 3)), (CUBE,)),
    "slice_in_dim": (lambda lax, x: lax.slice_in_dim(x, 1, -1, 2, axis=2), (CUBE,)),
    "index_in_dim": (lambda lax, x: lax.index_in_dim(x, -2, 1, keepdims=False), (CUBE,)),
    "dynamic_slice": (lambda lax, x, i: lax.dynamic_slice(x, (i[0], 1, i[1]), (1, 2, 3)), (CUBE, np.int32([1, 9]))),
    "dynamic_slice from the end": (lambda lax, x: lax.dynamic_slice(x, (-1, 7), (2, 2)), (X,)),
    "dynamic_slice_in_dim": (lambda lax, x, i: lax.dynamic_slice_in_dim(x, i, 3), (LINE, np.int32(2))),
    "dynamic_index_in_dim": (lambda lax, x, i: lax.dynamic_index_in_dim(x, i, 1, False), (CUBE, np.int32(5))),
    **named("dynamic_update_slice", SQUARE, floats(2, 3), np.int32([3, -3])),
    **named("dynamic_update_slice_in_dim", floats(40), floats(3), np.int32(-2), axis=0),
    **named("dynamic_update_index_in_dim", X, floats(3), np.int32(2), axis=1),
    "index_take": (lambda lax, x: lax.index_take(x, (np.int32([0, 1, 1]), np.int32([3, 0, 2])), (0, 2)), (CUBE,)),
    "gather of rows": (
        lambda lax, x: gathered(
            lax, x, [[2], [0], [2]], (1, 4), offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
        ),
        (X,),
    ),
    "gather of windows": (
        lambda lax, x: gathered(
            lax, x, PLACES[:2], (2, 1), offset_dims=(0, 2), collapsed_slice_dims=(), start_index_map=(0, 1)
        ),
        (SQUARE,),
    ),
    "gather, filled": (
        lambda lax, x: gathered(
            lax, x, PLACES, (2, 1), "fill", offset_dims=(0, 2), collapsed_slice_dims=(), start_index_map=(0, 1)
        ),
        (SQUARE,),
    ),
    "gather, clipped": (
        lambda lax, x: gathered(
            lax, x, PLACES, (2, 3), "clip", offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(1, 0)
        ),
        (SQUARE,),
    ),
    "gather by batches": (
        lambda lax, x: gathered(
            lax, x, [[[1], [0]], [[2], [3]]], (1, 3, 1), offset_dims=(2,), collapsed_slice_dims=(2,),
            start_index_map=(2,), operand_batching_dims=(0,), start_indices_batching_dims=(0,),
        ),
        (CUBE,),
    ),
    **{
        name: (
            lambda lax, x, u, name=name: getattr(lax, name)(x, np.int32([[2], [0], [2], [7]]), u, rows(lax)),
            (X, floats(4, 4)),
        )
        for name in ("scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")
    },
    "scatter": (lambda lax, x, u: lax.scatter(x, np.int32([[2], [0], [7]]), u, rows(lax)), (X, floats(3, 4))),
    "scatter_add of windows": (
        lambda lax, x, u: lax.scatter_add(
            x, np.int32([[0, 1], [2, 2], [1, 1]]), u, lax.ScatterDimensionNumbers((1, 2), (), (0, 1)), mode="clip"
        ),
        (SQUARE, floats(3, 2, 2)),
    ),
    "scatter_apply": (
        lambda lax, x: lax.scatter_apply(x, np.int32([[1], [2]]), lambda v: v * 10, rows(lax), update_shape=(2, 4)),
        (X,),
    ),
}  # fmt: skip

REDUCTIONS: dict[str, Case] = {
    **named("cumsum cumprod cummax cummin cumlogsumexp", X, 1),
    **named("cumsum cumprod cummax cummin cumlogsumexp", X, suffix=" from the end", axis=0, reverse=True),
    **named("reduce_sum reduce_prod reduce_max reduce_min", CUBE, axes=(0, 2)),
    **named("reduce_and reduce_or reduce_xor", U, axes=(1,)),
    "reduce": (lambda lax, x: lax.reduce(x, np.float32(1), lax.add, (0,)), (X,)),
    "reduce by the greater": (lambda lax, x: lax.reduce(x, np.float32(0.1), lax.max, (1, 2)), (CUBE,)),
    "reduce by a function": (
        lambda lax, x: lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (1,)), (np.tanh(CUBE),)
    ),
    "reduce of two": (
        lambda lax, x, y: lax.reduce(
            (x, y),
            (np.float32(1), np.float32(0)),
            lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]),
            (1,),
        ),
        (X, Y),
    ),
    "reduce_window": (
        lambda lax, x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 3, 2), (1, 1, 2, 2), "SAME"), (IMAGE,)
    ),
    "reduce_window, sums": (
        lambda lax, x: lax.reduce_window(
            x, np.float32(0), lax.add, (2, 3), (1, 2), ((1, 0), (2, 1)), (1, 2), (2, 1)
        ),
        (SQUARE,),
    ),
    "reduce_window by a function": (
        lambda lax, x: lax.reduce_window(x, np.float32(1), lambda a, b: a * b, (2, 2), (1, 1), "VALID"), (SQUARE,)
    ),
    **named("sort", X, 0),
    "sort of several": (lambda lax, k, x, y: lax.sort((k, x, y), num_keys=2), (np.int32([[1, 0, 1, 0]] * 3), X, Y)),
    **named("sort_key_val", X, Y, 0),
    **named("top_k approx_min_k", X, k=2),
    "argmax": (lambda lax, x: lax.argmax(x, 1, np.int32), (X,)),
    "argmin": (lambda lax, x: lax.argmin(x, 0, np.int32), (X,)),
}  # fmt: skip

PRODUCTS: dict[str, Case] = {
    **named("dot", X, SQUARE),
    "dot_general": (lambda lax, x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (2,)))), (CUBE, floats(5, 4, 2))),
    "dot_general in a wider dtype": (
        lambda lax, x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ())), preferred_element_type=np.float32),
        (X.astype(np.float16), Y.astype(np.float16)),
    ),
    **named("batch_matmul", CUBE, floats(2, 4, 5)),
    "ragged_dot": (lambda lax, x, y: lax.ragged_dot(x, y, np.int32([2, 0, 3])), (floats(6, 4), floats(3, 4, 2))),
    **named("conv", IMAGE, KERNEL, window_strides=(2, 1), padding="SAME"),
    "conv_general_dilated": (
        lambda lax, x, k: lax.conv_general_dilated(
            x, k, (1, 2), ((1, 2), (0, 3)), (2, 1), (1, 2), ("NHWC", "HWIO", "NHWC")
        ),
        (floats(2, 5, 6, 4), floats(3, 2, 4, 3)),
    ),
    "conv_general_dilated in groups": (
        lambda lax, x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", feature_group_count=2),
        (IMAGE, floats(6, 2, 3, 3)),
    ),
    "conv_general_dilated in groups of the batch": (
        lambda lax, x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", batch_group_count=2),
        (floats(4, 3, 5, 5), floats(6, 3, 2, 2)),
    ),
    **named("conv_transpose", floats(2, 4, 5, 3), floats(3, 3, 3, 6), strides=(2, 2), padding="SAME"),
    "conv_general_dilated_patches": (
        lambda lax, x: lax.conv_general_dilated_patches(x, (3, 2), (2, 1), "VALID"), (IMAGE,)
    ),
}  # fmt: skip

CONTROL: dict[str, Case] = {
    "cond": (lambda lax, x: lax.cond(x[0, 0] > 9, lambda v: v * 2, lambda v: v * v, operand=x), (X,)),
    "switch": (lambda lax, x, i: lax.switch(i, [lambda v: v, lambda v: v * v], x), (X, np.int32(5))),
    "fori_loop": (lambda lax, x: lax.fori_loop(0, 3, lambda i, v: v * v + i, x, unroll=True), (X,)),
    "map": (lambda lax, x: lax.map(lambda row: row * row[0], x, batch_size=2), (X,)),
    "scan": (lambda lax, x: lax.scan(lambda c, row: (c * row, c + row), x[0], x), (X,)),
    "associative_scan": (lambda lax, x: lax.associative_scan(lambda a, b: a * b, x, axis=1), (X,)),
    "custom_root": (root, (np.float32(2.5),)),
    "custom_linear_solve": (system, (MATRIX, floats(4))),
    "custom_linear_solve, symmetric": (
        lambda lax, matrix, b: system(lax, matrix, b, True), ((MATRIX + MATRIX.T) / 2, floats(4))
    ),
    "custom_linear_solve by a factor": (factored, (MATRIX, floats(4))),
    "stop_gradient": (lambda lax, x: lax.stop_gradient(x) * x, (X,)),
    "optimization_barrier": (lambda lax, x, y: lax.optimization_barrier((x * y, y)), (X, Y)),
}  # fmt: skip

CASES = ELEMENTWISE | SHAPES | REDUCTIONS | PRODUCTS | CONTROL | EDGES

# Over the first axis, which has the name "i".
MAPPED: dict[str, Case] = {
    "psum": (lambda lax, x: lax.psum(x, "i") * x, (X,)),
    "pmean": (lambda lax, x: lax.pmean(x, "i") * x, (X,)),
    "pmax": (lambda lax, x: lax.pmax(x, "i") * x, (X,)),
    "ppermute": (lambda lax, x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]) * x, (X,)),
    "pshuffle": (lambda lax, x: lax.pshuffle(x, "i", [2, 0, 1]) * x, (X,)),
    "all_gather": (lambda lax, x: lax.all_gather(x, "i") * x, (X,)),
    "all_to_all": (lambda lax, x: lax.all_to_all(x, "i", 0, 1) * 2, (floats(3, 3, 2),)),
    "all_to_all, joined": (lambda lax, x: lax.all_to_all(x, "i", 0, 0, tiled=True) * 2, (floats(3, 6, 2),)),
    "psum_scatter": (lambda lax, x: lax.psum_scatter(x, "i") * 2, (floats(3, 3, 2),)),
    "psum_scatter, joined": (lambda lax, x: lax.psum_scatter(x, "i", tiled=True) * 2, (floats(3, 6),)),
    "axis_index": (lambda lax, x: x * lax.axis_index("i") + lax.axis_size("i"), (X,)),
}
