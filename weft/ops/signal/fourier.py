"""Complex Fourier transforms. Real ones are compositions of them."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.ops.declaration import Size, op
from weft.ops.shape.views import axes_at


@op(memory_order="meta")
def fourier(x: Tensor, dims: Size, scale: int, forward: bool) -> Tensor:
    """The Fourier transform of complex numbers along some dimensions, or its inverse without normalization.

    `scale`: 0 doesn't normalize, 1 divides by the root of the number of elements, 2 by their number.

    >>> flow._C.fourier(flow.complex(flow.ones(2), flow.zeros(2)), (0,), 0, True).tolist()
    [(2+0j), 0j]
    """
    if not x.numel():  # an empty shard, at which the kernel fails
        return torch.empty_like(x)
    if forward:
        return torch.fft.fftn(x, dim=tuple(dims), norm=("backward", "ortho", "forward")[scale])
    return torch.fft.ifftn(x, dim=tuple(dims), norm=("forward", "ortho", "backward")[scale])


fourier.layout(lambda x, dims, scale, forward: axes_at("<!> -> <!>", len(x), dims))
fourier.grad(lambda dy, dims, scale, forward: fourier(dy, dims, scale, not forward))


@fourier.samples
def _(rand):
    yield torch.complex(rand(4, 6), rand(4, 6)), (1,), 0, True
    yield torch.complex(rand(4, 6), rand(4, 6)), (0, -1), 1, False
