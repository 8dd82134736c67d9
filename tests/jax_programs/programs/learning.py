"""Learning of further kinds, as repositories of research write it."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, nn, random, value_and_grad, vmap
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm


def _mlp(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def _initialized(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        (random.normal(k, (m, n)) / jnp.sqrt(m), jnp.zeros(n)) for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def meta_learning_through_an_inner_step():
    params = _initialized(random.PRNGKey(0), [1, 8, 1])
    mse = lambda p, x, y: jnp.mean((_mlp(p, x) - y) ** 2)

    def adapted(p, x, y):
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, grad(mse)(p, x, y))

    def task(p, phase):
        x = jnp.linspace(-2, 2, 10)[:, None]
        y = jnp.sin(x + phase)
        return mse(adapted(p, x[::2], y[::2]), x[1::2], y[1::2])

    loss = lambda p: vmap(task, (None, 0))(p, jnp.array([0.0, 1.0, 2.0])).mean()
    value, gradient = jit(value_and_grad(loss))(params)
    inner = lax.stop_gradient(grad(mse)(params, jnp.ones((2, 1)), 2.0))
    first_order = grad(lambda p: mse(jax.tree.map(lambda p, g: p - 0.1 * g, p, inner), jnp.ones((2, 1)), 2.0))(params)
    return {"value": value, "gradient": gradient, "first_order": first_order}


def physics_informed_network():
    params = _initialized(random.PRNGKey(1), [2, 8, 1])
    points = random.uniform(random.PRNGKey(2), (6, 2))
    u = lambda p, t, x: _mlp(p, jnp.stack([t, x]))[0]

    def residual(p, point):
        t, x = point
        u_t = grad(u, 1)(p, t, x)
        u_xx = grad(grad(u, 2), 2)(p, t, x)
        return u_t - 0.1 * u_xx + u(p, t, x) * grad(u, 2)(p, t, x)

    loss = lambda p: jnp.mean(vmap(residual, (None, 0))(p, points) ** 2) + u(p, 0.0, 0.0) ** 2
    return {"residuals": vmap(residual, (None, 0))(params, points), "step": jit(value_and_grad(loss))(params)}


def hamiltonian_network():
    params = _initialized(random.PRNGKey(3), [2, 6, 1])
    energy = lambda p, state: _mlp(p, state)[0]

    def velocity(p, state):
        dq, dp = grad(energy, 1)(p, state)
        return jnp.array([dp, -dq])

    def rollout(p, state):
        def step(s, _):
            k1 = velocity(p, s)
            s = s + 0.1 * velocity(p, s + 0.05 * k1)
            return s, s

        return lax.scan(step, state, None, length=6)[1]

    loss = lambda p: jnp.sum(rollout(p, jnp.array([1.0, 0.0])) ** 2)
    return {"path": rollout(params, jnp.array([1.0, 0.0])), "gradient": grad(loss)(params)}


def policy_gradients_with_returns():
    params = _initialized(random.PRNGKey(4), [2, 8, 3])

    def episode(key):
        def step(state, key):
            action = random.categorical(key, _mlp(params, state))
            moved = state * 0.9 + 0.2 * jnp.stack([action - 1.0, jnp.sum(state)])
            return moved, (state, action, -jnp.sum(moved**2))

        return lax.scan(step, jnp.array([1.0, -1.0]), random.split(key, 7))[1]

    states, actions, rewards = vmap(episode)(random.split(random.PRNGKey(5), 3))

    def discounted(rewards):
        return lax.scan(lambda later, r: (r + 0.9 * later,) * 2, 0.0, rewards, reverse=True)[1]

    returns = vmap(discounted)(rewards)
    advantages = (returns - returns.mean()) / (returns.std() + 1e-8)

    def loss(params):
        log_p = nn.log_softmax(_mlp(params, states))
        chosen = jnp.take_along_axis(log_p, actions[..., None], axis=-1)[..., 0]
        ratio = jnp.exp(chosen - lax.stop_gradient(chosen))
        clipped = jnp.minimum(ratio * advantages, jnp.clip(ratio, 0.8, 1.2) * advantages)
        entropy = -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)
        return -jnp.mean(clipped) - 0.01 * jnp.mean(entropy)

    return {"actions": actions, "returns": returns, "gradient": grad(loss)(params)}


def variational_inference():
    x = random.normal(random.PRNGKey(6), (12, 2))
    y = x @ jnp.array([1.0, -2.0]) + 0.1 * random.normal(random.PRNGKey(7), (12,))
    log_joint = lambda w: norm.logpdf(y, x @ w, 0.5).sum() + norm.logpdf(w).sum()

    def elbo(q, key):
        mean, log_scale = q
        w = mean + jnp.exp(log_scale) * random.normal(key, (8, 2))
        return vmap(log_joint)(w).mean() + jnp.sum(log_scale)

    @jit
    def step(q, key):
        value, gradient = value_and_grad(elbo)(q, key)
        return jax.tree.map(lambda q, g: q + 0.005 * g, q, gradient), value

    q, values = lax.scan(step, (jnp.zeros(2), jnp.zeros(2)), random.split(random.PRNGKey(8), 12))
    return {"q": q, "values": values}


def word_vectors_by_negative_sampling():
    key = random.PRNGKey(9)
    vectors, contexts = random.normal(key, (2, 12, 4)) * 0.3
    centre, other = jnp.array([0, 3, 5, 3]), jnp.array([1, 4, 6, 2])
    negatives = random.randint(random.fold_in(key, 1), (4, 5), 0, 12)

    def loss(vectors, contexts):
        v, u, n = vectors[centre], contexts[other], contexts[negatives]
        positive = nn.log_sigmoid(jnp.einsum("bd,bd->b", v, u))
        negative = nn.log_sigmoid(-jnp.einsum("bd,bkd->bk", v, n)).sum(1)
        return -(positive + negative).mean()

    gradients = grad(loss, argnums=(0, 1))(vectors, contexts)
    return {"loss": loss(vectors, contexts), "gradients": gradients}


def optimal_transport_by_sinkhorn():
    x, y = random.normal(random.PRNGKey(10), (5, 2)), random.normal(random.PRNGKey(11), (6, 2)) + 1

    def cost(x, y, epsilon=0.5):
        c = jnp.sum((x[:, None] - y) ** 2, axis=-1)

        def step(_, potentials):
            f, g = potentials
            f = -epsilon * logsumexp((g - c) / epsilon, axis=1, b=1 / 6)
            return f, -epsilon * logsumexp((f[:, None] - c) / epsilon, axis=0, b=1 / 5)

        f, g = lax.fori_loop(0, 15, step, (jnp.zeros(5), jnp.zeros(6)))
        return jnp.mean(f) + jnp.mean(g)

    return {"cost": cost(x, y), "gradient": grad(cost)(x, y)}


def matrix_factorization_by_least_squares():
    ratings = random.normal(random.PRNGKey(12), (6, 2)) @ random.normal(random.PRNGKey(13), (2, 5))
    mask = random.bernoulli(random.PRNGKey(14), 0.8, ratings.shape)

    def solve_rows(other, ratings, mask):
        def row(r, m):
            a = (other * m[:, None]).T @ other + 0.1 * jnp.eye(2)
            return jnp.linalg.solve(a, (other * m[:, None]).T @ r)

        return vmap(row)(ratings, mask.astype(ratings.dtype))

    def sweep(items, _):
        users = solve_rows(items, ratings, mask)
        items = solve_rows(users, ratings.T, mask.T)
        return items, jnp.sum(jnp.where(mask, users @ items.T - ratings, 0.0) ** 2)

    items, errors = jit(lambda v: lax.scan(sweep, v, None, length=4))(jnp.ones((5, 2)) + jnp.eye(5, 2))
    return {"items": items @ items.T, "errors": errors}


def linear_chain_by_viterbi():
    scores = random.normal(random.PRNGKey(15), (6, 3))
    transition = random.normal(random.PRNGKey(16), (3, 3))

    def log_partition(scores, transition):
        step = lambda alpha, s: (logsumexp(alpha[:, None] + transition, axis=0) + s, None)
        return logsumexp(lax.scan(step, scores[0], scores[1:])[0])

    def forward(best, s):
        candidates = best[:, None] + transition
        return candidates.max(0) + s, candidates.argmax(0)

    best, pointers = lax.scan(forward, scores[0], scores[1:])
    last = jnp.argmax(best)
    _, path = lax.scan(lambda tag, back: (back[tag], tag), last, pointers, reverse=True)
    marginals, pairs = grad(log_partition, (0, 1))(scores, transition)
    return {"best": best.max(), "path": path, "marginals": marginals, "pairs": pairs}


def extended_kalman_filter():
    dynamics = lambda s: jnp.array([s[0] + 0.1 * s[1], s[1] - 0.1 * jnp.sin(s[0])])
    measured = lambda s: jnp.sin(s[:1])

    def step(carry, y):
        mean, cov = carry
        f = jax.jacfwd(dynamics)(mean)
        mean, cov = dynamics(mean), f @ cov @ f.T + 0.01 * jnp.eye(2)
        h = jax.jacrev(measured)(mean)
        s = h @ cov @ h.T + 0.1 * jnp.eye(1)
        gain = jnp.linalg.solve(s, h @ cov).T
        innovation = y - measured(mean)
        evidence = -0.5 * innovation @ jnp.linalg.inv(s) @ innovation - 0.5 * jnp.linalg.slogdet(s).logabsdet
        return (mean + gain @ innovation, cov - gain @ h @ cov), evidence

    ys = jnp.sin(jnp.linspace(1.0, 0.2, 6))[:, None]
    run = lambda start: lax.scan(step, (start, jnp.eye(2)), ys)
    (mean, cov), evidence = jit(run)(jnp.array([1.0, 0.0]))
    gradient = grad(lambda s: run(s)[1].sum())(jnp.array([1.0, 0.0]))
    return {"mean": mean, "cov": cov, "evidence": evidence, "gradient": gradient}


def linear_quadratic_regulator():
    a, b = jnp.array([[1.0, 0.1], [0.0, 1.0]]), jnp.array([[0.0], [0.1]])

    def cost(q):
        def riccati(p, _):
            k = jnp.linalg.solve(jnp.eye(1) * 0.1 + b.T @ p @ b, b.T @ p @ a)
            return jnp.diag(q) + a.T @ p @ (a - b @ k), k

        _, gains = lax.scan(riccati, jnp.diag(q), xs=None, length=20)
        _, path = lax.scan(lambda x, k: ((a - b @ k) @ x, x), jnp.array([1.0, 0.0]), gains[::-1])
        return jnp.sum(path**2), (gains[-1], path[-1])

    (value, (gain, last)), gradient = value_and_grad(cost, has_aux=True)(jnp.array([1.0, 0.1]))
    return {"value": value, "gain": gain, "last": last, "gradient": gradient}


def limited_memory_quasi_newton():
    def loss(tree):
        return jnp.sum((tree["a"] - 1) ** 2 * jnp.array([1.0, 10.0])) + (tree["b"] * tree["a"][0] - 2) ** 2

    flat, unravel = ravel_pytree({"a": jnp.zeros(2), "b": jnp.float32(0.5)})
    f = lambda x: loss(unravel(x))

    def direction(g, steps, changes):
        q, alphas = g, []
        for s, y in zip(reversed(steps), reversed(changes)):
            alphas.append(s @ q / (y @ s))
            q = q - alphas[-1] * y
        q = q * (steps[-1] @ changes[-1] / (changes[-1] @ changes[-1])) if steps else 0.05 * q
        for s, y, alpha in zip(steps, changes, reversed(alphas)):
            q = q + (alpha - (y @ q) / (y @ s)) * s
        return -q

    x, steps, changes, values = flat, [], [], []
    for _ in range(5):
        value, g = value_and_grad(f)(x)
        d = direction(g, steps, changes)
        t = lax.while_loop(lambda t: f(x + t * d) > value + 1e-4 * t * (g @ d), lambda t: t * 0.5, jnp.float32(1.0))
        steps, changes, values = [*steps, t * d][-3:], [*changes, grad(f)(x + t * d) - g][-3:], [*values, value]
        x = x + t * d
    return {"x": unravel(x), "values": jnp.array(values)}
