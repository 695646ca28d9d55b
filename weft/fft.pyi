# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.fft`: Fourier transforms along dimensions, of complex and of real numbers; and `stft`."""


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "istft", "rfft", "rfft2", "rfftfreq", "rfftn", "stft"
]

from weft.functional.fft import fft as fft
from weft.functional.fft import fft2 as fft2
from weft.functional.fft import fftfreq as fftfreq
from weft.functional.fft import fftn as fftn
from weft.functional.fft import fftshift as fftshift
from weft.functional.fft import hfft as hfft
from weft.functional.fft import ifft as ifft
from weft.functional.fft import ifft2 as ifft2
from weft.functional.fft import ifftn as ifftn
from weft.functional.fft import ifftshift as ifftshift
from weft.functional.fft import ihfft as ihfft
from weft.functional.fft import irfft as irfft
from weft.functional.fft import irfft2 as irfft2
from weft.functional.fft import irfftn as irfftn
from weft.functional.fft import istft as istft
from weft.functional.fft import rfft as rfft
from weft.functional.fft import rfft2 as rfft2
from weft.functional.fft import rfftfreq as rfftfreq
from weft.functional.fft import rfftn as rfftn
from weft.functional.fft import stft as stft

