"""Keys with truth values and positions that are not counted from the end, exported functions, and sharp edges."""
from functools import partial

import jax
import jax.numpy as jnp
from jax import export, lax


def truths_in_keys():
    x = jnp.arange(12.0).reshape(3, 4)
    rows = jnp.array([0, 2])
    return {
        "after a slice": x[:, jnp.array(True)],
        "of none": x[:, False],
        "and an int": x[True, 1],
        "apart": x[rows, :, True],
        "set": x.at[:, jnp.array(True)].add(1.0),
        "left": x.at[jnp.array(False)].set(3.0),
    }


def positions_not_counted_from_the_end():
    x = jnp.arange(1.0, 13.0).reshape(3, 4)
    at = x.at[jnp.array([-1, 1])]
    counted = {"wrap_negative_indices": False}
    return {
        "get": at.get(mode="fill", fill_value=7.0, **counted),
        "clip": at.get(mode="clip", **counted),
        "set": at.set(9.0, mode="drop", **counted),
        "multiply": at.multiply(2.0, **counted),
        "divide": at.divide(2.0, **counted),
        "min": at.min(2.0, **counted),
        "apply": at.apply(jnp.sin, **counted),
        "slices": x.at[-1:].get(**counted),
    }


def exported_and_read_again():
    weights = jnp.linspace(-1.0, 1.0, 6).reshape(3, 2)

    @jax.jit
    def layer(params, x):
        return {"hidden": jnp.tanh(x @ weights + params["bias"]), "norm": jnp.sqrt((x**2).sum())}

    kinds = {"bias": jax.ShapeDtypeStruct((2,), jnp.float32)}, jax.ShapeDtypeStruct((4, 3), jnp.float32)
    read = export.deserialize(export.export(layer)(*kinds).serialize(vjp_order=1))
    params, x = {"bias": jnp.array([0.5, -0.5])}, jnp.cos(jnp.arange(12.0).reshape(4, 3))
    gradient = jax.grad(lambda params, x: read.call(params, x)["hidden"].sum() * read.call(params, x)["norm"], (0, 1))
    return {
        "value": read.call(params, x),
        "jit": jax.jit(read.call)(params, x),
        "gradient": gradient(params, x),
        "shapes": [jnp.array(each.shape) for each in (*read.in_avals, *read.out_avals)],
    }


def cofactors_of_singular_matrices():
    rank = jnp.array([[2.0, 1.0, 0.0, 3.0], [1.0, 3.0, 1.0, -1.0], [0.0, 1.0, 4.0, 2.0], [3.0, 5.0, 5.0, 4.0]])
    gradient = jax.jit(jax.grad(jnp.linalg.det))
    regular = rank + jnp.eye(4)
    return {
        "of a rank below": gradient(rank),
        "of a diagonal": gradient(jnp.diag(jnp.array([1.0, 2.0, 3.0, 0.0]))),
        "of rank 1": gradient(jnp.outer(jnp.arange(1.0, 5.0), jnp.ones(4))),
        "regular": gradient(regular),
        "second": jax.jvp(gradient, (regular,), (rank,))[1],
        "batched": jax.vmap(gradient)(jnp.stack([rank, regular])),
    }


def rules_that_clip_gradients():
    @partial(jax.custom_vjp, nondiff_argnums=(0, 1))
    def clipped(low, high, x):
        return x

    clipped.defvjp(
        lambda low, high, x: (x, None), lambda low, high, _, g: (jnp.clip(g, low, high),), optimize_remat=True
    )

    def f(x):
        return jnp.sin(3 * clipped(-0.75, 0.75, x))

    x = jnp.linspace(0.0, 3.0, 7)
    return {"gradients": jax.vmap(jax.grad(f))(x), "remat": jax.vmap(jax.grad(jax.checkpoint(f)))(x)}


def a_chain_of_cells_by_associative_scan():
    decay, drive = jax.nn.sigmoid(jnp.sin(jnp.arange(10.0))), jnp.cos(jnp.arange(10.0))

    def join(first, second):
        return first[0] * second[0], first[1] * second[0] + second[1]

    def by_scan(drive):
        return lax.scan(lambda h, given: ((h * given[0] + given[1],) * 2), 0.0, (decay, drive))[1]

    by_pairs = lax.associative_scan(join, (decay, drive))[1]
    return {
        "pairs": by_pairs,
        "scan": by_scan(drive),
        "reverse": lax.associative_scan(join, (decay, drive), reverse=True)[1],
        "jacobian": jax.jacfwd(by_scan)(drive)[-1],
    }
