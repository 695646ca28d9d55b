"""Modules as functions of their parameters: `flow.func.functional_call`, `stack_module_state`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.core.errors import ArgumentError
from weft.core.stored import stored
from weft.functional.shape.joining import stack
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

ABSENT = object()


def functional_call(
    module: Module, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """`module(*args, **kwargs)` with its parameters and buffers replaced by other tensors, by path.

    `tie_weights`: tied weights are replaced together. `strict`: every parameter and buffer must be given, and no
    others.

    >>> m = flow.nn.Linear(2, 1, bias=False)
    >>> flow.func.functional_call(m, {"weight": flow.tensor([[1.0, 10.0]])}, flow.tensor([2.0, 3.0])).tolist()
    [32.0]
    """
    several = parameter_and_buffer_dicts
    given: dict[str, Tensor] = {}
    for one in (several,) if isinstance(several, Mapping) else several:
        twice = given.keys() & one.keys()
        if twice:
            raise ArgumentError(f"functional_call(): {min(twice)!r} appears in two of the dicts; give each path once")
        given.update(one)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _exchanged(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


@contextlib.contextmanager
def _exchanged(module: Module, given: Mapping[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    own = {p: t for get in (module.named_parameters, module.named_buffers) for p, t in get(remove_duplicate=False)}
    wrong, absent = sorted(given.keys() - own.keys()), sorted(own.keys() - given.keys())
    if strict and (wrong or absent):
        raise ArgumentError(
            f"functional_call(strict=True): {type(module).__name__} "
            + (f"has no {', '.join(wrong)}" if wrong else f"also has {', '.join(absent)}, for which nothing was given")
        )
    put = dict(given)
    if tie_weights:
        by_tensor = {id(own[path]): value for path, value in given.items() if path in own}
        put |= {path: by_tensor[id(t)] for path, t in own.items() if path not in given and id(t) in by_tensor}
    places = [(module.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2], t) for path, t in put.items()]
    before = [stored(owner).get(name, ABSENT) for owner, name, _ in places]
    try:
        for owner, name, value in places:
            stored(owner)[name] = value  # its role doesn't change
        yield
    finally:
        for (owner, name, _), value in zip(places, before, strict=True):
            if value is ABSENT:
                stored(owner).pop(name, None)
            else:
                stored(owner)[name] = value


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters, and the buffers, of several modules of one class, stacked along a new first dimension.

    >>> parameters, buffers = flow.func.stack_module_state([flow.nn.Linear(2, 3) for _ in range(4)])
    >>> parameters["weight"].shape
    torch.Size([4, 3, 2])
    """
    models = list(models)
    if not models or any(type(m) is not type(models[0]) or m.training != models[0].training for m in models):
        raise ArgumentError("stack_module_state(): takes one or more modules of one class, all training or none")

    def stacked(each: list[dict[str, Tensor]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for path, first in each[0].items():
            wanted = first.requires_grad
            made[path] = stack([e[path].detach() for e in each], 0).requires_grad_(wanted)
        return made

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])


__all__ = ["functional_call", "stack_module_state"]
