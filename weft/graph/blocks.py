"""Blocks: what a graph holds in a module's place. They share parameters and `forward` with the module and add what is
said of it statically: the stage it belongs to, whether backward computes its values again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.core.errors import GraphError
from weft.core.placement import Placement
from weft.job.builder import Settings
from weft.nn.module import Module
from weft.tensor.tensor import Tensor


class GraphModule:
    """The static side of a block: `self.m.to(nn.graph.GraphModule).set_stage(0, placement)`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stage_id: int | None = None
        self.stage_placement: Placement | None = None
        self.activation_checkpointing = False

    def set_stage(self, stage_id: int | None = None, placement: Placement | None = None) -> None:
        """The module is stage `stage_id` of a pipeline; what comes in is moved to `placement`."""
        if stage_id is not None and (isinstance(stage_id, bool) or not isinstance(stage_id, int) or stage_id < 0):
            raise GraphError(f"set_stage({stage_id!r}): a stage is counted from 0")
        if placement is not None and not isinstance(placement, Placement):
            raise GraphError(f"set_stage(..., {placement!r}): write flow.placement('cpu', ranks=[0])")
        self.stage_id, self.stage_placement = stage_id, placement

    def __repr__(self) -> str:
        parts = []
        if self.stage_id is not None:
            parts.append(f"stage_id={self.stage_id}")
        if self.activation_checkpointing:
            parts.append("activation_checkpointing=True")
        return f"(GraphModule:{self.name}({', '.join(parts)}))"


class ProxyModule:
    """A module inside a graph."""

    def __init__(self, origin: Module, name: str) -> None:
        self._origin, self._name = origin, name
        self._static = GraphModule(name)
        self._children: dict[str, ProxyModule] = {n: ProxyModule(m, f"{name}.{n}") for n, m in origin.named_children()}

    def to(self, kind: type) -> Any:
        """`to(nn.graph.GraphModule)`: the static side; `to(nn.Module)`: the module itself."""
        if kind is GraphModule:
            return self._static
        if isinstance(kind, type) and issubclass(kind, Module):
            return self._origin
        raise GraphError(f"a block is to(nn.graph.GraphModule) or to(nn.Module); got {kind!r}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._origin(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        children = self.__dict__.get("_children", {})
        if name in children:
            return children[name]
        return getattr(self.__dict__["_origin"], name)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        names = list(self._children)
        return self._children[index if isinstance(index, str) else names[index]]

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[ProxyModule]:
        return iter(self._children.values())

    def settings(self) -> Iterator[tuple[Module, Settings]]:
        """What is said of this module and those inside it."""
        s = self._static
        yield self._origin, Settings(self._name, s.stage_id, s.stage_placement, s.activation_checkpointing)
        for child in self._children.values():
            yield from child.settings()

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


def meta_text(t: Tensor) -> str:
    """A tensor without its values."""
    parts = ["..."]
    if t.spec is not None:
        parts += [f"placement={t.spec.placement!r}", f"sbp={t.spec.nd_sbp!r}"]
    if t.value is not None:
        parts.append("is_lazy='True'")
    parts += [f"size={tuple(t.shape)}", f"dtype={t.dtype}"]
    if t.requires_grad:
        parts.append("requires_grad=True")
    return f"tensor({', '.join(parts)})"
