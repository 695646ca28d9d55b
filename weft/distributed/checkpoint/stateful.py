"""Objects that keep a state of their own: data loaders, training states."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """What has `state_dict()` and `load_state_dict(state)`; a checkpoint saves and loads its state."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...
