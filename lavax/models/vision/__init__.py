"""Vision transformers, CLIP, which compares images with texts, and pictures as their input."""
from lavax.models.vision.clip import CLIP, CLIPConfig
from lavax.models.vision.clip_text import CLIPText, CLIPTextConfig
from lavax.models.vision.preprocessing import Preprocessing
from lavax.models.vision.vit import ViT, ViTConfig

__all__ = ["CLIP", "CLIPConfig", "CLIPText", "CLIPTextConfig", "Preprocessing", "ViT", "ViTConfig"]
