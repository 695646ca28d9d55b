"""`nn.graph.util.ArgsTree`: arguments as a tree whose nodes have names, as OneFlow's programs walk them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from weft.core.errors import ArgumentError
from weft.tensor.printing import meta_text
from weft.tensor.tensor import Tensor

INNER = (tuple, list, dict, OrderedDict)  # exactly these types: others are leaves


class NamedArg:
    """A node: its name, its index, and its value, in which nodes replace values."""

    def __init__(self, prefix: str, name: str, index: int) -> None:
        self._prefix, self._name, self._index = prefix, name, index
        self._value: Any = None

    def prefix(self) -> str:
        return self._prefix

    def name(self) -> str:
        return self._name

    def global_index(self) -> int:
        return self._index

    def value(self) -> Any:
        return self._value

    def is_leaf(self) -> bool:
        return type(self._value) not in INNER

    def __repr__(self) -> str:
        v, kind = self._value, type(self._value)
        head = f"(name: {self._name}, idx: {self._index}, type:"
        if kind in INNER:
            return f"{head} {'DICT' if kind is OrderedDict else kind.__name__.upper()})"
        what = "TENSOR" if isinstance(v, Tensor) else "NONE" if v is None else "OPAQUE"
        shown = meta_text(v) if isinstance(v, Tensor) else repr(v)
        return f"{head} {what}, value: {shown})"


class ArgsTree:
    """Nested tuples, lists and dicts; with `gen_name`, each node under a name of its own.

    >>> tree = ArgsTree([1, {"a": 2}], gen_name=True)
    >>> [name for name, node in tree.iter_named_nodes() if node.is_leaf()]
    ['0_1', '1.0_a']
    """

    def __init__(
        self, io_args: Any, gen_name: bool = False, root_prefix: str = "", root_name: str | None = None
    ) -> None:
        self._io_args, self._gen_name, self._count = io_args, gen_name, 0
        self._named = self._name(io_args, root_prefix, root_name) if gen_name else None

    def gen_name(self) -> bool:
        return self._gen_name

    def _name(self, value: Any, prefix: str, name: str | None) -> NamedArg:
        node = NamedArg(prefix, str(self._count) if name is None else name, self._count)
        self._count += 1
        below = f"{prefix}." if prefix else ""
        if type(value) in (dict, OrderedDict):
            made = ((k, self._name(v, f"{below}{i}", str(k))) for i, (k, v) in enumerate(value.items()))
            node._value = type(value)(made)
        elif type(value) in INNER:
            node._value = type(value)(self._name(v, f"{below}{i}", None) for i, v in enumerate(value))
        else:
            node._value = value
        return node

    def iter_nodes(self) -> Iterator[Any]:
        """Every node, parents first: values, or `NamedArg`s if they have names."""
        return _walk(self._io_args if self._named is None else self._named)

    def iter_named_nodes(self) -> Iterator[tuple[str, NamedArg]]:
        if self._named is None:
            return _refuse()
        return ((f"{n.prefix()}_{n.name()}", n) for n in _walk(self._named))

    def map_leaf(self, function: Callable[[Any], Any]) -> Any:
        """The same tree with a function applied to each leaf."""
        return _mapped(self._io_args if self._named is None else self._named, function)

    map_tuple_leaf = map_leaf


def _refuse() -> NoReturn:
    raise ArgumentError("this tree has no names: write ArgsTree(args, gen_name=True)")


def _inside(node: Any) -> Any:
    return node._value if type(node) is NamedArg else node


def _walk(node: Any) -> Iterator[Any]:
    yield node
    value = _inside(node)
    if type(value) in INNER:
        for child in value.values() if isinstance(value, dict) else value:
            yield from _walk(child)


def _mapped(node: Any, function: Callable[[Any], Any]) -> Any:
    value = _inside(node)
    if type(value) not in INNER:
        return function(node)
    if isinstance(value, dict):
        return type(value)((k, _mapped(v, function)) for k, v in value.items())
    return type(value)(_mapped(v, function) for v in value)
