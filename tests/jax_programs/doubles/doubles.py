"""Programs that need float64: they set `jax_enable_x64`, or are run with it, and mean every digit."""

import jax
import jax.numpy as jnp
from jax import grad, hessian, jacfwd, jit, jvp, lax, random, value_and_grad, vjp, vmap
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular
from jax.scipy.optimize import minimize
from jax.scipy.sparse.linalg import cg
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm


def dormand_prince_with_fixed_steps():
    rows = [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    ]
    weights = [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]

    def field(y, mu):
        return jnp.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    def step(y, mu, h):
        slopes = []
        for row in rows:
            slopes.append(field(y + h * sum((a * k for a, k in zip(row, slopes)), jnp.zeros(2)), mu))
        return y + h * sum(b * k for b, k in zip(weights, slopes))

    def final(mu):
        ys = lax.scan(lambda y, _: (step(y, mu, 0.05), y), jnp.array([2.0, 0.0]), None, length=60)
        return ys[0]

    return {
        "final": jit(final)(1.5),
        "sensitivity": jit(jacfwd(final))(1.5),
        "reverse": jit(grad(lambda mu: final(mu)[0]))(1.5),
    }


def gaussian_process():
    x = jnp.linspace(0, 5, 12)
    y = jnp.sin(x) + 0.05 * random.normal(random.PRNGKey(0), (12,))

    def kernel(a, b, log_length):
        return jnp.exp(-0.5 * (a[:, None] - b[None]) ** 2 / jnp.exp(2 * log_length))

    def negative_evidence(p):
        k = kernel(x, x, p[0]) + jnp.eye(12) * (jnp.exp(p[1]) + 1e-8)
        factor = jnp.linalg.cholesky(k)
        alpha = solve_triangular(factor, y, lower=True)
        return 0.5 * alpha @ alpha + jnp.sum(jnp.log(jnp.diag(factor))) + 6 * jnp.log(2 * jnp.pi)

    start = jnp.array([0.0, -3.0])

    def body(_, p):
        return p - 0.02 * grad(negative_evidence)(p)

    found = jit(lambda p: lax.fori_loop(0, 30, body, p))(start)
    k = kernel(x, x, found[0]) + jnp.eye(12) * jnp.exp(found[1])
    new = jnp.array([0.25, 2.5])
    mean = kernel(new, x, found[0]) @ cho_solve(cho_factor(k, lower=True), y)
    return {
        "parameters": found,
        "evidence": negative_evidence(found),
        "mean": mean,
        "hessian": hessian(negative_evidence)(start),
    }


def physics_informed_network():
    def initial(key, sizes):
        keys = random.split(key, len(sizes))
        return [
            (random.normal(k, (m, n)) / jnp.sqrt(m), jnp.zeros(n)) for k, m, n in zip(keys, sizes[:-1], sizes[1:])
        ]

    def u(params, x):
        h = jnp.array([x])
        for w, b in params[:-1]:
            h = jnp.tanh(h @ w + b)
        w, b = params[-1]
        return (h @ w + b)[0]

    def loss(params, xs):
        second = vmap(lambda x: grad(grad(u, 1), 1)(params, x))(xs)
        residual = second + jnp.pi**2 * jnp.sin(jnp.pi * xs)
        return jnp.mean(residual**2) + u(params, 0.0) ** 2 + u(params, 1.0) ** 2

    params = initial(random.PRNGKey(1), [1, 8, 8, 1])
    xs = jnp.linspace(0, 1, 9)

    @jit
    def step(params, _):
        value, g = value_and_grad(loss)(params, xs)
        return jax.tree_util.tree_map(lambda p, d: p - 1e-3 * d, params, g), value

    params, losses = lax.scan(step, params, None, length=10)
    return {"losses": losses, "first": params[0][0]}


def minimum_by_bfgs():
    f = lambda x: jnp.sum((x - 1.3) ** 2) + jnp.sum(x**4)
    result = minimize(f, jnp.zeros(3), method="BFGS")
    return {"at_minimum": jnp.round(result.x, 6), "value": jnp.round(f(result.x), 10)}


def lbfgs_by_hand():
    f = lambda x: jnp.sum(jnp.cosh(x - jnp.arange(6.0) / 3)) + 0.1 * jnp.sum(x) ** 2
    memory = 4

    def direction(g, s, y, count):
        def backward(i, carry):
            q, alphas = carry
            j = (count - 1 - i) % memory
            rho = jnp.where(i < count, 1.0 / jnp.where(y[j] @ s[j] == 0, 1.0, y[j] @ s[j]), 0.0)
            alpha = rho * (s[j] @ q)
            return q - alpha * y[j], alphas.at[j].set(alpha)

        q, alphas = lax.fori_loop(0, memory, backward, (g, jnp.zeros(memory)))

        def forward(i, r):
            j = (count + i) % memory
            rho = jnp.where(i >= memory - count, 1.0 / jnp.where(y[j] @ s[j] == 0, 1.0, y[j] @ s[j]), 0.0)
            return r + s[j] * (alphas[j] - rho * (y[j] @ r))

        return lax.fori_loop(0, memory, forward, q)

    @jit
    def step(carry, k):
        x, g, s, y = carry
        new = x - 0.5 * direction(g, s, y, jnp.minimum(k, memory))
        g_new = grad(f)(new)
        place = k % memory
        return (new, g_new, s.at[place].set(new - x), y.at[place].set(g_new - g)), f(new)

    x = jnp.ones(6)
    state = (x, grad(f)(x), jnp.zeros((memory, 6)), jnp.zeros((memory, 6)))
    (x, *_), values = lax.scan(step, state, jnp.arange(12))
    return {"x": x, "values": values}


def kalman_filter():
    a = jnp.array([[1.0, 0.1], [0.0, 1.0]])
    h = jnp.array([[1.0, 0.0]])
    q, r = 1e-3 * jnp.eye(2), jnp.array([[0.05]])
    z = jnp.sin(jnp.arange(25) * 0.1)

    def log_likelihood(scale):
        def step(carry, z):
            m, p = carry
            m, p = a @ m, a @ p @ a.T + scale * q
            s = h @ p @ h.T + r
            gain = p @ h.T @ jnp.linalg.inv(s)
            rest = z - h @ m
            m, p = m + gain @ rest, (jnp.eye(2) - gain @ h) @ p
            return (m, p), (m, norm.logpdf(rest[0], 0.0, jnp.sqrt(s[0, 0])))

        (m, p), (means, terms) = lax.scan(step, (jnp.zeros(2), jnp.eye(2)), z)
        return jnp.sum(terms), (m, p, means)

    (value, (m, p, means)), g = jit(value_and_grad(log_likelihood, has_aux=True))(1.0)
    return {"value": value, "gradient": g, "mean": m, "covariance": p, "means": means}


def newton_and_implicit_differentiation():
    residual = lambda x, a: jnp.array([x[0] ** 2 + a * x[1] - 2.0, jnp.exp(x[0]) + x[1] ** 3 - a])

    @jax.custom_vjp
    def solve(a):
        def body(state):
            x, _, i = state
            step = jnp.linalg.solve(jacfwd(residual)(x, a), residual(x, a))
            return x - step, jnp.max(jnp.abs(step)), i + 1

        return lax.while_loop(lambda s: (s[1] > 1e-14) & (s[2] < 30), body, (jnp.array([0.5, 0.5]), jnp.inf, 0))[0]

    def forward(a):
        x = solve(a)
        return x, (x, a)

    def backward(kept, bar):
        x, a = kept
        w = jnp.linalg.solve(jacfwd(residual)(x, a).T, bar)
        return (-vjp(lambda a: residual(x, a), a)[1](w)[0],)

    solve.defvjp(forward, backward)
    return {"root": jit(solve)(3.0), "gradient": jit(grad(lambda a: jnp.sum(solve(a) ** 2)))(3.0)}


def hamiltonian_monte_carlo():
    precision = jnp.array([[2.0, 0.6], [0.6, 1.0]])
    log_density = lambda q: -0.5 * q @ precision @ q - 0.1 * jnp.sum(q**4)

    def leapfrog(q, p):
        def step(carry, _):
            q, p = carry
            p = p + 0.05 * grad(log_density)(q)
            q = q + 0.1 * p
            return (q, p + 0.05 * grad(log_density)(q)), None

        return lax.scan(step, (q, p), None, length=8)[0]

    @jit
    def sample(q, key):
        k1, k2 = random.split(key)
        p = random.normal(k1, q.shape)
        q_new, p_new = leapfrog(q, p)
        change = log_density(q_new) - 0.5 * p_new @ p_new - log_density(q) + 0.5 * p @ p
        accepted = jnp.log(random.uniform(k2)) < change
        q = jnp.where(accepted, q_new, q)
        return q, (q, accepted)

    _, (chain, accepted) = lax.scan(sample, jnp.array([1.0, -1.0]), random.split(random.PRNGKey(3), 20))
    return {"chain": chain, "accepted": accepted, "mean": chain.mean(0)}


def poisson_equation_by_fft():
    n = 16
    x = jnp.arange(n) * (2 * jnp.pi / n)
    f = jnp.sin(x)[:, None] * jnp.cos(2 * x)[None] + jnp.exp(jnp.sin(x))[:, None]
    f = f - f.mean()
    k = jnp.fft.fftfreq(n, 1 / n)
    squares = k[:, None] ** 2 + k[None] ** 2

    def solve(f):
        transformed = jnp.fft.fft2(f)
        return jnp.fft.ifft2(jnp.where(squares == 0, 0, -transformed / jnp.where(squares == 0, 1, squares))).real

    u = jit(solve)(f)
    real = jnp.fft.irfft(1j * jnp.fft.rfftfreq(n, 1 / n) * jnp.fft.rfft(jnp.sin(3 * x)))
    return {"u": u, "derivative": real, "adjoint": grad(lambda f: jnp.sum(solve(f) ** 2))(f)}


def conjugate_gradients_of_a_laplacian():
    n = 24

    def laplacian(u):
        padded = jnp.pad(u, 1)
        return 2.1 * u - padded[2:] - padded[:-2]

    b = jnp.cos(jnp.arange(n) / 3.0)
    x, _ = cg(laplacian, b, tol=1e-14, maxiter=200)

    def functional(scale):
        return jnp.sum(cg(lambda u: laplacian(u) + scale * u, b, tol=1e-14, maxiter=200)[0] ** 2)

    return {"x": x, "residual": jnp.linalg.norm(laplacian(x) - b) < 1e-11, "gradient": grad(functional)(0.3)}


def quadrature():
    k = jnp.arange(1, 20)
    off = k / jnp.sqrt(4.0 * k**2 - 1)
    nodes, vectors = jnp.linalg.eigh(jnp.diag(off, 1) + jnp.diag(off, -1))
    weights = 2 * vectors[0] ** 2
    integral = lambda a: jnp.sum(weights * jnp.exp(-a * nodes**2) * jnp.cos(nodes))
    h = jnp.linspace(-1, 1, 33)
    romberg = [jnp.trapezoid(jnp.exp(h[:: 2**j]), h[:: 2**j]) for j in range(3)]
    return {
        "nodes": nodes,
        "integral": integral(1.0),
        "derivative": grad(integral)(1.0),
        "third": grad(grad(grad(integral)))(1.0),
        "romberg": jnp.array(romberg),
    }


def eigenvalues_and_their_derivatives():
    base = jnp.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]])

    def lowest(t):
        values, vectors = jnp.linalg.eigh(base + t * jnp.outer(jnp.arange(3.0), jnp.arange(3.0)))
        return values[0] + 0.1 * vectors[0, 0] ** 2

    value, tangent = jvp(lowest, (0.2,), (1.0,))
    singular = lambda m: jnp.sum(jnp.linalg.svd(m, compute_uv=False) ** 3)
    return {
        "value": value,
        "tangent": tangent,
        "second": grad(grad(lowest))(0.2),
        "nuclear": grad(singular)(base),
        "determinant": grad(lambda m: jnp.linalg.slogdet(m)[1])(base),
        "exponential": jax.scipy.linalg.expm(base),
    }


def planets_by_leapfrog():
    masses = jnp.array([1.0, 1e-3, 5e-4])

    def energy(q, p):
        d = q[:, None] - q[None]
        r = jnp.sqrt(jnp.sum(d**2, -1) + jnp.eye(3))
        pairs = jnp.where(jnp.eye(3, dtype=bool), 0.0, masses[:, None] * masses[None] / r)
        return jnp.sum(p**2 / (2 * masses[:, None])) - 0.5 * jnp.sum(pairs)

    @jit
    def run(q, p):
        def step(carry, _):
            q, p = carry
            p = p - 0.005 * grad(energy)(q, p)
            q = q + 0.01 * grad(energy, 1)(q, p)
            p = p - 0.005 * grad(energy)(q, p)
            return (q, p), energy(q, p)

        return lax.scan(step, (q, p), None, length=100)

    q = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.6]])
    v = jnp.array([[0.0, 0.0], [0.0, 1.0], [-0.8, 0.0]])
    (q, p), energies = run(q, v * masses[:, None])
    return {"q": q, "p": p, "drift": energies - energies[0], "last": energies[-1]}


def many_while_loops():
    def cube_root(a):
        def body(state):
            x, i = state
            return x - (x**3 - a) / (3 * x**2), i + 1

        return lax.while_loop(lambda s: (jnp.abs(s[0] ** 3 - a) > 1e-13 * a) & (s[1] < 50), body, (a, 0))

    roots, counts = jit(vmap(cube_root))(jnp.array([0.125, 2.0, 27.5, 1e3]))
    return {"roots": roots, "counts": counts}


def derivatives_of_all_kinds():
    f = lambda x: logsumexp(jnp.sin(x) * jnp.arange(1, 5)) + jnp.prod(jnp.cos(x)) / 3
    x = jnp.array([0.1, 0.7, -0.4, 1.3])
    v = jnp.linspace(-1, 1, 4)
    value, pull = vjp(f, x)
    return {
        "jvp": jvp(f, (x,), (v,)),
        "vjp": pull(2.0),
        "value": value,
        "hessian": hessian(f)(x),
        "product": jvp(grad(f), (x,), (v,))[1],
        "linear": jax.linearize(f, x)[1](v),
        "norm": grad(lambda x: norm.logcdf(x).sum())(x),
    }


def draws_in_double_precision():
    key = random.PRNGKey(7)
    keys = random.split(key, 6)
    return {
        "normal": random.normal(keys[0], (5,)),
        "uniform": random.uniform(keys[1], (5,), minval=-2.0, maxval=3.0),
        "integers": random.randint(keys[2], (5,), 0, 10**12),
        "bits": random.bits(keys[3], (3,)) >> 11,
        "exponential": random.exponential(keys[4], (5,)),
        "gamma": random.gamma(keys[5], 2.5, (4,)),
        "categorical": random.categorical(key, jnp.log(jnp.array([0.1, 0.2, 0.7])), shape=(6,)),
        "choice": random.choice(key, 5, (4,), p=jnp.array([0.1, 0.2, 0.3, 0.2, 0.2])),
        "permutation": random.permutation(key, 6),
        "truncated": random.truncated_normal(key, -1.0, 2.0, (4,)),
    }


def default_dtypes():
    i = jnp.arange(4)
    m = jnp.array([[3, 1], [2, 5]])
    return {
        "arange": i,
        "ones": jnp.ones(2) / 3,
        "eye": jnp.eye(2),
        "mean": i.mean(),
        "sum": jnp.sum(jnp.array([1, 2], dtype="int32")),
        "argsort": jnp.argsort(jnp.array([3.0, 1.0, 2.0])),
        "argmax": m.argmax(1),
        "nonzero": jnp.nonzero(m > 2),
        "one_hot": jax.nn.one_hot(i, 4),
        "halves": i * 0.5,
        "loop": lax.fori_loop(0, 5, lambda i, x: x + i, 0),
        "big": jnp.asarray(2**40) + 1,
        "float": jnp.zeros(2, float),
        "int": jnp.zeros(2, int),
        "names": (jnp.zeros(1, jnp.float_), jnp.zeros(1, jnp.int_)),
        "inverse": jnp.linalg.inv(m),
        "unique": jnp.unique(jnp.array([3, 1, 3]), return_counts=True),
        "glorot": jax.nn.initializers.glorot_normal()(random.PRNGKey(0), (2, 2)),
    }
