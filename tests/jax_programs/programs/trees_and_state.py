"""Pytrees, optimizers, and functions around compiled ones."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, lax, random, tree_util, value_and_grad, vmap
from jax.flatten_util import ravel_pytree


def adam_with_named_tuples():
    class State(NamedTuple):
        step: Any
        mean: Any
        square: Any

    params = {"w": jnp.array([1.0, -2.0]), "b": (jnp.ones(()), [jnp.zeros(3)])}
    loss = lambda p: jnp.sum((p["w"] - 3) ** 2) + p["b"][0] ** 4 + jnp.sum(jnp.cosh(p["b"][1][0] - 1))

    @jit
    def update(params, state):
        value, g = value_and_grad(loss)(params)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, g)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, state.square, g)
        step = state.step + 1
        rate = 0.1 * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        return (
            jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, mean, square),
            State(step, mean, square),
            value,
        )

    zeros = jax.tree.map(jnp.zeros_like, params)
    state = State(jnp.int32(0), zeros, zeros)
    for _ in range(10):
        params, state, value = update(params, state)
    return {"params": params, "state": tuple(state), "value": value}


def classes_registered_as_nodes():
    @tree_util.register_pytree_node_class
    class Affine:
        def __init__(self, scale, shift, name):
            self.scale, self.shift, self.name = scale, shift, name

        def __call__(self, x):
            return self.scale * x + self.shift

        def tree_flatten(self):
            return (self.scale, self.shift), self.name

        @classmethod
        def tree_unflatten(cls, name, children):
            return cls(*children, name)

    model = Affine(jnp.float32(2.0), jnp.arange(3.0), "affine")
    gradient = jit(grad(lambda m, x: jnp.sum(m(x) ** 2)))(model, jnp.ones(3))
    many = vmap(lambda m, x: m(x), in_axes=(None, 0))(model, jnp.arange(4.0))
    return {"scale": gradient.scale, "shift": gradient.shift, "same": gradient.name == "affine", "many": many}


def dataclasses_with_static_fields():
    @partial(tree_util.register_dataclass, data_fields=["weight", "bias"], meta_fields=["power"])
    @dataclass
    class Layer:
        weight: Any
        bias: Any
        power: int

        def __call__(self, x):
            return (x @ self.weight + self.bias) ** self.power

    layers = [Layer(jnp.eye(2) * 0.5, jnp.ones(2), 2), Layer(jnp.ones((2, 1)), jnp.zeros(1), 1)]

    def run(layers, x):
        for layer in layers:
            x = layer(x)
        return x.sum()

    gradient = grad(run)(layers, jnp.array([1.0, -1.0]))
    return {
        "leaves": jax.tree.leaves(gradient),
        "count": len(jax.tree.leaves(layers)),
        "value": jit(run)(layers, jnp.ones(2)),
    }


def parameters_as_one_vector():
    params = {"a": jnp.ones((2, 2)), "b": [jnp.arange(3.0), jnp.float32(5)]}
    flat, unravel = ravel_pytree(params)
    loss = lambda flat: sum(jnp.sum(leaf**3) for leaf in jax.tree.leaves(unravel(flat)))
    return {
        "flat": flat,
        "back": unravel(flat * 2),
        "gradient": grad(loss)(flat),
        "hessian": jnp.diag(jax.hessian(loss)(flat)),
    }


def functions_of_trees():
    tree = {"x": [1, 2], "y": (3.0, None), "z": {"w": jnp.ones(2)}}
    leaves, structure = tree_util.tree_flatten(tree)
    paths = [tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(tree)[0]]
    transposed = tree_util.tree_transpose(
        tree_util.tree_structure((0, 0)), tree_util.tree_structure({"a": 0}), ({"a": 1}, {"a": 2})
    )
    return {
        "count": structure.num_leaves,
        "sum": tree_util.tree_reduce(lambda a, b: a + jnp.sum(b), tree, 0.0),
        "all": tree_util.tree_all({"a": True, "b": [True]}),
        "paths": jnp.array([len(path) for path in paths]),
        "doubled": tree_util.tree_map(lambda x: x * 2, tree_util.tree_unflatten(structure, leaves))["z"],
        "transposed": transposed["a"],
    }


def partial_functions_as_arguments():
    @jit
    def call(f, x):
        return f(x) + 1

    scaled = tree_util.Partial(lambda a, x: a * x, jnp.float32(3.0))
    return {"called": call(scaled, jnp.arange(3.0)), "gradient": grad(lambda f: call(f, 2.0))(scaled).args[0]}


def methods_and_static_arguments():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @partial(jit, static_argnums=0)
        def apply(self, x):
            return self.scale * x

        @partial(jit, static_argnames=("self", "reverse"))
        def cumulate(self, x, reverse=False):
            return lax.cumsum(x, reverse=reverse) * self.scale

    model = Model(2.0)
    return {
        "apply": model.apply(jnp.ones(2)),
        "forward": model.cumulate(jnp.arange(4.0)),
        "reverse": model.cumulate(jnp.arange(4.0), reverse=True),
    }


def mapping_over_trees():
    params = {"w": jnp.arange(6.0).reshape(3, 2), "b": jnp.ones(2)}
    axes = {"w": 0, "b": None}
    f = lambda p, x: p["w"] * x + p["b"]
    out = vmap(f, in_axes=(axes, None), out_axes=1)(params, 2.0)
    nested = vmap(vmap(lambda a, b: a * b, (0, None)), (None, 0))(jnp.arange(3.0), jnp.arange(4.0))
    sized = vmap(lambda: jnp.float32(1.0), axis_size=3)()
    named = vmap(lambda x: x / lax.psum(x, "batch") + lax.axis_index("batch"), axis_name="batch")(jnp.arange(1.0, 4.0))
    return {
        "out": out,
        "nested": nested,
        "sized": sized,
        "named": named,
        "mean": vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.arange(4.0)),
    }


def shapes_without_numbers():
    f = lambda x, y: {"product": x @ y, "sum": x.sum(0)}
    shapes = jax.eval_shape(f, jax.ShapeDtypeStruct((3, 4), jnp.float32), jax.ShapeDtypeStruct((4, 5), jnp.float32))
    made = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    lowered = jit(f).lower(jnp.ones((2, 2)), jnp.ones((2, 2))).compile()
    return {"made": made, "compiled": lowered(jnp.ones((2, 2)), jnp.eye(2))}


def calls_of_the_host():
    def on_host(x):
        return np.sort(np.asarray(x))[::-1]

    def f(x):
        return jax.pure_callback(on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 2)

    with jax.disable_jit():
        plain = jit(lambda x: x + 1)(jnp.ones(2))
    return {
        "jit": jit(f)(jnp.array([1.0, 3.0, 2.0])),
        "plain": plain,
        "mapped": vmap(lambda x: x.sum())(jit(f)(jnp.arange(3.0))[None]),
    }


def quasi_newton_by_the_library():
    from jax.scipy.optimize import minimize

    rosenbrock = lambda x: jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    quadratic = lambda x: jnp.sum((x - jnp.array([1.0, -2.0])) ** 2 * jnp.array([1.0, 5.0]))
    result = minimize(quadratic, jnp.zeros(2), method="BFGS")
    return {
        "x": jnp.round(result.x, 3),
        "success": result.success,
        "gradient": grad(rosenbrock)(jnp.array([0.5, -0.5, 1.5])),
    }


def learning_rates_and_averages():
    def schedule(step):
        warm = jnp.minimum(step / 5.0, 1.0)
        return warm * 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip((step - 5) / 15, 0, 1)))

    def step(carry, i):
        w, average, key = carry
        key, noise_key = random.split(key)
        gradient = 2 * (w - 1) + 0.1 * random.normal(noise_key, w.shape)
        norm = jnp.linalg.norm(gradient)
        gradient = jnp.where(norm > 1.0, gradient / norm, gradient)
        w = w - schedule(i) * gradient
        return (w, 0.9 * average + 0.1 * w, key), schedule(i)

    (w, average, _), rates = lax.scan(step, (jnp.zeros(2), jnp.zeros(2), random.PRNGKey(0)), jnp.arange(20))
    return {"w": w, "average": average, "rates": rates}
