"""Control flow inside compiled functions."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, vmap


def branches_by_cond():
    def f(x):
        return lax.cond(x > 0, lambda v: jnp.sqrt(v), lambda v: -(v**2), x)

    x = jnp.array([4.0, -3.0])
    return {"one": f(4.0), "many": vmap(f)(x), "gradients": vmap(grad(f))(x), "jit": jit(f)(-1.0)}


def branches_with_operands_and_trees():
    def choose(flag, tree):
        return lax.cond(flag, lambda t: {"a": t["a"] + 1, "b": t["b"]}, lambda t: {"a": t["a"], "b": t["b"] * 2}, tree)

    tree = {"a": jnp.arange(3), "b": jnp.ones(2)}
    without = lax.cond(True, lambda: jnp.array(1.5), lambda: jnp.array(2.5))
    keyword = lax.cond(False, lambda x: x + 1.0, lambda x: x - 1.0, operand=3.0)
    return {"yes": choose(True, tree), "no": jit(choose)(False, tree), "without": without, "keyword": keyword}


def activations_by_switch():
    functions = [jnp.tanh, jax.nn.relu, lambda x: jnp.full_like(x, 7.0), jnp.sin]
    f = lambda i, x: lax.switch(i, functions, x)
    x = jnp.array([-1.0, 0.5])
    return {
        "each": [f(i, x) for i in range(4)],
        "clamped": f(9, x),
        "mapped": vmap(f, (0, None))(jnp.arange(4), x),
        "gradient": grad(lambda x: f(3, x).sum())(x),
    }


def collatz_in_a_while_loop():
    def steps(n):
        def body(state):
            n, count = state
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

        return lax.while_loop(lambda s: s[0] != 1, body, (n, 0))[1]

    return {"one": jit(steps)(27), "many": vmap(steps)(jnp.arange(1, 12))}


def powers_by_fori_loop():
    def power(x, n):
        return lax.fori_loop(0, n, lambda i, acc: acc * x, 1.0)

    static = jit(power, static_argnums=1)
    return {
        "value": power(1.5, 4),
        "gradient": grad(power)(1.5, 4),
        "static": static(2.0, 10),
        "dynamic": jit(power)(3.0, 3),
    }


def cumulative_sums_by_scan():
    def step(carry, x):
        total, largest = carry
        return (total + x, jnp.maximum(largest, x)), {"total": total + x, "largest": largest}

    xs = jnp.array([3.0, -1.0, 4.0, 1.0, -5.0])
    carry, ys = lax.scan(step, (0.0, -jnp.inf), xs)
    unrolled, _ = lax.scan(step, (0.0, -jnp.inf), xs, unroll=2)
    gradient = grad(lambda xs: jnp.sum(lax.scan(step, (0.0, -jnp.inf), xs)[1]["total"] ** 2))(xs)
    return {"carry": carry, "ys": ys, "unrolled": unrolled, "gradient": gradient}


def loops_within_loops():
    matrix = jnp.arange(12.0).reshape(3, 4) / 10

    def row(carry, row):
        inner, products = lax.scan(lambda c, x: (c * (1 - x), c * x), carry, row)
        return inner, products.sum()

    def run(matrix):
        return lax.scan(row, 1.0, matrix)

    return {
        "run": run(matrix),
        "gradient": grad(lambda m: run(m)[1].sum())(matrix),
        "map": lax.map(lambda r: r.max() - r, matrix),
    }


def fibonacci_and_primes():
    def fibonacci(n):
        return lax.fori_loop(0, n, lambda i, ab: (ab[1], ab[0] + ab[1]), (jnp.int32(0), jnp.int32(1)))[0]

    def sieve(i, flags):
        multiples = (jnp.arange(50) % i == 0) & (jnp.arange(50) > i)
        return jnp.where(multiples, False, flags)

    flags = lax.fori_loop(2, 8, sieve, jnp.arange(50) >= 2)
    return {"fibonacci": jnp.stack([fibonacci(n) for n in (1, 10, 30)]), "primes": flags}


def mandelbrot_without_complex_numbers():
    x, y = jnp.meshgrid(jnp.linspace(-2, 0.5, 20), jnp.linspace(-1, 1, 12))

    def step(_, state):
        a, b, count = state
        inside = a**2 + b**2 < 4
        return jnp.where(inside, a**2 - b**2 + x, a), jnp.where(inside, 2 * a * b + y, b), count + inside

    _, _, count = jit(
        lambda: lax.fori_loop(0, 20, step, (jnp.zeros_like(x), jnp.zeros_like(x), jnp.zeros(x.shape, jnp.int32)))
    )()
    return {"count": count}


def newton_until_it_converges():
    def root(a):
        def body(state):
            x, _ = state
            following = x - (jnp.cos(x) - a * x) / (-jnp.sin(x) - a)
            return following, jnp.abs(following - x)

        return lax.while_loop(lambda s: s[1] > 1e-6, body, (0.5, 1.0))[0]

    return {"roots": vmap(root)(jnp.array([0.5, 1.0, 2.0])), "forward": jax.jvp(root, (1.0,), (1.0,))}


def bisection_and_binary_search():
    values = jnp.array([1, 3, 3, 7, 12, 20])

    def search(wanted):
        def body(state):
            low, high = state
            middle = (low + high) // 2
            return lax.cond(values[middle] < wanted, lambda: (middle + 1, high), lambda: (low, middle))

        return lax.while_loop(lambda s: s[0] < s[1], body, (0, 6))[0]

    wanted = jnp.array([0, 3, 8, 21])
    return {"found": vmap(search)(wanted), "library": jnp.searchsorted(values, wanted)}


def bubble_sort():
    def swap(j, x):
        a, b = x[j], x[j + 1]
        return x.at[j].set(jnp.minimum(a, b)).at[j + 1].set(jnp.maximum(a, b))

    x = jnp.array([5.0, 2.0, 8.0, 1.0, 9.0, 3.0])
    swept = lambda i, x: lax.fori_loop(0, len(x) - 1, swap, x)
    return {"sorted": lax.fori_loop(0, len(x), swept, x), "gradient": grad(lambda x: jnp.sort(x)[2])(x)}
