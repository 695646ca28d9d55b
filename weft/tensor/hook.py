"""The handle of a hook."""

from __future__ import annotations

from typing import Any


class RemovableHook:
    """Removes its hook: `remove()`, or leaving a `with` block. `first` puts the hook before existing ones."""

    _count = 0

    def __init__(self, table: dict[int, Any], hook: Any, first: bool = False) -> None:
        RemovableHook._count += 1
        self.table, self.id = table, RemovableHook._count
        late = list(table.items()) if first else []
        table[self.id] = hook
        for key, other in late:  # a dict can't prepend: reinsert the others
            del table[key]
            table[key] = other

    def remove(self) -> None:
        self.table.pop(self.id, None)

    def __enter__(self) -> RemovableHook:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
