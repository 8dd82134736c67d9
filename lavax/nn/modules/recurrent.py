"""Recurrent layers over sequences: a scan over time for each layer and direction."""
from __future__ import annotations

from typing import Any, ClassVar, Literal

import lavax.numpy as lnp
from lavax import random
from lavax.nn.modules.dropout import dropout
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.recurrent_cells import Cell, GRUCell, LSTMCell, RNNCell
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.pytrees import pytree
from lavax.tracer.values.value import Value

__all__ = ["GRU", "LSTM", "RNN"]


class _Recurrent(Module):
    """Layers of cells over sequences, batch first: `outputs, state = layer(x, state)`.

    `x` is [..., T, input_size] with any leading axes, `outputs` [..., T, directions·hidden_size]: the hidden states of
    the last layer; with `bidirectional` those of the walk from the end follow those of the walk from the start. States
    are [layers·directions, ..., hidden_size] as in PyTorch, before the first step (None: zeros) and after the last. In
    training, `dropout` is applied between layers if there is a `key`. With `lengths` [...] the rows of a batch have so
    many steps, as packed sequences in PyTorch: the rest is neither read nor shown, outputs there are 0, and the last
    state is the one after the last step of the row. `cells` are in the order of the states; PyTorch's
    weight_ih_l1_reverse is `cells[3].weight_ih`.
    """

    _cell: ClassVar[type[Cell]]

    cells: tuple[Any, ...]
    bidirectional: bool = field(static=True)
    dropout: float = field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        key: ArrayLike,
        dtype: Any = "float32",
        **settings: Any,
    ) -> None:
        if num_layers < 1:
            raise ValueError(f"{type(self).__name__}: num_layers must be at least 1, got {num_layers}")
        directions = 2 if bidirectional else 1
        keys = random.split(key, num_layers * directions)
        self.cells = tuple(
            self._cell(
                input_size if number < directions else directions * hidden_size,
                hidden_size,
                bias,
                key=keys[number],
                dtype=dtype,
                **settings,
            )
            for number in range(num_layers * directions)
        )
        self.bidirectional, self.dropout = bidirectional, dropout

    def initial_state(self, batch: tuple[int, ...] = (), dtype: Any = None) -> Any:
        """Zeros for all layers and directions, for sequences with the leading axes `batch`."""
        states = [cell.initial_state(batch, dtype) for cell in self.cells]
        return pytree.map(lambda *each: lnp.stack(each), *states)

    def __call__(
        self, x: ArrayLike, state: Any = None, *, lengths: ArrayLike | None = None, key: ArrayLike | None = None
    ) -> tuple[Value, Any]:
        hidden = as_floating(x)
        if hidden.ndim < 2:
            raise shape_error(f"{type(self).__name__}: x is [..., T, input_size], got {hidden.type}")
        held = self.cells[0].weight_hh
        if state is None:
            state = self.initial_state(hidden.shape[:-2], lnp.result_type(hidden, held))
        # States of fewer bits than a step computes with would be of another dtype after it.
        state = pytree.map(lambda part: lnp.astype(part, lnp.result_type(part, hidden, held)), state)
        directions = 2 if self.bidirectional else 1
        layers = len(self.cells) // directions
        is_step = None if lengths is None else _steps(type(self).__name__, hidden, as_value(lengths))
        keys = None if key is None or not self.dropout else random.split(key, layers)
        last = []
        for layer in range(layers):
            if layer and keys is not None:
                hidden = dropout(hidden, self.dropout, keys[layer])
            outputs = []
            for direction in range(directions):
                number = layer * directions + direction
                own = pytree.map(lambda part, number=number: part[number], state)
                made, after = _walk(self.cells[number], hidden, own, is_step, reverse=direction == 1)
                outputs.append(made)
                last.append(after)
            hidden = outputs[0] if directions == 1 else lnp.concatenate(outputs, axis=-1)
        return hidden, pytree.map(lambda *each: lnp.stack(each), *last)


def _steps(name: str, x: Value, lengths: Value) -> Value:
    """Which steps a row has, [T, ..., 1]."""
    if lengths.shape != x.shape[:-2] or not lengths.type.dtype.is_integer:
        raise shape_error(f"{name}: lengths must be integers {list(x.shape[:-2])} for {x.type}, got {lengths.type}")
    places = lnp.reshape(lnp.arange(x.shape[-2]), (-1, *(1 for _ in x.shape[:-1])))
    return places < lnp.expand_dims(lengths, -1)


def _walk(cell: Any, x: Value, state: Any, is_step: Value | None, reverse: bool) -> tuple[Value, Any]:
    """Outputs [..., T, hidden_size] and the last state of one cell over [..., T, input_size]."""

    def step(carried: Any, at: Any) -> Any:
        projected, is_one = at
        after = cell.advance(projected, carried)
        if is_one is None:
            return after, cell.output(after)
        after = pytree.map(lambda new, old: lnp.where(is_one, new, old), after, carried)
        return after, lnp.where(is_one, cell.output(after), 0.0)

    last, outputs = scan(step, state, (lnp.moveaxis(cell.project(x), -2, 0), is_step), reverse=reverse)
    return lnp.moveaxis(outputs, 0, -2), last


class RNN(_Recurrent):
    """`RNNCell` over sequences; the state is h. `nonlinearity` is "tanh" or "relu"."""

    _cell = RNNCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            dropout,
            bidirectional,
            key=key,
            dtype=dtype,
            nonlinearity=nonlinearity,
        )


class LSTM(_Recurrent, init=False):
    """`LSTMCell` over sequences; the state is (h, c)."""

    _cell = LSTMCell


class GRU(_Recurrent, init=False):
    """`GRUCell` over sequences; the state is h."""

    _cell = GRUCell
