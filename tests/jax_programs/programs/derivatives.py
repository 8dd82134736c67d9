"""Derivatives, as in the autodiff cookbook and beyond."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import custom_jvp, custom_vjp, grad, hessian, jacfwd, jacrev, jit, jvp, lax, random, value_and_grad, vjp, vmap


def _prediction(w, b, inputs):
    return 0.5 * (jnp.tanh(jnp.dot(inputs, w) / 2) + 1)


_inputs = jnp.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
_targets = jnp.array([True, True, False, True])


def _loss(w, b):
    predictions = _prediction(w, b, _inputs)
    return -jnp.sum(jnp.log(predictions * _targets + (1 - predictions) * (1 - _targets)))


def gradients_by_argument():
    w, b = random.normal(random.PRNGKey(0), (3,)), 0.5
    tree = grad(lambda p: _loss(p["w"], p["b"]))({"w": w, "b": b})
    return {
        "0": grad(_loss)(w, b),
        "both": grad(_loss, (0, 1))(w, b),
        "tree": tree,
        "value": value_and_grad(_loss)(w, b),
    }


def jacobians_and_hessians():
    w = jnp.array([0.1, -0.4, 0.7])
    f = lambda w: _prediction(w, 0.0, _inputs)
    everything = jacfwd(jacrev(f))(w)
    return {"fwd": jacfwd(f)(w), "rev": jacrev(f)(w), "hessian": everything, "of_loss": hessian(_loss)(w, 0.0)}


def hessian_vector_products():
    f = lambda x: jnp.sum(jnp.tanh(x) ** 2 * jnp.roll(x, 1))
    x, v = random.normal(random.PRNGKey(1), (2, 5))
    forward_over_reverse = jvp(grad(f), (x,), (v,))[1]
    reverse_over_forward = grad(lambda x: jvp(f, (x,), (v,))[1])(x)
    reverse_over_reverse = grad(lambda x: jnp.vdot(grad(f)(x), v))(x)
    return {"a": forward_over_reverse, "b": reverse_over_forward, "c": reverse_over_reverse}


def pushforwards_and_pullbacks():
    f = lambda x, y: (jnp.sin(x) * y, x / y)
    primals, tangents = (jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])), (jnp.array([0.1, 0.2]), jnp.array([-1.0, 1.0]))
    outputs, pulled = vjp(f, *primals)
    rows = vmap(pulled)((jnp.eye(2), jnp.zeros((2, 2))))
    pushed, linear = jax.linearize(f, *primals)
    transposed = jax.linear_transpose(lambda t: linear(t, jnp.zeros(2))[0], jnp.zeros(2))
    return {
        "jvp": jvp(f, primals, tangents),
        "vjp": (outputs, rows),
        "linear": (pushed, linear(*tangents), transposed(jnp.ones(2))),
    }


def gradients_per_example():
    def loss(params, x, y):
        return (jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2

    params = {"w": 0.5 * random.normal(random.PRNGKey(2), (3, 4)), "v": jnp.ones(4)}
    x, y = random.normal(random.PRNGKey(3), (5, 3)), jnp.arange(5.0)
    each = jit(vmap(grad(loss), in_axes=(None, 0, 0)))(params, x, y)
    norms = vmap(lambda g: jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g))))(each)
    return {"each": each, "norms": norms}


def a_rule_for_forward_mode():
    @custom_jvp
    def log1pexp(x):
        return jnp.log(1.0 + jnp.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t

    x = jnp.array([-2.0, 0.0, 100.0])
    return {
        "gradient": vmap(grad(log1pexp))(x),
        "second": vmap(grad(grad(log1pexp)))(x[:2]),
        "jit": jit(vmap(jit(grad(log1pexp))))(x),
        "hessian": hessian(lambda x: log1pexp(x).sum())(x[:2]),
    }


def rules_per_argument():
    @custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    f.defjvps(
        lambda x_dot, primal_out, x, y: jnp.cos(x) * x_dot * y, lambda y_dot, primal_out, x, y: jnp.sin(x) * y_dot
    )
    return {
        "f": f(2.0, 3.0),
        "0": grad(f, 0)(2.0, 3.0),
        "1": grad(f, 1)(2.0, 3.0),
        "both": jvp(f, (2.0, 3.0), (1.0, 1.0)),
    }


def gradients_that_are_clipped():
    @partial(custom_vjp, nondiff_argnums=(0, 1))
    def clip_gradient(low, high, x):
        return x

    clip_gradient.defvjp(lambda low, high, x: (x, None), lambda low, high, _, g: (jnp.clip(g, low, high),))
    t = jnp.linspace(0, 10, 9)
    clipped = vmap(grad(lambda x: jnp.sin(clip_gradient(-0.75, 0.75, x))))(t)
    return {"clipped": clipped, "plain": vmap(grad(jnp.sin))(t)}


def a_fixed_point_is_differentiated_implicitly():
    @partial(custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, guess):
        def body(state):
            _, now = state
            return now, f(a, now)

        return lax.while_loop(lambda s: jnp.abs(s[0] - s[1]) > 1e-6, body, (guess, f(a, guess)))[1]

    def forward(f, a, guess):
        found = fixed_point(f, a, guess)
        return found, (a, found)

    def backward(f, residuals, cotangent):
        a, found = residuals
        _, vjp_a = vjp(lambda a: f(a, found), a)
        solved = fixed_point(
            lambda packed, u: packed[1] + vjp(lambda x: f(packed[0], x), found)[1](u)[0], (a, cotangent), cotangent
        )
        return vjp_a(solved)[0], jnp.zeros_like(found)

    fixed_point.defvjp(forward, backward)
    root = lambda a: fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)
    return {"value": root(2.0), "first": grad(root)(2.0)}


def roots_and_linear_solves_with_rules():
    def cube_root(a):
        solve = lambda f, x0: lax.fori_loop(0, 20, lambda _, x: x - f(x) / (3 * x**2), x0)
        return lax.custom_root(lambda x: x**3 - a, 1.5, solve, lambda g, y: y / g(1.0))

    matrix = jnp.array([[4.0, 1.0], [1.0, 3.0]])

    def solved(b):
        return lax.custom_linear_solve(
            lambda x: matrix @ x, b, lambda mv, b: jnp.linalg.solve(matrix, b), symmetric=True
        )

    return {
        "root": cube_root(5.0),
        "gradient": grad(cube_root)(5.0),
        "second": grad(grad(cube_root))(5.0),
        "solved": solved(jnp.ones(2)),
        "jacobian": jacrev(solved)(jnp.ones(2)),
        "forward": jacfwd(solved)(jnp.ones(2)),
    }


def temporal_differences_stop_gradients():
    value = lambda theta, state: jnp.tanh(theta @ state)
    theta, before, after = jnp.array([0.1, -0.1, 0.3]), jnp.array([1.0, 2.0, -1.0]), jnp.array([2.0, 1.0, 0.0])

    def td_loss(theta, reward):
        target = reward + value(theta, after)
        return -0.5 * (lax.stop_gradient(target) - value(theta, before)) ** 2

    batched = vmap(grad(td_loss), in_axes=(None, 0))(theta, jnp.array([1.0, -1.0]))
    return {"gradient": grad(td_loss)(theta, 1.0), "batched": batched}


def checkpoints_change_no_numbers():
    def block(x):
        return jnp.sin(jnp.tanh(x) * 2.0)

    def deep(f):
        return lambda x: jnp.sum(f(f(f(x))) ** 2)

    x = jnp.linspace(-1, 1, 5)
    saved = jax.checkpoint(block, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    return {
        "plain": grad(deep(block))(x),
        "remat": grad(deep(jax.checkpoint(block)))(x),
        "policy": grad(deep(saved))(x),
    }


def many_derivatives_of_one_function():
    f = lambda x: jnp.exp(jnp.sin(x)) / (1 + x**2)
    found = []
    for _ in range(5):
        found.append(f(0.7))
        f = grad(f)
    return {"derivatives": jnp.stack(found)}


def numerical_checks_agree():
    from jax.test_util import check_grads

    f = lambda x, y: jnp.sum(jnp.arctan2(x, y) * jnp.sqrt(1 + x**2))
    x, y = random.normal(random.PRNGKey(4), (2, 4))
    check_grads(f, (x, y), order=2, modes=["fwd", "rev"], atol=2e-2, rtol=2e-2)
    return {"gradient": grad(f, (0, 1))(x, y), "numpy": jnp.asarray(np.asarray(jax.jacobian(f)(x, y)))}
