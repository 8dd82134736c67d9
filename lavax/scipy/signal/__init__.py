"""Signals: convolutions, windows, spectra and trends. Fourier transforms are in lavax.numpy.fft."""
from lavax.scipy.signal import windows
from lavax.scipy.signal.analytic import hilbert
from lavax.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d
from lavax.scipy.signal.detrending import detrend
from lavax.scipy.signal.short_time import istft, stft
from lavax.scipy.signal.spectra import csd, periodogram, spectrogram, welch
from lavax.scipy.signal.transformed import fftconvolve, oaconvolve
from lavax.scipy.signal.windows import get_window

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "get_window",
    "hilbert",
    "istft",
    "oaconvolve",
    "periodogram",
    "spectrogram",
    "stft",
    "welch",
    "windows",
]
