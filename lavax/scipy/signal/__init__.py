"""Signals: convolutions and trends. Spectra are in lavax.numpy.fft."""
from lavax.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve
from lavax.scipy.signal.detrending import detrend

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "detrend", "fftconvolve"]
