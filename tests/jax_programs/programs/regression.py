"""Fits of simple models."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, value_and_grad, vmap


def _line(count=40):
    x_key, noise_key = random.split(random.PRNGKey(0))
    x = random.normal(x_key, (count, 3))
    y = x @ jnp.array([1.5, -2.0, 0.5]) + 0.3 + 0.1 * random.normal(noise_key, (count,))
    return x, y


def linear_regression_by_gradient_descent():
    x, y = _line()

    def loss(params):
        return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)

    @jit
    def update(params):
        value, gradient = value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value

    params = {"w": jnp.zeros(3), "b": 0.0}
    losses = []
    for _ in range(20):
        params, value = update(params)
        losses.append(value)
    return {"params": params, "losses": jnp.stack(losses)}


def ridge_in_closed_form():
    x, y = _line()

    def fit(strength):
        return jnp.linalg.solve(x.T @ x + strength * jnp.eye(3), x.T @ y)

    def validation(strength):
        return jnp.mean((x[20:] @ fit(strength) - y[20:]) ** 2)

    return {"w": fit(0.1), "path": vmap(fit)(jnp.logspace(-2, 2, 5)), "gradient": grad(validation)(0.5)}


def logistic_regression_by_newton():
    x, y = _line()
    labels = (y > 0).astype(jnp.float32)

    def loss(w):
        logits = x @ w
        return jnp.mean(jnp.logaddexp(0.0, logits) - labels * logits) + 0.05 * jnp.sum(w**2)

    def step(w, _):
        direction = jnp.linalg.solve(jax.hessian(loss)(w), grad(loss)(w))
        return w - direction, loss(w)

    w, losses = lax.scan(step, jnp.zeros(3), None, length=6)
    return {"w": w, "losses": losses, "gradient": grad(loss)(w + 0.1)}


def softmax_regression():
    x, y = _line(30)
    labels = jnp.digitize(y, jnp.array([-1.0, 1.0]))
    targets = jax.nn.one_hot(labels, 3)

    def loss(params, x, targets):
        logits = x @ params["w"] + params["b"]
        return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1))

    params = {"w": jnp.zeros((3, 3)), "b": jnp.zeros(3)}
    step = jit(lambda p: jax.tree_util.tree_map(lambda a, b: a - 0.5 * b, p, grad(loss)(p, x, targets)))
    for _ in range(15):
        params = step(params)
    accuracy = jnp.mean(jnp.argmax(x @ params["w"] + params["b"], axis=1) == labels)
    return {"params": params, "labels": labels, "accuracy": accuracy}


def poisson_regression_in_a_loop():
    x, _ = _line()
    counts = random.poisson(random.PRNGKey(3), jnp.exp(x @ jnp.array([0.3, 0.1, -0.2]))).astype(jnp.float32)

    def negative_log_likelihood(w):
        rate = x @ w
        return jnp.mean(jnp.exp(rate) - counts * rate)

    w = lax.fori_loop(0, 30, lambda i, w: w - 0.2 * grad(negative_log_likelihood)(w), jnp.zeros(3))
    return {"w": w, "counts": counts, "hessian": jax.hessian(negative_log_likelihood)(w)}


def lasso_by_proximal_gradients():
    x, y = _line()
    step = 1.0 / jnp.linalg.norm(x, ord=2) ** 2

    def soft(w, threshold):
        return jnp.sign(w) * jnp.maximum(jnp.abs(w) - threshold, 0.0)

    def body(state):
        w, _, count = state
        following = soft(w - step * x.T @ (x @ w - y), step * 5.0)
        return following, jnp.max(jnp.abs(following - w)), count + 1

    w, change, count = lax.while_loop(lambda s: (s[1] > 1e-4) & (s[2] < 200), body, (jnp.zeros(3), jnp.inf, 0))
    return {"w": w, "small": change <= 1e-4, "ends": count < 200}


def robust_regression():
    x, y = _line()
    y = y.at[::7].add(10.0)

    def huber(residual, delta=1.0):
        size = jnp.abs(residual)
        return jnp.where(size < delta, 0.5 * residual**2, delta * (size - 0.5 * delta))

    def loss(w):
        return jnp.sum(vmap(huber)(x @ w - y))

    def momentum_step(carry, _):
        w, velocity = carry
        velocity = 0.8 * velocity - 0.005 * grad(loss)(w)
        return (w + velocity, velocity), loss(w)

    (w, _), losses = lax.scan(momentum_step, (jnp.zeros(3), jnp.zeros(3)), jnp.arange(25))
    return {"w": w, "losses": losses}


def kernel_ridge_regression():
    x, y = _line(20)

    def kernel(a, b, width):
        return jnp.exp(-jnp.sum((a - b) ** 2) / (2 * width**2))

    gram = vmap(vmap(kernel, in_axes=(None, 0, None)), in_axes=(0, None, None))

    def left_out(width):
        dual = jax.scipy.linalg.solve(gram(x[:15], x[:15], width) + 0.1 * jnp.eye(15), y[:15], assume_a="pos")
        return jnp.mean((gram(x[15:], x[:15], width) @ dual - y[15:]) ** 2)

    value, gradient = jit(value_and_grad(left_out))(1.2)
    return {"error": value, "gradient": gradient, "gram": gram(x[:4], x[:4], 1.0)}


def quantile_regression():
    x, y = _line()

    @partial(jit, static_argnums=1)
    def loss(w, level):
        residual = y - x @ w
        return jnp.mean(jnp.maximum(level * residual, (level - 1) * residual))

    fits = {}
    for level in (0.25, 0.75):
        w = jnp.zeros(3)
        for _ in range(30):
            w = w - 0.2 * grad(loss)(w, level)
        fits[str(level)] = w
    return fits


def polynomial_fit():
    t = jnp.linspace(-1.0, 1.0, 25)
    y = 1.0 - 2.0 * t + 3.0 * t**3
    coefficients = jnp.polyfit(t, y, 3)
    residual = lambda c: jnp.sum((jnp.polyval(c, t) - y - 0.1) ** 2)
    return {
        "coefficients": coefficients,
        "values": jnp.polyval(coefficients, t),
        "gradient": grad(residual)(coefficients),
    }
