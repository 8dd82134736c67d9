"""What surrounds the numbers: settings, callbacks, donated arguments, printed graphs, types in signatures."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, grad, jit, lax, random, tree_util, vmap
from jax.experimental import io_callback
from jax.typing import ArrayLike


def arguments_are_donated():
    @functools.partial(jit, donate_argnums=(0,))
    def update(state, gradient):
        return jax.tree.map(lambda s, g: s - 0.1 * g, state, gradient)

    state = {"w": jnp.ones(4), "b": jnp.zeros(())}
    for _ in range(3):
        state = update(state, grad(lambda s: jnp.sum(s["w"] ** 2) + jnp.sin(s["b"]))(state))
    return {"state": jax.block_until_ready(state)}


def host_functions_with_effects():
    seen = []

    def log(step, loss):
        seen.append((int(step), float(loss)))
        return np.int32(len(seen))

    @jit
    def step(i, x):
        loss = jnp.sum(x**2)
        count = io_callback(log, jax.ShapeDtypeStruct((), jnp.int32), i, loss, ordered=True)
        return x * 0.5, count

    x = jnp.array([2.0, -4.0])
    for i in range(3):
        x, count = step(i, x)
    jax.effects_barrier()
    return {"x": x, "count": count, "losses": np.array([loss for _, loss in seen], np.float32)}


def host_functions_in_loops():
    seen = []

    @jit
    def run(x):
        def body(x, i):
            jax.debug.callback(lambda i, x: seen.append(float(x)), i, x.sum(), ordered=True)
            jax.debug.print("step {i}: {x}", i=i, x=x, ordered=True)
            return x * 2, x[0]

        return lax.scan(body, x, jnp.arange(3))

    final, path = run(jnp.array([1.0, 3.0]))
    jax.effects_barrier()
    return {"final": final, "path": path, "seen": np.array(seen, np.float32)}


def host_functions_with_derivatives():
    @jax.custom_jvp
    def cube_root(x):
        result = jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))
        return jax.pure_callback(lambda x: np.cbrt(x), result, x, vmap_method="expand_dims")

    @cube_root.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        y = cube_root(x)
        return y, t / (3 * y**2)

    x = jnp.array([1.0, 8.0, 27.0])
    return {
        "values": jit(cube_root)(x),
        "gradients": vmap(grad(cube_root))(x),
        "loss": grad(lambda x: jnp.sum(jnp.sin(cube_root(2 * x))))(x),
    }


def graphs_are_made_without_running():
    def f(x, y):
        with jax.named_scope("product"):
            return jnp.tanh(x @ y).sum()

    closed = jax.make_jaxpr(f)(jnp.ones((2, 3)), jnp.ones((3, 2)))
    shape = jax.eval_shape(grad(f), jnp.ones((2, 3)), jnp.ones((3, 2)))
    leaves = jax.eval_shape(lambda key: {"w": random.normal(key, (3, 4)), "n": jnp.arange(2)}, random.PRNGKey(0))
    lowered = jit(f).lower(jax.ShapeDtypeStruct((2, 3), jnp.float32), jax.ShapeDtypeStruct((3, 2), jnp.float32))
    return {
        "text": "tanh" in str(closed),
        "shape": np.array(shape.shape),
        "dtype": shape.dtype == jnp.float32,
        "leaves": [np.array(leaf.shape) for leaf in jax.tree.leaves(leaves)],
        "same": leaves["n"] == jax.ShapeDtypeStruct((2,), jnp.int32),
        "compiled": lowered.compile()(jnp.ones((2, 3)), jnp.ones((3, 2))),
    }


def traces_are_counted():
    traces = []

    @jit
    def f(x, scale=2.0):
        traces.append(x.shape)
        return x * scale

    f(jnp.ones(3)), f(jnp.zeros(3)), f(jnp.ones(4)), f(jnp.ones(3), scale=3.0), f(jnp.ones(3), scale=4.0)
    count = len(traces)
    f(jnp.ones(3, jnp.int32))
    inner = jit(lambda x: f(x) + f(x))
    return {"count": count, "after": len(traces), "inner": inner(jnp.ones(3))}


def python_runs_without_jit():
    values = []

    @jit
    def f(x):
        y = jnp.sin(x)
        values.append(float(y) if isinstance(y, Array) and not isinstance(y, jax.core.Tracer) else -1.0)
        return y * 2

    f(1.0)
    with jax.disable_jit():
        out = f(2.0)
    return {"values": jnp.array(values), "out": out}


def numbers_of_64_bits():
    with jax.enable_x64(True):
        x = jnp.linspace(0.0, 1.0, 5, dtype=jnp.float64)
        tiny = (1.0 + jnp.float64(1e-12)) - 1.0
        gradient = grad(lambda x: jnp.sum(jnp.exp(x) * x))(x)
        mixed = jnp.ones(2, jnp.float32) * 2.0 + jnp.arange(2, dtype=jnp.int32)
        solved = jnp.linalg.solve(jnp.eye(3, dtype=float) * 3 + 1, x[:3])
        draws = random.normal(random.PRNGKey(0), (3,), jnp.float64)
        big = jnp.int64(2) ** 40 + jnp.arange(2, dtype=jnp.int64)
    return {
        "x": x, "tiny": tiny, "gradient": gradient, "mixed": mixed, "solved": solved, "draws": draws, "big": big,
        "after": jnp.arange(3.0) + 1,
    }  # fmt: skip


def training_in_low_precision():
    x, w = random.normal(random.PRNGKey(0), (8, 4)), random.normal(random.PRNGKey(1), (4, 2)) * 0.5

    def loss(w, scale):
        h = jnp.dot(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
        return jnp.mean(jax.nn.relu(h) ** 2) * scale

    def finite(tree):
        return jax.tree.reduce(jnp.logical_and, jax.tree.map(lambda g: jnp.all(jnp.isfinite(g)), tree))

    scaled = grad(loss)(w, 1024.0)
    unscaled = jax.tree.map(lambda g: g / 1024.0, scaled)
    half = w.astype(jnp.float16)
    return {
        "loss": loss(w, 1.0),
        "gradient": unscaled,
        "finite": finite({"g": scaled, "bad": jnp.array([jnp.inf])}),
        "dtypes": [half.sum(), half.mean(0), (half @ half.T)[0, 0], float(jnp.finfo(jnp.bfloat16).eps)],
        "rounded": lax.reduce_precision(w, exponent_bits=8, mantissa_bits=7),
    }


def functions_take_what_looks_like_an_array():
    def norm(x: ArrayLike, ord: int = 2) -> Array:
        if not isinstance(x, (Array, np.ndarray, float, int, list)):
            raise TypeError(type(x))
        x = jnp.asarray(x)
        return jnp.sum(jnp.abs(x) ** ord) ** (1 / ord)

    seen: list[Any] = []
    jit(lambda x: seen.append((isinstance(x, jax.Array), isinstance(x, jnp.ndarray), x.dtype, x.ndim)) or x)(
        np.ones((2, 3), np.float32)
    )
    return {
        "norms": [norm(3.0), norm(np.array([3.0, 4.0])), norm(jnp.array([1, 2]), 1)],
        "traced": jnp.array([seen[0][0], seen[0][1], seen[0][2] == jnp.float32, seen[0][3] == 2]),
        "item": norm([3, 4]).item() if isinstance(norm(jnp.ones(2)), jax.Array) else 0.0,
        "methods": [jnp.ones((2, 3)).T.shape, jnp.arange(4).reshape(2, -1).tolist(), len(jnp.ones(5))],
        "onto": jax.device_get(jax.device_put({"a": np.arange(3)})),
        "iterated": [row * 2 for row in jnp.arange(4.0).reshape(2, 2)],
    }


def paths_in_a_tree():
    params = {"dense": {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}, "scale": jnp.ones(2), "list": [jnp.ones(1)]}
    decayed = tree_util.tree_map_with_path(
        lambda path, p: p * 0.9 if path[-1] == tree_util.DictKey("kernel") else p, params
    )
    names = {tree_util.keystr(path, simple=True, separator="/") for path, _ in tree_util.tree_leaves_with_path(params)}
    mask = jax.tree.map_with_path(lambda path, _: any(getattr(k, "key", None) == "dense" for k in path), params)
    first, second = jax.tree.map(lambda p: p, params), jax.tree.map(jnp.zeros_like, params)
    return {
        "decayed": decayed,
        "names": sorted(names) == ["dense/bias", "dense/kernel", "list/0", "scale"],
        "mask": mask,
        "structure": jax.tree.structure(first) == jax.tree.structure(second),
        "leaf": jax.tree.leaves(params, is_leaf=lambda t: isinstance(t, list))[2][0],
    }


def named_axes_and_collectives():
    x = jnp.arange(6.0).reshape(3, 2)
    f = lambda x: {
        "gathered": lax.all_gather(x, "i"),
        "shifted": lax.ppermute(x, "i", [(k, (k + 1) % 3) for k in range(3)]),
        "largest": lax.pmax(x, "i"),
        "mean": lax.pmean(x, axis_name="i"),
        "normal": (x - lax.pmean(x, "i")) * lax.rsqrt(lax.pmean((x - lax.pmean(x, "i")) ** 2, "i") + 1e-5),
    }
    gradient = grad(lambda x: jnp.sum(vmap(lambda r: lax.psum(r, "i") * r, axis_name="i")(x)))
    return {"out": vmap(f, axis_name="i")(x), "gradient": gradient(x), "mapped": lax.map(jnp.sum, x, batch_size=2)}
