"""A module's members by role: parameters, buffers, modules."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from typing import Any

from weft.core.dispatch import here
from weft.transport.check import keep_buffer

PARAMETER, BUFFER, MODULE = "parameter", "buffer", "module"


class Members(MutableMapping[str, Any]):
    """A live view of a module's members of one role: `module._parameters`.

    The members are instance attributes, where Python finds them fastest; only their roles are stored separately.
    """

    def __init__(self, module: Any, role: str) -> None:
        self.module, self.role = module, role

    def _names(self) -> list[str]:
        return [n for n, role in self.module._roles.items() if role == self.role]

    def __getitem__(self, name: str) -> Any:
        if self.module._roles.get(name) != self.role:
            has = ", ".join(self) or "none"
            raise KeyError(f"{type(self.module).__name__} has no {self.role} {name!r} of its own; it has: {has}")
        return self.module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if here.trace is not None:  # containers are set without __setattr__, and needn't be called
            here.trace.attributes.see(self.module)
        self.module._roles[name] = self.role
        self.module.__dict__[name] = value
        if self.role == BUFFER:
            self.compare()

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        del self.module._roles[name], self.module.__dict__[name]

    def __contains__(self, name: object) -> bool:
        return self.module._roles.get(name) == self.role  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _dict(self) -> dict[str, Any]:
        has = self.module.__dict__
        return {n: has[n] for n, role in self.module._roles.items() if role == self.role}

    def items(self) -> ItemsView[str, Any]:
        return self._dict().items()

    def values(self) -> ValuesView[Any]:
        return self._dict().values()

    def compare(self) -> None:
        """Let ranks compare global buffers from now on."""
        for name, value in self.items():
            if value is not None and value.is_global and here.trace is None:
                keep_buffer(f"{self.module._get_name()}.{name}", value)

    def __repr__(self) -> str:
        return repr(dict(self))


def members(role: str) -> Any:
    """A property that gives a module's members of one role, and exchanges them."""

    def exchange(module: Any, values: Mapping[str, Any]) -> None:
        found, now = Members(module, role), dict(values)
        found.clear()
        found.update(now)

    return property(lambda module: Members(module, role), exchange)


def printed(name: str, extra: str, members: Mapping[str, Any]) -> str:
    """A module as text: its options, and its members, indented."""
    lines = [*extra.split("\n")] if extra else []
    children = [f"({n}): " + repr(m).replace("\n", "\n  ") for n, m in members.items()]
    if not children and len(lines) <= 1:
        return f"{name}({''.join(lines)})"
    return f"{name}(\n  " + "\n  ".join(lines + children) + "\n)"
