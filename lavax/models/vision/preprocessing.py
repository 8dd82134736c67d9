"""Pictures as the input of a model, as the processors of transformers make it on the host."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.io.json_files import read_json
from lavax.models.vision.resampling import resize

__all__ = ["Preprocessing"]

_FILE = "preprocessor_config.json"
_METHODS = dict(enumerate(("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")))  # by PIL's numbers
_WARPED = 384  # ConvNeXt's images of this size and more are not cropped
# Settings that files leave out, by the processor's class without "ImageProcessor" and what follows.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "ViT": {"size": {"height": 224, "width": 224}, "image_mean": 0.5, "image_std": 0.5},
    "CLIP": {
        "size": {"shortest_edge": 224},
        "crop_size": {"height": 224, "width": 224},
        "do_center_crop": True,
        "resample": 3,
        "image_mean": (0.48145466, 0.4578275, 0.40821073),
        "image_std": (0.26862954, 0.26130258, 0.27577711),
    },
    "ConvNext": {"size": {"shortest_edge": 384}, "crop_pct": 224 / 256},
    "EfficientNet": {"size": {"height": 346, "width": 346}, "resample": 3, "image_mean": 0.5, "image_std": 0.5},
}
_IMAGENET = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)}


@dataclass(frozen=True)
class Preprocessing:
    """What a folder's preprocessor_config.json says: size, part, range and normal distribution of pixels.

        prepare = Preprocessing.load(folder)
        logits = model(prepare([picture]))

    Pictures are arrays [H, W, 3] or [H, W], or PIL images; uint8, or floats from 0 to 1. They may differ in size. The
    result is float32 [N, 3, height, width]. Resized pixels are the whole numbers up to 255 that Pillow makes.
    """

    height: int | None  # of resized pictures; None with `width`: the shorter side is `shortest`
    width: int | None
    shortest: int | None
    method: str = "bilinear"
    crop: tuple[int, int] | None = None
    scale: float = 1 / 255
    offset: float = 0.0
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Preprocessing:
        """That of a folder. Raises FileNotFoundError without the file, ValueError for what lavax does not know."""
        path = Path(folder) / _FILE
        if not path.is_file():
            raise FileNotFoundError(f"Preprocessing.load: {folder} has no {_FILE}")
        return cls.from_json(read_json(path))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Preprocessing:
        """That of the contents of a preprocessor_config.json."""
        named = str(data.get("image_processor_type") or data.get("feature_extractor_type") or "")
        kind = named.replace("FeatureExtractor", "ImageProcessor").split("ImageProcessor")[0]
        if kind not in _DEFAULTS:
            raise ValueError(f"Preprocessing: lavax has the processors of {', '.join(_DEFAULTS)}, got {named!r}")
        given = _IMAGENET | _DEFAULTS[kind] | {name: value for name, value in data.items() if value is not None}
        height, width, shortest = _resized(kind, given)
        method = int(given.get("resample", 2))
        if method not in _METHODS:
            raise ValueError(f"Preprocessing: resample is one of {', '.join(map(str, _METHODS))}, got {method}")
        rescaled = given.get("do_rescale", True)
        mean, deviation = _numbers(given["image_mean"]), _numbers(given["image_std"])
        if not given.get("do_normalize", True):
            mean, deviation = (0.0,), (1.0,)
        if kind == "EfficientNet" and given.get("include_top", True):  # divided by the deviation twice
            again = _numbers(given["image_std"])
            deviation = tuple(each * more for each, more in zip(deviation * (3 // len(deviation)), again, strict=True))
        return cls(
            height,
            width,
            shortest,
            _METHODS[method],
            _cropped(kind, given),
            float(given.get("rescale_factor", 1 / 255)) if rescaled else 1.0,
            -1.0 if rescaled and given.get("rescale_offset") else 0.0,
            mean,
            deviation,
        )

    def __call__(self, pictures: Any) -> np.ndarray:
        """Pictures, one or a sequence or a batch [N, H, W, 3], as float32 [N, 3, height, width].

        Raises ValueError for other shapes, and for pictures that come out in different sizes.
        """
        many = pictures if _are_many(pictures) else [pictures]
        made = [self._prepared(_pixels(picture)) for picture in many]
        if len({each.shape for each in made}) > 1:
            sizes = ", ".join(str(each.shape[1:]) for each in made)
            raise ValueError(f"Preprocessing: these settings leave sizes {sizes}: give such pictures one by one")
        return np.stack(made)

    def _prepared(self, pixels: np.ndarray) -> np.ndarray:
        """Pixels [H, W, 3] from 0 to 255 as [3, height, width]."""
        height, width = self._size(*pixels.shape[:2])
        if (height, width) != pixels.shape[:2]:
            pixels = resize(np.rint(pixels).astype(np.uint8), height, width, self.method)
        if self.crop is not None:
            pixels = _centre(pixels, *self.crop)
        scaled = pixels * np.float32(self.scale) + np.float32(self.offset)
        normal = (scaled - np.array(self.mean, np.float32)) / np.array(self.deviation, np.float32)
        return np.ascontiguousarray(np.moveaxis(normal.astype(np.float32), -1, 0))

    def _size(self, height: int, width: int) -> tuple[int, int]:
        if self.shortest is not None:
            longest = int(self.shortest * max(height, width) / min(height, width))
            return (self.shortest, longest) if height <= width else (longest, self.shortest)
        return self.height or height, self.width or width


def _resized(kind: str, given: Mapping[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Height, width and shorter side of resized pictures."""
    size = given["size"]
    if not given.get("do_resize", True):
        return None, None, None
    if isinstance(size, int):
        size = {"shortest_edge": size} if kind in ("CLIP", "ConvNext") else {"height": size, "width": size}
    shortest = size.get("shortest_edge")
    if shortest is None:
        return int(size["height"]), int(size["width"]), None
    if kind != "ConvNext":
        return None, None, int(shortest)
    if shortest >= _WARPED:
        return int(shortest), int(shortest), None
    return None, None, int(shortest / given["crop_pct"])


def _cropped(kind: str, given: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width of the part in the middle."""
    size = given["size"]
    if kind == "ConvNext" and given.get("do_resize", True):
        shortest = size if isinstance(size, int) else size["shortest_edge"]
        return (shortest, shortest) if shortest < _WARPED else None
    if not given.get("do_center_crop", False):
        return None
    crop = given.get("crop_size", size)
    return (crop, crop) if isinstance(crop, int) else (int(crop["height"]), int(crop["width"]))


def _numbers(given: float | Sequence[float]) -> tuple[float, ...]:
    return (given,) * 3 if isinstance(given, (int, float)) else tuple(map(float, given))


def _are_many(pictures: Any) -> bool:
    return isinstance(pictures, (list, tuple)) or getattr(pictures, "ndim", 0) == 4


def _pixels(picture: Any) -> np.ndarray:
    """A picture as [H, W, 3] from 0 to 255."""
    if hasattr(picture, "convert"):  # of PIL: palettes and transparency are not numbers of colours
        picture = picture.convert("RGB")
    pixels = np.asarray(picture)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or 0 in pixels.shape:
        raise ValueError(f"Preprocessing: a picture is [H, W, 3] or [H, W], got shape {np.shape(picture)}")
    if pixels.dtype != np.uint8:
        if pixels.dtype.kind != "f" or pixels.min() < 0 or pixels.max() > 1:
            raise ValueError(f"Preprocessing: pixels are uint8, or floats from 0 to 1, got {pixels.dtype}")
        pixels = pixels * 255
    return np.broadcast_to(pixels, (*pixels.shape[:2], 3))


def _centre(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """The part in the middle; what lies outside of a smaller picture is 0."""
    more = [(max(0, wanted - had) + 1) // 2 for wanted, had in zip((height, width), pixels.shape, strict=False)]
    if any(more):
        framed = np.zeros((max(height, pixels.shape[0]), max(width, pixels.shape[1]), 3), pixels.dtype)
        top, left = more
        framed[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
        pixels = framed
    top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    return pixels[top : top + height, left : left + width]
