"""SmolVLA's action expert, written down plainly for one example, in the numbers of NumPy or torch.

`w` holds weights by the names of lerobot's files, `xp` is numpy or torch; nothing here is shared with lavax.
"""
from __future__ import annotations

import math
from typing import Any

HEADS, KEY_HEADS, HEAD = 4, 2, 6
EXPERT = "model.vlm_with_expert.lm_expert."


def linear(w: Any, name: str, x: Any) -> Any:
    made = x @ w[f"{name}.weight"].T
    return made + w[f"{name}.bias"] if f"{name}.bias" in w else made


def normed(w: Any, name: str, x: Any) -> Any:
    return x / ((x * x).mean(-1)[:, None] + 1e-5) ** 0.5 * w[f"{name}.weight"]


def silu(xp: Any, x: Any) -> Any:
    return x / (1 + xp.exp(-x))


def turned(xp: Any, row: Any, position: float) -> Any:
    """One head of a query or key, turned by its position."""
    half = HEAD // 2
    made = [None] * HEAD
    for pair in range(half):
        angle = position * 10000.0 ** (-2 * pair / HEAD)
        made[pair] = row[pair] * math.cos(angle) - row[half + pair] * math.sin(angle)
        made[half + pair] = row[half + pair] * math.cos(angle) + row[pair] * math.sin(angle)
    return xp.stack(made)


def attended(xp: Any, query: Any, keys: Any, values: Any) -> Any:
    """One query's mean of the values that it sees."""
    scores = xp.stack([(query * key).sum() / math.sqrt(HEAD) for key in keys])
    shares = xp.exp(scores - scores.max())
    shares = shares / shares.sum()
    return sum(share * value for share, value in zip(shares, values, strict=True))


def layer(xp: Any, w: Any, index: int, x: Any, keys: Any, values: Any, visible: list[int]) -> Any:
    """`keys` and `values` [S, KEY_HEADS, HEAD] are those of the vision-language model, of which `visible` are seen."""
    name = f"{EXPERT}layers.{index}"
    normal = normed(w, f"{name}.input_layernorm", x)
    query = linear(w, f"{name}.self_attn.q_proj", normal).reshape(-1, HEADS, HEAD)
    crosses = index % 2 == 1
    source = (keys.reshape(len(keys), -1), values.reshape(len(values), -1)) if crosses else (normal, normal)
    own_keys = linear(w, f"{name}.self_attn.k_proj", source[0]).reshape(-1, KEY_HEADS, HEAD)
    own_values = linear(w, f"{name}.self_attn.v_proj", source[1]).reshape(-1, KEY_HEADS, HEAD)
    rows = []
    for action in range(len(x)):
        heads = []
        for head in range(HEADS):
            group = head // (HEADS // KEY_HEADS)
            if crosses:
                seen = [(own_keys[at, group], own_values[at, group]) for at in visible]
                place = float(action)
            else:
                place = float(len(visible) + action)
                seen = [(keys[at, group], values[at, group]) for at in visible]
                seen += [
                    (turned(xp, own_keys[at, group], float(len(visible) + at)), own_values[at, group])
                    for at in range(action + 1)
                ]
            found = turned(xp, query[action, head], place)
            heads.append(attended(xp, found, [key for key, _ in seen], [value for _, value in seen]))
        rows.append(xp.concatenate(heads))
    x = x + linear(w, f"{name}.self_attn.o_proj", xp.stack(rows))
    normal = normed(w, f"{name}.post_attention_layernorm", x)
    gate = silu(xp, linear(w, f"{name}.mlp.gate_proj", normal))
    return x + linear(w, f"{name}.mlp.down_proj", gate * linear(w, f"{name}.mlp.up_proj", normal))


def velocity(xp: Any, w: Any, actions: Any, time: float, keys: Any, values: Any, visible: list[int]) -> Any:
    """The velocity of noisy `actions` [T, A]; `keys` and `values` are [layers, S, KEY_HEADS, HEAD]."""
    of_actions = linear(w, "model.action_in_proj", actions)
    half = of_actions.shape[1] // 2
    angles = [2 * math.pi * time / (4e-3 * 1000 ** (index / (half - 1))) for index in range(half)]
    of_time = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
    ones = 0 * of_actions[:, :1] + 1
    columns = xp.concatenate([ones * number for number in of_time], 1)
    x = linear(w, "model.action_time_mlp_in", xp.concatenate([of_actions, columns], 1))
    x = linear(w, "model.action_time_mlp_out", silu(xp, x))
    for index in range(len(keys)):
        x = layer(xp, w, index, x, keys[index], values[index], visible)
    return linear(w, "model.action_out_proj", normed(w, f"{EXPERT}norm", x))
