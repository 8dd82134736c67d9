"""Files: safetensors, GGUF, NumPy files, checkpoints, folders in the format of Hugging Face."""
from lavax.io.checkpoints import Checkpoint, CheckpointManager
from lavax.io.gguf import GGUFFile, load_gguf
from lavax.io.pretrained import save_pretrained
from lavax.io.trees import load, save

__all__ = ["Checkpoint", "CheckpointManager", "GGUFFile", "load", "load_gguf", "save", "save_pretrained"]
