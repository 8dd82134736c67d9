"""ONNX models, in and out: files as functions over arrays, and functions as files."""
from lavax.onnx.model import Model, load

__all__ = ["Model", "load"]
