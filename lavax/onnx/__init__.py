"""ONNX models, in and out: files as functions over arrays, and functions as files."""
from lavax.onnx.model import Model, load
from lavax.onnx.nnef.load import load_nnef
from lavax.onnx.writing.save import save

__all__ = ["Model", "load", "load_nnef", "save"]
