"""Images: resizing."""
from lavax.image.kernels import ResizeMethod
from lavax.image.resize import resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
