"""Cosine transforms; Fourier transforms are in lavax.numpy.fft."""
from lavax.scipy.fft.cosine_transforms import dct, dctn, idct, idctn

__all__ = ["dct", "dctn", "idct", "idctn"]
