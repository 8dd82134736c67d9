"""Random numbers: the same keys give the same numbers."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, vmap


def keys_are_split_and_folded():
    key = random.PRNGKey(42)
    a, b = random.split(key)
    typed = random.key_data(random.key(42))
    return {
        "split": [a, b],
        "many": random.split(key, (2, 3)),
        "folded": vmap(lambda i: random.fold_in(key, i))(jnp.arange(3)),
        "typed": typed,
    }


def uniform_numbers_and_bits():
    key = random.PRNGKey(0)
    return {
        "uniform": random.uniform(key, (7,)),
        "range": random.uniform(key, (3, 2), minval=-2.0, maxval=5.0),
        "bits": random.bits(key, (5,)),
        "integers": random.randint(key, (6,), -3, 9),
        "bernoulli": random.bernoulli(key, 0.3, (8,)),
        "half": random.uniform(key, (4,), jnp.bfloat16),
        "jit": jit(lambda k: random.uniform(k, (7,)))(key),
    }


def normal_numbers():
    key = random.PRNGKey(1)
    covariance = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    return {
        "normal": random.normal(key, (9,)),
        "truncated": random.truncated_normal(key, -1.0, 2.0, (5,)),
        "several": random.multivariate_normal(key, jnp.zeros(2), covariance, (3,)),
        "ball": random.ball(key, 3),
        "lognormal": random.lognormal(key, 0.5, (4,)),
        "orthogonal": jnp.abs(random.orthogonal(key, 3)),
    }


def other_continuous_numbers():
    key = random.PRNGKey(2)
    return {
        "exponential": random.exponential(key, (5,)),
        "gumbel": random.gumbel(key, (5,)),
        "laplace": random.laplace(key, (5,)),
        "cauchy": random.cauchy(key, (5,)),
        "logistic": random.logistic(key, (5,)),
        "pareto": random.pareto(key, 3.0, (5,)),
        "gamma": random.gamma(key, 2.5, (5,)),
        "beta": random.beta(key, 2.0, 3.0, (5,)),
        "dirichlet": random.dirichlet(key, jnp.ones(3), (2,)),
        "t": random.t(key, 4.0, (5,)),
        "chisquare": random.chisquare(key, 3.0, shape=(5,)),
        "rayleigh": random.rayleigh(key, 1.0, (5,)),
    }


def choices_and_orders():
    key = random.PRNGKey(3)
    x = jnp.arange(10)
    return {
        "permutation": random.permutation(key, x),
        "rows": random.permutation(key, jnp.arange(12).reshape(4, 3)),
        "choice": random.choice(key, x, (4,)),
        "without": random.choice(key, 10, (4,), replace=False),
        "weighted": random.choice(key, x, (5,), p=jnp.arange(10) / 45.0),
        "categorical": random.categorical(key, jnp.log(jnp.array([0.1, 0.6, 0.3])), shape=(8,)),
        "rademacher": random.rademacher(key, (6,)),
    }


def counts():
    key = random.PRNGKey(4)
    return {
        "poisson": random.poisson(key, 3.0, (8,)),
        "large": random.poisson(key, 50.0, (4,)),
        "geometric": random.geometric(key, 0.3, (6,)),
        "binomial": random.binomial(key, 10, 0.4, (6,)),
    }


def monte_carlo_estimates():
    def estimate(key, count=200):
        x, y = random.uniform(key, (2, count))
        return 4 * jnp.mean(x**2 + y**2 < 1)

    estimates = vmap(estimate)(random.split(random.PRNGKey(5), 6))
    price = lambda volatility: jnp.mean(
        jnp.maximum(jnp.exp(volatility * random.normal(random.PRNGKey(6), (300,)) - volatility**2 / 2) - 1, 0)
    )
    return {"pi": estimates, "price": price(0.2), "vega": grad(price)(0.2)}


def random_walks_in_a_scan():
    def walk(key):
        def step(position, key):
            position = position + random.choice(key, jnp.array([[0, 1], [0, -1], [1, 0], [-1, 0]]))
            return position, position

        return lax.scan(step, jnp.zeros(2, jnp.int32), random.split(key, 12))[1]

    return {"paths": vmap(walk)(random.split(random.PRNGKey(7), 3))}


def reparametrized_gradients():
    key = random.PRNGKey(8)
    through_normal = grad(lambda mean, scale: jnp.mean(jnp.sin(mean + scale * random.normal(key, (20,)))), (0, 1))(
        0.3, 0.7
    )
    through_gamma = grad(lambda a: jnp.mean(random.gamma(key, a, (20,))))(2.0)
    score = grad(
        lambda p: jnp.sum(jax.scipy.stats.bernoulli.logpmf(random.bernoulli(key, 0.4, (10,)).astype(jnp.int32), p))
    )(0.4)
    return {"normal": through_normal, "gamma": through_gamma, "score": score}
