"""OneFlow's files that hold functions: `from oneflow.nn.modules.nms import nms_op` gives `flow.nms`."""

from __future__ import annotations

import sys
from typing import Any

flow: Any = sys.modules[__name__.partition(".")[0]]
OTHERWISE = {"create_generator": flow.Generator, "split_sbp": flow.sbp.split}  # under another name here
PLACES = (flow, flow.nn.functional, flow.nn, flow.nn.init, flow.Tensor)


def __getattr__(name: str) -> Any:
    """What Weft has under this name, which may end with OneFlow's mark of an op: `sinh_op`, `asinh_op_tensor`."""
    if name in OTHERWISE:
        return OTHERWISE[name]
    plain = name.removesuffix("_tensor").removesuffix("_op")
    for place in PLACES:
        found = None if name.startswith("__") else getattr(place, name, getattr(place, plain, None))
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
