"""Files: safetensors, GGUF, NumPy files, checkpoints, folders in the format of Hugging Face."""
from lavax.io.pretrained import save_pretrained

__all__ = ["save_pretrained"]
