# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.fft`: Fourier transforms along dimensions, of complex and of real numbers; `stft` and `istft`."""

from weft.functional.signal.fft import (
    fft as fft, fft2 as fft2, fftfreq as fftfreq, fftn as fftn, fftshift as fftshift, hfft as hfft, ifft as ifft,
    ifft2 as ifft2, ifftn as ifftn, ifftshift as ifftshift, ihfft as ihfft, irfft as irfft, irfft2 as irfft2,
    irfftn as irfftn, rfft as rfft, rfft2 as rfft2, rfftfreq as rfftfreq, rfftn as rfftn
)
