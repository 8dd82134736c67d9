"""Sums over all alignments and all paths: CTC, and a conditional random field."""
from __future__ import annotations

from typing import Any


def ctc(F: Any, w: Any, x: Any, targets: Any, width: int = 256, words: int = 64) -> Any:
    """Frames [b,t,80], three convolutions, and the loss of all alignments of the targets with them."""
    x = F.transpose(x, (0, 2, 1))
    for layer in range(3):
        x = F.relu(F.conv1d(x, w(f"l{layer}", width, x.shape[1], 5), w(f"l{layer}_bias", width), padding=2))
    return F.ctc(F.linear(F.transpose(x, (0, 2, 1)), w("head", words, width)), targets)


def random_field(F: Any, w: Any, x: Any, tags: Any, count: int = 32) -> Any:
    """The negative logarithm of the tags' share of all paths; x[t,b,d] in turns of logsumexp."""
    scores = F.linear(x, w("emit", count, x.shape[2]), w("emit_bias", count))
    moves = w("moves", count, count)
    chosen = F.one_hot(tags, count)
    right = F.sum(chosen * scores, (0, 2)) + F.sum(F.einsum("tbi,ij->tbj", chosen[:-1], moves) * chosen[1:], (0, 2))

    def turn(paths: Any, given: Any) -> Any:
        return F.logsumexp(paths[:, :, None] + moves, 1) + given

    return F.mean(F.logsumexp(F.folded(turn, scores[0], scores[1:]), 1) - right)
