"""Cosine transforms; Fourier transforms need complex dtypes."""
from lavax.scipy.fft.cosine_transforms import dct, dctn, idct, idctn

__all__ = ["dct", "dctn", "idct", "idctn"]
