"""Whole models: inference and a training step in lavax and, where it can be imported, in PyTorch."""
