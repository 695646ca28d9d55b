# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.fft`: Fourier transforms along dimensions, of complex and of real numbers; `stft` and `istft`."""


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"
]

from weft.functional.signal.fft import fft as fft
from weft.functional.signal.fft import fft2 as fft2
from weft.functional.signal.fft import fftfreq as fftfreq
from weft.functional.signal.fft import fftn as fftn
from weft.functional.signal.fft import fftshift as fftshift
from weft.functional.signal.fft import hfft as hfft
from weft.functional.signal.fft import ifft as ifft
from weft.functional.signal.fft import ifft2 as ifft2
from weft.functional.signal.fft import ifftn as ifftn
from weft.functional.signal.fft import ifftshift as ifftshift
from weft.functional.signal.fft import ihfft as ihfft
from weft.functional.signal.fft import irfft as irfft
from weft.functional.signal.fft import irfft2 as irfft2
from weft.functional.signal.fft import irfftn as irfftn
from weft.functional.signal.fft import rfft as rfft
from weft.functional.signal.fft import rfft2 as rfft2
from weft.functional.signal.fft import rfftfreq as rfftfreq
from weft.functional.signal.fft import rfftn as rfftn

