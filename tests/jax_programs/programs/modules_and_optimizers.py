"""Modules as trees, parameters by their names, and what is around optimizers."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, lax, random, vmap
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten


def _build(cls, values):
    o = object.__new__(cls)
    for k, v in values.items():
        object.__setattr__(o, k, v)
    return o


class _Module:
    def __init_subclass__(cls):
        dataclasses.dataclass(frozen=True, eq=False)(cls)
        fields = list(dataclasses.fields(cls))
        data = [f.name for f in fields if not f.metadata.get("static")]
        meta = [f.name for f in fields if f.metadata.get("static")]
        jax.tree_util.register_pytree_with_keys(
            cls,
            lambda m: (
                [(jax.tree_util.GetAttrKey(n), getattr(m, n)) for n in data],
                tuple(getattr(m, n) for n in meta),
            ),
            lambda meta_v, leaves: _build(cls, dict(zip(data, leaves)) | dict(zip(meta, meta_v))),
        )


class MLP(_Module):
    layers: list
    act: Callable
    scale: float = 1.0

    def __call__(self, x):
        for one in self.layers[:-1]:
            x = self.act(one(x))
        return self.layers[-1](x) * self.scale


def _combine(*trees):
    return tree_map(lambda *xs: next((x for x in xs if x is not None), None), *trees, is_leaf=lambda x: x is None)


def _partition(tree, pred):
    return (tree_map(lambda x: x if pred(x) else None, tree), tree_map(lambda x: None if pred(x) else x, tree))


def _is_array(x):
    return isinstance(x, jax.Array)


def _filter_jit(f):

    @partial(jit, static_argnums=0)
    def inner(static, dyn):
        leaves, td = static
        m = _combine(dyn, tree_unflatten(td, leaves))
        return f(*m)

    def g(*args):
        dyn, st = _partition(args, _is_array)
        leaves, td = tree_flatten(st, is_leaf=lambda x: x is None)
        return inner((tuple(leaves), td), dyn)

    return g


def _tree_at(where, tree, new):
    leaves, td = tree_flatten(tree)
    marks = tree_unflatten(td, list(range(len(leaves))))
    idx = where(marks)
    leaves[idx] = new
    return tree_unflatten(td, leaves)


def _static(**k):
    return dataclasses.field(metadata={"static": True}, **k)


class Linear(_Module):
    w: Any
    b: Any
    n: int = _static(default=0)

    @classmethod
    def init(cls, key, i, o):
        return cls(random.normal(key, (i, o)) / jnp.sqrt(i), jnp.zeros(o), i)

    def __call__(self, x):
        return x @ self.w + self.b


def _filter_grad(f):

    def g(model, *args):
        p, s = _partition(model, _is_array)
        return jax.value_and_grad(lambda p: f(_combine(p, s), *args))(p)

    return g


def equinox_like():
    k = random.split(random.key(0), 3)
    m = MLP([Linear.init(k[0], 4, 8), Linear.init(k[1], 8, 1)], jax.nn.tanh, 2.0)
    x = random.normal(k[2], (16, 4))
    y = jnp.sum(x, 1, keepdims=True)
    loss = lambda m, x, y: jnp.mean((m(x) - y) ** 2)
    step = _filter_jit(lambda m, x, y: _filter_grad(loss)(m, x, y))
    one, g = step(m, x, y)
    for _ in range(5):
        one, g = step(m, x, y)
        m = tree_map(lambda a, b: a if b is None else a - 0.1 * b, m, g, is_leaf=lambda x: x is None)
    m2 = _tree_at(lambda m: m.layers[0].b, m, jnp.ones(8))
    [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(m)]
    ens = vmap(lambda k: Linear.init(k, 3, 2))(random.split(random.key(1), 5))
    out = vmap(lambda m, x: m(x), in_axes=(0, None))(ens, jnp.ones((2, 3)))
    return {"l": one, "w": m.layers[0].w, "o": m2(x), "ens": out}


class ScaleByAdamState(NamedTuple):
    count: Any
    mu: Any
    nu: Any


def _adam(lr, b1=0.9, b2=0.999, eps=1e-08):

    def init(p):
        return ScaleByAdamState(jnp.zeros([], jnp.int32), tree_map(jnp.zeros_like, p), tree_map(jnp.zeros_like, p))

    def update(g, s, p=None):
        mu = tree_map(lambda m, g: b1 * m + (1 - b1) * g, s.mu, g)
        nu = tree_map(lambda n, g: b2 * n + (1 - b2) * g**2, s.nu, g)
        c = s.count + jnp.array(1, jnp.int32)
        mh = tree_map(lambda m: m / (1 - b1**c).astype(m.dtype), mu)
        nh = tree_map(lambda m: m / (1 - b2**c).astype(m.dtype), nu)
        return (tree_map(lambda m, n: -lr(c) * m / (jnp.sqrt(n) + eps), mh, nh), ScaleByAdamState(c, mu, nu))

    return (init, update)


def gradient_accumulation():
    init, upd = _adam(lambda c: 0.1)
    p = {"w": jnp.ones((3, 2)), "b": [jnp.zeros(2), jnp.float32(1.0)]}

    class MS(NamedTuple):
        mini: Any
        step: Any
        inner: Any
        acc: Any

    s = MS(jnp.zeros([], jnp.int32), jnp.zeros([], jnp.int32), init(p), tree_map(jnp.zeros_like, p))
    K = 3

    def update(g, s, p):
        acc = tree_map(lambda a, g: a + (g - a) / (s.mini + 1), s.acc, g)

        def final(a):
            u, inner = upd(a, s.inner, p)
            return (u, MS(jnp.zeros([], jnp.int32), s.step + 1, inner, tree_map(jnp.zeros_like, a)))

        def mid(a):
            return (tree_map(jnp.zeros_like, a), MS(s.mini + 1, s.step, s.inner, a))

        return lax.cond(s.mini == K - 1, final, mid, acc)

    @jit
    def step(p, s, x):
        one, g = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"][0]) ** 2) * p["b"][1])(p)
        u, s = update(g, s, p)
        return (tree_map(jnp.add, p, u), s, one)

    ls = []
    for i in range(7):
        p, s, one = step(p, s, random.normal(random.key(i), (4, 3)))
        ls.append(one)
    return {"p": p, "s": s, "ls": ls}


def lookahead_and_sam():
    f = lambda p: jnp.sum(jnp.sin(p["a"]) ** 2) + jnp.sum(p["b"] ** 4)
    p = {"a": jnp.linspace(0.0, 2, 5), "b": jnp.array([[0.3, -0.7]])}
    norm = lambda t: jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(t)))

    @jit
    def sam(p):
        g = grad(f)(p)
        n = norm(g)
        q = tree_map(lambda p, g: p + 0.05 * g / n, p, g)
        return tree_map(lambda p, g: p - 0.1 * g, p, grad(f)(q))

    fast, slow = (p, p)
    for i in range(6):
        fast = sam(fast)
        sync = i % 3 == 2
        slow = tree_map(lambda s, f: jnp.where(sync, s + 0.5 * (f - s), s), slow, fast)
        fast = tree_map(lambda s, f: jnp.where(sync, s, f), slow, fast)
    return {"fast": fast, "slow": slow}


def adversarial_training():
    k = random.key(1)
    X = random.normal(k, (32, 10))
    y = (X[:, 0] > 0).astype(jnp.int32)
    p = {"w": random.normal(k, (10, 2)) * 0.1, "b": jnp.zeros(2)}

    def loss(p, X, y):
        lg = X @ p["w"] + p["b"]
        return jnp.mean(jax.nn.logsumexp(lg, -1) - jnp.take_along_axis(lg, y[:, None], -1)[:, 0])

    @jit
    def pgd(p, X, y):

        def body(i, d):
            g = grad(lambda d: loss(p, X + d, y))(d)
            return jnp.clip(d + 0.05 * jnp.sign(g), -0.2, 0.2)

        return X + lax.fori_loop(0, 4, body, jnp.zeros_like(X))

    for _ in range(3):
        A = pgd(p, X, y)
        g = grad(loss)(p, A, y)
        p = tree_map(lambda p, g: p - 0.5 * g, p, g)
    acc = jnp.mean(jnp.argmax(X @ p["w"] + p["b"], -1) == y)
    return {"p": p, "A": A, "acc": acc, "hot": jax.nn.one_hot(y, 2)[:3]}


def haiku_like_transform():
    stack = []

    def param(name, shape, init):
        fr = stack[-1]
        full = "/".join(fr["scope"] + [name])
        if fr["init"] and full not in fr["p"]:
            fr["k"], k = random.split(fr["k"])
            fr["p"][full] = init(k, shape)
        return fr["p"][full]

    def state(name, shape, init):
        fr = stack[-1]
        return fr["s"].setdefault(name, init(shape))

    class Scope:
        def __init__(self, n):
            self.n = n

        def __enter__(self):
            stack[-1]["scope"].append(self.n)

        def __exit__(self, *a):
            stack[-1]["scope"].pop()

    def transform(f):

        def init(k, *a):
            stack.append({"init": True, "p": {}, "s": {}, "k": k, "scope": []})
            f(*a)
            fr = stack.pop()
            return (fr["p"], fr["s"])

        def apply(p, s, *a):
            stack.append({"init": False, "p": p, "s": dict(s), "scope": []})
            o = f(*a)
            fr = stack.pop()
            return (o, fr["s"])

        return (init, apply)

    def linear(n, x, o):
        with Scope(n):
            return x @ param(
                "w", (x.shape[-1], o), lambda k, s: random.truncated_normal(k, -2.0, 2.0, s) / np.sqrt(s[0])
            ) + param("b", (o,), lambda k, s: jnp.zeros(s))

    def net(x):
        with Scope("net"):
            h = jax.nn.relu(linear("l1", x, 8))
            c = state("count", (), lambda s: jnp.zeros(s, jnp.int32))
            stack[-1]["s"]["count"] = c + 1
            return linear("l2", h, 2)

    init, apply = transform(net)
    x = random.normal(random.key(1), (4, 3))
    p, s = jit(init)(random.key(0), x)

    def loss(p, s, x):
        o, s = apply(p, s, x)
        return (jnp.mean(o**2), s)

    for _ in range(3):
        (one, s), g = jit(jax.value_and_grad(loss, has_aux=True))(p, s, x)
        p = tree_map(lambda p, g: p - 0.1 * g, p, g)
    return {"p": p, "s": s, "l": one}


def transformer_with_kv_cache():
    D, H, V, T = (8, 2, 11, 6)
    k = random.split(random.key(0), 8)
    p = {
        "e": random.normal(k[0], (V, D)),
        "qkv": random.normal(k[1], (D, 3, H, D // H)) * 0.3,
        "o": random.normal(k[2], (H, D // H, D)) * 0.3,
        "f1": random.normal(k[3], (D, 16)) * 0.3,
        "f2": random.normal(k[4], (16, D)) * 0.3,
    }

    def ln(x):
        m = x.mean(-1, keepdims=True)
        v = jnp.mean(jnp.square(x - m), -1, keepdims=True)
        return (x - m) * lax.rsqrt(v + 1e-05)

    def rope(x, pos):
        d = x.shape[-1] // 2
        f = 10000.0 ** (-jnp.arange(d) / d)
        a = pos[:, None, None] * f
        x1, x2 = jnp.split(x, 2, -1)
        return jnp.concatenate([x1 * jnp.cos(a) - x2 * jnp.sin(a), x1 * jnp.sin(a) + x2 * jnp.cos(a)], -1)

    def attn(q, kk, v, mask):
        s = jnp.einsum("qhd,khd->hqk", q, kk) / jnp.sqrt(q.shape[-1])
        s = jnp.where(mask[None], s, jnp.finfo(s.dtype).min)
        return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(s, -1), v)

    def full(p, t):
        x = p["e"][t]
        q, kk, v = jnp.moveaxis(jnp.einsum("td,dchk->tchk", ln(x), p["qkv"]), 1, 0)
        pos = jnp.arange(t.shape[0])
        x = x + jnp.einsum(
            "thd,hdo->to", attn(rope(q, pos), rope(kk, pos), v, jnp.tril(jnp.ones((t.shape[0],) * 2, bool))), p["o"]
        )
        x = x + jax.nn.gelu(ln(x) @ p["f1"]) @ p["f2"]
        return ln(x) @ p["e"].T

    def step(c, _):
        cache, t, i = c
        x = p["e"][t][None]
        q, kk, v = jnp.moveaxis(jnp.einsum("td,dchk->tchk", ln(x), p["qkv"]), 1, 0)
        pos = i[None]
        ck = lax.dynamic_update_slice(cache["k"], rope(kk, pos), (i, 0, 0))
        cv = lax.dynamic_update_slice_in_dim(cache["v"], v, i, 0)
        x = x + jnp.einsum("thd,hdo->to", attn(rope(q, pos), ck, cv, (jnp.arange(T) <= i)[None]), p["o"])
        x = x + jax.nn.gelu(ln(x) @ p["f1"]) @ p["f2"]
        lg = (ln(x) @ p["e"].T)[0]
        t = jnp.argmax(lg).astype(jnp.int32)
        return (({"k": ck, "v": cv}, t, i + 1), (t, lg))

    _, (ts, lgs) = jit(
        lambda t: lax.scan(
            step, ({"k": jnp.zeros((T, H, D // H)), "v": jnp.zeros((T, H, D // H))}, t, jnp.int32(0)), None, length=T
        )
    )(jnp.int32(3))
    seq = jnp.concatenate([jnp.array([3], jnp.int32), ts[:-1]])
    fl = full(p, seq)
    return {
        "ts": ts,
        "close": jnp.allclose(fl, lgs, atol=0.001),
        "g": grad(lambda p: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(full(p, seq)), ts[:, None], 1)))(p),
        "dpa": jax.nn.dot_product_attention(
            jnp.ones((1, 3, 2, 4)), jnp.arange(24.0).reshape(1, 3, 2, 4), jnp.ones((1, 3, 2, 4)), is_causal=True
        ),
    }
