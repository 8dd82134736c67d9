"""Cosine and sine transforms; Fourier transforms are in lavax.numpy.fft."""
from lavax.scipy.fft.cosine_transforms import dct, dctn, dst, dstn, idct, idctn, idst, idstn

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]
