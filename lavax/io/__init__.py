"""Files: safetensors, GGUF, NumPy files, checkpoints, folders in the format of Hugging Face."""
