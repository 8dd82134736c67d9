"""Differential equations, and other systems that move."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, value_and_grad, vmap
from jax.experimental.ode import odeint


def lorenz_by_runge_kutta():
    def field(state, sigma):
        x, y, z = state
        return jnp.array([sigma * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    def step(state, sigma, dt=0.02):
        k1 = field(state, sigma)
        k2 = field(state + dt / 2 * k1, sigma)
        k3 = field(state + dt / 2 * k2, sigma)
        k4 = field(state + dt * k3, sigma)
        return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def final(sigma):
        return lax.fori_loop(0, 20, lambda i, s: step(s, sigma), jnp.array([1.0, 1.0, 1.0]))

    return {
        "final": jit(final)(10.0),
        "sensitivity": jax.jacfwd(final)(10.0),
        "many": vmap(final)(jnp.array([9.0, 11.0])),
    }


def pendulum_keeps_its_energy():
    hamiltonian = lambda q, p: 0.5 * p**2 - jnp.cos(q)

    def leapfrog(state, _, dt=0.1):
        q, p = state
        p = p - 0.5 * dt * grad(hamiltonian, 0)(q, p)
        q = q + dt * grad(hamiltonian, 1)(q, p)
        p = p - 0.5 * dt * grad(hamiltonian, 0)(q, p)
        return (q, p), hamiltonian(q, p)

    (q, p), energies = lax.scan(leapfrog, (jnp.float32(1.0), jnp.float32(0.0)), None, length=50)
    return {"q": q, "p": p, "energies": energies}


def planets_attract_each_other():
    masses = jnp.array([10.0, 1.0, 0.5])
    positions = jnp.array([[0.0, 0.0], [3.0, 0.0], [0.0, 5.0]])

    def potential(positions):
        difference = positions[:, None] - positions[None]
        distance = jnp.sqrt(jnp.sum(difference**2, -1) + 1e-3)
        pairs = jnp.triu(masses[:, None] * masses / distance, k=1)
        return -jnp.sum(pairs)

    def step(carry, _):
        x, v = carry
        v = v - 0.01 * grad(potential)(x) / masses[:, None]
        return (x + 0.01 * v, v), None

    (x, v), _ = lax.scan(step, (positions, jnp.zeros_like(positions)), None, length=30)
    return {"x": x, "v": v, "forces": -grad(potential)(positions)}


def heat_equation():
    def step(i, u):
        return u + 0.2 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1))

    u0 = jnp.exp(-((jnp.arange(32) - 16.0) ** 2) / 10)
    final = lambda u: jax.lax.fori_loop(0, 25, step, u)
    return {"u": final(u0), "adjoint": jax.vjp(final, u0)[1](jnp.eye(32)[3])[0], "mass": final(u0).sum()}


def wave_equation_in_two_dimensions():
    laplacian = jnp.array([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])

    def step(carry, _):
        before, now = carry
        curvature = lax.conv(now[None, None], laplacian[None, None], (1, 1), "SAME")[0, 0]
        return (now, 2 * now - before + 0.1 * curvature), now[5, 5]

    start = jnp.zeros((12, 12)).at[5, 6].set(1.0)
    (_, final), trace = lax.scan(step, (start, start), None, length=15)
    return {"final": final, "trace": trace}


def burgers_equation_upwind():
    x = jnp.linspace(0, 2 * jnp.pi, 40, endpoint=False)

    @jit
    def step(u):
        flux = 0.5 * u**2
        return u - 0.05 * jnp.where(u > 0, flux - jnp.roll(flux, 1), jnp.roll(flux, -1) - flux)

    u = jnp.sin(x) + 1.5
    for _ in range(12):
        u = step(u)
    return {"u": u, "jacobian": jax.jacrev(step)(u[:40])[:3, :5]}


def predators_and_prey_are_fitted():
    def simulate(rates):
        a, b, c, d = rates

        def step(state, _):
            prey, predators = state
            following = (
                prey + 0.05 * (a * prey - b * prey * predators),
                predators + 0.05 * (c * prey * predators - d * predators),
            )
            return following, jnp.stack(following)

        return lax.scan(step, (1.0, 0.5), None, length=30)[1]

    observed = simulate(jnp.array([1.0, 0.8, 0.6, 0.9]))
    loss = lambda rates: jnp.mean((simulate(rates) - observed) ** 2)
    value, gradient = jit(value_and_grad(loss))(jnp.array([0.9, 0.9, 0.5, 1.0]))
    return {"observed": observed, "value": value, "gradient": gradient}


def neural_ode_by_the_adjoint_method():
    w = 0.5 * random.normal(random.PRNGKey(0), (2, 2))
    t = jnp.linspace(0.0, 1.0, 5)

    def trajectory(w, y0):
        return odeint(lambda y, t, w: jnp.tanh(w @ y) - 0.1 * t, y0, t, w, rtol=1e-6, atol=1e-6)

    def loss(w, y0):
        return jnp.sum(trajectory(w, y0)[-1] ** 2)

    y0 = jnp.array([1.0, -0.5])
    return {"path": trajectory(w, y0), "gradients": grad(loss, argnums=(0, 1))(w, y0)}


def game_of_life():
    kernel = jnp.ones((3, 3), jnp.int32).at[1, 1].set(0)

    def step(board, _):
        padded = jnp.pad(board, 1, mode="wrap")
        neighbours = sum(padded[i : i + 8, j : j + 8] * kernel[i, j] for i in range(3) for j in range(3))
        board = ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(jnp.int32)
        return board, board.sum()

    board = jnp.zeros((8, 8), jnp.int32).at[jnp.array([1, 2, 3, 3, 3]), jnp.array([2, 3, 1, 2, 3])].set(1)
    final, counts = lax.scan(step, board, None, length=9)
    return {"final": final, "counts": counts}


def reaction_and_diffusion():
    def laplacian(z):
        return sum(jnp.roll(z, shift, axis) for shift in (1, -1) for axis in (0, 1)) - 4 * z

    def step(state):
        u, v = state
        reaction = u * v**2
        return u + 0.16 * laplacian(u) - reaction + 0.035 * (1 - u), v + 0.08 * laplacian(v) + reaction - 0.1 * v

    u = jnp.ones((10, 10)).at[4:6, 4:6].set(0.5)
    v = jnp.zeros((10, 10)).at[4:6, 4:6].set(0.25)
    u, v = lax.fori_loop(0, 20, lambda _, s: step(s), (u, v))
    return {"u": u, "v": v}


def control_by_gradients_through_a_simulation():
    def cost(controls):
        def step(state, force):
            position, velocity = state
            velocity = velocity + 0.1 * force - 0.01 * velocity * jnp.abs(velocity)
            return (position + 0.1 * velocity, velocity), 0.01 * force**2

        (position, velocity), effort = lax.scan(step, (0.0, 0.0), controls)
        return (position - 1.0) ** 2 + velocity**2 + effort.sum()

    controls = jnp.zeros(10)
    for _ in range(10):
        controls = controls - 0.5 * jit(grad(cost))(controls)
    return {"controls": controls, "cost": cost(controls), "hessian": jax.hessian(cost)(controls)[:2]}
