"""Searches, sorting networks and whole numbers."""

import jax
import jax.numpy as jnp
from jax import jacrev, jit, lax, random, vmap


def beam_search():
    V, B, T = (7, 3, 5)
    lp = jax.nn.log_softmax(random.normal(random.key(0), (V, V)))

    def step(s, t):
        seq, sc, done = s
        one = lp[seq[:, t]]
        one = jnp.where(done[:, None], jnp.where(jnp.arange(V) == 0, 0.0, -jnp.inf), one)
        tot = (sc[:, None] + one).ravel()
        v, i = lax.top_k(tot, B)
        b, tok = (i // V, i % V)
        seq = seq[b].at[:, t + 1].set(tok)
        return ((seq, v, done[b] | (tok == 0)), tok)

    s0 = (jnp.zeros((B, T + 1), jnp.int32).at[:, 0].set(3), jnp.array([0.0, -jnp.inf, -jnp.inf]), jnp.zeros(B, bool))
    (seq, sc, dn), tk = jit(lambda s: lax.scan(step, s, jnp.arange(T)))(s0)
    return {"seq": seq, "sc": sc, "dn": dn, "tk": tk}


def sudoku_by_while():
    p = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
    g = jnp.array([int(c) for c in p], jnp.int32).reshape(9, 9)

    def cand(g):
        oh = jax.nn.one_hot(g - 1, 9, dtype=jnp.int32)
        row = oh.sum(1, keepdims=True)
        col = oh.sum(0, keepdims=True)
        box = oh.reshape(3, 3, 3, 3, 9).sum((1, 3), keepdims=True) * jnp.ones((3, 3, 3, 3, 9), jnp.int32)
        return (row + col + box.reshape(9, 9, 9) == 0) & (g == 0)[..., None]

    def body(s):
        g, _, i = s
        c = cand(g)
        one = c.sum(-1) == 1
        g2 = jnp.where(one, jnp.argmax(c, -1) + 1, g)
        return (g2, jnp.any(g2 != g), i + 1)

    s = jit(lambda g: lax.while_loop(lambda s: s[1] & (s[2] < 50), body, (g, True, 0)))(g)
    return {"g": s[0], "i": s[2]}


def nqueens_by_backtracking():
    n = 6

    def ok(q, r, c):
        i = jnp.arange(n)
        return ~jnp.any((i < r) & ((q == c) | (jnp.abs(q - c) == r - i)))

    def body(s):
        q, r, cnt = s
        c = q[r] + 1
        c = lax.while_loop(lambda c: (c < n) & ~ok(q, r, c), lambda c: c + 1, c)

        def back(_):
            return (q.at[r].set(-1), r - 1, cnt)

        def fwd(_):
            q2 = q.at[r].set(c)
            return lax.cond(r == n - 1, lambda: (q2, r, cnt + 1), lambda: (q2, r + 1, cnt))

        return lax.cond(c >= n, back, fwd, None)

    o = jit(lambda: lax.while_loop(lambda s: s[1] >= 0, body, (jnp.full(n, -1), 0, 0)))()
    return {"n": o[2]}


def sorting_network():

    def bitonic(x):
        n = x.shape[0]
        i = jnp.arange(n)
        k = 2
        while k <= n:
            j = k // 2
            while j > 0:
                one = i ^ j
                up = i & k == 0
                a, b = (x, x[one])
                mn, mx = (jnp.minimum(a, b), jnp.maximum(a, b))
                x = jnp.where((i < one) == up, mn, mx)
                j //= 2
            k *= 2
        return x

    x = random.normal(random.key(0), (32,))
    oe = lambda x: lax.fori_loop(
        0,
        16,
        lambda t, x: (
            lambda i: jnp.where(
                ((i + t) % 2 == 0) & (i < 15),
                jnp.minimum(x, jnp.roll(x, -1)),
                jnp.where(((i + t) % 2 == 1) & (i > 0), jnp.maximum(x, jnp.roll(x, 1)), x),
            )
        )(jnp.arange(16)),
        x,
    )
    return {
        "b": jit(bitonic)(x),
        "v": vmap(bitonic)(x.reshape(2, 16)),
        "g": jacrev(bitonic)(x[:4]),
        "oe": oe(x[:16]),
        "ref": jnp.sort(x),
        "lex": jnp.lexsort((x[:6] > 0, jnp.arange(6) % 2)),
        "st": jnp.argsort(jnp.array([1, 0, 1, 0]), descending=True),
        "st2": jnp.sort(x, descending=True)[:3],
        "ap": jnp.partition(x, 4)[4],
        "mult": lax.sort((jnp.array([2, 1, 2]), jnp.array([1.0, 5.0, 0.0]), jnp.arange(3)), num_keys=2),
    }


def fixed_point_arithmetic():
    Q = 16
    fx = lambda f: jnp.round(jnp.asarray(f) * (1 << Q)).astype(jnp.int32)
    fl = lambda i: i.astype(jnp.float32) / (1 << Q)

    def mul(a, b):
        ah, al = (a >> 16, a & 65535)
        bh, bl = (b >> 16, b & 65535)
        return (
            (ah * bh << 16)
            + ah * bl
            + al * bh
            + (al.astype(jnp.uint32) * bl.astype(jnp.uint32) >> 16).astype(jnp.int32)
        )

    a, b = (fx(jnp.array([1.5, -2.25, 0.1])), fx(jnp.array([2.0, 3.5, -0.7])))

    def cordic(th):
        tab = fx(jnp.arctan(2.0 ** (-jnp.arange(16))))

        def s(i, c):
            x, y, z = c
            d = jnp.where(z >= 0, 1, -1)
            return (x - d * (y >> i), y + d * (x >> i), z - d * tab[i])

        return lax.fori_loop(0, 16, s, (fx(0.6072529350088813), fx(0.0), fx(th)))

    return {
        "m": mul(a, b),
        "f": fl(mul(a, b)),
        "c": [cordic(t)[:2] for t in (0.5, -1.0, 1.2)],
        "v": vmap(cordic)(jnp.array([0.1, 0.2])),
        "isq": lax.while_loop(
            lambda s: s[1] * s[1] > s[0],
            lambda s: (s[0], (s[1] + s[0] // s[1]) // 2),
            (jnp.int32(1000), jnp.int32(1000)),
        )[1],
        "q8": jnp.clip(jnp.round(jnp.array([0.3, -5.0, 3.0]) / 0.02), -128, 127).astype(jnp.int8),
        "dot8": lax.dot(
            jnp.array([[100, 100]], jnp.int8), jnp.array([[100], [100]], jnp.int8), preferred_element_type=jnp.int32
        ),
    }


def sparse_pagerank():
    n = 40
    k = random.key(0)
    r, c = (random.randint(k, (200,), 0, n), random.randint(random.fold_in(k, 1), (200,), 0, n))
    deg = jnp.bincount(c, length=n)
    w = 1.0 / jnp.maximum(deg, 1)[c]

    def spmv(x):
        return jnp.zeros(n).at[r].add(w * x[c])

    def cond(s):
        return (jnp.linalg.norm(s[0] - s[1], 1) > 1e-06) & (s[2] < 100)

    def body(s):
        x = 0.85 * spmv(s[0]) + 0.15 / n
        return (x / x.sum(), s[0], s[2] + 1)

    o = jit(lambda: lax.while_loop(cond, body, (jnp.full(n, 1.0 / n), jnp.zeros(n), 0)))()
    return {"x": o[0], "top": lax.top_k(o[0], 3)[1], "deg": deg}
