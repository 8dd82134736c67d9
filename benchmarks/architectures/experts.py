"""Mixtures of experts: each token goes to two of them, as long as they have room."""
from __future__ import annotations

from typing import Any


def _routed(F: Any, logits: Any) -> tuple[Any, Any]:
    """Weights and experts [t,2] of each token."""
    shares, chosen = F.top_k(F.softmax(logits), 2)
    return shares / F.sum(shares, 1, keepdims=True), chosen


def _expert(F: Any, w: Any, name: str, x: Any, inner: int) -> Any:
    """Each expert's two products of its own rows: [e,c,d] to [e,c,d]."""
    experts, _, width = x.shape
    x = F.gelu(F.einsum("ecd,efd->ecf", x, w(f"{name}_up", experts, inner, width)))
    return F.einsum("ecf,edf->ecd", x, w(f"{name}_down", experts, width, inner))


def by_products(
    F: Any, w: Any, x: Any, y: Any, layers: int = 2, experts: int = 8, room: int = 640, inner: int = 2048
) -> Any:
    """Tokens reach their experts, and results their tokens, by products with masks, as in GShard."""
    for layer in range(layers):
        shares, chosen = _routed(F, F.linear(x, w(f"l{layer}_route", experts, x.shape[1])))
        taken, mask = 0, 0
        for choice in range(2):
            wanted = F.one_hot(chosen[:, choice], experts)
            place = F.cumsum(wanted, 0) - 1 + taken
            taken = taken + F.sum(wanted, 0, keepdims=True)
            slots = F.one_hot(F.whole(F.sum(place * wanted, 1)), room)  # of no slot, where there is no room
            mask = mask + shares[:, choice, None, None] * wanted[:, :, None] * slots[:, None]
        sent = F.einsum("tec,td->ecd", F.constant(F.cast_as(mask > 0, x)), x)
        x = x + F.einsum("tec,ecd->td", F.cast_as(mask, x), _expert(F, w, f"l{layer}", sent, inner))
    return F.mean((x - y) ** 2)


def by_sorting(
    F: Any, w: Any, x: Any, y: Any, layers: int = 2, experts: int = 8, room: int = 640, inner: int = 2048
) -> Any:
    """Tokens are sorted by their experts, which gather theirs."""
    tokens, width = x.shape
    for layer in range(layers):
        shares, chosen = _routed(F, F.linear(x, w(f"l{layer}_route", experts, width)))
        wanted = F.transpose(chosen, (1, 0)).reshape(-1)
        order = F.argsort(wanted)
        counts = F.whole(F.sum(F.one_hot(wanted, experts), 0))
        first = F.cumsum(counts, 0) - counts
        within = F.arange(room, x)
        slots = F.clip(first[:, None] + within, 0, 2 * tokens - 1)
        filled = F.cast_as(within < counts[:, None], x)
        sent = x[order[slots] % tokens] * filled[:, :, None]
        made = _expert(F, w, f"l{layer}", sent, inner).reshape(-1, width)
        rank = F.argsort(order) - first[wanted]
        found = made[F.clip(wanted * room + rank, 0, experts * room - 1)]
        weight = F.transpose(shares, (1, 0)).reshape(-1) * F.cast_as(rank < room, x)
        x = x + F.sum((found * weight[:, None]).reshape(2, tokens, width), 0)
    return F.mean((x - y) ** 2)
