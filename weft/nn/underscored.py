"""PyTorch's private names that programs use all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from torch.nn.modules.module import _addindent
from torch.nn.modules.utils import _list_with_default, _reverse_repeat_tuple

from weft.functional.neural.sizes import several
from weft.nn.module.state_dict import IncompatibleKeys


def _ntuple(n: int, name: str = "") -> Callable[[Any], tuple[int, ...]]:
    """A function that repeats one number n times, and keeps n numbers as given."""
    return lambda x: tuple(x) if isinstance(x, Sequence) else several(x, n, name or f"{n} numbers")


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix, such as the "module." of torch's DistributedDataParallel, from a state's keys, in place.

    >>> state = {"module.weight": 1}; flow.nn.modules.consume_prefix_in_state_dict_if_present(state, "module."); state
    {'weight': 1}
    """
    for names in (state_dict, getattr(state_dict, "_metadata", {})):
        for key in [k for k in names if k.startswith(prefix)]:
            names[key.removeprefix(prefix)] = names.pop(key)


NAMES: Final[dict[str, Any]] = {
    "_ntuple": _ntuple, "_single": _ntuple(1),
    "_pair": _ntuple(2), "_triple": _ntuple(3), "_quadruple": _ntuple(4), "_IncompatibleKeys": IncompatibleKeys,
    "_addindent": _addindent, "_list_with_default": _list_with_default, "_reverse_repeat_tuple": _reverse_repeat_tuple,
    "consume_prefix_in_state_dict_if_present": consume_prefix_in_state_dict_if_present,
}  # fmt: skip
