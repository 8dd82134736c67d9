"""Linear algebra, and gradients through it."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, vmap
from jax.scipy import linalg as jsl
from jax.scipy.sparse.linalg import bicgstab, cg, gmres


def _spd(n=4):
    a = random.normal(random.PRNGKey(0), (n, n))
    return a @ a.T + n * jnp.eye(n)


def factorizations():
    a, general = _spd(), random.normal(random.PRNGKey(1), (5, 3))
    q, r = jnp.linalg.qr(general)
    u, s, vt = jnp.linalg.svd(general, full_matrices=False)
    w, v = jnp.linalg.eigh(a)
    lu, pivots = jsl.lu_factor(a)
    return {
        "qr": jnp.abs(r),
        "qr_product": q @ r,
        "s": s,
        "svd_product": (u * s) @ vt,
        "w": w,
        "eigh_product": (v * w) @ v.T,
        "cholesky": jnp.linalg.cholesky(a),
        "lu_solve": jsl.lu_solve((lu, pivots), jnp.ones(4)),
        "slogdet": jnp.linalg.slogdet(a),
    }


def gradients_of_factorizations():
    a, general = _spd(), random.normal(random.PRNGKey(2), (4, 3))
    symmetric = lambda f: grad(lambda a: f((a + a.T) / 2))(a)
    return {
        "cholesky": symmetric(lambda a: jnp.sum(jnp.sin(jnp.linalg.cholesky(a)))),
        "eigh": symmetric(lambda a: jnp.sum(jnp.linalg.eigvalsh(a) * jnp.arange(4.0))),
        "svd": grad(lambda x: jnp.sum(jnp.linalg.svd(x, compute_uv=False) ** 3))(general),
        "qr": grad(lambda x: jnp.sum(jnp.abs(jnp.linalg.qr(x)[1])))(general),
        "inv": grad(lambda a: jnp.sum(jnp.cos(jnp.linalg.inv(a))))(a),
        "det": grad(jnp.linalg.det)(a),
        "logdet": grad(lambda a: jnp.linalg.slogdet(a)[1])(a),
        "solve": grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2), (0, 1))(a, jnp.ones(4)),
        "norm": grad(jnp.linalg.norm)(general),
    }


def least_squares_and_pseudo_inverses():
    a, b = random.normal(random.PRNGKey(3), (6, 3)), jnp.arange(6.0)
    solution, residuals, rank, s = jnp.linalg.lstsq(a, b)
    return {
        "lstsq": solution,
        "residuals": residuals,
        "rank": rank,
        "s": s,
        "pinv": jnp.linalg.pinv(a),
        "cond": jnp.linalg.cond(a),
        "rank_of": jnp.linalg.matrix_rank(a @ a.T, rtol=1e-4),
        "gradient": grad(lambda b: jnp.sum(jnp.linalg.pinv(a) @ b) ** 2)(b),
    }


def iterative_solvers():
    a, b = _spd(6), jnp.arange(1.0, 7.0)
    general = a + 0.5 * jnp.triu(jnp.ones((6, 6)), 1)
    found = {
        "cg": cg(lambda x: a @ x, b, tol=1e-6)[0],
        "gmres": gmres(lambda x: general @ x, b, tol=1e-6)[0],
        "bicgstab": bicgstab(lambda x: general @ x, b, tol=1e-6)[0],
    }
    return {**found, "gradient": grad(lambda b: jnp.sum(cg(lambda x: a @ x, b, tol=1e-6)[0] ** 2))(b)}


def functions_of_matrices():
    a = 0.3 * random.normal(random.PRNGKey(4), (3, 3))
    return {
        "expm": jsl.expm(a),
        "gradient": grad(lambda a: jnp.sum(jnp.sin(jsl.expm(a))))(a),
        "power": jnp.linalg.matrix_power(a, 5),
        "negative": jnp.linalg.matrix_power(a + 2 * jnp.eye(3), -2),
        "multi": jnp.linalg.multi_dot([a, a.T, jnp.ones(3)]),
        "frechet": jax.jvp(jsl.expm, (a,), (jnp.eye(3),))[1],
    }


def structured_matrices():
    v = jnp.array([1.0, 2.0, 3.0])
    return {
        "toeplitz": jsl.toeplitz(v),
        "block": jsl.block_diag(jnp.eye(2), v[None]),
        "kron": jnp.kron(jnp.eye(2), v),
        "tri": [jnp.tril(jnp.ones((3, 3)), -1), jnp.tri(3, 4, 1)],
        "diag": [jnp.diag(v), jnp.diagonal(jnp.outer(v, v), 1), jnp.diagflat(v[:2], 1)],
        "vander": jnp.vander(v),
        "cross": jnp.cross(v, v[::-1]),
    }


def power_iteration():
    a = _spd(5)

    def step(v, _):
        v = a @ v
        v = v / jnp.linalg.norm(v)
        return v, v @ a @ v

    _, estimates = lax.scan(step, jnp.ones(5) / jnp.sqrt(5.0), None, length=30)
    return {
        "estimates": estimates,
        "largest": jnp.linalg.eigvalsh(a)[-1],
        "gradient": grad(lambda a: jnp.linalg.eigvalsh(a)[-1])(a).trace(),
    }


def batches_of_systems():
    a = vmap(lambda k: random.normal(k, (3, 3)) + 3 * jnp.eye(3))(random.split(random.PRNGKey(5), 4))
    b = random.normal(random.PRNGKey(6), (4, 3))
    triangular = vmap(lambda a, b: jsl.solve_triangular(a, b, lower=True, trans=1))
    return {
        "solve": jnp.linalg.solve(a, b[..., None])[..., 0],
        "inv": jit(jnp.linalg.inv)(a),
        "triangular": triangular(jnp.tril(a), b),
        "gradient": grad(lambda a: jnp.sum(jnp.linalg.det(a)))(a),
        "norms": [jnp.linalg.norm(a, axis=(1, 2)), jnp.linalg.norm(b, ord=1, axis=1), jnp.linalg.norm(b, jnp.inf)],
    }


def principal_components():
    x = random.normal(random.PRNGKey(7), (20, 4)) * jnp.array([4.0, 2.0, 1.0, 0.5])
    centred = x - x.mean(0)
    covariance = jnp.cov(x, rowvar=False)
    values, vectors = jnp.linalg.eigh(covariance)
    explained = lambda x: jnp.linalg.eigvalsh(jnp.cov(x, rowvar=False))[-1]
    return {
        "covariance": covariance,
        "values": values,
        "projected": jnp.abs(centred @ vectors[:, -2:]),
        "correlation": jnp.corrcoef(x.T),
        "gradient": grad(explained)(x),
    }
