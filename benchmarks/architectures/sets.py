"""Networks of points and of graphs: PointNet, attention along the edges of a graph, and messages along them."""
from __future__ import annotations

from typing import Any

WIDTHS = (64, 64, 64, 128, 1024)


def point_net(F: Any, w: Any, x: Any, labels: Any, widths: tuple[int, ...] = WIDTHS) -> Any:
    """Points [b,n,3]: products and batch norms of each, the largest of all."""
    batch, points = x.shape[:2]
    x = x.reshape(batch * points, 3)
    for layer, width in enumerate(widths):
        x = F.linear(x, w(f"l{layer}", width, x.shape[1]), w(f"l{layer}_bias", width))
        x = F.relu(F.batch_norm(x, w(f"l{layer}_n_scale", width), w(f"l{layer}_n_bias", width)))
    x = F.max(x.reshape(batch, points, widths[-1]), 1)
    for layer, width in enumerate((512, 256)):
        x = F.relu(F.linear(x, w(f"h{layer}", width, x.shape[1]), w(f"h{layer}_bias", width)))
    return F.cross_entropy(F.linear(x, w("head", 40, 256)), labels)


def graph_attention(
    F: Any, w: Any, x: Any, sources: Any, targets: Any, labels: Any, heads: int = 4, width: int = 64
) -> Any:
    """Two layers of GAT: what a node reads of a neighbour is a softmax over the edges that end in the node."""
    nodes = x.shape[0]
    for layer in range(2):
        x = F.linear(x, w(f"l{layer}", heads * width, x.shape[1])).reshape(nodes, heads, width)
        to, of = (F.sum(x * w(f"l{layer}_{end}", heads, width), 2) for end in ("to", "of"))
        score = F.leaky_relu(to[targets] + of[sources])
        score = F.exp(score - F.constant(F.segment_max(score, targets, nodes))[targets])
        share = score / (F.segment_sum(score, targets, nodes)[targets] + 1e-9)
        x = F.segment_sum((share[:, :, None] * x[sources]).reshape(-1, heads * width), targets, nodes)
        x = F.relu(x + w(f"l{layer}_bias", heads * width))
    return F.cross_entropy(F.linear(x, w("head", 40, heads * width)), labels)


def messages(
    F: Any, w: Any, x: Any, edges: Any, sources: Any, targets: Any, labels: Any, layers: int = 3, width: int = 128
) -> Any:
    """Perceptrons of both ends of an edge and of the edge; what ends in a node changes it, as in MeshGraphNets."""

    def perceptron(name: str, parts: list[Any]) -> Any:
        y = F.concatenate(parts, 1)
        y = F.silu(F.linear(y, w(f"{name}_up", width, y.shape[1]), w(f"{name}_up_bias", width)))
        y = F.linear(y, w(f"{name}_down", width, width), w(f"{name}_down_bias", width))
        return F.layer_norm(y, w(f"{name}_scale", width), w(f"{name}_n_bias", width))

    x, edges = perceptron("nodes", [x]), perceptron("edges", [edges])
    for layer in range(layers):
        edges = edges + perceptron(f"e{layer}", [x[sources], x[targets], edges])
        x = x + perceptron(f"n{layer}", [x, F.segment_sum(edges, targets, x.shape[0])])
    return F.cross_entropy(F.linear(x, w("head", 40, width)), labels)
