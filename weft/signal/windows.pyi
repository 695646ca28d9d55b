# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.signal.windows`: window functions of M samples.

`sym=False` gives a periodic window: the first M samples of a window of M + 1.
"""

from weft.functional.signal.windows import (
    bartlett as bartlett, blackman as blackman, cosine as cosine, exponential as exponential, gaussian as gaussian,
    general_cosine as general_cosine, general_hamming as general_hamming, hamming as hamming, hann as hann,
    kaiser as kaiser, nuttall as nuttall
)
