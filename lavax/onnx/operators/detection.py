"""Operators of object detectors."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.onnx.operators.operator import OF_DATA, Call, Operator


def _non_max_suppression(
    call: Call, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    """Greedy: the best box that overlaps none of the chosen too much, for each class of each image."""
    count = 0 if most is None else call.integers(most, "max_output_boxes_per_class")[0]
    bound = 0.0 if overlap is None else float(overlap.reshape(()))
    lowest = -np.inf if least is None else float(least.reshape(()))
    found = []
    for image in range(scores.shape[0]):
        corners = _corners(boxes[image], bool(call.center_point_box))
        areas = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        for kind in range(scores.shape[1]):
            chosen: list[int] = []
            for box in np.argsort(-scores[image, kind], kind="stable"):
                if len(chosen) >= count or not scores[image, kind, box] > lowest:
                    break
                if not _overlaps(corners, areas, int(box), chosen, bound):
                    chosen.append(int(box))
            found += [(image, kind, box) for box in chosen]
    return np.array(found, np.int64).reshape(-1, 3)


def _overlaps(corners: np.ndarray, areas: np.ndarray, box: int, chosen: list[int], bound: float) -> bool:
    if not chosen:
        return False
    low = np.maximum(corners[chosen, :2], corners[box, :2])
    high = np.minimum(corners[chosen, 2:], corners[box, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=1)
    union = areas[chosen] + areas[box] - shared
    return bool((shared > bound * union).any())


def _corners(boxes: np.ndarray, is_centred: bool) -> np.ndarray:
    if is_centred:
        half = boxes[:, 2:] / 2
        return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


OPERATORS = (
    Operator(
        "NonMaxSuppression", _non_max_suppression, {"center_point_box": 0}, known=(0, 1, 2, 3, 4), folds=True,
        lacking=OF_DATA,
    ),
)
