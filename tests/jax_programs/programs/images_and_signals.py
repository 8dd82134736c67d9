"""Images, signals, and the functions of SciPy."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, vmap
from jax.scipy import ndimage, signal, special, stats


def _picture():
    y, x = jnp.mgrid[0:8, 0:10]
    return jnp.sin(0.7 * x) + jnp.cos(0.5 * y)


def edges_and_blurs():
    image = _picture()
    sobel = jnp.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
    gauss = jnp.exp(-0.5 * jnp.arange(-2, 3) ** 2.0)
    gauss = gauss / gauss.sum()
    across = signal.convolve2d(image, sobel, mode="same")
    blurred = signal.convolve2d(signal.convolve2d(image, gauss[None], mode="valid"), gauss[:, None], mode="valid")
    gradient = grad(lambda k: jnp.sum(signal.convolve2d(image, k, mode="full") ** 2))(sobel)
    return {
        "edges": across,
        "blurred": blurred,
        "gradient": gradient,
        "line": signal.correlate(image[0], gauss, mode="same"),
    }


def images_are_resized():
    image = _picture()[..., None]
    sizes = {
        method: jax.image.resize(image, (12, 7, 1), method=method)
        for method in ("nearest", "linear", "cubic", "lanczos3")
    }
    gradient = grad(lambda i: jnp.sum(jax.image.resize(i, (4, 5, 1), "bilinear") ** 2))(image)
    moved = jax.image.scale_and_translate(
        image[..., 0], (6, 6), (0, 1), jnp.array([0.5, 0.7]), jnp.array([1.0, -0.5]), method="linear"
    )
    return {"sizes": sizes, "gradient": gradient[:, :, 0], "moved": moved}


def an_image_is_warped():
    image = _picture()

    def warp(angle):
        y, x = jnp.meshgrid(jnp.arange(8.0) - 3.5, jnp.arange(10.0) - 4.5, indexing="ij")
        turned = [jnp.cos(angle) * y - jnp.sin(angle) * x + 3.5, jnp.sin(angle) * y + jnp.cos(angle) * x + 4.5]
        return ndimage.map_coordinates(image, turned, order=1, mode="nearest")

    return {
        "warped": warp(0.3),
        "derivative": jax.jvp(warp, (0.3,), (1.0,))[1],
        "wrapped": ndimage.map_coordinates(
            image, [jnp.array([-1.5, 9.2]), jnp.array([3.3, 20.1])], order=1, mode="wrap"
        ),
    }


def pooling_of_every_kind():
    x = _picture()[None, :, :, None]
    maximum = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    mean = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    gradient = grad(
        lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2)
    )(x)
    return {"maximum": maximum, "mean": mean, "gradient": gradient, "global": x.max(axis=(1, 2))}


def convolutions_of_every_kind():
    x, w = random.normal(random.PRNGKey(0), (2, 4, 9, 9)), random.normal(random.PRNGKey(1), (6, 2, 3, 3))
    grouped = lambda x, w: lax.conv_general_dilated(
        x, w, (2, 1), ((1, 0), (0, 2)), rhs_dilation=(1, 2), feature_group_count=2
    )
    transposed = lax.conv_transpose(
        x[:, :, :4, :4].transpose(0, 2, 3, 1), random.normal(random.PRNGKey(2), (3, 3, 4, 5)), (2, 2), "SAME"
    )
    depthwise = lax.conv_general_dilated(
        x, random.normal(random.PRNGKey(3), (4, 1, 3, 3)), (1, 1), "SAME", feature_group_count=4
    )
    one = lax.conv_general_dilated(x[:, :, 0], w[:, :, 0], (1,), "VALID", feature_group_count=2)
    gradients = grad(lambda x, w: jnp.sum(jnp.sin(grouped(x, w))), (0, 1))(x, w)
    return {
        "grouped": grouped(x, w),
        "transposed": transposed,
        "depthwise": depthwise,
        "one": one,
        "gradients": gradients,
    }


def special_functions_and_their_gradients():
    x = jnp.array([0.3, 1.2, 2.5, 4.0])
    names = ["gammaln", "digamma", "erf", "erfc", "erfinv", "expit", "i0e", "i1e", "ndtr", "log_ndtr", "entr", "xlogy"]
    found = {}
    for name in names:
        f = getattr(special, name)
        call = (lambda x, f=f: f(x / 5)) if name == "erfinv" else (lambda x, f=f: f(x, x + 1)) if name == "xlogy" else f
        found[name] = [call(x), vmap(grad(call))(x)]
    found["two"] = [
        special.betaln(x, 2.0),
        special.gammainc(2.0, x),
        special.polygamma(1, x),
        special.logsumexp(x, b=jnp.array([1.0, 2.0, 0.5, 1.0])),
    ]
    return found


def log_densities():
    x = jnp.array([0.2, 0.5, 0.9])
    return {
        "norm": stats.norm.logpdf(x, 0.1, 2.0),
        "gamma": stats.gamma.logpdf(x, 2.0),
        "beta": stats.beta.logpdf(x, 2.0, 3.0),
        "t": stats.t.logpdf(x, 4.0),
        "laplace": stats.laplace.cdf(x),
        "expon": stats.expon.logpdf(x),
        "uniform": stats.uniform.pdf(x),
        "poisson": stats.poisson.logpmf(jnp.arange(3), 1.5),
        "cauchy": stats.cauchy.logpdf(x),
        "cdf": stats.norm.cdf(x),
        "ppf": stats.norm.ppf(x),
        "dirichlet": stats.dirichlet.logpdf(jnp.array([0.2, 0.3, 0.5]), jnp.array([1.0, 2.0, 3.0])),
        "gradient": grad(lambda s: stats.norm.logpdf(x, 0.0, s).sum())(1.5),
        "many": stats.multivariate_normal.logpdf(x, jnp.zeros(3), jnp.eye(3) * 2),
        "binom": stats.binom.logpmf(jnp.arange(3), 5, 0.3),
        "chi2": stats.chi2.logpdf(x, 3),
    }


def a_renderer_by_signed_distances():
    def distance(p):
        sphere = jnp.linalg.norm(p - jnp.array([0.0, 0.0, 3.0])) - 1.0
        return jnp.minimum(sphere, p[1] + 1.0)

    def march(direction):
        def step(i, t):
            return t + distance(t * direction)

        t = lax.fori_loop(0, 25, step, 0.0)
        normal = grad(distance)(t * direction)
        return jnp.where(t < 10, jnp.maximum(normal @ jnp.array([0.5, 0.7, -0.5]), 0.0), 0.0)

    x, y = jnp.meshgrid(jnp.linspace(-0.6, 0.6, 6), jnp.linspace(0.5, -0.5, 5))
    directions = jnp.stack([x, y, jnp.ones_like(x)], -1)
    return {"picture": jit(vmap(vmap(march)))(directions / jnp.linalg.norm(directions, axis=-1, keepdims=True))}


def spline_interpolation():
    from jax.scipy.interpolate import RegularGridInterpolator

    x, y = jnp.linspace(0, 1, 5), jnp.linspace(0, 2, 4)
    values = jnp.sin(3 * x)[:, None] * jnp.cos(y)
    points = jnp.array([[0.1, 0.3], [0.77, 1.9], [0.5, 0.5]])
    return {
        "linear": RegularGridInterpolator((x, y), values)(points),
        "nearest": RegularGridInterpolator((x, y), values, method="nearest")(points),
        "interp": vmap(lambda v: jnp.interp(0.33, x, v), 1)(values),
    }
