"""`DataParallel`, for programs that wrap their module in it: here one process uses one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.nn.module.module import Module


class DataParallel(Module):
    """A wrapper that calls its module, and saves the state under the name `module`.

    >>> model = flow.nn.DataParallel(flow.nn.Linear(2, 3))
    >>> model(flow.ones(4, 2)).shape, list(model.state_dict())
    (torch.Size([4, 3]), ['module.weight', 'module.bias'])
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise OptionError(
                f"DataParallel over the devices {list(device_ids)}: one process drives one device here. Launch a rank "
                "for each, and wrap the module in nn.parallel.DistributedDataParallel, or give it a batch that is "
                "split over a placement: x.to_global(placement=P, sbp=flow.sbp.split(0))"
            )
        self.dim, self.device_ids, self.output_device = dim, list(device_ids or ()), output_device
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
