"""Operators of object detectors."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.onnx.operators.operator import OF_DATA, Call, Operator, converted
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.transforms.vmap import vmap


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


def _padded_suppression(
    call: Call, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    """The same on the device: as many rows as there can be, where those behind the chosen boxes are -1."""
    count = 0 if most is None else min(call.integers(most, "max_output_boxes_per_class")[0], boxes.shape[1])
    images, classes = scores.shape[:2]
    if not count:
        return np.zeros((0, 3), np.int64)
    bound = 0.0 if overlap is None else overlap.reshape(())
    lowest = -np.inf if least is None else least.reshape(())
    corners = _device_corners(boxes, bool(call.center_point_box))
    active = lnp.where(scores > lowest, scores, -np.inf)
    of_image = vmap(lambda corners, scores: _chosen(corners, scores, count, bound), in_axes=(None, 0))
    box = vmap(of_image)(corners, active)
    of_images = np.broadcast_to(np.arange(images, dtype=np.int32)[:, None, None], (images, classes, count))
    of_classes = np.broadcast_to(np.arange(classes, dtype=np.int32)[:, None], (images, classes, count))
    rows = lnp.reshape(lnp.stack([lnp.asarray(of_images), lnp.asarray(of_classes), box], axis=-1), (-1, 3))
    is_left = rows[:, 2:] < 0
    order = lnp.argsort(is_left[:, 0], stable=True)
    return converted(lnp.take(lnp.where(is_left, -1, rows), order, axis=0), "int64")


def _chosen(corners: Any, scores: Any, count: int, bound: Any) -> Any:
    """The boxes [count] that are chosen one after another; -1 behind the last."""
    size = corners[:, 2:] - corners[:, :2]
    areas, places = size[:, 0] * size[:, 1], lnp.arange(corners.shape[0])

    def step(active: Any, _: Any) -> Any:
        best = lnp.argmax(active)
        own = corners[best]
        sides = lnp.maximum(lnp.minimum(corners[:, 2:], own[2:]) - lnp.maximum(corners[:, :2], own[:2]), 0)
        shared = sides[:, 0] * sides[:, 1]
        gone = (shared > bound * (areas + areas[best] - shared)) | (places == best)
        return lnp.where(gone, -np.inf, active), lnp.where(active[best] > -np.inf, best, -1)

    return scan(step, scores, None, length=count)[1]


def _device_corners(boxes: Any, is_centred: bool) -> Any:
    first, second = boxes[..., :2], boxes[..., 2:]
    if is_centred:
        return lnp.concatenate([first - second / 2, first + second / 2], axis=-1)
    return lnp.concatenate([lnp.minimum(first, second), lnp.maximum(first, second)], axis=-1)


OPERATORS = (
    Operator(
        "NonMaxSuppression", _non_max_suppression, {"center_point_box": 0}, known=(0, 1, 2, 3, 4), folds=True,
        lacking=OF_DATA,
    ),
)

# With rows for all that could be chosen, so that shapes do not depend on data.
PADDED = (Operator("NonMaxSuppression", _padded_suppression, {"center_point_box": 0}, known=(2, 3, 4)),)
