# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.signal.windows`: window functions of M samples.

`sym=False` gives a periodic window: the first M samples of a window of M + 1.
"""


__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall"
]

from weft.functional.signal.windows import bartlett as bartlett
from weft.functional.signal.windows import blackman as blackman
from weft.functional.signal.windows import cosine as cosine
from weft.functional.signal.windows import exponential as exponential
from weft.functional.signal.windows import gaussian as gaussian
from weft.functional.signal.windows import general_cosine as general_cosine
from weft.functional.signal.windows import general_hamming as general_hamming
from weft.functional.signal.windows import hamming as hamming
from weft.functional.signal.windows import hann as hann
from weft.functional.signal.windows import kaiser as kaiser
from weft.functional.signal.windows import nuttall as nuttall

