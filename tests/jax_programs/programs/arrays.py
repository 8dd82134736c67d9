"""Arrays: indexing, updates, reductions, sorting, and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, lax, random, vmap


def updates_at_positions():
    x = jnp.zeros((4, 5))
    x = x.at[1].set(1.0).at[:, 2].add(2.0).at[::2, ::2].multiply(3.0).at[-1, -1].min(-4.0)
    x = x.at[jnp.array([0, 0, 2]), jnp.array([1, 1, 3])].add(jnp.array([1.0, 2.0, 3.0]))
    x = x.at[3].apply(jnp.exp).at[9, 9].set(100.0, mode="drop")
    read = x.at[jnp.array([0, 9]), 1].get(mode="fill", fill_value=-1.0)
    gradient = grad(lambda v: jnp.sum(x.at[jnp.array([1, 1, 2])].set(v) ** 2))(jnp.ones((3, 5)))
    return {"x": x, "read": read, "sum": gradient.sum(1)}


def indexing_as_in_numpy():
    x = jnp.arange(60.0).reshape(3, 4, 5)
    rows, columns = jnp.array([0, 2]), jnp.array([[1], [3]])
    return {
        "slices": x[1:, ::-2, -3:],
        "newaxis": x[:, None, 1, ...],
        "fancy": x[rows, columns],
        "split": x[rows, :, jnp.array([4, 0])],
        "numpy": x[np.array([True, False, True])],
        "where": jnp.where(x > 30, x, -x)[2],
        "ix": x[jnp.ix_(rows, jnp.array([0, 3]))],
        "gradient": grad(lambda x: (x[rows, columns] ** 2).sum())(x)[0],
        "take": jnp.take(x, jnp.array([[3, 1]]), axis=1),
    }


def einsum_in_many_forms():
    a, b, c = random.normal(random.PRNGKey(0), (3, 4, 4))
    f = lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c)
    return {
        "chain": f(a, b, c),
        "trace": jnp.einsum("ii", a),
        "diagonal": jnp.einsum("ii->i", a),
        "outer": jnp.einsum("i,j->ij", a[0], b[0]),
        "batched": jnp.einsum("b...d,bd->b...", a.reshape(4, 2, 2), b[:, :2]),
        "gradients": grad(lambda *abc: f(*abc).sum(), (0, 2))(a, b, c),
        "tensordot": jnp.tensordot(a, b, axes=([0], [1])),
        "inner": jnp.inner(a, b),
        "vdot": jnp.vdot(a, b),
    }


def windows_by_dynamic_slices():
    signal = jnp.sin(jnp.arange(20.0))

    def window(start):
        return lax.dynamic_slice(signal, (start,), (5,))

    frames = vmap(window)(jnp.arange(0, 16, 4))
    updated = lax.dynamic_update_slice(jnp.zeros((4, 4)), jnp.ones((2, 2)), (jnp.int32(1), jnp.int32(3)))
    one = lax.dynamic_index_in_dim(frames, 2, axis=0, keepdims=False)
    sliced = lax.slice_in_dim(frames, 1, 3), lax.dynamic_slice_in_dim(signal, 17, 6)
    gradient = grad(lambda s: jnp.sum(lax.dynamic_slice(s, (jnp.int32(3),), (4,)) ** 2))(signal)
    return {"frames": frames, "updated": updated, "one": one, "sliced": sliced, "gradient": gradient}


def gather_and_scatter():
    operand = jnp.arange(12.0).reshape(3, 4)
    indices = jnp.array([[0, 1], [2, 3], [1, 1]])
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1))
    gathered = lax.gather(operand, indices, numbers, slice_sizes=(1, 1))
    places = lax.ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    scattered = lax.scatter_add(jnp.zeros(5), jnp.array([[1], [3], [1]]), jnp.array([1.0, 2.0, 3.0]), places)
    gradient = grad(lambda o: jnp.sum(lax.gather(o, indices, numbers, (1, 1)) * jnp.array([1.0, 2.0, 3.0])))(operand)
    return {"gathered": gathered, "scattered": scattered, "gradient": gradient}


def graph_convolution_by_segments():
    senders, receivers = jnp.array([0, 1, 2, 2, 3]), jnp.array([1, 2, 0, 3, 0])
    nodes, weights = random.normal(random.PRNGKey(1), (4, 3)), random.normal(random.PRNGKey(2), (3, 3))

    def layer(weights, nodes):
        messages = (nodes @ weights)[senders]
        summed = jax.ops.segment_sum(messages, receivers, num_segments=4)
        degree = jax.ops.segment_sum(jnp.ones(5), receivers, 4)
        attention = jnp.exp(messages[:, 0] - jax.ops.segment_max(messages[:, 0], receivers, 4)[receivers])
        share = attention / jax.ops.segment_sum(attention, receivers, 4)[receivers]
        return jax.nn.elu(summed / degree[:, None]) + jax.ops.segment_sum(share[:, None] * messages, receivers, 4)

    return {
        "nodes": layer(weights, nodes),
        "gradient": grad(lambda w: jnp.sum(layer(w, layer(w, nodes)) ** 2))(weights),
    }


def sorting_and_ranks():
    x = jnp.array([[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]])
    values, places = lax.top_k(x, 2)
    keys, carried = lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([10.0, 20.0, 30.0]))
    several = lax.sort((jnp.array([1, 0, 1, 0]), jnp.array([4.0, 3.0, 2.0, 1.0]), jnp.arange(4)), num_keys=2)
    return {
        "sort": jnp.sort(x, axis=0),
        "argsort": jnp.argsort(x, descending=True),
        "top": (values, places),
        "pairs": (keys, carried),
        "several": several,
        "lexsort": jnp.lexsort((jnp.array([1, 0, 1]), jnp.array([2, 2, 1]))),
        "median": jnp.median(x, axis=1),
        "partition": jnp.sort(jnp.partition(x[0], 1)[:2]),
        "gradient": grad(lambda x: jnp.sum(jnp.sort(x, 1) * jnp.arange(3.0)))(x),
    }


def shapes_known_in_advance():
    x = jnp.array([4, 1, 1, 3, 4, 4])
    values, counts = jnp.unique(x, return_counts=True, size=5, fill_value=-1)
    return {
        "unique": (values, counts),
        "nonzero": jnp.nonzero(x > 1, size=6, fill_value=9)[0],
        "where": jnp.where(x == 4, size=3)[0],
        "bincount": jnp.bincount(x, length=6),
        "histogram": jnp.histogram(x, bins=4, range=(0.0, 5.0))[0].astype(int),
        "argwhere": jnp.argwhere(x.reshape(2, 3) == 4, size=3),
        "in": jnp.isin(x, jnp.array([1, 3])),
        "digits": jnp.digitize(x, jnp.array([2, 4])),
    }


def promotion_of_dtypes():
    i8, u8, i32 = jnp.int8(5), jnp.arange(3, dtype=jnp.uint8), jnp.arange(3)
    f16, bf16, f32 = jnp.ones(3, jnp.float16), jnp.ones(3, jnp.bfloat16), jnp.float32(2)
    results = [
        i8 + u8,
        u8 + i32,
        i32 + f16,
        f16 + bf16,
        bf16 + 1.5,
        i32 / 2,
        i32 // 2,
        u8 * 2,
        f16 * f32,
        i32 + True,
        jnp.sum(u8),
        jnp.mean(i32),
    ]
    casts = [
        lax.convert_element_type(f32, jnp.int32),
        jnp.float32(3.7).astype(int),
        lax.bitcast_convert_type(f32, jnp.uint32),
    ]
    return {
        "results": results,
        "casts": casts,
        "types": jnp.array([jnp.issubdtype(r.dtype, jnp.floating) for r in results]),
    }


def bits_and_integers():
    a, b = jnp.array([12, 10, -7, 255], jnp.int32), jnp.array([10, 3, 2, 16], jnp.int32)
    u = a.astype(jnp.uint32)
    return {
        "bits": [a & b, a | b, a ^ b, ~a, a << 2, a >> 1, u >> jnp.uint32(28)],
        "division": [a // b, a % b, lax.div(a, b), lax.rem(a, b)],
        "counts": [lax.population_count(a), lax.clz(a)],
        "gcd": [jnp.gcd(a, b), jnp.lcm(a, b)],
        "packed": jnp.packbits(jnp.array([1, 0, 1, 1])),
        "powers": [a**2, jnp.power(2, jnp.arange(4)), lax.integer_pow(jnp.float32(1.5), -3)],
        "sign": [jnp.sign(a), jnp.abs(a), -a],
    }


def padding_rolling_and_repeating():
    x = jnp.arange(6.0).reshape(2, 3)
    pads = {
        mode: jnp.pad(x, ((1, 2), (2, 1)), mode=mode) for mode in ("constant", "edge", "reflect", "wrap", "symmetric")
    }
    return {
        "pads": pads,
        "interior": lax.pad(x, -1.0, ((0, 1, 1), (-1, 0, 2))),
        "roll": jnp.roll(x, (1, -1), axis=(0, 1)),
        "repeat": jnp.repeat(x, 2, axis=1),
        "tile": jnp.tile(x, (2, 1)),
        "flip": jnp.flip(x, 1),
        "rot": jnp.rot90(x),
        "stack": jnp.stack([x, x * 2], axis=1),
        "block": jnp.block([[x, x], [x, x]]),
        "gradient": grad(lambda x: jnp.sum(jnp.pad(x, 2, mode="reflect" if x.shape[0] > 2 else "edge") ** 2))(x),
    }


def cumulative_and_nan_functions():
    x = jnp.array([[1.0, jnp.nan, 3.0], [4.0, 5.0, jnp.inf]])
    y = jnp.array([0.5, 2.0, 1.5, 0.25])
    return {
        "nan": [jnp.nansum(x), jnp.nanmax(x, axis=1), jnp.isnan(x), jnp.nan_to_num(x, posinf=9.0)],
        "cum": [jnp.cumsum(y), jnp.cumprod(y), lax.cummax(y), lax.cumlogsumexp(y)],
        "diff": [jnp.diff(y), jnp.gradient(y), jnp.ediff1d(y)],
        "convolve": jnp.convolve(y, jnp.array([1.0, -1.0]), mode="same"),
        "gradient": [
            grad(lambda y: jnp.cumprod(y)[-1] + lax.cumlogsumexp(y).sum())(y),
            grad(lambda y: jnp.prod(y))(y.at[1].set(0.0)),
        ],
        "interp": jnp.interp(jnp.array([0.5, 2.5, 9.0]), jnp.arange(4.0), y),
        "trapezoid": jax.scipy.integrate.trapezoid(y),
    }
