"""What OneFlow's optimizers saved, in the form of Weft's, which is torch's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from weft.tensor.tensor import of_torch

SLOTS: Final = {"momentum_buf": "momentum_buffer", "square_avgs": "square_avg", "acc_deltas": "acc_delta"}


def of_oneflow(state_dict: Mapping[str, Any], groups: Sequence[Mapping[str, Any]], counted: bool) -> Mapping[str, Any]:
    """The state of an optimizer with these groups; OneFlow keeps options apart, and one count of steps for all."""
    saved, state = state_dict["param_groups"], state_dict["state"]
    if not saved or not all("_options" in group for group in saved):
        return state_dict
    count = {"step": of_torch(torch.tensor(float(state["step"])))} if counted and "step" in state else {}
    return {
        "param_groups": [
            {"params": theirs["params"], **{k: v for k, v in theirs["_options"].items() if k in {*own, "initial_lr"}}}
            for theirs, own in zip(saved, groups, strict=False)
        ],
        "state": {
            n: {**count, **{SLOTS.get(k, k): v for k, v in values.items()}}
            for n, values in state.items()
            if n != "step" and values
        },
    }
