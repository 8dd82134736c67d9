"""Whole models: those that PyTorch exports, with small widths, and some written here. Same numbers, true gradients."""
from __future__ import annotations

import importlib.util
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.lavax.onnx.building import graph, model, node, run_reference

pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")


def check(
    data: bytes, inputs: Mapping[str, np.ndarray], has_kinks: bool = False, recorded: Sequence[float] = ()
) -> lx.onnx.Model:
    """Compares the outputs with another runtime's, and the gradient by all parameters with a difference.

    `recorded` are the first numbers of the first output by onnxruntime 1.32, which stand in where it is not there.
    """
    rng, loaded = np.random.default_rng(4), lx.onnx.load(data)
    assert not loaded.static_input_names
    found = loaded(loaded.parameters, **inputs)
    if recorded:
        first_numbers = np.asarray(found[loaded.output_names[0]]).reshape(-1)[: len(recorded)]
        np.testing.assert_allclose(first_numbers, recorded, rtol=1e-4, atol=1e-5)
    is_there = not recorded or importlib.util.find_spec("onnxruntime")
    for name, wanted in zip(loaded.output_names, run_reference(data, inputs) if is_there else (), strict=False):
        assert found[name].shape == wanted.shape
        np.testing.assert_allclose(np.asarray(found[name]), wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
    first = loaded.output_names[0]
    weights = rng.normal(size=found[first].shape).astype(np.float32) / np.sqrt(found[first].size)

    def loss(parameters: Mapping[str, Any]) -> Any:
        return lnp.sum(loaded(parameters, **inputs)[first] * weights)

    start = {name: np.asarray(value) for name, value in loaded.parameters.items()}
    way = {name: (rng.normal(size=v.shape) * np.abs(v).mean()).astype(np.float32) for name, v in start.items()}
    gradient = lx.grad(loss)(loaded.parameters)
    slope = sum(float(np.vdot(np.asarray(gradient[name], np.float64), way[name])) for name in way)
    step = 1e-4 if has_kinks else 1e-3
    ends = [float(loss({name: start[name] + sign * step * way[name] for name in way})) for sign in (1, -1)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=0.1 if has_kinks else 2e-3, abs=1e-3)
    _, tangent = lx.jvp(loss, (loaded.parameters,), ({name: lnp.asarray(value) for name, value in way.items()},))
    assert float(tangent) == pytest.approx(slope, rel=1e-4, abs=1e-5)
    return loaded


def exported(module: Any, call: Callable[..., Any], inputs: dict[str, Any], count: int = 1, **dynamic: Any) -> bytes:
    """A module of PyTorch with random weights as an ONNX model; `call(module, *inputs)` is what it computes."""
    torch = pytest.importorskip("torch", reason="exports its models")

    class Called(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *arguments: Any) -> Any:
            return call(self.inner, *arguments)

    torch.manual_seed(0)
    for parameter in module.parameters():  # equal ones would be merged
        scale = 1 / np.sqrt(parameter[0].numel()) if parameter.dim() > 1 else 0.1
        torch.nn.init.normal_(parameter, 1 if parameter.dim() == 1 else 0, float(scale))
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of traces, and of this way to export
        torch.onnx.export(
            Called().eval(), tuple(inputs.values()), file, dynamo=False, opset_version=17, input_names=list(inputs),
            output_names=[f"y{k}" for k in range(count)], dynamic_axes=dynamic,
        )  # fmt: skip
    return file.getvalue()


def numbers(inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in inputs.items()}


def test_resnet_50() -> None:
    torch = pytest.importorskip("torch", reason="exports its models")
    transformers = pytest.importorskip("transformers", reason="has the model")
    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[8, 16, 32, 64], depths=[3, 4, 6, 3])
    inputs = {"x": torch.randn(1, 3, 32, 32)}
    data = exported(transformers.ResNetModel(config), lambda m, x: m(x).pooler_output, inputs, x={0: "n"})
    loaded = check(data, numbers(inputs), has_kinks=True)
    assert loaded(loaded.parameters, x=np.ones((2, 3, 32, 32), np.float32))["y0"].shape == (2, 64, 1, 1)


def test_mobilenet_v3() -> None:
    torch = pytest.importorskip("torch", reason="exports its models")
    nn = torch.nn

    class Excited(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.down, self.up = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

        def forward(self, x: Any) -> Any:
            pooled = nn.functional.adaptive_avg_pool2d(x, 1)
            return x * nn.functional.hardsigmoid(self.up(torch.relu(self.down(pooled))))

    def block(channels: int, inner: int, size: int, stride: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.Hardswish(),
            nn.Conv2d(inner, inner, size, stride, size // 2, groups=inner, bias=False), nn.BatchNorm2d(inner),
            Excited(inner), nn.Hardswish(), nn.Conv2d(inner, channels, 1, bias=False), nn.BatchNorm2d(channels),
        )  # fmt: skip

    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), block(8, 16, 3, 1), block(8, 24, 5, 2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(8, 10),
    )  # fmt: skip
    inputs = {"x": torch.randn(2, 3, 32, 32)}
    check(exported(net, lambda m, x: m(x), inputs), numbers(inputs), has_kinks=True)


def test_bert() -> None:
    torch = pytest.importorskip("torch", reason="exports its models")
    transformers = pytest.importorskip("transformers", reason="has the model")
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32, attn_implementation="eager",
    )  # fmt: skip
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 5:] = 0
    inputs = {"ids": torch.randint(0, 50, (2, 9)), "mask": mask}
    data = exported(
        transformers.BertModel(config), lambda m, i, a: m(input_ids=i, attention_mask=a).last_hidden_state, inputs,
        ids={0: "b", 1: "t"}, mask={0: "b", 1: "t"},
    )  # fmt: skip
    loaded = check(data, numbers(inputs))
    other = {"ids": np.ones((3, 4), np.int64), "mask": np.ones((3, 4), np.int64)}
    np.testing.assert_allclose(
        np.asarray(loaded(loaded.parameters, **other)["y0"]), run_reference(data, other)[0], rtol=1e-4, atol=1e-4
    )


def test_gpt_2_with_a_cache() -> None:
    torch = pytest.importorskip("torch", reason="exports its models")
    transformers = pytest.importorskip("transformers", reason="has the model")
    config = transformers.GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=32, attn_implementation="eager", bos_token_id=1,
        eos_token_id=1,
    )  # fmt: skip

    def call(module: Any, ids: Any, *held: Any) -> Any:
        cache = transformers.cache_utils.DynamicCache()
        for layer in range(2):
            cache.update(held[2 * layer], held[2 * layer + 1], layer)
        made = module(input_ids=ids, past_key_values=cache, use_cache=True)
        after = [(layer.keys, layer.values) for layer in made.past_key_values.layers]
        return (made.logits, *(value for pair in after for value in pair))

    held = {f"{kind}{layer}": torch.randn(2, 4, 5, 8) for layer in range(2) for kind in "kv"}
    inputs = {"ids": torch.randint(0, 50, (2, 3)), **held}
    dynamic = {"ids": {1: "t"}, **{name: {2: "past"} for name in held}}
    check(exported(transformers.GPT2LMHeadModel(config), call, inputs, 5, **dynamic), numbers(inputs))


def test_whisper_encoder() -> None:
    torch = pytest.importorskip("torch", reason="exports its models")
    transformers = pytest.importorskip("transformers", reason="has the model")
    config = transformers.WhisperConfig(
        d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20, num_mel_bins=8, vocab_size=60,
        pad_token_id=1, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1, attn_implementation="eager",
    )  # fmt: skip
    inputs = {"x": torch.randn(1, 8, 40)}
    encoder = transformers.WhisperModel(config).encoder
    check(exported(encoder, lambda m, x: m(x).last_hidden_state, inputs), numbers(inputs))


def test_an_lstm_tagger() -> None:
    torch = pytest.importorskip("torch", reason="exports its models")

    class Tagger(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(30, 8)
            self.lstm = torch.nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True)
            self.tags = torch.nn.Linear(12, 5)

        def forward(self, ids: Any) -> Any:
            return self.tags(self.lstm(self.words(ids))[0])

    inputs = {"ids": torch.randint(0, 30, (2, 7))}
    check(exported(Tagger(), lambda m, ids: m(ids), inputs, ids={1: "t"}), numbers(inputs))


def test_a_u_net() -> None:
    torch = pytest.importorskip("torch", reason="exports its models")
    diffusers = pytest.importorskip("diffusers", reason="has the model")
    net = diffusers.UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16),
        norm_num_groups=4, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8,
    )  # fmt: skip
    inputs = {"x": torch.randn(1, 3, 8, 8), "t": torch.tensor([7.0])}
    check(exported(net, lambda m, x, t: m(x, t).sample, inputs), numbers(inputs))


def _weights(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(len(shapes))
    return {name: (rng.normal(size=s) / np.sqrt(s[-1])).astype(np.float32) for name, s in shapes.items()}


def test_a_residual_network_written_here() -> None:
    nodes = [
        node("Conv", "x k0", "c0", auto_pad="SAME_UPPER", strides=[2, 2]),
        node("BatchNormalization", "c0 s b m v", "n0"), node("Clip", "n0 low high", "a0"),
        node("Conv", "a0 k1 b", "c1", pads=[1, 1, 1, 1]), node("HardSwish", "c1", "h1"), node("Add", "h1 a0", "r1"),
        node("MaxPool", "r1", "p1", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        node("Resize", "p1 - scales", "u1", mode="linear"), node("Concat", "u1 a0", "j1", axis=1),
        node("GlobalAveragePool", "j1", "g1"), node("Flatten", "g1", "f1"), node("Gemm", "f1 w wb", "y", alpha=0.5),
    ]  # fmt: skip
    weights = _weights(k0=(4, 3, 3, 3), k1=(4, 4, 3, 3), s=(4,), b=(4,), m=(4,), w=(8, 5), wb=(5,))
    weights |= {
        "v": np.full(4, 0.7, np.float32), "low": np.array(-2, np.float32), "high": np.array(6, np.float32),
        "scales": np.array([1, 1, 2, 2], np.float32),
    }  # fmt: skip
    data = model(nodes, {"x": ("f4", ["n", 3, 8, 8])}, {"y": ("f4", ["n", 5])}, weights)
    x = np.random.default_rng(8).normal(size=(2, 3, 8, 8)).astype(np.float32)
    check(data, {"x": x}, True, recorded=(-1.85021, 2.73415, -0.831262, -2.40364))


def test_a_tagger_written_here() -> None:
    nodes = [
        node("Gather", "words ids", "e"), node("Transpose", "e", "t", perm=[1, 0, 2]),
        node("LSTM", "t w r b", "o", hidden_size=4, direction="bidirectional"),
        node("Transpose", "o", "p", perm=[2, 0, 1, 3]), node("Shape", "p", "s", end=2),
        node("Concat", "s rest", "wanted", axis=0), node("Reshape", "p wanted", "q"), node("MatMul", "q tags", "y"),
    ]  # fmt: skip
    weights = _weights(words=(9, 3), w=(2, 16, 3), r=(2, 16, 4), b=(2, 32), tags=(8, 5))
    data = model(nodes, {"ids": ("i8", ["n", "t"])}, {"y": ("f4", ["n", "t", 5])}, {**weights, "rest": np.array([-1])})
    ids = np.random.default_rng(8).integers(0, 9, (2, 6))
    check(data, {"ids": ids}, recorded=(0.0764427, 0.153557, -0.146445, 0.180516))


def test_a_decoder_with_a_cache_written_here() -> None:
    """Attention over what is cached and what is new, with a loop that counts positions."""
    body = graph(
        [node("Add", "total i_float", "total1"), node("Cast", "i", "i_float", to=1), node("Identity", "c", "c1")],
        {"i": ("i8", []), "c": ("?", []), "total": ("f4", [])}, {"c1": ("?", []), "total1": ("f4", [])},
    )  # fmt: skip
    body.node.insert(0, body.node.pop(1))
    nodes = [
        node("Gather", "words ids", "e"),
        node("SplitToSequence", "three", "parts", axis=0, keepdims=0), node("SequenceLength", "parts", "count"),
        node("Loop", "count - zero", "extra", body=body), node("Mul", "extra small", "shift"),
        node("Add", "e shift", "x"),
        node("MatMul", "x qkv", "m"), node("Split", "m", "q k v", axis=-1, num_outputs=3),
        *[node("Reshape", f"{n} heads", f"{n}4") for n in "qkv"],
        *[node("Transpose", f"{n}4", f"{n}t", perm=[0, 2, 1, 3]) for n in "qkv"],
        node("Concat", "past_k kt", "new_k", axis=2), node("Concat", "past_v vt", "new_v", axis=2),
        node("Transpose", "new_k", "turned", perm=[0, 1, 3, 2]), node("MatMul", "qt turned", "scores"),
        node("Softmax", "scores", "weights"), node("MatMul", "weights new_v", "mixed"),
        node("Transpose", "mixed", "back", perm=[0, 2, 1, 3]), node("Reshape", "back joined", "flat"),
        node("LayerNormalization", "flat g", "normal"), node("MatMul", "normal out", "y"),
    ]  # fmt: skip
    weights = _weights(words=(9, 8), qkv=(8, 24), g=(8,), out=(8, 9)) | {
        "heads": np.array([0, 0, 2, 4]), "joined": np.array([0, 0, 8]), "three": np.array([1, 2, 3]),
        "zero": np.array(0, np.float32), "small": np.array(0.1, np.float32),
    }  # fmt: skip
    cached = ("f4", ["n", 2, "past", 4])
    data = model(
        nodes, {"ids": ("i8", ["n", "t"]), "past_k": cached, "past_v": cached},
        {"y": ("f4", ["n", "t", 9]), "new_k": ("f4", ["n", 2, "all", 4])}, weights,
    )  # fmt: skip
    held = np.random.default_rng(8).normal(size=(2, 2, 2, 5, 4)).astype(np.float32)
    inputs = {"ids": np.random.default_rng(8).integers(0, 9, (2, 3)), "past_k": held[0], "past_v": held[1]}
    check(data, inputs, recorded=(-0.396061, -0.0538931, -0.598749, -0.436613))


def test_a_model_is_one_program_on_a_device() -> None:
    weights = _weights(w=(3, 4), v=(4, 2))
    data = model(
        [node("MatMul", "x w", "h"), node("Relu", "h", "r"), node("MatMul", "r v", "y")], {"x": ("f4", [5, 3])},
        {"y": ("f4", [5, 2])}, weights,
    )  # fmt: skip
    loaded = lx.onnx.load(data)
    lowered = loaded.lower(loaded.parameters, x=np.ones((5, 3), np.float32))
    assert len(lowered.programs) == 1


def _detector(most: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """Features, boxes and scores at each place, then the best boxes of each class."""
    nodes = [
        node("Conv", "x k", "c", auto_pad="SAME_UPPER", strides=[2, 2]), node("Sigmoid", "c", "a"),
        node("Mul", "c a", "f"), node("Conv", "f kb", "b4"), node("Conv", "f ks", "s4"),
        node("Reshape", "b4 boxes_shape", "b3"), node("Transpose", "b3", "raw", perm=[0, 2, 1]),
        node("Split", "raw", "centre size", axis=-1, num_outputs=2), node("Sigmoid", "centre", "c01"),
        node("Sigmoid", "size", "s01"), node("Mul", "s01 half", "sides"), node("Concat", "c01 sides", "boxes", axis=-1),
        node("Reshape", "s4 scores_shape", "s3"), node("Sigmoid", "s3", "scores"),
        node("NonMaxSuppression", "boxes scores most overlap least", "chosen", center_point_box=1),
        node("Gather", "chosen two", "which", axis=1), node("Squeeze", "which one", "at"),
        node("Gather", "boxes at", "found", axis=1),
    ]  # fmt: skip
    weights = _weights(k=(6, 3, 3, 3), kb=(4, 6, 1, 1), ks=(2, 6, 1, 1)) | {
        "boxes_shape": np.array([0, 4, -1]), "scores_shape": np.array([0, 2, -1]), "most": np.array([most]),
        "overlap": np.array([0.3], np.float32), "least": np.array([0.5], np.float32), "two": np.array([2]),
        "one": np.array([1]), "half": np.array(0.5, np.float32),
    }  # fmt: skip
    data = model(
        nodes, {"x": ("f4", ["n", 3, 16, 16])}, {"chosen": ("i8", ["m", 3]), "found": ("f4", ["n", "m", 4])}, weights
    )
    return data, {"x": np.random.default_rng(8).normal(size=(2, 3, 16, 16)).astype(np.float32)}


@pytest.mark.parametrize("most", [3, 50])
def test_a_detector(most: int) -> None:
    data, inputs = _detector(most)
    with pytest.raises(lx.ONNXError, match=r"for 1 reasons:\n.*NonMaxSuppression.*through .*padded=True"):
        lx.onnx.load(data)
    loaded = lx.onnx.load(data, padded=True)
    found = {name: np.asarray(value) for name, value in loaded(loaded.parameters, **inputs).items()}
    chosen, boxes = run_reference(data, inputs)
    count = len(chosen)
    assert count > 2 and (found["chosen"][count:] == -1).all()
    assert np.array_equal(found["chosen"][:count], chosen)
    np.testing.assert_allclose(found["found"][:, :count], boxes, rtol=1e-4, atol=1e-6)


def test_places_of_what_is_not_zero() -> None:
    data = model([node("NonZero", "x", "y")], {"x": ("f4", ["n", 3])}, {"y": ("i8", [2, "m"])})
    x = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    loaded = lx.onnx.load(data, padded=True)
    assert not loaded.static_input_names
    made = np.asarray(loaded({}, x=x)["y"])
    assert made[:, :3].tolist() == [[0, 1, 1], [1, 0, 2]] and (made[:, 3:] == -1).all()
    assert np.asarray(lx.onnx.load(data)({}, x=x)["y"]).tolist() == made[:, :3].tolist()


def test_attention_of_a_model_is_one_operation() -> None:
    """A scale that the file holds as a number is a constant of the program, which rules of the compiler read."""
    nodes = [
        node("Transpose", "k", "turned", perm=[0, 1, 3, 2]), node("MatMul", "q turned", "product"),
        node("Div", "product root", "scaled"), node("Where", "mask scaled low", "scores"),
        node("Softmax", "scores", "weights"), node("MatMul", "weights v", "y"),
    ]  # fmt: skip
    heads = ("f4", [2, 4, 32, 16])
    data = model(
        nodes, {"q": heads, "k": heads, "v": heads, "mask": ("?", [2, 1, 1, 32])}, {"y": heads},
        {"root": np.array(4, np.float32), "low": np.array(-1e9, np.float32)},
    )  # fmt: skip
    inputs = {name: np.random.default_rng(8).normal(size=(2, 4, 32, 16)).astype(np.float32) for name in "qkv"}
    inputs["mask"] = np.arange(32).reshape(1, 1, 1, 32) < np.array([32, 20]).reshape(2, 1, 1, 1)
    loaded = lx.onnx.load(data)
    found = np.asarray(loaded(loaded.parameters, **inputs)["y"])
    np.testing.assert_allclose(found, run_reference(data, inputs)[0], rtol=1e-4, atol=1e-5)
    text = loaded.lower(loaded.parameters, **inputs).as_text("optimized")
    assert text.count("attention(") == 1 and "dot(" not in text
