"""Cells of recurrent networks: one step in time. Gates and weights stand in PyTorch's order."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import lavax.numpy as lnp
from lavax import random
from lavax.nn.activations import relu, sigmoid, tanh
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

__all__ = ["Cell", "GRUCell", "LSTMCell", "RNNCell"]


class Cell(Module):
    """One step: `state = cell(x, state)` for x [..., input_size], with any leading axes.

    `weight_ih` is [gates·hidden_size, input_size], `weight_hh` [gates·hidden_size, hidden_size], and `bias_ih` and
    `bias_hh` are [gates·hidden_size] or None; all are drawn uniformly from ±1/√hidden_size. A step is split in two, so
    that a layer computes the products with its inputs for all steps at once: `cell(x, state)` is
    `cell.advance(cell.project(x), state)`.
    """

    _gates: ClassVar[int]

    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, key: ArrayLike, dtype: Any = "float32"
    ) -> None:
        rows, bound = self._gates * hidden_size, max(hidden_size, 1) ** -0.5
        keys = random.split(key, 4)
        self.weight_ih = random.uniform(keys[0], (rows, input_size), dtype, -bound, bound)
        self.weight_hh = random.uniform(keys[1], (rows, hidden_size), dtype, -bound, bound)
        self.bias_ih = random.uniform(keys[2], (rows,), dtype, -bound, bound) if bias else None
        self.bias_hh = random.uniform(keys[3], (rows,), dtype, -bound, bound) if bias else None

    @property
    def hidden_size(self) -> int:
        """The size of the hidden state."""
        return int(self.weight_hh.shape[1])

    def initial_state(self, batch: Sequence[int] = (), dtype: Any = None) -> Any:
        """Zeros: [*batch, hidden_size]."""
        return lnp.zeros((*batch, self.hidden_size), self.weight_hh.dtype if dtype is None else dtype)

    def project(self, x: ArrayLike) -> Value:
        """What the inputs [..., input_size] add to the gates: [..., gates·hidden_size]."""
        value = as_value(x)
        if not value.ndim or value.shape[-1] != self.weight_ih.shape[1]:
            raise shape_error(f"{type(self).__name__}: x is [..., {self.weight_ih.shape[1]}], got {value.type}")
        made = lnp.matmul(value, lnp.matrix_transpose(self.weight_ih))
        return made if self.bias_ih is None else made + self.bias_ih

    def advance(self, projected: Value, state: Any) -> Any:
        """The next state, from `project`'s result for this step."""
        raise NotImplementedError

    def output(self, state: Any) -> Value:
        """What the cell shows of its state: [..., hidden_size]."""
        return as_value(state)

    def __call__(self, x: ArrayLike, state: Any = None) -> Any:
        projected = self.project(x)
        return self.advance(projected, self.initial_state(projected.shape[:-1]) if state is None else state)

    def _recurrent(self, hidden: ArrayLike) -> Value:
        made = lnp.matmul(hidden, lnp.matrix_transpose(self.weight_hh))
        return made if self.bias_hh is None else made + self.bias_hh


class RNNCell(Cell):
    """h' = tanh(W_ih·x + b_ih + W_hh·h + b_hh), or `relu` in place of tanh (Elman 1990)."""

    _gates = 1

    nonlinearity: Literal["tanh", "relu"] = field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell: nonlinearity is 'tanh' or 'relu', got {nonlinearity!r}")
        super().__init__(input_size, hidden_size, bias, key=key, dtype=dtype)
        self.nonlinearity = nonlinearity

    def advance(self, projected: Value, state: Any) -> Any:
        """tanh, or relu, of the sum."""
        return (tanh if self.nonlinearity == "tanh" else relu)(projected + self._recurrent(state))


class LSTMCell(Cell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997); the state is (h, c), the gates are i, f, g, o.

    c' = σ(f)·c + σ(i)·tanh(g) and h' = σ(o)·tanh(c').
    """

    _gates = 4

    def initial_state(self, batch: Sequence[int] = (), dtype: Any = None) -> Any:
        """Zeros for h and c: two arrays [*batch, hidden_size]."""
        return super().initial_state(batch, dtype), super().initial_state(batch, dtype)

    def output(self, state: Any) -> Value:
        """h."""
        return as_value(state[0])

    def advance(self, projected: Value, state: Any) -> Any:
        """(h', c')."""
        hidden, memory = state
        parts = lnp.split(projected + self._recurrent(hidden), 4, axis=-1)
        written, kept, content, shown = parts
        memory = sigmoid(kept) * memory + sigmoid(written) * tanh(content)
        return sigmoid(shown) * tanh(memory), memory


class GRUCell(Cell):
    """Gated recurrent unit (Cho et al. 2014); the gates are r, z, n.

    n = tanh(W_in·x + b_in + σ(r)·(W_hn·h + b_hn)) and h' = (1 - σ(z))·n + σ(z)·h.
    """

    _gates = 3

    def advance(self, projected: Value, state: Any) -> Any:
        """h'."""
        of_input = lnp.split(projected, 3, axis=-1)
        of_state = lnp.split(self._recurrent(state), 3, axis=-1)
        reset, kept = (sigmoid(one + other) for one, other in zip(of_input[:2], of_state[:2], strict=True))
        new = tanh(of_input[2] + reset * of_state[2])
        return new + kept * (state - new)
