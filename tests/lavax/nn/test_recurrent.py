"""Recurrent layers, against PyTorch and recorded values, and their cells step by step."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.base.errors import ShapeError
from tests.closeness import close
from tests.lavax.nn.windows import check_derivatives
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X = sample((2, 5, 3))
# Class, settings; by torch 2.13, of the weights of `weighted`: the sum of the outputs, of the last states, and the
# greatest gradient of 2·Σ outputs² by x.
CASES: list[tuple[str, dict[str, Any], list[float]]] = [
    ("RNN", {}, [-0.3480897, -1.10443, 2.589163]),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2, "bias": False}, [35.21497, 16.32885, 31.64546]),
    ("LSTM", {}, [0.5537176, 1.003531, 1.000767]),
    ("LSTM", {"num_layers": 2, "bidirectional": True}, [4.113695, 8.084011, 0.2054481]),
    ("GRU", {"bias": False}, [-2.832165, -2.222284, 1.789215]),
    ("GRU", {"num_layers": 2, "bidirectional": True}, [-7.056573, -2.561351, 1.156957]),
]


def weighted(model: Any) -> Any:
    """The model with weights that NumPy draws, leaf by leaf."""
    leaves, structure = lx.tree.flatten(model)
    drawn = [sample(leaf.shape, low=-0.8, high=0.8, seed=10 + number) for number, leaf in enumerate(leaves)]
    return lx.tree.unflatten(structure, drawn)


def made(name: str, settings: dict[str, Any]) -> Any:
    return weighted(getattr(nn, name)(3, 4, **settings, key=lx.random.key(0)))


def in_torch(name: str, settings: dict[str, Any]) -> Any:
    torch = pytest.importorskip("torch", reason="torch is the oracle of recurrent layers")
    theirs = getattr(torch.nn, name)(3, 4, **settings, batch_first=True)
    for number, cell in enumerate(made(name, settings).cells):
        layer, back = divmod(number, 2) if settings.get("bidirectional") else (number, 0)
        for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            if getattr(cell, part) is not None:
                getattr(theirs, f"{part}_l{layer}{'_reverse' if back else ''}").data = torch.tensor(getattr(cell, part))
    return theirs


def listed(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple) else [state]


@pytest.mark.parametrize(("name", "settings", "recorded"), CASES, ids=str)
def test_layers_give_what_is_recorded(name: str, settings: dict[str, Any], recorded: list[float]) -> None:
    model = made(name, settings)
    outputs, state = model(X)
    slope = lx.grad(lambda x: 2 * lnp.sum(model(x)[0] ** 2))(X)
    found = [np.sum(outputs), sum(np.sum(part) for part in listed(state)), np.abs(slope).max()]
    close(found, recorded, 3e-5)


@pytest.mark.parametrize(("name", "settings", "recorded"), CASES, ids=str)
def test_layers_are_those_of_pytorch(name: str, settings: dict[str, Any], recorded: list[float]) -> None:
    theirs, model = in_torch(name, settings), made(name, settings)
    import torch

    x = torch.tensor(X, requires_grad=True)
    outputs, state = theirs(x)
    (2 * (outputs**2).sum()).backward()
    found, after = model(X)
    close(found, outputs.detach().numpy())
    for one, other in zip(listed(after), listed(state), strict=True):
        close(one, other.detach().numpy())
    slope, slopes = lx.grad(lambda x, m: 2 * lnp.sum(m(x)[0] ** 2), (0, 1))(X, model)
    close(slope, x.grad.numpy(), 3e-5)
    close(slopes.cells[0].weight_hh, theirs.weight_hh_l0.grad.numpy(), 3e-5)
    start = lx.tree.map(lambda part: sample(part.shape, seed=3), after)
    given = [torch.tensor(part) for part in listed(start)]
    outputs, state = theirs(torch.tensor(X), tuple(given) if name == "LSTM" else given[0])
    found, after = model(X, start)
    close(found, outputs.detach().numpy())
    close(listed(after)[-1], (state[-1] if name == "LSTM" else state).detach().numpy())


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_cell_is_a_step_of_its_layer(name: str) -> None:
    model = made(name, {})
    outputs, last = model(X)
    cell, state = model.cells[0], None
    for t in range(5):
        state = cell(X[:, t], state)
        close(cell.output(state), outputs[:, t])
    for one, other in zip(listed(state), listed(last), strict=True):
        close(one, other[0])


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_derivatives(name: str) -> None:
    model = made(name, {})
    cell = model.cells[0]
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

    def run(x: Any, *weights: Any) -> Any:
        return model.replace(cells=(cell.replace(**dict(zip(names, weights, strict=True))),))(x)[0]

    check_derivatives(run, [X[:, :3], *(np.asarray(getattr(cell, part)) for part in names)])


def test_any_leading_axes_and_a_state_that_is_carried_on() -> None:
    model = made("LSTM", {"num_layers": 2})
    whole, end = model(X)
    first, state = model(X[:, :2])
    second, last = model(X[:, 2:], state)
    close(np.concatenate([first, second], 1), whole)
    close(last[1], end[1])
    close(model(X[0])[0], whole[0])
    close(lx.vmap(lambda x: model(x)[0])(X), whole)
    close(model(X[:, None])[0][:, 0], whole)


LENGTHS = np.array([3, 5], np.int32)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_rows_of_different_lengths(name: str) -> None:
    model = made(name, {"num_layers": 2, "bidirectional": True})
    found, after = model(X, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS):
        alone, state = model(X[row, :length])
        close(found[row, :length], alone)
        close(found[row, length:], 0)
        for one, other in zip(listed(after), listed(state), strict=True):
            close(one[:, row], other)
    slope = np.asarray(lx.grad(lambda x: lnp.sum(model(x, lengths=LENGTHS)[0] ** 2))(X))
    close(slope[0, 3:], 0)
    assert np.abs(slope[0, :3]).min() > 0


def test_packed_sequences_of_pytorch() -> None:
    settings = {"num_layers": 2, "bidirectional": True}
    theirs, model = in_torch("GRU", settings), made("GRU", settings)
    import torch

    packing = torch.nn.utils.rnn
    packed = packing.pack_padded_sequence(
        torch.tensor(X), torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False
    )
    outputs, state = theirs(packed)
    found, after = model(X, lengths=LENGTHS)
    close(found, packing.pad_packed_sequence(outputs, batch_first=True)[0].detach().numpy())
    close(after, state.detach().numpy())


def test_dropout_between_layers() -> None:
    model = made("GRU", {"num_layers": 2, "dropout": 0.5})
    plain = np.asarray(model(X)[0])
    assert np.abs(np.asarray(model(X, key=lx.random.key(0))[0]) - plain).max() > 0.01
    single = made("GRU", {"dropout": 0.5})
    close(single(X, key=lx.random.key(0))[0], single(X)[0])


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("dtypes", [("float16", "float32"), ("float32", "bfloat16"), ("bfloat16", "float16")])
def test_dtypes_of_inputs_weights_and_states_promote(name: str, dtypes: tuple[str, str]) -> None:
    layer = getattr(nn, name)(3, 4, key=lx.random.key(0), dtype=dtypes[1])
    inputs = lnp.astype(X, dtypes[0])
    outputs, state = layer(inputs)
    assert {str(leaf.dtype) for leaf in [outputs, *lx.tree.leaves(state)]} == {"float32"}
    again, _ = layer(inputs, layer.initial_state((2,), "float16"))
    close(again, outputs)


def test_what_does_not_fit() -> None:
    key = lx.random.key(0)
    refused: list[tuple[type[Exception], str, Any]] = [
        (ShapeError, r"LSTMCell: x is \[..., 3\], got f32\[2,5,4\]", lambda: made("LSTM", {})(np.ones((2, 5, 4), "f"))),
        (ShapeError, r"GRU: x is \[..., T, input_size\], got f32\[3\]", lambda: made("GRU", {})(X[0, 0])),
        (ShapeError, r"GRU: lengths must be integers \[2\] for f32\[2,5,3\], got i32\[3\]",
         lambda: made("GRU", {})(X, lengths=np.array([1, 2, 3], np.int32))),
        (ValueError, "num_layers must be at least 1, got 0", lambda: nn.GRU(3, 4, 0, key=key)),
        (ValueError, "nonlinearity is 'tanh' or 'relu', got 'sin'",
         lambda: nn.RNN(3, 4, nonlinearity="sin", key=key)),  # type: ignore[arg-type]
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
