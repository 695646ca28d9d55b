"""The handle of a hook."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torch.utils.hooks import RemovableHandle


class RemovableHook(RemovableHandle):
    """Removes its hook: `remove()`, or leaving a `with` block. `first` puts the hook before existing ones."""

    def __init__(self, table: OrderedDict[int, Any], hook: Any, first: bool = False) -> None:
        super().__init__(table)
        table[self.id] = hook
        if first:
            table.move_to_end(self.id, last=False)
