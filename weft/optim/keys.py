"""Validation of the keys of a parameter group.

PyTorch and OneFlow accept any key, so a misspelled option trains with its default. But schedules and model libraries
store their own keys in groups. So a key that is an option of another optimizer, or close to one of this one, raises; a
known key of a library passes; any other passes with a warning.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final

from weft.core.errors import OptionError
from weft.core.program_line import warn

# keys that schedules, model libraries and users store in groups
NOTES: Final = frozenset({
    "initial_lr", "max_lr", "min_lr", "base_lr", "swa_lr", "target_lr", "lr_mult", "lr_scale", "initial_momentum",
    "base_momentum", "max_momentum", "name", "names", "group_name", "param_name", "param_names", "params_names",
    "label", "layer", "layer_id", "layer_name", "tag", "clip_grad_max_norm", "clip_grad_norm_type",
})  # fmt: skip


class Options(MutableMapping[str, Any]):
    """A live view of a group's options, without the parameters."""

    def __init__(self, group: dict[str, Any]) -> None:
        self.group = group

    def __getitem__(self, key: str) -> Any:
        if key == "params":
            raise KeyError(key)
        return self.group[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.group[key] = value

    def __delitem__(self, key: str) -> None:
        del self.group[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key in self.group if key != "params")

    def __len__(self) -> int:
        return len(self.group) - 1

    def __repr__(self) -> str:
        return repr(dict(self))


class ParamGroup(dict[str, Any]):
    """A parameter group of an optimizer, whose keys were checked."""

    @property
    def parameters(self) -> list[Any]:
        """OneFlow's name for `group["params"]`."""
        return self["params"]

    @property
    def options(self) -> Options:
        """OneFlow's name for the other keys: what is set here is set in the group."""
        return Options(self)


def check_keys(optimizer: Any, group: Mapping[str, Any], base: type) -> None:
    """Raise or warn about keys that an optimizer doesn't use; `base` is the base class of optimizers."""
    kind = type(optimizer)
    if isinstance(group, ParamGroup) or not kind.step.__module__.startswith("weft."):
        return  # of another optimizer, such as one around this one; or a program's own step knows what it reads
    known = {*optimizer.defaults, *_options(kind)} - {"params", "defaults"}
    for key in group:
        if key in known or key in NOTES or key == "params":
            continue
        close = difflib.get_close_matches(str(key), known, 1, 0.8)
        if close or any(key in _options(other) for other in _kinds(base)):
            meant = f"did you mean {close[0]!r}? " if close else ""
            raise OptionError(
                f"{kind.__name__} has no option {key!r}, which a parameter group sets to {group[key]!r}: {meant}It has "
                f"{', '.join(sorted(known))}"
            )
        warn(f"{kind.__name__} ignores {key!r}, which a parameter group sets")


def _options(kind: type) -> set[str]:
    return {n for c in kind.__mro__ if "__init__" in vars(c) and c is not object for n in _named(c)}


def _named(kind: type) -> Iterator[str]:
    given = inspect.signature(vars(kind)["__init__"]).parameters.values()
    return (p.name for p in given if p.name != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))


def _kinds(base: type) -> Iterator[type]:
    """Every optimizer class of Weft."""
    if base.__module__.startswith("weft."):
        yield base
        for kind in base.__subclasses__():
            yield from _kinds(kind)


def warn_of_lr_scale(optimizer: Any, group: Mapping[str, Any]) -> None:
    """Warn that an eager step ignores `lr_scale`, as PyTorch and OneFlow do: some schedules have applied it already."""
    if group.get("lr_scale", 1.0) != 1.0:
        warn(
            f"{type(optimizer).__name__}.step(): lr_scale={group['lr_scale']!r} of a parameter group multiplies its "
            f"rate in a graph only, as in OneFlow; here the rate is lr={group['lr']!r}. Unless a schedule "
            "has multiplied it already, write group['lr'] *= group['lr_scale']"
        )
