"""Inference."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, value_and_grad, vmap
from jax.scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from jax.scipy.special import logsumexp
from jax.scipy.stats import multivariate_normal, norm


def kalman_filter():
    f, h = jnp.array([[1.0, 0.1], [0.0, 1.0]]), jnp.array([[1.0, 0.0]])
    observations = jnp.sin(jnp.arange(15) * 0.3)[:, None]

    def log_likelihood(log_noise):
        q, r = jnp.exp(log_noise[0]) * jnp.eye(2), jnp.exp(log_noise[1]) * jnp.eye(1)

        def step(carry, y):
            mean, covariance = carry
            mean, covariance = f @ mean, f @ covariance @ f.T + q
            s = h @ covariance @ h.T + r
            gain = jnp.linalg.solve(s, h @ covariance).T
            innovation = y - h @ mean
            log_p = multivariate_normal.logpdf(innovation, jnp.zeros(1), s)
            return (mean + gain @ innovation, covariance - gain @ h @ covariance), (mean, log_p)

        _, (means, log_ps) = lax.scan(step, (jnp.zeros(2), jnp.eye(2)), observations)
        return log_ps.sum(), means

    (value, means), gradient = value_and_grad(log_likelihood, has_aux=True)(jnp.array([-2.0, -1.0]))
    return {"value": value, "means": means, "gradient": gradient}


def hidden_markov_model():
    logits = random.normal(random.PRNGKey(0), (3, 3))
    emissions = random.normal(random.PRNGKey(1), (3, 4))
    seen = jnp.array([0, 3, 1, 1, 2, 0])

    def log_evidence(params):
        transition = jax.nn.log_softmax(params[0], axis=1)
        emission = jax.nn.log_softmax(params[1], axis=1)

        def forward(alpha, y):
            alpha = logsumexp(alpha[:, None] + transition, axis=0) + emission[:, y]
            return alpha, alpha

        first = emission[:, seen[0]] - jnp.log(3.0)
        final, alphas = lax.scan(forward, first, seen[1:])
        return logsumexp(final), alphas

    (value, alphas), gradients = value_and_grad(log_evidence, has_aux=True)((logits, emissions))
    return {"value": value, "alphas": alphas, "gradients": gradients}


def linear_recurrence_in_parallel():
    a, b = random.uniform(random.PRNGKey(2), (2, 17, 3))

    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    def run(a, b):
        return lax.associative_scan(combine, (a, b))[1]

    backwards = lax.associative_scan(jnp.maximum, a, reverse=True)
    return {
        "states": run(a, b),
        "gradients": grad(lambda a, b: run(a, b)[-1].sum(), (0, 1))(a, b),
        "backwards": backwards,
    }


def hamiltonian_monte_carlo():
    log_density = lambda x: -0.5 * jnp.sum(x**2 / jnp.array([1.0, 4.0])) - 0.1 * x[0] ** 2 * x[1]

    def transition(x, key):
        momentum_key, accept_key = random.split(key)
        momentum = random.normal(momentum_key, x.shape)

        def leapfrog(i, state):
            q, p = state
            p = p + 0.05 * grad(log_density)(q)
            q = q + 0.1 * p
            return q, p + 0.05 * grad(log_density)(q)

        q, p = lax.fori_loop(0, 5, leapfrog, (x, momentum))
        ratio = log_density(q) - 0.5 * p @ p - log_density(x) + 0.5 * momentum @ momentum
        accepted = jnp.log(random.uniform(accept_key)) < ratio
        return jnp.where(accepted, q, x), accepted

    final, accepted = jit(lambda x, keys: lax.scan(transition, x, keys))(
        jnp.ones(2), random.split(random.PRNGKey(3), 20)
    )
    return {"final": final, "accepted": accepted}


def metropolis_in_several_chains():
    def chain(key):
        def step(carry, key):
            x, count = carry
            first, second = random.split(key)
            proposal = x + 0.5 * random.normal(first)
            better = random.uniform(second) < jnp.exp(norm.logpdf(proposal, 1.0) - norm.logpdf(x, 1.0))
            return (lax.select(better, proposal, x), count + better), x

        (_, count), path = lax.scan(step, (jnp.float32(0.0), jnp.int32(0)), random.split(key, 15))
        return path, count

    paths, counts = vmap(chain)(random.split(random.PRNGKey(4), 3))
    return {"paths": paths, "counts": counts}


def gaussian_process():
    x = jnp.linspace(0.0, 1.0, 8)
    y = jnp.sin(5 * x)

    def covariance(params, a, b):
        return jnp.exp(params[0]) * jnp.exp(-0.5 * (a[:, None] - b) ** 2 / jnp.exp(2 * params[1]))

    def evidence(params):
        factor = cholesky(covariance(params, x, x) + jnp.exp(params[2]) * jnp.eye(8), lower=True)
        whitened = solve_triangular(factor, y, lower=True)
        return -0.5 * whitened @ whitened - jnp.sum(jnp.log(jnp.diag(factor))) - 4 * jnp.log(2 * jnp.pi)

    params = jnp.array([0.0, -1.0, -3.0])
    new = jnp.array([0.3, 0.9])
    factor = cho_factor(covariance(params, x, x) + jnp.exp(params[2]) * jnp.eye(8))
    mean = covariance(params, new, x) @ cho_solve(factor, y)
    return {"evidence": evidence(params), "gradient": grad(evidence)(params), "mean": mean}


def particle_filter():
    observations = jnp.array([0.1, 0.4, 0.2, -0.3])

    def step(carry, inputs):
        particles, log_evidence = carry
        y, key = inputs
        move_key, choose_key = random.split(key)
        particles = 0.9 * particles + 0.3 * random.normal(move_key, particles.shape)
        log_weights = norm.logpdf(y, particles, 0.5)
        chosen = random.categorical(choose_key, log_weights, shape=particles.shape)
        return (particles[chosen], log_evidence + logsumexp(log_weights) - jnp.log(20.0)), particles.mean()

    keys = random.split(random.PRNGKey(5), 4)
    (particles, log_evidence), means = lax.scan(step, (jnp.zeros(20), 0.0), (observations, keys))
    return {"particles": particles, "log_evidence": log_evidence, "means": means}


def mixture_by_expectation_maximization():
    data = jnp.concatenate([random.normal(random.PRNGKey(6), (20,)) - 3, random.normal(random.PRNGKey(7), (30,)) + 2])

    def iteration(params, _):
        weights, means, scales = params
        log_p = jnp.log(weights) + norm.logpdf(data[:, None], means, scales)
        responsibilities = jax.nn.softmax(log_p, axis=1)
        totals = responsibilities.sum(0)
        means = responsibilities.T @ data / totals
        scales = jnp.sqrt(jnp.sum(responsibilities * (data[:, None] - means) ** 2, axis=0) / totals)
        return (totals / len(data), means, scales), logsumexp(log_p, axis=1).sum()

    start = (jnp.array([0.5, 0.5]), jnp.array([-1.0, 1.0]), jnp.ones(2))
    params, path = lax.scan(iteration, start, None, length=10)
    return {"params": params, "path": path}


def k_means():
    points = random.normal(random.PRNGKey(8), (30, 2)) + 4 * jnp.eye(2)[jnp.arange(30) % 2]

    def body(state):
        centres, _, count = state
        nearest = jnp.argmin(jnp.sum((points[:, None] - centres) ** 2, axis=-1), axis=1)
        sums = jax.ops.segment_sum(points, nearest, num_segments=2)
        counts = jax.ops.segment_sum(jnp.ones(30), nearest, num_segments=2)
        return sums / counts[:, None], jnp.max(jnp.abs(sums / counts[:, None] - centres)), count + 1

    centres, _, _ = lax.while_loop(lambda s: (s[1] > 1e-5) & (s[2] < 30), body, (points[:2], 1.0, 0))
    return {"centres": centres}


def laplace_approximation():
    x = random.normal(random.PRNGKey(9), (25, 2))
    y = (x[:, 0] - x[:, 1] > 0).astype(jnp.float32)

    def negative_log_posterior(w):
        return jnp.sum(jax.nn.softplus(x @ w) - y * (x @ w)) + 0.5 * w @ w

    w = jnp.zeros(2)
    for _ in range(5):
        w = w - jnp.linalg.solve(jax.hessian(negative_log_posterior)(w), jax.grad(negative_log_posterior)(w))
    precision = jax.hessian(negative_log_posterior)(w)
    evidence = -negative_log_posterior(w) - 0.5 * jnp.linalg.slogdet(precision)[1]
    return {"w": w, "covariance": jnp.linalg.inv(precision), "evidence": evidence}


def bootstrap_of_a_median():
    data = random.gamma(random.PRNGKey(10), 2.0, (21,))

    def resampled(key):
        return jnp.median(random.choice(key, data, (21,)))

    medians = vmap(resampled)(random.split(random.PRNGKey(11), 40))
    return {
        "medians": medians,
        "interval": jnp.percentile(medians, jnp.array([5.0, 95.0])),
        "deviation": medians.std(ddof=1),
    }
