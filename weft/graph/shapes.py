"""Graphs for inputs of changing form: one is compiled for each form, and those that were called last are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from weft.core.dispatch import here
from weft.core.errors import GraphError
from weft.graph import tree


def with_dynamic_input_shape(*, size: int = 10) -> Callable[[type], type]:
    """A class decorator: a graph of this class takes inputs of any form, and keeps what it compiled for the `size`
    forms called last. Modules, optimizers and config are the same for all. Every rank calls with the same forms.

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
            self.__dict__["_compiled"] = graph._compiled  # which job, plan and the like are of
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
