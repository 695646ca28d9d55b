"""Graphs that share parameters: a class that compiles one graph for each form of inputs, and `Graph.share_from`."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from weft.core.dispatch import here
from weft.core.errors import GraphError
from weft.core.idle import idle
from weft.graph import saved, tree
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor


class Forms:
    """The compiled graphs of a graph that takes inputs of any form, those called last at the end."""

    def __init__(self, size: int) -> None:
        self.kept: OrderedDict[tuple[str, int], Any] = OrderedDict()  # several of a form, if build() reads values
        self.set_cache_size(size)

    def set_cache_size(self, size: int) -> None:
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise GraphError(f"with_dynamic_input_shape(size={size!r}): at least one form is kept, like size=10")
        self.size = size

    def of(self, graph: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The compiled graph for arguments of this form."""
        given = tree.ours((args, kwargs))
        form = repr(tree.form(given))
        known = (k for k, g in reversed(self.kept.items()) if k[0] == form and not g._compiled.differing(*given))
        key = next(known, None)
        one = self.another(graph) if key is None else self.kept.pop(key)
        one.compile(*args, **kwargs)
        self.keep(graph, form, one)
        return one

    def another(self, graph: Any) -> Any:
        """A graph that isn't compiled, over the same modules."""
        kind = type(graph).of_one_form
        one = object.__new__(kind)
        one.__dict__.update({n: a for n, a in graph.__dict__.items() if n != "_dynamic_input_graph_cache"})
        one.__dict__.update(_name=graph.numbered(), _compiled=None, _of_values=True)
        return one

    def keep(self, graph: Any, form: str, one: Any) -> None:
        self.kept[form, id(one)] = one
        graph.__dict__["_compiled"] = one._compiled  # for job, plan and the like
        while len(self.kept) > self.size:
            self.kept.popitem(last=False)[1].close()


@functools.cache
def _of_any_form(kind: type) -> type:
    """A class of graphs, for inputs of any form."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if here.trace is not None or self._closed:
            return kind.__call__(self, *args, **kwargs)
        return self._dynamic_input_graph_cache.of(self, args, kwargs)(*args, **kwargs)

    def compile(self: Any, *args: Any, **kwargs: Any) -> None:
        self._dynamic_input_graph_cache.of(self, args, kwargs)

    def close(self: Any) -> None:
        for graph in self._dynamic_input_graph_cache.kept.values():
            graph.close()
        self.__dict__["_closed"] = True

    def runtime_state_dict(self: Any, **options: Any) -> dict[str, Any]:
        self._need()
        kept = self._dynamic_input_graph_cache.kept
        state = {form: graph.runtime_state_dict(**options) for (form, _), graph in kept.items()}
        once: dict[Any, Tensor] = {}
        for part in state.values():  # one handle of each variable, so that a file has it once, and `load` shares it
            held = part["variables"]
            held.update({n: once.setdefault((t.data_ptr(), t.shape, t.stride(), t.dtype), t) for n, t in held.items()})
        return state

    def load_runtime_state_dict(self: Any, state: Mapping[str, Any]) -> None:
        forms, shared = self._dynamic_input_graph_cache, dict[Tensor, Tensor]()
        several = isinstance(state, Mapping) and "format" not in state
        for part in state.values() if several else (state,):
            one = forms.another(self)
            compiled = one.__dict__["_compiled"] = saved.load(one, part, shared)
            forms.keep(self, repr(compiled.form), one)

    own = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    methods = (compile, close, runtime_state_dict, load_runtime_state_dict)
    own |= {"__call__": call, "of_one_form": kind, **{m.__name__: m for m in methods}}
    return type(kind.__name__, (kind,), own)


def with_dynamic_input_shape(given: Any = None, /, *, size: int = 10, enable_shared: bool = True) -> Any:
    """A decorator of a class of graphs, or of its `__init__`, for dynamic input shapes: its graphs take inputs of any
    form, and cache compiled graphs for the last `size` forms. They share modules, optimizers and config. All ranks call
    with the same forms. Parentheses may be left out.

    >>> @flow.nn.Graph.with_dynamic_input_shape(size=2)
    ... class Twice(flow.nn.Graph):
    ...     def build(self, x):
    ...         return x * 2
    >>> twice = Twice()
    >>> [twice(flow.ones(n)).tolist() for n in (1, 2)]
    [[2.0], [2.0, 2.0]]
    """
    Forms(size)
    idle("with_dynamic_input_shape(enable_shared)", not enable_shared)

    def decorate(given: Any) -> Any:
        if isinstance(given, type) and hasattr(given, "share_from"):
            own = {name: getattr(given, name) for name in ("__doc__", "__module__", "__qualname__")}
            return type(given.__name__, (given,), {**own, "__init__": decorate(given.__init__)})
        if isinstance(given, type) or not callable(given):
            raise GraphError(
                f"with_dynamic_input_shape() decorates a class of graphs, or its __init__; got {given!r:.60}"
            )

        @functools.wraps(given)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            given(self, *args, **kwargs)
            self.__dict__["_dynamic_input_graph_cache"] = Forms(size)
            if not hasattr(type(self), "of_one_form"):
                object.__setattr__(self, "__class__", _of_any_form(type(self)))

        return init

    return decorate if given is None else decorate(given)


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
