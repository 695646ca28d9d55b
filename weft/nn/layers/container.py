"""Modules that hold others in order, or by name."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from weft.core.errors import ArgumentError, IndexingError
from weft.nn.module.members import MODULE, PARAMETER
from weft.nn.module.module import Module
from weft.tensor.parameter import Parameter


class _Held(Module):
    """Members of one role; a subclass may have attributes of other roles beside them."""

    _role = MODULE

    def _names(self) -> list[str]:
        return [name for name, role in self._roles.items() if role == self._role]

    def __len__(self) -> int:
        return len(self._names())


class _List(_Held):
    """Numbered members. `index` looks one up as a list would."""

    def _name(self, index: Any) -> str:
        n = len(self)
        at = operator.index(index)
        if not -n <= at < n:
            raise IndexingError(f"index {at} is out of range: this {self._get_name()} has {n} members")
        return str(at % n)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._role == MODULE and name.isdigit() and not (value is None or isinstance(value, Module)):
            raise ArgumentError(f"{self._get_name()} holds modules; got {type(value).__name__}: {value!r}")
        super().__setattr__(name, value)

    def _replace_all(self, values: list[Any]) -> None:
        for name in self._names():
            delattr(self, name)
        for i, value in enumerate(values):
            setattr(self, str(i), value)

    def __iter__(self) -> Iterator[Any]:
        return iter([self.__dict__[name] for name in self._names()])

    def __contains__(self, value: object) -> bool:
        return any(value is v for v in self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            make: Any = type(self)
            return make(list(self)[index])
        return self.__dict__[self._name(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, self._name(index), value)

    def __delitem__(self, index: Any) -> None:
        values = list(self)
        del values[index if isinstance(index, slice) else int(self._name(index))]
        self._replace_all(values)

    def append(self, value: Any) -> Any:
        setattr(self, str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        for value in list(values):
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> None:
        values = list(self)
        values.insert(index, value)
        self._replace_all(values)

    def __iadd__(self, values: Iterable[Any]) -> Any:
        return self.extend(values)

    def __add__(self, values: Iterable[Any]) -> Any:
        return self._of([*self, *values])

    def pop(self, index: Any = -1) -> Any:
        """Take a member out."""
        value = self[index]
        del self[index]
        return value

    @staticmethod
    def _of(values: list[Any]) -> Any:
        """Such a list of these; of the plain kind, as a subclass may be made in another way."""
        return ModuleList(values)


class ModuleList(_List):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __repr__(self) -> str:
        """Members that look alike are shown once, with how many there are."""
        lines, first = [], 0
        for shown, alike in itertools.groupby(map(repr, self)):
            count = len(list(alike))
            where = f"{first}-{first + count - 1}): {count} x " if count > 1 else f"{first}): "
            lines.append("  (" + where + shown.replace("\n", "\n  "))
            first += count
        return "\n".join([f"{self._get_name()}(", *lines, ")"]) if lines else f"{self._get_name()}()"


class ParameterList(_List):
    """A list of parameters; tensors become parameters."""

    _role = PARAMETER

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, as_parameter(value) if name.isdigit() else value)

    @staticmethod
    def _of(values: list[Any]) -> Any:
        return ParameterList(values)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({n}): {described(p)}" for n, p in self._parameters.items())


class Sequential(_List):
    """Modules, each called with what the one before returned.

    >>> flow.nn.Sequential(flow.nn.Linear(2, 3), flow.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        given = modules[0] if len(modules) == 1 and isinstance(modules[0], Iterable) else modules
        named = given.items() if isinstance(given, Mapping) else ((str(i), m) for i, m in enumerate(given))
        for name, module in named:
            if module is not None and not isinstance(module, Module):
                raise ArgumentError(f"{type(module).__name__} is not a Module subclass: Sequential holds modules")
            self.add_module(name, module)

    def forward(self, x: Any) -> Any:
        for module in self._chain():
            x = module(x)
        return x

    @staticmethod
    def _of(values: list[Any]) -> Any:
        return Sequential(*values)

    def __mul__(self, times: int) -> Any:
        """The members, the same ones, several times over."""
        return self._of(list(self) * times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Any:
        return self.extend(list(self) * (times - 1))

    def _chain(self) -> list[Any]:
        members = self.__dict__
        return [members[name] for name, role in self._roles.items() if role == MODULE]

    def _name(self, index: Any) -> str:
        at = int(super()._name(index))
        return self._names()[at]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            super().__delitem__(index)
        else:
            values = list(self)
            numbered = self._names() == [str(i) for i in range(len(values))]
            name = self._name(index)
            if numbered:
                values.remove(self.__dict__[name])
                self._replace_all(values)
            else:
                delattr(self, name)


class _Dict(_Held):
    """Named members."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return self._roles.get(name) == self._role  # type: ignore[arg-type]

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, Module):
            self.add_module(name, value)
        else:
            self.register_parameter(name, as_parameter(value))

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self, name)

    def keys(self) -> Iterable[str]:
        return self._names()

    def values(self) -> Iterable[Any]:
        return [self.__dict__[n] for n in self._names()]

    def items(self) -> Iterable[tuple[str, Any]]:
        return [(n, self.__dict__[n]) for n in self._names()]

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        pairs: Any = values.items() if isinstance(values, (Mapping, _Dict)) else values
        for name, value in pairs:
            self[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        return self.__dict__[name] if name in self else default

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str) -> Any:
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        name = self._names()[-1]
        return name, self.pop(name)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._names())

    def clear(self) -> None:
        for name in self._names():
            del self[name]


class ModuleDict(_Dict):
    """A dict of modules."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(value, Module):
            raise ArgumentError(f"{type(value).__name__} is not a Module subclass: {name!r} is {value!r}")
        self.add_module(name, value)


class ParameterDict(_Dict):
    """A dict of parameters; tensors become parameters."""

    _role = PARAMETER

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters."""
        return ParameterDict(self.items())

    def fromkeys(self, names: Iterable[str], value: Any = None) -> ParameterDict:
        return ParameterDict((name, value) for name in names)

    def __or__(self, other: Mapping[str, Any]) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Mapping[str, Any]) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({n}): {described(p)}" for n, p in self._parameters.items())


def as_parameter(value: Any) -> Any:
    return value if value is None or isinstance(value, Parameter) else Parameter(value)


def described(p: Any) -> str:
    if p is None:
        return "None"
    return f"Parameter containing: [{p.dtype} of size {'x'.join(map(str, p.shape))}]"
