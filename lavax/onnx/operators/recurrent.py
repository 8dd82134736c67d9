"""RNN, GRU and LSTM, with all the choices of the standard."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.operators.operator import Call, Operator
from lavax.tracer.control_flow.scan import scan

Activation = Callable[[Any], Any]

# Each with its defaults of alpha and beta.
_ACTIVATIONS: dict[str, tuple[Callable[[Any, float, float], Any], float, float]] = {
    "relu": (lambda x, a, b: nn.relu(x), 0, 0),
    "tanh": (lambda x, a, b: lnp.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: nn.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: a * x + b, 1, 0),
    "leakyrelu": (lambda x, a, b: lnp.where(x < 0, a * x, x), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: lnp.where(x > a, x, 0), 1, 0),
    "scaledtanh": (lambda x, a, b: a * lnp.tanh(b * x), 1, 1),
    "hardsigmoid": (lambda x, a, b: lnp.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: lnp.where(x > 0, x, a * lnp.expm1(lnp.minimum(x, 0))), 1, 0),
    "softsign": (lambda x, a, b: x / (1 + lnp.abs(x)), 0, 0),
    "softplus": (lambda x, a, b: nn.softplus(x), 0, 0),
}


_GATES = 2  # the activations of gates and candidates, before that of the cell


def _activations(call: Call, direction: int, default: tuple[str, ...]) -> list[Activation]:
    """The activations of a direction; each takes its alpha and beta from the lists, if it has any.

    `clip` bounds what enters the gates. A cell, which the third activation gets, is not bounded, as in onnxruntime.
    """
    count = len(default)
    directions = 2 if call.direction == "bidirectional" else 1
    names = call.activations or default * directions
    alphas, betas = list(call.activation_alpha or ()), list(call.activation_beta or ())
    found: list[Activation] = []
    for number, name in enumerate(names):
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        if alphas and alpha:
            alpha = alphas.pop(0)
        if betas and (beta or name.lower() == "affine"):
            beta = betas.pop(0)
        if number // count == direction:
            limit = call.clip if number % count < _GATES else None
            found.append(_clipped(function, alpha, beta, limit))
    return found


def _clipped(
    function: Callable[[Any, float, float], Any], alpha: float, beta: float, limit: float | None
) -> Activation:
    if limit is None:
        return lambda x: function(x, alpha, beta)
    return lambda x: function(lnp.clip(x, -limit, limit), alpha, beta)


def refuse_activations(node: Any) -> str | None:
    unknown = [n for n in node.attributes.get("activations", ()) if n.lower() not in _ACTIVATIONS]
    return f"the activation {', '.join(unknown)} is not supported" if unknown else None


def _directions(call: Call) -> list[bool]:
    """Of each direction, whether it runs backwards."""
    return {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[call.direction]


Step = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]


def _run(
    call: Call, x: Any, lengths: Any, states: list[tuple[Any, ...]], steps: list[Step], inputs: list[Any]
) -> tuple[Any, ...]:
    """All directions over time: the outputs [time, directions, batch, hidden], then the last states."""
    outputs, last = [], []
    for direction, is_backwards in enumerate(_directions(call)):
        sequence, time = inputs[direction], lnp.arange(x.shape[0])

        def step(state: Any, given: Any, direction: int = direction) -> Any:
            row, t = given
            new = steps[direction](row, state)
            if lengths is None:
                return new, new[0]
            alive = (t < lengths)[:, None]
            kept = tuple(lnp.where(alive, after, before) for after, before in zip(new, state, strict=True))
            return kept, lnp.where(alive, new[0], 0)

        end, rows = scan(step, states[direction], (sequence, time), reverse=is_backwards)
        outputs.append(rows)
        last.append(end)
    return (lnp.stack(outputs, axis=1), *(lnp.stack(parts) for parts in zip(*last, strict=True)))


def _layout(call: Call, results: tuple[Any, ...]) -> tuple[Any, ...]:
    """With `layout` 1 the batch comes first."""
    if not call.layout:
        return results
    return (lnp.transpose(results[0], (2, 0, 1, 3)), *(lnp.swapaxes(state, 0, 1) for state in results[1:]))


def _starts(call: Call, x: Any, hidden: int, *given: Any) -> list[tuple[Any, ...]]:
    """The first states of each direction."""
    count = len(_directions(call))
    found = []
    for state in given:
        if state is None:
            found.append(lnp.zeros((count, x.shape[1], hidden), x.dtype))
        else:
            found.append(lnp.swapaxes(state, 0, 1) if call.layout else state)
    return [tuple(state[k] for state in found) for k in range(count)]


def _time_first(call: Call, x: Any) -> Any:
    return lnp.swapaxes(x, 0, 1) if call.layout else x


def _rnn(call: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    x, hidden = _time_first(call, x), r.shape[-1]
    bias = lnp.zeros((w.shape[0], 2 * hidden), x.dtype) if b is None else b
    steps: list[Step] = []
    inputs = []
    for k in range(w.shape[0]):
        (f,) = _activations(call, k, ("Tanh",))
        inputs.append(x @ w[k].T + (bias[k, :hidden] + bias[k, hidden:]))
        steps.append(_rnn_step(r[k], f))
    return _layout(call, _run(call, x, lengths, _starts(call, x, hidden, h), steps, inputs))


def _rnn_step(r: Any, f: Activation) -> Step:
    """Elman 1990."""
    return lambda row, state: (f(row + state[0] @ r.T),)


def _gru(call: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    x, hidden = _time_first(call, x), r.shape[-1]
    bias = lnp.zeros((w.shape[0], 6 * hidden), x.dtype) if b is None else b
    steps, inputs = [], []
    for k in range(w.shape[0]):
        own, recurrent = bias[k, : 3 * hidden], bias[k, 3 * hidden :]
        if not call.linear_before_reset:
            own, recurrent = own + recurrent, None
        inputs.append(x @ w[k].T + own)
        steps.append(_gru_step(call, r[k], recurrent, _activations(call, k, ("Sigmoid", "Tanh"))))
    return _layout(call, _run(call, x, lengths, _starts(call, x, hidden, h), steps, inputs))


def _gru_step(call: Call, r: Any, bias: Any, activations: list[Activation]) -> Step:
    """Cho et al. 2014. The rows of the weights are those of the update gate z, the reset gate r, the candidate h."""
    f, g = activations
    hidden = r.shape[-1]

    def step(row: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        (h,) = state
        if bias is not None:
            recurrent = h @ r.T + bias
            z = f(row[:, :hidden] + recurrent[:, :hidden])
            reset = f(row[:, hidden : 2 * hidden] + recurrent[:, hidden : 2 * hidden])
            new = g(row[:, 2 * hidden :] + reset * recurrent[:, 2 * hidden :])
        else:
            gates = h @ r[: 2 * hidden].T
            z = f(row[:, :hidden] + gates[:, :hidden])
            reset = f(row[:, hidden : 2 * hidden] + gates[:, hidden:])
            new = g(row[:, 2 * hidden :] + (reset * h) @ r[2 * hidden :].T)
        return ((1 - z) * new + z * h,)

    return step


def _lstm(
    call: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, c: Any = None, p: Any = None
) -> Any:
    products = [(_times(w[k].T), _times(r[k].T)) for k in range(w.shape[0])]
    return lstm(call, x, r.shape[-1], products, b, lengths, h, c, p)


Product = Callable[[Any], Any]


def _times(matrix: Any) -> Product:
    return lambda x: x @ matrix


def lstm(
    call: Call, x: Any, hidden: int, products: list[tuple[Product, Product]], b: Any, lengths: Any, h: Any, c: Any,
    p: Any,
) -> Any:  # fmt: skip
    """An LSTM, given the products of inputs and of states with the weights of each direction."""
    x = _time_first(call, x)
    bias = lnp.zeros((len(products), 8 * hidden), x.dtype) if b is None else b
    steps: list[Step] = []
    inputs = []
    for k, (of_input, of_state) in enumerate(products):
        inputs.append(of_input(x) + (bias[k, : 4 * hidden] + bias[k, 4 * hidden :]))
        peepholes = None if p is None else lnp.split(p[k], 3)
        steps.append(_lstm_step(call, of_state, peepholes, _activations(call, k, ("Sigmoid", "Tanh", "Tanh"))))
    return _layout(call, _run(call, x, lengths, _starts(call, x, hidden, h, c), steps, inputs))


def _lstm_step(call: Call, of_state: Product, peepholes: Any, activations: list[Activation]) -> Step:
    """Hochreiter and Schmidhuber 1997, with peepholes. The rows of the weights are those of i, o, f and c."""
    f, g, h = activations

    def step(row: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        before, cell = state
        enter, leave, forget, new = lnp.split(row + of_state(before), 4, axis=-1)
        if peepholes is not None:
            enter, forget = enter + peepholes[0] * cell, forget + peepholes[2] * cell
        gate = f(enter)
        kept = 1 - gate if call.input_forget else f(forget)
        after = kept * cell + gate * g(new)
        if peepholes is not None:
            leave = leave + peepholes[1] * after
        return f(leave) * h(after), after

    return step


ATTRIBUTES = {
    "activation_alpha": None,
    "activation_beta": None,
    "activations": None,
    "clip": None,
    "direction": "forward",
    "hidden_size": None,
    "layout": 0,
}

LSTM_ATTRIBUTES = {**ATTRIBUTES, "input_forget": 0}

OPERATORS = (
    Operator("GRU", _gru, {**ATTRIBUTES, "linear_before_reset": 0}, since=7, refuse=refuse_activations),
    Operator("LSTM", _lstm, LSTM_ATTRIBUTES, since=7, refuse=refuse_activations),
    Operator("RNN", _rnn, ATTRIBUTES, since=7, refuse=refuse_activations),
)
