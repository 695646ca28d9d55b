"""A module's members by role: parameters, buffers, modules."""

from __future__ import annotations

import gc
from collections.abc import ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from typing import Any, Final, cast

from weft.core.dispatch import here
from weft.core.errors import ArgumentError
from weft.core.stored import Stored, stored
from weft.transport.check import keep_buffer

PARAMETER, BUFFER, MODULE = "parameter", "buffer", "module"
TABLES: Final = {PARAMETER: "_parameters", BUFFER: "_buffers", MODULE: "_modules"}
ROLES: Final = {table: role for role, table in TABLES.items()}


class Attributes(MutableMapping[str, Any]):
    """A live view of a module's attributes as programs know them that copy or pickle `module.__dict__`: its members lie
    in three tables. What programs rebuild by its type, as they map a function over a tree, is a dict, as in torch."""

    def __new__(cls, module: Any) -> Any:
        return dict(module) if isinstance(module, Mapping) else object.__new__(cls)

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getitem__(self, name: str) -> Any:
        has = stored(self.module)
        if name in ROLES and "_roles" in has:
            return getattr(self.module, name)
        if name in has.get("_roles", ()) or name == "_roles":
            raise KeyError(name)
        return has[name]

    def __setitem__(self, name: str, value: Any) -> None:
        has = stored(self.module)
        if name in ROLES:
            exchange(getattr(self.module, name), value)
        elif role := has.get("_roles", {}).get(name):
            raise ArgumentError(
                f"{name!r} is a {role} of this {self.module._get_name()}: set it in "
                f"module.{TABLES[role]}, or del module.{name} before it becomes a plain attribute"
            )
        else:
            has[name] = value

    def __delitem__(self, name: str) -> None:
        self[name]
        del stored(self.module)[name]

    def __iter__(self) -> Iterator[str]:
        has = stored(self.module)
        roles = has.get("_roles")
        yield from has if roles is None else (*(n for n in has if n not in roles and n != "_roles"), *ROLES)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __repr__(self) -> str:
        return repr(dict(self))


def of_role(module: Any, role: str) -> list[tuple[str, Any]]:
    """A module's own members of one role."""
    has = stored(module)
    return [(name, has[name]) for name, of in module._roles.items() if of == role]


class Members(MutableMapping[str, Any]):
    """A live view of a module's members of one role: `module._parameters`.

    The members are instance attributes, where Python finds them fastest; only their roles are stored separately.
    Rebuilt by its type, it is a dict.
    """

    def __new__(cls, module: Any, *role: str) -> Any:
        return object.__new__(cls) if role else dict(module)

    def __init__(self, module: Any, role: str) -> None:
        self.module, self.role = module, role

    def _names(self) -> list[str]:
        return [n for n, role in self.module._roles.items() if role == self.role]

    def __getitem__(self, name: str) -> Any:
        if self.module._roles.get(name) != self.role:
            has = ", ".join(self) or "none"
            raise KeyError(f"{type(self.module).__name__} has no {self.role} {name!r} of its own; it has: {has}")
        return stored(self.module)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if here.trace is not None:  # containers are set without __setattr__, and needn't be called
            here.trace.attributes.see(self.module)
        self.module._roles[name] = self.role
        stored(self.module)[name] = value
        if self.role == BUFFER:
            self.compare()

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        del self.module._roles[name], stored(self.module)[name]

    def __contains__(self, name: object) -> bool:
        return self.module._roles.get(name) == self.role

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _dict(self) -> dict[str, Any]:
        return dict(of_role(self.module, self.role))

    def items(self) -> ItemsView[str, Any]:
        return self._dict().items()

    def values(self) -> ValuesView[Any]:
        return self._dict().values()

    def compare(self) -> None:
        """Let ranks compare global buffers from now on."""
        for name, value in of_role(self.module, self.role):
            if getattr(value, "is_global", False) and here.trace is None:
                keep_buffer(f"{self.module._get_name()}.{name}", value)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._dict(),)

    def copy(self) -> dict[str, Any]:
        return self._dict()

    def __repr__(self) -> str:
        return repr(self._dict())


def exchange(found: Members, values: Mapping[str, Any]) -> None:
    stored(found.module).setdefault("_roles", {})
    now = dict(values)
    found.clear()
    found.update(now)


def _replace(module: Any, given: Mapping[str, Any]) -> None:
    now = dict(given)
    stored(module).clear()
    Attributes(module).update(now)


def _table(role: str) -> Any:
    """A property that gives a module's members of one role, and exchanges them."""
    return property(
        lambda module: Members(module, role), lambda module, values: exchange(Members(module, role), values)
    )


OF_ATTRIBUTES: Final = cast(Any, property(Attributes, _replace))


def show_members(kind: type) -> None:
    """Let a class of modules show members in its `__dict__`, where one that comes before the modules has its own, as
    mixins have. Python lets it be given only to a class that is still to be made, so it is put where that is kept."""
    first = next(found for k in kind.__mro__ if (found := vars(k).get("__dict__")) is not None)
    if first is not OF_ATTRIBUTES:
        (names,) = gc.get_referents(vars(kind))
        names["__dict__"] = OF_ATTRIBUTES
        kind.__doc__ = kind.__doc__  # so that Python looks it up anew


class Owner(Stored):
    """A module as its attributes and members."""

    __dict__ = OF_ATTRIBUTES
    _parameters, _buffers, _modules = _table(PARAMETER), _table(BUFFER), _table(MODULE)

    def __getstate__(self) -> dict[str, Any]:
        return {name: v.copy() if name in ROLES else v for name, v in Attributes(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickling; for subclasses to extend."""
        Attributes(self).update(state)


def printed(name: str, extra: str, members: Mapping[str, Any]) -> str:
    """A module as text: its options, and its members, indented."""
    lines = [*extra.split("\n")] if extra else []
    children = [f"({n}): " + repr(m).replace("\n", "\n  ") for n, m in members.items()]
    if not children and len(lines) <= 1:
        return f"{name}({''.join(lines)})"
    return f"{name}(\n  " + "\n  ".join(lines + children) + "\n)"
