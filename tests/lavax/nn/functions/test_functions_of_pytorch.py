"""Functions with PyTorch's names and arguments: values and gradients, by PyTorch and as recorded."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.base.errors import DtypeError, ShapeError
from tests.closeness import close
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X, Y = sample((4, 5), seed=1), sample((4, 5), seed=2)
SIGNS = np.where(sample((4, 5), seed=3) > 0, 1, -1).astype(np.float32)
IMAGE, CHANNELS = sample((2, 6, 5, 4), seed=4), sample((6,), seed=5)
QUERY, KEYS, SHOWN = sample((2, 3, 4, 8), seed=6), sample((2, 3, 6, 8), seed=7), sample((2, 3, 6, 5), seed=8)
MASK = sample((2, 1, 4, 6), seed=9) > -0.5
GRID = sample((2, 3, 7, 2), low=-1.4, high=1.4, seed=10)
CLASSES = np.array([0, 3, 1, 4])
LISTED = np.array([[0, 3, -1, 1, 2], [-1, 0, 0, 0, 0], [4, 3, 2, 1, 0], [2, 1, -1, 0, 0]])
TOKENS = np.array([[0, 2, 4], [2, 2, 1]])
WEIGHT = sample((6, 3, 3, 2), seed=11)

# Name; arrays, of which those of floats get gradients; settings; by torch 2.13: Σ weights·value, and the greatest
# gradient of 2·Σ weights·value by each array of floats.
CASES: list[tuple[str, tuple[np.ndarray, ...], dict[str, Any], list[float]]] = [
    ("hardshrink", (X,), {"lambd": 0.3}, [6.38142, 2.81038]),
    ("softshrink", (X,), {"lambd": 0.3}, [5.93039, 2.81038]),
    ("tanhshrink", (X,), {}, [3.41471, 2.30903]),
    ("hardtanh", (X,), {"min_val": -0.4, "max_val": 0.7}, [3.15693, 2.79876]),
    ("threshold", (X,), {"threshold": 0.1, "value": 3.0}, [46.2672, 2.68224]),
    ("prelu", (IMAGE, CHANNELS), {}, [349.106, 8.63881, 92.4909]),
    ("prelu", (X, CHANNELS[:1]), {}, [47.0161, 8.29996, 20.6381]),
    ("gelu", (X,), {"approximate": "none"}, [14.5186, 3.00826]),
    ("gelu", (X,), {"approximate": "tanh"}, [14.5198, 3.00949]),
    ("normalize", (IMAGE,), {}, [-8.3639, 1.33959]),
    ("normalize", (IMAGE,), {"p": 1}, [-4.35109, 0.958897]),
    ("normalize", (IMAGE,), {"p": 3.0}, [-10.019, 1.69601]),
    ("normalize", (IMAGE,), {"p": np.inf}, [-12.1441, 2.22404]),
    ("linear", (X, sample((3, 5), seed=12), CHANNELS[:3]), {}, [-16.3783, 8.46388, 10.9605, 8.32076]),
    ("bilinear", (X, IMAGE[0, 0, :4], sample((3, 5, 4), seed=13), CHANNELS[:3]), {},
     [6.92802, 50.5742, 51.7729, 21.2781, 8.32076]),
    ("embedding", (TOKENS, IMAGE[0, 0]), {}, [-19.2037, 6.74322]),
    ("embedding", (TOKENS, IMAGE[0, 0]), {"padding_idx": 2}, [-19.2037, 2.83479]),
    ("embedding", (TOKENS % 4, X), {"padding_idx": -2}, [17.6423, 5.19515]),
    ("conv1d", (X[None], sample((2, 4, 3), seed=14), CHANNELS[:2]), {"stride": 2, "padding": 1},
     [-12.1797, 7.67571, 13.9435, 7.30311]),
    ("conv2d", (IMAGE, WEIGHT, CHANNELS), {"groups": 2, "padding": (2, 0), "dilation": (2, 1)},
     [-117.857, 27.385, 55.4259, 61.3142]),
    ("conv2d", (IMAGE, WEIGHT), {"groups": 2, "padding": "same"}, [91.8426, 27.9566, 55.1678]),
    ("conv3d", (IMAGE[None], sample((3, 2, 2, 2, 2), seed=15)), {"padding": "valid"}, [53.5307, 43.2067, 53.9093]),
    ("conv_transpose1d", (X[None], sample((4, 2, 3), seed=16), CHANNELS[:2]), {"stride": 3, "output_padding": 2},
     [-25.5145, 11.3537, 12.5403, 35.1322]),
    ("conv_transpose2d", (IMAGE, WEIGHT, CHANNELS), {"groups": 2, "stride": 2, "padding": 1, "output_padding": 1},
     [-999.089, 34.6531, 52.2893, 287.471]),
    ("conv_transpose3d", (IMAGE[None], sample((2, 1, 2, 2, 2), seed=15)), {"dilation": (1, 2, 1)},
     [-26.327, 17.5336, 43.8094]),
    ("instance_norm", (IMAGE,), {"weight": CHANNELS, "bias": CHANNELS}, [-170.903, 2.08699]),
    ("local_response_norm", (IMAGE,), {"size": 3, "alpha": 0.5, "beta": 0.6, "k": 2.0}, [-17.9706, 1.85539]),
    ("local_response_norm", (IMAGE,), {"size": 4}, [-34.0212, 2.94409]),
    ("channel_shuffle", (IMAGE,), {"groups": 3}, [-33.4317, 2.94498]),
    ("unfold", (IMAGE,), {"kernel_size": (3, 2), "dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)},
     [-22.8147, 5.78643]),
    ("fold", (sample((2, 12, 8), seed=17),), {"output_size": (5, 4), "kernel_size": 2, "stride": (1, 2)},
     [41.323, 2.9884]),
    ("fold", (sample((2, 12, 12), seed=17),), {"output_size": (6, 5), "kernel_size": 2, "stride": 2, "padding": 1},
     [5.45953, 2.99078]),
    ("affine_grid", (sample((2, 2, 3), seed=18),), {"size": (2, 1, 3, 4), "align_corners": False}, [68.3147, 26.0551]),
    ("affine_grid", (sample((2, 2, 3), seed=18),), {"size": (2, 1, 3, 4), "align_corners": True}, [71.0837, 26.0551]),
    ("grid_sample", (IMAGE, GRID), {"align_corners": False}, [-9.44122, 4.60832, 35.5184]),
    ("grid_sample", (IMAGE, GRID), {"padding_mode": "border", "align_corners": True}, [-25.562, 9.03212, 41.7729]),
    ("grid_sample", (IMAGE, GRID), {"padding_mode": "reflection", "align_corners": False},
     [-17.4649, 8.89913, 47.5423]),
    ("grid_sample", (IMAGE, GRID), {"padding_mode": "reflection", "align_corners": True}, [-19.2252, 7.16421, 31.0079]),
    ("grid_sample", (IMAGE, GRID), {"mode": "nearest", "align_corners": False}, [-7.1898, 6.30429, 0.0]),
    ("soft_margin_loss", (X, SIGNS.astype(np.int64)), {"reduction": "none"}, [21.0394, 2.23818]),
    ("multilabel_soft_margin_loss", (X, (SIGNS + 1) / 2, Y[0]), {"reduction": "sum"},
     [-0.882384, 0.335471, 1.14198, 2.82873]),
    ("multi_margin_loss", (X, CLASSES), {"margin": 0.7}, [0.65986, 0.4]),
    ("multi_margin_loss", (X, CLASSES), {"p": 2, "weight": np.abs(Y[0]), "reduction": "none"}, [6.756, 7.31513]),
    ("multilabel_margin_loss", (X, LISTED), {"reduction": "none"}, [2.49623, 1.05732]),
    ("triplet_margin_with_distance_loss", (X, Y, X[::-1].copy()), {"margin": 2.0, "swap": True},
     [1.2062, 0.518051, 0.5079, 0.42004]),
    ("scaled_dot_product_attention", (QUERY, KEYS, SHOWN), {"is_causal": True, "scale": 0.3},
     [17.514, 6.44171, 4.88878, 5.55283]),
    ("scaled_dot_product_attention", (QUERY, KEYS, SHOWN), {"attn_mask": MASK}, [-0.452376, 10.0575, 13.0342, 5.55466]),
    ("scaled_dot_product_attention", (QUERY[0], KEYS[0], SHOWN[0], X[:, :1] * np.ones((4, 6), "f")), {},
     [2.47048, 8.2886, 10.5097, 4.75812, 6.38492]),
    ("scaled_dot_product_attention", (QUERY[0, 0], KEYS[0, 0], SHOWN[0, 0]), {}, [8.92074, 8.84293, 11.5689, 3.26903]),
    ("scaled_dot_product_attention", (QUERY[None], KEYS[None], SHOWN[None]), {"attn_mask": MASK[None]},
     [-6.22142, 8.222, 10.0252, 5.64137]),
    ("scaled_dot_product_attention", (QUERY, KEYS[:, :1], SHOWN[:, :1]), {"enable_gqa": True},
     [31.9223, 10.43, 14.3359, 8.72091]),
]  # fmt: skip
NAMES = [f"{case[0]}-{number}" for number, case in enumerate(CASES)]


def weights_of(shape: tuple[int, ...]) -> np.ndarray:
    return sample(shape, low=0.5, high=1.5, seed=20) if shape else np.float32(1)


def ours(name: str, arrays: tuple[np.ndarray, ...], settings: dict[str, Any]) -> tuple[np.ndarray, list[np.ndarray]]:
    places = [place for place, array in enumerate(arrays) if array.dtype == np.float32]

    def loss(*floats: Any) -> Any:
        given: list[Any] = list(arrays)
        for place, array in zip(places, floats, strict=True):
            given[place] = array
        made = getattr(nn, name)(*given, **settings)
        return 2 * lnp.sum(weights_of(made.shape) * made), made

    floats = [arrays[place] for place in places]
    gradients, made = lx.grad(loss, tuple(range(len(places))), has_aux=True)(*floats)
    return np.asarray(made), [np.asarray(gradient) for gradient in gradients]


def theirs(name: str, arrays: tuple[np.ndarray, ...], settings: dict[str, Any]) -> tuple[np.ndarray, list[np.ndarray]]:
    torch = pytest.importorskip("torch", reason="torch is the oracle; recorded values stand beside the cases")
    given = [torch.tensor(array, requires_grad=array.dtype == np.float32) for array in arrays]
    kept = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in settings.items()}
    functional = torch.nn.functional
    made = getattr(functional, name)(*given, **kept)
    (2 * (torch.tensor(weights_of(tuple(made.shape))) * made).sum()).backward()
    return made.detach().numpy(), [array.grad.numpy() for array in given if array.requires_grad]


@pytest.mark.parametrize(("name", "arrays", "settings", "recorded"), CASES, ids=NAMES)
def test_functions_are_those_recorded(
    name: str, arrays: tuple[np.ndarray, ...], settings: dict[str, Any], recorded: list[float]
) -> None:
    made, gradients = ours(name, arrays, settings)
    found = [np.sum(weights_of(made.shape) * made), *(np.abs(gradient).max() for gradient in gradients)]
    np.testing.assert_allclose(found, recorded, rtol=2e-5, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(("name", "arrays", "settings", "recorded"), CASES, ids=NAMES)
def test_functions_are_those_of_pytorch(
    name: str, arrays: tuple[np.ndarray, ...], settings: dict[str, Any], recorded: list[float]
) -> None:
    expected, slopes = theirs(name, arrays, settings)
    made, gradients = ours(name, arrays, settings)
    close(made, expected)
    for gradient, slope in zip(gradients, slopes, strict=True):
        close(gradient, slope)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(("padding", "stride"), [(2, 2), ((1, 3), 1), ("same", 1)])
def test_what_stands_around_the_input_of_a_convolution(mode: str, padding: Any, stride: int) -> None:
    layer = nn.Conv2d(6, 4, (4, 3), stride, padding, groups=2, padding_mode=mode, key=lx.random.key(0))
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    pads = [(1, 2), (1, 1)] if padding == "same" else [(n, n) for n in np.broadcast_to(padding, 2).tolist()]
    around = np.pad(IMAGE, [(0, 0), (0, 0), *pads], mode=modes[mode])
    close(layer(IMAGE), nn.conv2d(around, layer.weight, layer.bias, stride, groups=2))


def test_layers_are_the_functions() -> None:
    key = lx.random.key(0)
    close(nn.LayerNorm((5, 4))(IMAGE), nn.layer_norm(IMAGE, axis=(-2, -1)))
    close(nn.RMSNorm((5, 4), affine=False)(IMAGE), nn.rms_norm(IMAGE, axis=(2, 3)))
    assert lx.tree.leaves([nn.LayerNorm(3, affine=False), nn.GroupNorm(1, 3, affine=False), nn.InstanceNorm(3)]) == []
    close(nn.InstanceNorm(6, affine=True)(IMAGE), nn.instance_norm(IMAGE))
    close(nn.PReLU()(X), np.where(X > 0, X, 0.25 * X))
    close(nn.Unflatten(1, (3, -1))(IMAGE), IMAGE.reshape(2, 3, 2, 5, 4))
    bilinear = nn.Bilinear(5, 5, 2, key=key)
    close(bilinear(X, Y), nn.bilinear(X, Y, bilinear.weight, bilinear.bias))
    table = nn.Embedding(5, 3, padding_idx=1, key=key)
    close(table.weight[1], np.zeros(3))
    slopes = lx.grad(lambda layer: lnp.sum(layer(np.array([0, 1, 1]))))(table)
    close(slopes.weight, np.array([1, 0, 0, 0, 0], "f")[:, None] * np.ones(3))
    close(nn.Sequential(nn.relu, nn.Flatten())(IMAGE), nn.Sequential([nn.relu, nn.Flatten()])(IMAGE))


def test_draws_of_classes() -> None:
    logits = np.log(np.array([[0.1, 0.2, 0.7]], np.float32)).repeat(4000, 0)
    key = lx.random.key(3)
    drawn = np.asarray(nn.gumbel_softmax(logits, key, hard=True))
    assert set(np.unique(drawn.round(5))) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.mean(0), [0.1, 0.2, 0.7], atol=0.03)

    def slopes(hard: bool) -> Any:
        return lx.grad(lambda x: lnp.sum(X[0, :3] * nn.gumbel_softmax(x, key, tau=0.5, hard=hard)))(logits)

    close(slopes(True), slopes(False))


REFUSED: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (TypeError, r"layer_norm: weight is an array, got \(5,\).*axis=", lambda: nn.layer_norm(X, (5,), X[0], X[0])),
    (TypeError, "batch_norm: eps is a number, got True", lambda: nn.batch_norm(X, X[0], X[0], None, None, True)),
    (ValueError, "normalize: p must be positive, got 0", lambda: nn.normalize(X, 0)),
    (ValueError, "gelu: approximate is .* got 'exact'", lambda: nn.gelu(X, "exact")),  # type: ignore[arg-type]
    (ShapeError, "prelu: weight is one number", lambda: nn.prelu(X, CHANNELS)),
    (ShapeError, "LayerNorm: x is .*4, 5", lambda: nn.LayerNorm((4, 5))(IMAGE)),
    (ShapeError, "instance_norm: x is", lambda: nn.instance_norm(X)),
    (ShapeError, "embedding: padding_idx=9 is no row", lambda: nn.embedding(TOKENS, X, 9)),
    (ValueError, "Embedding: padding_idx=9", lambda: nn.Embedding(5, 3, 9, key=lx.random.key(0))),
    (ValueError, "Conv1d: padding_mode is one of zeros, reflect, replicate, circular; got 'edge'",
     lambda: nn.Conv1d(1, 1, 3, padding_mode="edge", key=lx.random.key(0))),  # type: ignore[arg-type]
    (ShapeError, "conv1d: x is .* with 1 spatial axes", lambda: nn.conv1d(IMAGE, WEIGHT)),
    (ShapeError, r"fold: x is \[N, C·4, 12\]", lambda: nn.fold(X[None], (5, 4), 2)),
    (ShapeError, "unfold: x is", lambda: nn.unfold(X, 2)),
    (ShapeError, "affine_grid: theta is", lambda: nn.affine_grid(X, (1, 1, 2, 2))),
    (ShapeError, "grid_sample: x is", lambda: nn.grid_sample(IMAGE, X)),
    (ValueError, "grid_sample: mode is", lambda: nn.grid_sample(IMAGE, GRID, "bicubic")),  # type: ignore[arg-type]
    (ShapeError, "Unflatten: axis 1", lambda: nn.Unflatten(1, (4, -1))(IMAGE)),
    (TypeError, "Sequential: layers are modules or functions, got 3 at 1", lambda: nn.Sequential(nn.relu, 3)),
    (ShapeError, "say enable_gqa=True", lambda: nn.scaled_dot_product_attention(QUERY, KEYS[:, :1], SHOWN[:, :1])),
    (DtypeError, "multi_margin_loss: class indices are integers", lambda: nn.multi_margin_loss(X, Y)),
    (ShapeError, "multilabel_margin_loss: input is", lambda: nn.multilabel_margin_loss(X, CLASSES)),
    (ValueError, "multi_margin_loss: p is 1 or 2, got 3", lambda: nn.multi_margin_loss(X, CLASSES, p=3)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "message", "call"), REFUSED, ids=[message for _, message, _ in REFUSED])
def test_what_does_not_fit(error: type[Exception], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error, match=message):
        call()
