"""Neural networks as in the tutorials: parameters are pytrees, layers are functions."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, nn, random, value_and_grad, vmap
from jax.nn.initializers import glorot_normal, he_normal, normal, zeros


def _layers(sizes, key):
    keys = random.split(key, len(sizes) - 1)
    return [(glorot_normal()(k, (m, n)), zeros(k, (n,))) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def perceptron_trained_on_batches():
    params = _layers([6, 8, 3], random.PRNGKey(1))
    images = random.normal(random.PRNGKey(2), (12, 6))
    targets = nn.one_hot(jnp.arange(12) % 3, 3)

    def predict(params, image):
        activations = image
        for w, b in params[:-1]:
            activations = nn.relu(jnp.dot(activations, w) + b)
        final_w, final_b = params[-1]
        logits = jnp.dot(activations, final_w) + final_b
        return logits - nn.logsumexp(logits)

    batched_predict = vmap(predict, in_axes=(None, 0))

    def loss(params, images, targets):
        return -jnp.mean(batched_predict(params, images) * targets)

    @jit
    def update(params, x, y):
        gradients = grad(loss)(params, x, y)
        return [(w - 0.5 * dw, b - 0.5 * db) for (w, b), (dw, db) in zip(params, gradients)]

    for _ in range(3):
        for batch in range(3):
            part = slice(4 * batch, 4 * batch + 4)
            params = update(params, images[part], targets[part])
    return {"params": params, "predictions": batched_predict(params, images), "loss": loss(params, images, targets)}


def convolutional_network():
    keys = random.split(random.PRNGKey(0), 4)
    images = random.normal(keys[0], (2, 8, 8, 1))
    params = {
        "conv": he_normal()(keys[1], (3, 3, 1, 4)),
        "dense": normal(0.1)(keys[2], (4 * 4 * 4, 5)),
    }

    def apply(params, x):
        x = lax.conv_general_dilated(x, params["conv"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = nn.relu(x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.reshape((x.shape[0], -1)) @ params["dense"]

    def loss(params):
        return -jnp.mean(nn.log_softmax(apply(params, images))[:, 2])

    value, gradient = jit(value_and_grad(loss))(params)
    return {"value": value, "gradient": gradient}


def lstm_by_scan():
    keys = random.split(random.PRNGKey(5), 3)
    weights = 0.3 * random.normal(keys[0], (4 + 3, 16))
    inputs = random.normal(keys[1], (6, 2, 3))

    def cell(weights, state, x):
        hidden, memory = state
        i, g, f, o = jnp.split(jnp.concatenate([x, hidden], axis=-1) @ weights, 4, axis=-1)
        memory = nn.sigmoid(f + 1.0) * memory + nn.sigmoid(i) * jnp.tanh(g)
        hidden = nn.sigmoid(o) * jnp.tanh(memory)
        return (hidden, memory), hidden

    def loss(weights):
        start = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))
        (hidden, _), outputs = lax.scan(lambda s, x: cell(weights, s, x), start, inputs)
        return jnp.sum(hidden**2) + jnp.mean(outputs), outputs

    (value, outputs), gradient = value_and_grad(loss, has_aux=True)(weights)
    return {"value": value, "outputs": outputs, "gradient": gradient}


def gru_backward_in_time():
    key_w, key_x = random.split(random.PRNGKey(7))
    weights = {name: 0.4 * random.normal(k, (7, 4)) for name, k in zip(("z", "r", "h"), random.split(key_w, 3))}
    xs = random.normal(key_x, (5, 3))

    def step(h, x):
        both = jnp.concatenate([x, h])
        z, r = nn.sigmoid(both @ weights["z"]), nn.sigmoid(both @ weights["r"])
        candidate = jnp.tanh(jnp.concatenate([x, r * h]) @ weights["h"])
        h = (1 - z) * h + z * candidate
        return h, h

    final, states = lax.scan(step, jnp.zeros(4), xs, reverse=True)
    sensitivity = jax.jacrev(lambda h: lax.scan(step, h, xs, reverse=True)[0])(jnp.zeros(4))
    return {"final": final, "states": states, "sensitivity": sensitivity}


def attention_with_a_causal_mask():
    q, k, v = random.normal(random.PRNGKey(8), (3, 2, 5, 4))

    def attend(q, k, v):
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / jnp.sqrt(q.shape[-1])
        mask = jnp.tril(jnp.ones((5, 5), dtype=bool))
        return jnp.einsum("hqk,hkd->hqd", nn.softmax(jnp.where(mask, scores, -1e9), axis=-1), v)

    gradients = grad(lambda *qkv: jnp.sum(jnp.sin(attend(*qkv))), argnums=(0, 1, 2))(q, k, v)
    return {"output": attend(q, k, v), "gradients": gradients}


def language_model():
    keys = iter(random.split(random.PRNGKey(9), 10))
    width, vocabulary, heads = 8, 11, 2
    params = {
        "embed": 0.1 * random.normal(next(keys), (vocabulary, width)),
        "position": 0.1 * random.normal(next(keys), (6, width)),
        "blocks": [
            {
                "qkv": 0.3 * random.normal(next(keys), (width, 3 * width)),
                "out": 0.3 * random.normal(next(keys), (width, width)),
                "up": 0.3 * random.normal(next(keys), (width, 2 * width)),
                "down": 0.3 * random.normal(next(keys), (2 * width, width)),
            }
            for _ in range(2)
        ],
    }
    tokens = random.randint(random.PRNGKey(10), (2, 7), 0, vocabulary)

    def normalize(x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def block(p, x):
        length = x.shape[0]
        q, k, v = jnp.split(normalize(x) @ p["qkv"], 3, axis=-1)
        q, k, v = (a.reshape(length, heads, -1).transpose(1, 0, 2) for a in (q, k, v))
        scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(width // heads)
        scores = jnp.where(jnp.arange(length)[:, None] >= jnp.arange(length), scores, -jnp.inf)
        mixed = (nn.softmax(scores) @ v).transpose(1, 0, 2).reshape(length, width)
        x = x + mixed @ p["out"]
        return x + nn.gelu(normalize(x) @ p["up"]) @ p["down"]

    def forward(params, tokens):
        x = params["embed"][tokens] + params["position"][: tokens.shape[0]]
        for p in params["blocks"]:
            x = block(p, x)
        return normalize(x) @ params["embed"].T

    def loss(params):
        logits = vmap(forward, in_axes=(None, 0))(params, tokens[:, :-1])
        chosen = jnp.take_along_axis(nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
        return -chosen.mean()

    value, gradient = jit(value_and_grad(loss))(params)
    return {"tokens": tokens, "value": value, "gradient": gradient}


def batch_normalization_with_state():
    x = random.normal(random.PRNGKey(11), (10, 4)) * 2 + 1
    state = {"mean": jnp.zeros(4), "var": jnp.ones(4)}

    def normalize(scale, state, x):
        mean, var = x.mean(0), x.var(0)
        following = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, state, {"mean": mean, "var": var})
        return scale * (x - mean) / jnp.sqrt(var + 1e-5), following

    def loss(scale, state):
        y, following = normalize(scale, state, x)
        return jnp.sum(y**3), following

    gradient, state = grad(loss, has_aux=True)(jnp.arange(1.0, 5.0), state)
    return {"gradient": gradient, "state": state}


def residual_layers_by_scan_over_parameters():
    keys = random.split(random.PRNGKey(12), 5)
    stacked = vmap(lambda k: 0.3 * random.normal(k, (4, 4)))(keys)
    x = jnp.linspace(-1, 1, 4)

    def apply(stacked, x):
        return lax.scan(lambda h, w: (h + jnp.tanh(h @ w), None), x, stacked)[0]

    return {"y": apply(stacked, x), "gradient": grad(lambda s: apply(s, x).sum())(stacked)}


def dropout_under_vmap():
    keys = random.split(random.PRNGKey(13), 4)
    x = jnp.arange(24.0).reshape(4, 6)

    def dropout(key, x, rate=0.25):
        keep = random.bernoulli(key, 1 - rate, x.shape)
        return jnp.where(keep, x / (1 - rate), 0)

    dropped = vmap(dropout)(keys, x)
    return {"dropped": dropped, "gradient": grad(lambda x: jnp.sum(vmap(dropout)(keys, x) ** 2))(x)}


def mixture_of_experts():
    keys = random.split(random.PRNGKey(14), 3)
    x, gate = random.normal(keys[0], (6, 4)), random.normal(keys[1], (4, 3))
    experts = random.normal(keys[2], (3, 4, 4))

    def route(gate, experts):
        probabilities = nn.softmax(x @ gate)
        weights, chosen = lax.top_k(probabilities, 2)
        outputs = jnp.einsum("td,edf->tef", x, experts)
        picked = jnp.take_along_axis(outputs, chosen[:, :, None], axis=1)
        return jnp.sum(weights[:, :, None] * picked, axis=1), chosen

    output, chosen = route(gate, experts)
    gradients = grad(lambda g, e: jnp.sum(jnp.cos(route(g, e)[0])), argnums=(0, 1))(gate, experts)
    return {"output": output, "chosen": chosen, "gradients": gradients}
