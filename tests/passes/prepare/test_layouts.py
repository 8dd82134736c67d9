"""What follows a convolution has its channels last: what is moved, what stays, and that values do not change."""
from __future__ import annotations

from collections import Counter
from math import prod
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn
from lavax.ir import Graph, interpret, parse
from lavax.passes.build.inline import inline_calls
from lavax.passes.prepare.layouts import with_layouts_of_convolutions
from lavax.passes.simplify import simplify
from lavax.passes.target.target import ANY_DEVICE, Products, Target

STAGING = Target(products=Products(stages_operands=True))
IMAGES = (2, 3, 10, 12)
WEIGHTS = ((6, 3, 3, 3), (6, 6, 3, 3), (6,), (6,))


def normal(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def optimized(function: Any, *shapes: tuple[int, ...]) -> Graph:
    return simplify(inline_calls(lx.trace(function)(*(normal(*shape, seed=n) for n, shape in enumerate(shapes)))))


def conv(x: Any, weight: Any, stride: int = 1) -> Any:
    return lax.conv_general_dilated(x, weight, (stride, stride), "SAME")


def batch_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - lnp.mean(x, (0, 2, 3), keepdims=True)
    variance = lnp.mean(centred * centred, (0, 2, 3), keepdims=True)
    return centred * lax.rsqrt(variance + 1e-3) * scale[:, None, None] + shift[:, None, None]


def block(x: Any, first: Any, second: Any, scale: Any, shift: Any) -> Any:
    x = nn.relu(batch_norm(conv(x, first), scale, shift))
    return nn.relu(x + batch_norm(conv(x, second), scale, shift))


def transposed_activations(graph: Graph) -> list[tuple[int, ...]]:
    return [node.shape for node in graph.nodes if node.op == "transpose" and node.type.rank >= 4]


def check_values(graph: Graph, target: Target = STAGING) -> Graph:
    found = with_layouts_of_convolutions(graph, target)
    arrays = [normal(*node.shape, seed=n).astype(np.float64) for n, node in enumerate(graph.inputs)]
    for got, want in zip(interpret(found, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return found


def test_what_stands_between_two_convolutions_is_computed_in_their_order() -> None:
    rest = "stride=[1,1] low=[0,0] high=[0,0] interior=[0,0] dilation=[1,1]"
    graph = parse(f"""
        graph (x: f32[2,3,8,8], w: f32[4,3,3,3], b: f32[4], v: f32[5,4,3,3]) {{
          %0 = conv(x, w) window=[2,3]x[2,3] {rest} contract=[1]x[1] : f32[2,6,6,4]
          %1 = transpose(%0) axes=[0,3,1,2] : f32[2,4,6,6]
          %2 = broadcast(b) axes=[1] : f32[2,4,6,6]
          %3 = add(%1, %2) : f32[2,4,6,6]
          %4 = sum(%3) axes=[0,2,3] : f32[4]
          %5 = conv(%3, v) window=[2,3]x[2,3] {rest} contract=[1]x[1] : f32[2,4,4,5]
          return %4, %5
        }}
    """)
    assert dedent(str(check_values(graph))) == dedent(f"""\
        graph (x: f32[2,3,8,8], w: f32[4,3,3,3], b: f32[4], v: f32[5,4,3,3]) {{
          %0 = conv(x, w) window=[2,3]x[2,3] {rest} contract=[1]x[1] : f32[2,6,6,4]
          %1 = broadcast(b) axes=[3] : f32[2,6,6,4]
          %2 = add(%0, %1) : f32[2,6,6,4]
          %3 = sum(%2) axes=[0,1,2] : f32[4]
          %4 = conv(%2, v) window=[1,2]x[2,3] {rest} contract=[3]x[1] : f32[2,4,4,5]
          return %3, %4
        }}""")


MOVEMENT = {
    "pad": lambda x: lnp.pad(x, ((0, 0), (1, 0), (2, 1), (0, 3))),
    "slice": lambda x: x[:, 1:, ::2, 2:9],
    "flip": lambda x: lnp.flip(x, (1, 3)),
    "concatenate": lambda x: lnp.concatenate([x, lnp.tanh(x)], 1),
    "where": lambda x: lnp.where(x > 0, x, 0.1 * x),
    "iota": lambda x: x * lnp.arange(12.0),
    "another order of a small operand": lambda x: x + lnp.transpose(x[:1, :, :, 0], (1, 2, 0))[None],
    "mean over pixels": lambda x: lnp.mean(x, (2, 3)),
    "maximum over channels": lambda x: lnp.max(x, 1),
    "product of two axes that change their order": lambda x: lnp.prod(x, (0, 2)),
    "windows of a pool": lambda x: lax.reduce_window(x, -lnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME"),
    "groups": lambda x: x.reshape(2, 3, 2, 10, 12) - x.reshape(2, 3, 2, 10, 12).mean((2, 3, 4), keepdims=True),
    "another transposition": lambda x: lnp.tanh(lnp.transpose(x, (3, 0, 2, 1))),
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_values_and_gradients_stay(name: str) -> None:
    def function(x: Any, first: Any, second: Any, scale: Any, shift: Any) -> Any:
        return MOVEMENT[name](block(x, first, second, scale, shift))

    def loss(*arguments: Any) -> Any:
        found = function(*arguments)
        return lnp.sum(lnp.sin(found) * found)

    for target in (ANY_DEVICE, STAGING):
        moved = check_values(optimized(function, IMAGES, *WEIGHTS), target)
        assert Counter(transposed_activations(moved)).total() <= 2
        check_values(optimized(lx.grad(loss, argnums=(0, 1, 2, 3, 4)), IMAGES, *WEIGHTS), target)


@pytest.mark.parametrize("name", ["mean over pixels", "pad", "slice", "flip", "concatenate"])
def test_a_network_with_batch_norms_transposes_nothing(name: str) -> None:
    def network(*given: Any) -> Any:
        found = MOVEMENT[name](block(*given))
        return lnp.mean(found, (2, 3)) if found.ndim == 4 else found

    graph = optimized(network, IMAGES, *WEIGHTS)
    assert len(transposed_activations(graph)) >= 2
    for target in (ANY_DEVICE, STAGING):
        assert not transposed_activations(with_layouts_of_convolutions(graph, target))


def test_windows_are_moved() -> None:
    rest = "stride=[1,1] low=[0,0] high=[0,0] interior=[0,0] dilation=[1,1]"
    graph = parse(f"""
        graph (x: f32[2,3,8,8], w: f32[4,3,3,3]) {{
          %0 = conv(x, w) window=[2,3]x[2,3] {rest} contract=[1]x[1] : f32[2,6,6,4]
          %1 = transpose(%0) axes=[0,3,1,2] : f32[2,4,6,6]
          %2 = broadcast(%1) axes=[0,1,2,3] : f32[2,4,6,6,2,2]
          %3 = shear(%2) axes=[2,3] along=[4,5] stride=[2,2] dilation=[1,1] : f32[2,4,3,3,2,2]
          %4 = max(%3) axes=[4,5] : f32[2,4,3,3]
          %5 = sum(%4) axes=[2,3] : f32[2,4]
          return %5
        }}
    """)
    assert not transposed_activations(check_values(graph))


def test_what_is_computed_before_the_transposition_counts_as_the_convolution() -> None:
    """As the casts of a convolution in 16 bits."""

    def network(x: Any, first: Any, second: Any, scale: Any, shift: Any) -> Any:
        found = lnp.transpose(lnp.tanh(lnp.transpose(conv(x, first), (0, 2, 3, 1))), (0, 3, 1, 2))
        return lnp.mean(batch_norm(found, scale, shift), (2, 3))

    graph = optimized(network, IMAGES, *WEIGHTS)
    assert transposed_activations(graph) and not transposed_activations(check_values(graph))


def test_the_state_of_an_optimizer_stays_in_its_order() -> None:
    def step(x: Any, weight: Any, momentum: Any) -> Any:
        scale = x[0, 0, 0, :6]
        gradient = lx.grad(lambda weight: lnp.sum(lnp.tanh(batch_norm(conv(x, weight), scale, scale))))(weight)
        momentum = 0.9 * momentum + gradient * gradient
        return weight - momentum, momentum

    found = check_values(optimized(step, IMAGES, WEIGHTS[0], WEIGHTS[0]))
    assert all(output.op != "transpose" for output in found.outputs)


def test_a_graph_in_which_that_saves_nothing_stays() -> None:
    def groups(x: Any, weight: Any) -> Any:
        found = conv(x, weight).reshape(2, 3, 2, 10, 12)
        return found - found.mean((2, 3, 4), keepdims=True)

    graph = optimized(groups, IMAGES, WEIGHTS[0])
    for target in (ANY_DEVICE, STAGING):
        assert with_layouts_of_convolutions(graph, target) is graph
    without = optimized(lambda x: lnp.tanh(lnp.transpose(x)) + 1, (3, 4))
    assert with_layouts_of_convolutions(without, STAGING) is without


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_derivative_of_a_strided_convolution_stays_in_the_order_that_its_product_writes(precision: str) -> None:
    """Windows are spread over the pixels with channels last; those of rounded weights have their elements first."""

    @lx.matmul_precision(precision, backward=precision)
    def loss(x: Any, first: Any, second: Any, scale: Any, shift: Any) -> Any:
        return lnp.sum(lnp.sin(conv(block(x, first, second, scale, shift), second, 2)))

    moved = check_values(optimized(lx.grad(loss, argnums=(0, 1)), IMAGES, *WEIGHTS))
    spread = [node for node in moved.nodes if node.op == "unshear" and node.type.rank == 6]
    assert spread and all(node.attrs["axes"] == (1, 2) for node in spread)
    elements = (3, 4) if precision == "bfloat16" else (4, 5)
    assert all(node.attrs["along"] == elements for node in spread)


def test_groups_stay_where_convolutions_have_float32() -> None:
    """There a U-Net's step took 16 % longer with them."""

    def network(x: Any, weight: Any) -> Any:
        return lnp.mean(conv(group_norm(conv(x, weight)), weight), (2, 3))

    graph = optimized(network, IMAGES, (3, 3, 3, 3))
    assert transposed_activations(with_layouts_of_convolutions(graph, STAGING))


def test_a_pool_by_a_reshape_is_moved_in_float32_too_where_operands_are_staged() -> None:
    """As between DenseNet's blocks, which then join what they computed to a pool of the block before."""

    def network(x: Any, first: Any, second: Any) -> Any:
        x = lnp.mean(conv(x, first).reshape(2, 6, 5, 2, 6, 2), (3, 5))
        x = lnp.concatenate([x, nn.relu(conv(x, second))], 1)
        return lnp.mean(nn.relu(x - lnp.mean(x, (0, 2, 3), keepdims=True)), (2, 3))

    graph = optimized(network, IMAGES, *WEIGHTS[:2])
    assert not transposed_activations(check_values(graph))
    assert transposed_activations(check_values(graph, ANY_DEVICE))


def test_channels_that_become_pixels_stay_in_float32() -> None:
    def network(x: Any, first: Any, second: Any) -> Any:
        x = nn.relu(conv(x, first)).reshape(2, 1, 3, 2, 10, 12)
        x = lnp.transpose(x, (0, 1, 4, 2, 5, 3)).reshape(2, 1, 30, 24)
        return lnp.mean(conv(x, second[:, :1]), (2, 3))

    graph = optimized(network, IMAGES, *WEIGHTS[:2])
    shapes = (transposed_activations(check_values(graph, target)) for target in (STAGING, ANY_DEVICE))
    assert next(shapes) == next(shapes)


def group_norm(x: Any) -> Any:
    return nn.silu(nn.group_norm(x, 3))


def shuffled(x: Any) -> Any:
    return x.reshape(2, 2, 3, 10, 12).swapaxes(1, 2).reshape(x.shape)


def upsampled(x: Any) -> Any:
    return lnp.repeat(lnp.repeat(x, 2, 2), 2, 3)


GROUPS: dict[str, tuple[Any, int]] = {
    "a group norm": (group_norm, 0),
    "an instance norm": (lambda x: nn.instance_norm(x), 0),
    "two norms of other groups": (lambda x: nn.group_norm(group_norm(x), 2), 0),
    "pixels beside each other repeated": (upsampled, 0),
    "halves of channels": (lambda x: x[:, :3] * nn.sigmoid(x[:, 3:]), 0),
    "one axis of pixels and channels": (lambda x: lnp.cumsum(x.reshape(2, -1), 1).reshape(x.shape), 2),
    "uneven parts": (lambda x: lnp.tanh(x.reshape(2, 4, 180)).reshape(x.shape), 2),
    "a shuffle of channels": (shuffled, 1),
    "a norm of a shuffle, whose mean has other groups": (lambda x: nn.instance_norm(shuffled(x)), 2),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_channels_are_moved(name: str) -> None:
    """Axes of the value that are parts of the convolution's axes, or several of them. Not in float32."""
    function, transpositions = GROUPS[name]

    @lx.matmul_precision("bfloat16", backward="bfloat16")
    def network(x: Any, first: Any, second: Any) -> Any:
        found = function(conv(x, first))
        return lnp.mean(conv(found, second[:, : found.shape[1]]), (2, 3))

    def loss(*given: Any) -> Any:
        return 3 * lnp.sum(lnp.sin(network(*given)))

    shapes = IMAGES, *WEIGHTS[:2]
    graph = optimized(network, *shapes)
    assert len(transposed_activations(check_values(graph))) <= transpositions
    assert transposed_activations(graph) or "norm" not in name
    check_values(optimized(lx.grad(loss, argnums=(0, 1, 2)), *shapes))


def test_a_norm_over_all_that_there_is_is_moved() -> None:
    """The mean is one element, and has no axis that is longer."""

    @lx.matmul_precision("bfloat16", backward="bfloat16")
    def network(x: Any, first: Any, second: Any) -> Any:
        return lnp.mean(conv(nn.group_norm(conv(x, first), 1), second), (2, 3))

    moved = check_values(optimized(network, (1, *IMAGES[1:]), *WEIGHTS[:2]))
    assert not transposed_activations(moved)


def test_sequences_of_one_batch_are_moved() -> None:
    """The batch of one is gone before the transposition, and comes back after it."""

    @lx.matmul_precision("bfloat16")
    def network(x: Any, first: Any, second: Any) -> Any:
        found = nn.gelu(lax.conv_general_dilated(x, first, (1,), "SAME"))
        return lnp.swapaxes(nn.gelu(lax.conv_general_dilated(found, second, (2,), "SAME")), 1, 2)

    graph = optimized(network, (1, 5, 30), (6, 5, 3), (8, 6, 3))
    assert any(node.op == "transpose" and node.type.size >= 30 * 6 for node in graph.nodes)
    moved = check_values(graph)
    assert not any(node.op == "transpose" and node.type.size >= 15 * 8 for node in moved.nodes)


def test_where_groups_of_convolutions_cost_more_the_rest_is_moved() -> None:
    """Reshapes of grouped convolutions stay, and sums of what other convolutions write do not."""

    @lx.matmul_precision("bfloat16", backward="bfloat16")
    def loss(x: Any, first: Any, each: Any, last: Any, scale: Any, shift: Any) -> Any:
        for _ in range(4):
            y = nn.relu(batch_norm(conv(x, first), scale[:6], shift[:6]))
            y = lax.conv_general_dilated(y, each, (1, 1), "SAME", feature_group_count=3)
            y = nn.relu(batch_norm(y, scale[:6], shift[:6]))
            x = nn.relu(x + batch_norm(conv(y, last), scale, shift))
        return lnp.sum(lnp.sin(x))

    shapes = (2, 24, 10, 12), (6, 24, 1, 1), (6, 2, 3, 3), (24, 6, 1, 1), (24,), (24,)
    graph = optimized(lx.grad(loss, argnums=(1, 2, 3)), *shapes)
    moved = check_values(graph)
    assert sum(map(prod, transposed_activations(moved))) < 0.9 * sum(map(prod, transposed_activations(graph)))


def test_windows_along_an_axis_that_was_put_in_are_no_product_s() -> None:
    """One of their elements is no axis of what was transposed before."""
    padded = "low=[1,2] high=[-1,-1] interior=[0,0] dilation=[2,2]"
    graph = parse(f"""
        graph (x: f32[7,4], y: f32[2,4], images: f32[1,7,8,4], w: f32[1,2,4,1]) {{
          %0 = conv(images, w) window=[1,2]x[0,1] stride=[1,2] {padded} contract=[3]x[2] backward="bf16" : f32[1,7,4,1]
          %1 = reshape(%0) : f32[7,4]
          %2 = multiply(%1, x) : f32[7,4]
          %3 = dot(%2, y) contract=[]x[] precision="bf16" backward="bf16" : f32[7,4,2,4]
          %4 = transpose(%3) axes=[0,1,3,2] : f32[7,4,4,2]
          %5 = reshape(%4) : f32[1,7,4,4,1,2]
          %6 = unshear(%5) axes=[1,2] along=[4,5] stride=[1,2] dilation=[2,2] : f32[1,7,9,4,1,2]
          return %6
        }}
        """)
    check_values(graph)
