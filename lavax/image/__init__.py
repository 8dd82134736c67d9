"""Images: resizing."""
from lavax.image.resize import resize, scale_and_translate

__all__ = ["resize", "scale_and_translate"]
