"""Files: safetensors, GGUF, NumPy files, checkpoints, folders in the format of Hugging Face."""
from lavax.io.pretrained import save_pretrained
from lavax.io.trees import load, save

__all__ = ["load", "save", "save_pretrained"]
