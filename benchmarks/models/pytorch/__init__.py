"""The models in plain PyTorch, with the names of their published checkpoints. Imported only if PyTorch is there."""
