# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.optim.utils."""

from typing import Any

def as_functional_optim(optim_cls: type, *args: Any, **kwargs: Any) -> Any: ...
def register_functional_optim(key: Any, optim: Any) -> Any: ...
