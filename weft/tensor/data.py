"""Reading a tensor's data. Functions of the package, not methods: a user's tensor has `.to_torch()` and `.numpy()`."""

from __future__ import annotations

import torch

from weft.core.dispatch import here, hooks
from weft.core.errors import SbpError
from weft.tensor.described import Described


def local_data(t: Described, what: str) -> torch.Tensor:
    """A local tensor's data, or this rank's part of a global one, there to be read: what is pending is waited for.
    `what` names who asks, for the error if there is none yet."""
    t = _there(t, what)
    blob = t.shard if t.shard is not None else t.blob
    if blob.now is None:
        hooks.wait_read(blob)
    assert blob.data is not None
    return blob.data


def _there(t: Described, what: str) -> Described:
    """The tensor, or what a symbol stands for in every launch."""
    if t.value is None:
        return t
    return hooks.traced(
        t,
        f"{what} needs the data of a tensor, but inside a graph's build() there is none yet: the tensor is a "
        "symbol. Return it from build() and read it there, or use an op that stays in the graph",
    )


def own_data(t: Described, what: str) -> torch.Tensor:
    """A local tensor's data, for what would take a global one's part for the whole."""
    if t.spec is not None:
        raise SbpError(
            f"{what} works on local tensors, and of a global one this rank has a part: take that, x.to_local(), or the "
            "whole, x.to_global(sbp=flow.sbp.broadcast).to_local()"
        )
    return local_data(t, what)


def whole_data(t: Described, what: str) -> torch.Tensor:
    """The logical data: of a global tensor, gathered on every rank of the world from those that hold a part. So every
    rank must ask."""
    known = _there(t, what)
    if known.spec is not None:
        return local_data(hooks.whole(known, what), what)
    if here.trace is not None and known is t:
        here.trace.seen(t)
    return local_data(known, what)
