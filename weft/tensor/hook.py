"""The handle of a hook."""

from __future__ import annotations

from typing import Any


class RemovableHook:
    """Takes its hook away again: `remove()`, or leaving a `with` block. The `first` stands before those there are."""

    _count = 0

    def __init__(self, table: dict[int, Any], hook: Any, first: bool = False) -> None:
        RemovableHook._count += 1
        self.table, self.key = table, RemovableHook._count
        late = list(table.items()) if first else []
        table[self.key] = hook
        for key, other in late:  # a dict has no front: what stood before goes behind
            del table[key]
            table[key] = other

    def remove(self) -> None:
        self.table.pop(self.key, None)

    def __enter__(self) -> RemovableHook:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
