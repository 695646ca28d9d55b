"""Blocks: a graph's proxies for modules. They share parameters and `forward` with the module and add static settings:
its pipeline stage, and activation checkpointing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from weft.core.dispatch import here
from weft.core.errors import GraphError
from weft.core.placement import Placement
from weft.core.rank import current
from weft.job.builder import Settings
from weft.nn.module.module import Module
from weft.tensor.parameter import Parameter
from weft.tensor.printing import meta_text
from weft.tensor.tensor import Tensor


class GraphBlock:
    """A graph's static settings of a module or tensor; `x.to(kind)` returns `kind.of(x)`."""

    __slots__ = ("path", "stage_id", "stage_placement", "type")

    def __init__(self, path: str, type: str) -> None:
        self.path, self.type = path, type
        self.stage_id: int | None = None
        self.stage_placement: Placement | None = None

    @property
    def name(self) -> str:
        """Its name in the module that has it."""
        return self.path.rpartition(".")[2]

    @property
    def name_prefix(self) -> str:
        """The path of that module in the graph, with a dot."""
        return self.path.removesuffix(self.name)

    def set_stage(self, stage_id: int | None = None, placement: Placement | None = None) -> None:
        """Assign it to stage `stage_id` of a pipeline; a module's inputs are moved to `placement`."""
        if stage_id is not None and (isinstance(stage_id, bool) or not isinstance(stage_id, int) or stage_id < 0):
            raise GraphError(f"set_stage({stage_id!r}): a stage is counted from 0")
        if placement is not None and not isinstance(placement, Placement):
            raise GraphError(f"set_stage(..., {placement!r}): write flow.placement('cpu', ranks=[0])")
        if placement is not None:
            placement.check(current().world_size)
        self.stage_id, self.stage_placement = stage_id, placement


class GraphTensor(GraphBlock):
    """The static settings of a parameter: `weight.to(nn.graph.GraphTensor).set_stage(0, placement)`. They are stored
    without effect: a parameter keeps its placement, and the ops that read it belong to their modules' stages."""

    __slots__ = ()

    @staticmethod
    def of(x: Any, path: str = "tensor") -> GraphTensor:
        if not isinstance(x, Tensor):
            raise GraphError(f"to(nn.graph.GraphTensor) is said of parameters and buffers, not of {type(x).__name__}")
        kind = "PARAMETER" if isinstance(x, Parameter) else "BUFFER"
        return x.__dict__.setdefault("_static", GraphTensor(path, kind))

    def __repr__(self) -> str:
        return f"(GraphTensor:{self.path}({'' if self.stage_id is None else f'stage_id={self.stage_id}'}))"


class GraphModule(GraphBlock):
    """The static settings of a block: `self.m.to(nn.graph.GraphModule).set_stage(0, placement)`."""

    __slots__ = ("activation_checkpointing",)

    def __init__(self, path: str) -> None:
        super().__init__(path, "MODULE")
        self.activation_checkpointing = False

    @staticmethod
    def of(x: Any) -> GraphModule:
        """The settings of a module in the graph that is being traced: in `forward`, modules aren't proxies."""
        known = _settings_of(x)
        if known is None:
            raise GraphError(
                f"{type(x).__name__}.to(nn.graph.GraphModule): no graph that is being traced has this module as a "
                "block. Set it in the graph's __init__, self.m = module, and say self.m.to(nn.graph.GraphModule)"
            )
        return known.blocks[0]._static

    def __repr__(self) -> str:
        parts = []
        if self.stage_id is not None:
            parts.append(f"stage_id={self.stage_id}")
        if self.activation_checkpointing:
            parts.append("activation_checkpointing=True")
        return f"(GraphModule:{self.path}({', '.join(parts)}))"


class BlockSettings:
    """The current settings from all blocks of one module. `name` is that of the first block."""

    def __init__(self) -> None:
        self.blocks: list[ProxyModule] = []

    def settings(self) -> Settings:
        statics = [block._static for block in self.blocks]
        staged = next((s for s in statics if s.stage_id is not None or s.stage_placement is not None), statics[0])
        checkpoint = any(s.activation_checkpointing for s in statics)
        return Settings(statics[0].path, staged.stage_id, staged.stage_placement, checkpoint)


def _settings_of(x: Any) -> BlockSettings | None:
    return None if here.trace is None else here.trace.modules.get(id(x))


class _IsProxy(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is ProxyModule or (isinstance(x, Module) and _settings_of(x) is not None)


class ProxyModule(metaclass=_IsProxy):
    """A proxy of a module inside a graph. Attributes that are modules are returned as proxies, too. For isinstance, any
    block of a graph: a proxy in `build`, or the module itself in a `forward`."""

    def __init__(self, origin: Module, name: str, known: dict[int, ProxyModule] | None = None) -> None:
        known = {} if known is None else known  # one proxy for a module with several names
        known[id(origin)] = self
        children: dict[str, ProxyModule] = {}
        for n, m in origin._modules.items():
            if m is not None:
                children[n] = known.get(id(m)) or ProxyModule(m, f"{name}.{n}", known)
        vars(self).update(_origin=origin, _name=name, _static=GraphModule(name), _children=children)

    def to(self, kind: type) -> Any:
        """`to(nn.graph.GraphModule)`: the static settings; `to(nn.Module)`: the module itself."""
        if kind is GraphModule:
            return self._static
        if isinstance(kind, type) and (issubclass(kind, Module) or kind is Tensor):
            return self._origin
        raise GraphError(f"a block is to(nn.graph.GraphModule) or to(nn.Module); got {kind!r}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._origin(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self._origin, memo)

    def __getattr__(self, name: str) -> Any:
        children = self.__dict__.get("_children", {})
        if name in children:
            return children[name]
        if name == "config" and not hasattr(self.__dict__["_origin"], name):
            return self._static  # OneFlow's name before 0.9; libraries that find it use .origin, too
        if name == "origin" and not hasattr(self.__dict__["_origin"], name):
            return self._origin
        found = getattr(self.__dict__["_origin"], name)
        if name in ("items", "values") and hasattr(type(self._origin), "keys"):  # a dict of modules
            return lambda: [self._proxied(item) for item in found()]
        if isinstance(found, Tensor):  # parameters have static settings, which OneFlow before 0.9 calls config, too
            found.__dict__.setdefault("config", GraphTensor.of(found, f"{self._name}.{name}"))
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._origin, name, value)
        if isinstance(value, Module):
            self._children[name] = ProxyModule(value, f"{self._name}.{name}")

    # ---- what containers do ------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index] if isinstance(index, slice) else self._proxied(self._origin[index])

    def __len__(self) -> int:
        return len(self._origin)

    def __iter__(self) -> Iterator[Any]:
        return map(self._proxied, iter(self._origin))

    def __contains__(self, item: Any) -> bool:
        return item in self._origin

    def __bool__(self) -> bool:
        return True

    def _proxied(self, found: Any) -> Any:
        if isinstance(found, tuple):
            return tuple(map(self._proxied, found))
        if not isinstance(found, Module):
            return found
        return next((p for p in self._children.values() if p._origin is found), found)

    def named_modules(self) -> Iterator[tuple[str, ProxyModule]]:
        """This block and those inside of it, each once, with their paths from here."""
        seen: set[int] = set()

        def walk(block: ProxyModule, path: str) -> Iterator[tuple[str, ProxyModule]]:
            if id(block) in seen:
                return
            seen.add(id(block))
            yield path, block
            for name, child in block._children.items():
                yield from walk(child, f"{path}.{name}" if path else name)

        return walk(self, "")

    def modules(self) -> Iterator[ProxyModule]:
        return (block for _, block in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, ProxyModule]]:
        return iter(self._children.items())

    def children(self) -> Iterator[ProxyModule]:
        return iter(self._children.values())

    # ---- what is said of it ------------------------------------------------------------------------------

    def lines(self, ops: dict[str, list[str]], indent: str = "") -> Iterator[str]:
        """The block as text: parameters, buffers, children, and the ops that were traced inside."""
        origin = self._origin
        extra = origin.extra_repr()
        yield f"{indent}(MODULE:{self._name}:{origin._get_name()}({extra})): ("
        for kind, members in (("PARAMETER", origin.named_parameters), ("BUFFER", origin.named_buffers)):
            for n, t in members(recurse=False):
                yield f"{indent}  ({kind}:{self._name}.{n}:{meta_text(t)}): ()"
        for child in self._children.values():
            yield from child.lines(ops, indent + "  ")
        inside = ops.get(self._name, [])
        if inside:
            yield f"{indent}  {self._static!r}: ("
            yield from (f"{indent}    {line}" for line in inside)
            yield f"{indent}  )"
        else:
            yield f"{indent}  {self._static!r}: ()"
        yield f"{indent})"

    def __repr__(self) -> str:
        return "\n".join(self.lines({}))


Proxy = ProxyModule
