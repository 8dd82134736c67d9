"""Optimality, control and equations: solvers that are written by hand."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import grad, hessian, jacfwd, jacrev, jit, jvp, lax, random, vjp, vmap
from jax.tree_util import tree_map


def adjoint_by_custom_vjp():

    def f(y, t, p):
        return jnp.tanh(p["w"] @ y + p["b"]) * jnp.cos(t)

    def rk4(g, y, t0, t1, n=20):
        h = (t1 - t0) / n

        def body(c, i):
            t = t0 + i * h
            k1 = g(c, t)
            k2 = g(tree_map(lambda c, k: c + h / 2 * k, c, k1), t + h / 2)
            k3 = g(tree_map(lambda c, k: c + h / 2 * k, c, k2), t + h / 2)
            k4 = g(tree_map(lambda c, k: c + h * k, c, k3), t + h)
            return (tree_map(lambda c, a, b, d, e: c + h / 6 * (a + 2 * b + 2 * d + e), c, k1, k2, k3, k4), None)

        return lax.scan(body, y, jnp.arange(n))[0]

    @partial(jax.custom_vjp, nondiff_argnums=(0, 3))
    def solve(f, y0, p, ts):
        return rk4(lambda y, t: f(y, t, p), y0, ts[0], ts[1])

    def fwd(f, y0, p, ts):
        y = solve(f, y0, p, ts)
        return (y, (y, p))

    def bwd(f, ts, res, g):
        y, p = res

        def aug(s, t):
            y, a, _ = s
            v, pull = vjp(lambda y, p: f(y, t, p), y, p)
            ga, gp = pull(a)
            return (v, tree_map(jnp.negative, ga), tree_map(jnp.negative, gp))

        _, a, gp = rk4(aug, (y, g, tree_map(jnp.zeros_like, p)), ts[1], ts[0])
        return (a, gp)

    solve.defvjp(fwd, bwd)
    p = {"w": random.normal(random.key(0), (3, 3)), "b": jnp.zeros(3)}
    L = lambda y, p: jnp.sum(solve(f, y, p, (0.0, 2.0)) ** 2)
    y = jnp.array([0.1, 0.2, 0.3])
    return {
        "v": jit(L)(y, p),
        "g": jit(grad(L, (0, 1)))(y, p),
        "vm": vmap(grad(L), (0, None))(jnp.stack([y, 2 * y]), p),
    }


def projected_gradient():

    def proj_simplex(v):
        u = jnp.sort(v)[::-1]
        css = jnp.cumsum(u)
        k = jnp.arange(1, v.shape[0] + 1)
        rho = jnp.sum(1.0 / k * (1 - css) + u > 0)
        th = (css[rho - 1] - 1) / rho
        return jax.nn.relu(v - th)

    def proj_l1(v):
        return jnp.where(jnp.sum(jnp.abs(v)) <= 1, v, jnp.sign(v) * proj_simplex(jnp.abs(v)))

    A = random.normal(random.key(0), (6, 4))
    b = jnp.arange(6.0)
    f = lambda x: 0.5 * jnp.sum((A @ x - b) ** 2)

    class St(NamedTuple):
        it: Any
        x: Any
        y: Any
        t: Any
        err: Any

    def body(s):
        x = proj_simplex(s.y - 0.02 * grad(f)(s.y))
        t = 0.5 * (1 + jnp.sqrt(1 + 4 * s.t**2))
        return St(s.it + 1, x, x + (s.t - 1) / t * (x - s.x), t, jnp.linalg.norm(x - s.x))

    x0 = jnp.ones(4) / 4
    s = jit(
        lambda x: lax.while_loop(
            lambda s: (s.err > 0.001) & (s.it < 200), body, St(jnp.array(0), x, x, jnp.array(1.0), jnp.array(jnp.inf))
        )
    )(x0)
    return {
        "s": s.x,
        "jac": jacrev(proj_simplex)(jnp.array([0.3, 2.0, -1.0, 1.9])),
        "l1": vmap(proj_l1)(jnp.array([[0.1, 0.2], [3.0, -1.0], [-0.5, 0.6]])),
        "jf": jacfwd(proj_simplex)(jnp.array([0.3, 2.0, -1.0])),
    }


def implicit_diff():

    def root(l2, X, y):
        return jnp.linalg.solve(X.T @ X + l2 * jnp.eye(X.shape[1]), X.T @ y)

    X = random.normal(random.key(0), (8, 3))
    y = jnp.arange(8.0)

    def opt(w, l2):
        return X.T @ (X @ w - y) + l2 * w

    @jax.custom_vjp
    def solver(l2):
        return lax.stop_gradient(root(l2, X, y))

    def fwd(l2):
        w = solver(l2)
        return (w, (w, l2))

    def bwd(res, ct):
        w, l2 = res
        _, vw = vjp(lambda w: opt(w, l2), w)
        u = jax.scipy.sparse.linalg.cg(lambda v: vw(v)[0], -ct, maxiter=50)[0]
        return vjp(lambda l2: opt(w, l2), l2)[1](u)

    solver.defvjp(fwd, bwd)
    r = {
        "g": grad(lambda one: jnp.sum(solver(one) ** 2))(0.5),
        "gt": grad(lambda one: jnp.sum(root(one, X, y) ** 2))(0.5),
    }
    cr = lambda a: lax.custom_root(
        lambda x: x**3 - a,
        1.0,
        lambda f, x0: lax.fori_loop(0, 30, lambda i, x: x - f(x) / jvp(f, (x,), (1.0,))[1], x0),
        lambda g, y: y / g(1.0),
    )
    r["cr"] = cr(8.0)
    r["gcr"] = grad(cr)(8.0)
    r["jcr"] = jvp(cr, (8.0,), (1.0,))
    r["vcr"] = vmap(cr)(jnp.array([1.0, 8.0, 27.0]))
    r["ggcr"] = grad(grad(cr))(8.0)
    r["jit"] = jit(grad(cr))(8.0)
    cl = lambda A, b: lax.custom_linear_solve(
        lambda x: A @ x, b, lambda mv, b: jax.scipy.sparse.linalg.cg(mv, b)[0], symmetric=True
    )
    A = X.T @ X + jnp.eye(3)
    r["cl"] = cl(A, jnp.ones(3))
    r["gcl"] = grad(lambda A, b: cl(A, b).sum(), (0, 1))(A, jnp.ones(3))
    r["vcl"] = vmap(cl, (None, 0))(A, jnp.eye(3))
    r["jcl"] = jacfwd(cl, 1)(A, jnp.ones(3))
    aux = lambda a: lax.custom_root(
        lambda x: x**2 - a,
        1.0,
        lambda f, x0: (lax.fori_loop(0, 10, lambda i, x: x - f(x) / jvp(f, (x,), (1.0,))[1], x0), {"n": 10}),
        lambda g, y: y / g(1.0),
        has_aux=True,
    )
    r["aux"] = aux(2.0)
    r["tr"] = lax.custom_root(
        lambda d: {"a": d["a"] - 2.0, "b": d["b"] ** 2 - 9.0},
        {"a": 0.0, "b": 1.0},
        lambda f, x0: {"a": 2.0, "b": 3.0},
        lambda g, y: y,
    )
    return r


def ilqr_and_mpc():
    dyn = lambda x, u: x + 0.1 * jnp.array([x[1], -jnp.sin(x[0]) + u[0]])
    cost = lambda x, u: 0.5 * jnp.sum((x - jnp.array([jnp.pi, 0])) ** 2) * 0.1 + 0.01 * jnp.sum(u**2)
    fin = lambda x: 5.0 * jnp.sum((x - jnp.array([jnp.pi, 0])) ** 2)
    T = 15
    x0 = jnp.array([0.1, 0.0])
    roll = lambda us: lax.scan(lambda x, u: (dyn(x, u),) * 2, x0, us)[1]

    @jit
    def it(us):
        xs = jnp.vstack([x0[None], roll(us)])
        X = xs[:-1]
        fx, fu = vmap(jacfwd(dyn, (0, 1)))(X, us)
        lx, lu = vmap(grad(cost, (0, 1)))(X, us)
        (lxx, _lxu), (lux, luu) = vmap(hessian(cost, (0, 1)))(X, us)

        def bw(c, t):
            V, v = c
            fx, fu, lx, lu, lxx, lux, luu = t
            Qx, Qu = (lx + fx.T @ v, lu + fu.T @ v)
            Qxx, Quu, Qux = (lxx + fx.T @ V @ fx, luu + fu.T @ V @ fu + 0.001 * jnp.eye(1), lux + fu.T @ V @ fx)
            k, K = (-jnp.linalg.solve(Quu, Qu), -jnp.linalg.solve(Quu, Qux))
            return ((Qxx + Qux.T @ K, Qx + Qux.T @ k), (k, K))

        _, (k, K) = lax.scan(
            bw, (hessian(fin)(xs[-1]), grad(fin)(xs[-1])), (fx, fu, lx, lu, lxx, lux, luu), reverse=True
        )

        def fw(al):

            def st(x, t):
                xr, u, k, K = t
                u = u + al * k + K @ (x - xr)
                x2 = dyn(x, u)
                return (x2, (x2, u, cost(x, u)))

            xT, (_X2, U, c) = lax.scan(st, x0, (X, us, k, K))
            return (U, c.sum() + fin(xT))

        Us, cs = vmap(fw)(0.5 ** jnp.arange(5.0))
        i = jnp.argmin(cs)
        return (Us[i], cs[i])

    us = jnp.zeros((T, 1))
    cs = []
    for _ in range(4):
        us, c = it(us)
        cs.append(c)
    return {"c": jnp.stack(cs), "u": us}


def kalman_by_associative_scan():
    F = jnp.array([[1.0, 0.1], [0, 0.95]])
    Q = 0.1 * jnp.eye(2)
    Hm = jnp.array([[1.0, 0]])
    R = jnp.array([[0.5]])
    unit = jnp.eye(2)
    ys = jnp.sin(jnp.arange(12.0) * 0.3)[:, None]
    m0 = jnp.zeros(2)
    P0 = unit

    def gen(y, first):
        P = jnp.where(first, P0, 0.0)
        Pp = F @ P @ F.T + Q
        S = Hm @ Pp @ Hm.T + R
        K = jnp.linalg.solve(S, Hm @ Pp).T
        A = jnp.where(first, jnp.zeros((2, 2)), (unit - K @ Hm) @ F)
        b = jnp.where(first, F @ m0 + K @ (y - Hm @ F @ m0), K @ y)
        C = Pp - K @ S @ K.T
        eta = F.T @ Hm.T @ jnp.linalg.solve(S, y)
        J = F.T @ Hm.T @ jnp.linalg.solve(S, Hm @ F)
        return (A, b, C, J, eta)

    els = vmap(gen)(ys, jnp.arange(12) == 0)

    @vmap
    def op(a, b):
        A1, b1, C1, J1, e1 = a
        A2, b2, C2, J2, e2 = b
        W = unit + C1 @ J2
        iw = jnp.linalg.inv(W)
        T = A2 @ iw
        Z = A1.T @ jnp.linalg.inv(unit + J2 @ C1)
        return (T @ A1, T @ (b1 + C1 @ e2) + b2, T @ C1 @ A2.T + C2, Z @ J2 @ A1 + J1, Z @ (e2 - J2 @ b1) + e1)

    f = jit(lambda e: lax.associative_scan(op, e))(els)

    def seq(c, y):
        m, P = c
        m, P = (F @ m, F @ P @ F.T + Q)
        S = Hm @ P @ Hm.T + R
        K = P @ Hm.T @ jnp.linalg.inv(S)
        m = m + K @ (y - Hm @ m)
        P = P - K @ S @ K.T
        return ((m, P), (m, P))

    s = lax.scan(seq, (m0, P0), ys)[1]
    rev = lax.associative_scan(
        lambda a, b: a @ b, vmap(lambda t: jnp.eye(2) * t)(jnp.linspace(0.5, 1, 7)), reverse=True
    )
    return {
        "f": (f[1], f[2]),
        "s": s,
        "rev": rev,
        "ax": lax.associative_scan(jnp.maximum, random.normal(random.key(0), (3, 9)), axis=1),
        "g": grad(
            lambda y: jnp.sum(
                lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (jnp.full(6, 0.9), y))[1] ** 2
            )
        )(jnp.arange(6.0)),
    }


def pde_multigrid_poisson():

    def relax(u, f, h, it):

        def s(i, u):
            return u.at[1:-1, 1:-1].set(
                0.2 * u[1:-1, 1:-1]
                + 0.8 * 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] + h * h * f[1:-1, 1:-1])
            )

        return lax.fori_loop(0, it, s, u)

    def resid(u, f, h):
        return (
            jnp.zeros_like(u)
            .at[1:-1, 1:-1]
            .set(f[1:-1, 1:-1] + (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]) / h**2)
        )

    def v(u, f, h):
        u = relax(u, f, h, 3)
        if u.shape[0] > 3:
            r = resid(u, f, h)
            R = r[::2, ::2]
            e = v(jnp.zeros_like(R), R, 2 * h)
            u.shape[0]
            E = jnp.zeros_like(u).at[::2, ::2].set(e)
            E = E.at[1::2, ::2].set(0.5 * (e[1:] + e[:-1]))
            E = E.at[:, 1::2].set(0.5 * (E[:, 2::2] + E[:, :-2:2]))
            u = u + E
        return relax(u, f, h, 3)

    n = 17
    x = jnp.linspace(0, 1, n)
    X, Y = jnp.meshgrid(x, x, indexing="ij")
    f = 2 * jnp.pi**2 * jnp.sin(jnp.pi * X) * jnp.sin(jnp.pi * Y)
    u = jnp.zeros((n, n))
    g = jit(partial(v, h=1 / (n - 1)))
    for _ in range(4):
        u = g(u, f)
    return {"u": u, "e": jnp.abs(u - jnp.sin(jnp.pi * X) * jnp.sin(jnp.pi * Y)).max() < 0.01}


def spectral_navier_stokes():
    n = 16
    k = jnp.fft.fftfreq(n) * n
    kx, ky = jnp.meshgrid(k, k, indexing="ij")
    k2 = kx**2 + ky**2
    inv = jnp.where(k2 == 0, 0, 1 / jnp.where(k2 == 0, 1, k2))
    de = (jnp.abs(kx) < n / 3) & (jnp.abs(ky) < n / 3)
    w = jnp.fft.fft2(random.normal(random.key(0), (n, n)))

    def rhs(w):
        psi = w * inv
        u, v = (jnp.fft.ifft2(1j * ky * psi).real, jnp.fft.ifft2(-1j * kx * psi).real)
        wx, wy = (jnp.fft.ifft2(1j * kx * w).real, jnp.fft.ifft2(1j * ky * w).real)
        return -jnp.fft.fft2(u * wx + v * wy) * de - 0.01 * k2 * w

    def st(w, _):
        h = 0.01
        k1 = rhs(w)
        kk = rhs(w + h * k1 / 2)
        w = w + h * kk
        return (w, jnp.sum(jnp.abs(w) ** 2 * inv))

    o, e = jit(lambda w: lax.scan(st, w, None, length=10))(w)
    g = grad(lambda a: jnp.sum(jnp.abs(lax.scan(st, w * a, None, length=3)[0]) ** 2))(1.0)
    return {"w": jnp.fft.ifft2(o).real, "e": e, "g": g}
