"""Generative models."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, nn, random, value_and_grad, vmap
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm


def _mlp(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [{"w": random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)} for k, m, n in zip(keys, sizes, sizes[1:])]


def _apply(layers, x):
    for layer in layers[:-1]:
        x = nn.tanh(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def variational_autoencoder():
    key = random.key(0)
    encoder, decoder = _mlp(random.fold_in(key, 1), [6, 5, 4]), _mlp(random.fold_in(key, 2), [2, 5, 6])
    data = random.bernoulli(random.fold_in(key, 3), 0.4, (8, 6)).astype(jnp.float32)

    def elbo(params, x, key):
        encoder, decoder = params
        mean, log_std = jnp.split(_apply(encoder, x), 2)
        z = mean + jnp.exp(log_std) * random.normal(key, mean.shape)
        logits = _apply(decoder, z)
        likelihood = -jnp.sum(jnp.logaddexp(0.0, jnp.where(x == 1, -logits, logits)))
        divergence = 0.5 * jnp.sum(jnp.exp(2 * log_std) + mean**2 - 1 - 2 * log_std)
        return likelihood - divergence

    def loss(params, key):
        return -jnp.mean(vmap(elbo, (None, 0, 0))(params, data, random.split(key, len(data))))

    value, gradient = jit(value_and_grad(loss))((encoder, decoder), random.fold_in(key, 4))
    return {"value": value, "gradient": gradient}


def adversarial_losses():
    keys = random.split(random.PRNGKey(1), 4)
    generator, critic = _mlp(keys[0], [3, 6, 2]), _mlp(keys[1], [2, 6, 1])
    real, noise = random.normal(keys[2], (10, 2)) + 2, random.normal(keys[3], (10, 3))

    def critic_loss(critic, generator):
        fake = lax.stop_gradient(_apply(generator, noise))
        return jnp.mean(nn.softplus(-_apply(critic, real))) + jnp.mean(nn.softplus(_apply(critic, fake)))

    def generator_loss(generator, critic):
        return jnp.mean(nn.softplus(-_apply(critic, _apply(generator, noise))))

    for _ in range(3):
        critic = jax.tree.map(lambda p, g: p - 0.1 * g, critic, grad(critic_loss)(critic, generator))
        generator = jax.tree.map(lambda p, g: p - 0.1 * g, generator, grad(generator_loss)(generator, critic))
    return {"critic": critic, "generator": generator}


def denoising_diffusion():
    betas = jnp.linspace(1e-3, 0.2, 20)
    kept = jnp.cumprod(1 - betas)
    keys = random.split(random.PRNGKey(2), 4)
    params, data = _mlp(keys[0], [3, 8, 2]), random.normal(keys[1], (16, 2))

    def loss(params, key):
        time_key, noise_key = random.split(key)
        t = random.randint(time_key, (16,), 0, 20)
        noise = random.normal(noise_key, data.shape)
        noisy = jnp.sqrt(kept[t])[:, None] * data + jnp.sqrt(1 - kept[t])[:, None] * noise
        predicted = _apply(params, jnp.concatenate([noisy, t[:, None] / 20], axis=1))
        return jnp.mean((predicted - noise) ** 2)

    def sample(params, key):
        def denoise(x, step):
            t, key = step
            predicted = _apply(params, jnp.append(x, t / 20))
            mean = (x - betas[t] / jnp.sqrt(1 - kept[t]) * predicted) / jnp.sqrt(1 - betas[t])
            return mean + jnp.where(t > 0, jnp.sqrt(betas[t]), 0.0) * random.normal(key, (2,)), None

        return lax.scan(denoise, jnp.ones(2), (jnp.arange(19, -1, -1), random.split(key, 20)))[0]

    value, gradient = value_and_grad(loss)(params, keys[2])
    return {"value": value, "gradient": gradient, "samples": vmap(sample, (None, 0))(params, random.split(keys[3], 3))}


def normalizing_flow():
    keys = random.split(random.PRNGKey(3), 3)
    params = [_mlp(k, [1, 6, 2]) for k in keys[:2]]
    data = random.normal(keys[2], (12, 2)) * jnp.array([2.0, 0.5])

    def inverse(params, x):
        log_determinant = 0.0
        for layer in params:
            shift, scale = _apply(layer, x[:1])
            scale = jnp.tanh(scale)
            x = jnp.stack([(x[1] - shift) * jnp.exp(-scale), x[0]])
            log_determinant -= scale
        return x, log_determinant

    def log_density(params, x):
        z, log_determinant = inverse(params, x)
        return norm.logpdf(z).sum() + log_determinant

    loss = lambda params: -jnp.mean(vmap(log_density, (None, 0))(params, data))
    jacobian = jax.jacfwd(lambda x: inverse(params, x)[0])(data[0])
    value, gradient = value_and_grad(loss)(params)
    return {"value": value, "gradient": gradient, "slogdet": jnp.linalg.slogdet(jacobian)[1]}


def score_matching():
    params = _mlp(random.PRNGKey(4), [2, 8, 2])
    data = random.normal(random.PRNGKey(5), (6, 2))

    def objective(params, x):
        score = lambda x: _apply(params, x)
        return jnp.trace(jax.jacfwd(score)(x)) + 0.5 * jnp.sum(score(x) ** 2)

    loss = lambda params: jnp.mean(vmap(objective, (None, 0))(params, data))
    value, gradient = value_and_grad(loss)(params)
    return {"value": value, "gradient": gradient}


def langevin_sampling():
    energy = lambda x: jnp.sum((x**2 - 1) ** 2) + 0.5 * x[0] * x[1]

    def step(x, key):
        return x - 0.05 * grad(energy)(x) + jnp.sqrt(0.1) * 0.3 * random.normal(key, x.shape), energy(x)

    x, energies = lax.scan(step, jnp.array([2.0, -1.5]), random.split(random.key(6), 25))
    return {"x": x, "energies": energies}


def mixture_density_network():
    keys = random.split(random.PRNGKey(7), 2)
    params, x = _mlp(keys[0], [1, 6, 9]), jnp.linspace(-1, 1, 10)[:, None]
    y = jnp.sin(3 * x[:, 0])

    def loss(params):
        logits, means, log_stds = jnp.split(vmap(_apply, (None, 0))(params, x), 3, axis=1)
        parts = norm.logpdf(y[:, None], means, jnp.exp(log_stds)) + nn.log_softmax(logits)
        return -jnp.mean(logsumexp(parts, axis=1))

    value, gradient = jit(value_and_grad(loss))(params)
    return {"value": value, "gradient": gradient}


def autoregressive_sampling():
    table = random.normal(random.PRNGKey(8), (5, 5))

    def step(carry, key):
        token, log_probability = carry
        following = random.categorical(key, table[token])
        return (following, log_probability + nn.log_softmax(table[token])[following]), following

    keys = random.split(random.PRNGKey(9), 12)
    (_, log_probability), tokens = lax.scan(step, (jnp.int32(0), 0.0), keys)
    return {"tokens": tokens, "log_probability": log_probability}


def gumbel_softmax_with_a_straight_through_estimator():
    logits = jnp.array([0.5, -1.0, 2.0])

    def sample(logits, key):
        soft = nn.softmax((logits + random.gumbel(key, logits.shape)) / 0.5)
        hard = nn.one_hot(jnp.argmax(soft), 3)
        return soft + lax.stop_gradient(hard - soft)

    def loss(logits):
        drawn = vmap(sample, (None, 0))(logits, random.split(random.PRNGKey(10), 6))
        return jnp.mean(drawn @ jnp.array([1.0, 2.0, 3.0]))

    value, gradient = value_and_grad(loss)(logits)
    return {"value": value, "gradient": gradient}
