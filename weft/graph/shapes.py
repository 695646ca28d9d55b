"""Graphs that share parameters: a class that compiles one graph for each form of inputs, and `Graph.share_from`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from weft.core.dispatch import here
from weft.core.errors import GraphError
from weft.graph import tree
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor


def with_dynamic_input_shape(*, size: int = 10) -> Callable[[type], type]:
    """A class decorator for dynamic input shapes: a graph of this class takes inputs of any form, and caches compiled
    graphs for the last `size` forms. They share modules, optimizers and config. All ranks call with the same forms.

    >>> @flow.nn.Graph.with_dynamic_input_shape(size=2)
    ... class Twice(flow.nn.Graph):
    ...     def build(self, x):
    ...         return x * 2
    >>> twice = Twice()
    >>> [twice(flow.ones(n)).tolist() for n in (1, 2)]
    [[2.0], [2.0, 2.0]]
    """
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise GraphError(f"with_dynamic_input_shape(size={size!r}): at least one form is kept, like size=10")

    def decorate(kind: type) -> type:
        if not (isinstance(kind, type) and hasattr(kind, "share_from")):
            raise GraphError(f"with_dynamic_input_shape() decorates a class of graphs; got {kind!r:.60}")

        def of_form(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            form = repr(tree.form(tree.ours((args, kwargs))))
            kept: OrderedDict[str, Any] = self.__dict__.setdefault("_kept", OrderedDict())
            graph = kept.pop(form, None)
            if graph is None:
                graph = object.__new__(kind)
                graph.__dict__.update({n: a for n, a in self.__dict__.items() if n != "_kept"})
                graph.__dict__.update(_name=self.numbered(), _compiled=None)
            graph.compile(*args, **kwargs)
            kept[form] = graph
            self.__dict__["_compiled"] = graph._compiled  # for job, plan and the like
            if len(kept) > size:
                kept.popitem(last=False)[1].close()
            return graph

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if here.trace is not None or self._closed:
                return kind.__call__(self, *args, **kwargs)
            return of_form(self, args, kwargs)(*args, **kwargs)

        def compile(self: Any, *args: Any, **kwargs: Any) -> None:
            of_form(self, args, kwargs)

        def close(self: Any) -> None:
            for graph in self.__dict__.get("_kept", {}).values():
                graph.close()
            self.__dict__["_closed"] = True

        own = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
        return type(kind.__name__, (kind,), {**own, "__call__": call, "compile": compile, "close": close})

    return decorate


Owned = tuple[Any, str]  # where a module keeps a tensor, and under which name


def share(mine: Any, others: Any) -> None:
    """Let the modules of a graph share the parameters and buffers of the modules of the same names in another graph.
    All or none: each must exist there, with the same form."""
    todo: list[tuple[Owned, Tensor]] = []
    for name in mine._blocks:
        if name not in others._blocks:
            has = ", ".join(others._blocks) or "none"
            raise GraphError(f"{mine.name}.share_from({others.name}): it has no module {name!r}; it has {has}")
        here, there = (_owned(graph._blocks[name].to(Module)) for graph in (mine, others))
        if here.keys() != there.keys():
            odd = ", ".join(sorted(here.keys() ^ there.keys())[:3])
            raise GraphError(f"{mine.name}.share_from({others.name}): only one of them has {odd} in its {name!r}")
        for path, (table, key) in here.items():
            (source, other), was = there[path], table[key]
            if tree.form(was) != tree.form(source[other]):
                raise GraphError(
                    f"{mine.name}.share_from({others.name}): {name}.{path} is {tree.form(was)} here, and "
                    f"{tree.form(source[other])} there"
                )
            todo.append(((table, key), source[other]))
    for (table, key), t in todo:
        table[key] = t


def _owned(module: Module) -> dict[str, Owned]:
    """Parameters and buffers by their paths."""
    return {
        f"{path}.{key}".removeprefix("."): (table, key)
        for path, part in module.named_modules(remove_duplicate=False)
        for table in (part._parameters, part._buffers)
        for key, t in table.items()
        if t is not None
    }
