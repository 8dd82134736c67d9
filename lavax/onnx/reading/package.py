"""The onnx package, which parses and checks files; an extra of lavax."""
from __future__ import annotations

import importlib
from typing import Any


def onnx_package() -> Any:
    """The package `onnx`. Raises ImportError with the way to get it."""
    try:
        package: Any = importlib.import_module("onnx")
        for name in ("checker", "helper", "numpy_helper"):
            importlib.import_module(f"onnx.{name}")
    except ImportError:
        raise ImportError("ONNX models need the onnx package: pip install 'lavax[onnx]'") from None
    return package
