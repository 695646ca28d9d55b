"""The properties of a tensor, in the order local first, as the fast path."""

from __future__ import annotations

from typing import Any

import torch
from torch import Size

from weft.core import device as devices
from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.dispatch import here, hooks
from weft.core.dtype import DType
from weft.core.errors import DeviceError, IndexingError, SbpError
from weft.core.placement import Placement
from weft.core.sbp import NdSbp
from weft.core.spec import Spec
from weft.tensor.blob import Blob
from weft.tensor.methods import Methods


class Described(Methods):
    """A tensor's parts, and what they say. A blob with data is that of a local tensor which is not traced.

    `is_local` and `is_global` say the form. Hot paths ask `spec is None` instead, which costs no call, as does whoever
    goes on to use the spec, so that type checkers follow. `value is None` is no `not is_lazy`: a graph's parameters are
    lazy to the user of `build`, and have data.
    """

    blob: Blob
    spec: Spec | None = None
    shard: Blob | None = None
    part_of: Spec | None = None  # of a local tensor from to_local: the spec of its global tensor
    value: Any = None  # lazy: the symbol; its `meta` is a torch tensor on the meta device

    # ---- properties ---------------------------------------------------------------------------------

    @property
    def is_global(self) -> bool:
        return self.spec is not None

    @property
    def is_local(self) -> bool:
        return self.spec is None

    @property
    def is_lazy(self) -> bool:
        """Whether it is a symbol of a graph; in `build`, also whether it is a parameter or buffer of the graph."""
        return self.value is not None or (here.trace is not None and here.trace.named(self))

    @property
    def is_eager(self) -> bool:
        return not self.is_lazy

    @property
    def shape(self) -> Size:
        data = self.blob.data
        if data is not None:  # local and not traced
            return data.shape
        return Size((self.spec or self.value or self._meta).shape)

    @property
    def _meta(self) -> torch.Tensor:
        """A torch tensor with this tensor's local shape, dtype and strides, in the eager program, perhaps without
        data."""
        if self.value is not None:
            trace = here.trace if self.spec is None else None
            return self.value.meta if trace is None else trace.order.laid(self.value)
        blob = self.shard if self.shard is not None else self.blob
        if blob.data is None:  # its shape is known once the pending instruction has run
            hooks.wait_read(blob)
        assert blob.data is not None
        return blob.data

    @property
    def dtype(self) -> DType:
        data = self.blob.data
        if data is not None:
            return dtypes.of_torch(data.dtype)
        known = self.spec or self.value
        return known.dtype if known is not None else dtypes.of_torch(self._meta.dtype)

    @property
    def device(self) -> Device:
        data = self.blob.data
        if data is not None:
            return devices.of_torch(data.device)
        if self.spec is not None:
            if here.place is not None:
                return Device(self.spec.placement.type)
            raise DeviceError("only local tensors have a device; a global tensor lies on a placement: use .placement")
        return self.value.device if self.value is not None else devices.of_torch(self._meta.device)

    @property
    def placement(self) -> Placement:
        if self.spec is None:
            raise SbpError("only global tensors have a placement; use .device, or make it global with .to_global(...)")
        return self.spec.placement

    @property
    def sbp(self) -> NdSbp:
        if self.spec is None:
            raise SbpError("only global tensors have an sbp; make it global with .to_global(placement=..., sbp=...)")
        return self.spec.nd_sbp if here.trace is None else here.trace.layout_of(self)

    @property
    def ndim(self) -> int:
        data = self.blob.data
        if data is not None:
            return data.ndim
        return len((self.spec or self.value or self._meta).shape)

    def dim(self) -> int:
        return self.ndim

    ndimension = dim

    def size(self, dim: int | None = None) -> Size | int:
        shape = self.shape
        if dim is not None and not -len(shape) <= dim < len(shape):
            raise IndexingError(
                f"Dimension out of range (expected to be in range of [{-max(len(shape), 1)}, "
                f"{max(len(shape), 1) - 1}], but got {dim}): size({dim}) of {list(shape)}"
            )
        return shape if dim is None else shape[dim]

    def numel(self) -> int:
        data = self.blob.data
        return data.numel() if data is not None else self.shape.numel()

    nelement = numel

    def element_size(self) -> int:
        return self.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        if self.spec is not None:
            strides, step = [], 1
            for n in reversed(self.spec.shape):
                strides.append(step)
                step *= max(n, 1)
            every = tuple(reversed(strides))
        else:
            every = tuple(self._meta.stride())
        return every if dim is None else every[dim]

    def storage_offset(self) -> int:
        return int(self._meta.storage_offset())

    def is_contiguous(self, memory_format: torch.memory_format = torch.contiguous_format) -> bool:
        return self._meta.is_contiguous(memory_format=memory_format)

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    @property
    def is_cuda(self) -> bool:
        data = self.blob.data
        if data is not None:
            return data.is_cuda
        return self.spec.placement.type == "cuda" if self.spec is not None else self.device.type == "cuda"

    def get_device(self) -> int:
        return self.device.index if self.is_cuda else -1

    @property
    def _version(self) -> int:
        return self._meta._version
