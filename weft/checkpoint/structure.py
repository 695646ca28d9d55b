"""Nested dicts, lists and sets of tensors, numbers and strings, as JSON that refers to tensors by name, and back."""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch

from weft.autograd.plain import taken
from weft.checkpoint.file import CODES, METADATA
from weft.core import dtype as dtypes
from weft.core.dtype import DType
from weft.core.errors import CheckpointError, WeftError
from weft.core.reading import shortened
from weft.tensor.blob import blob_of
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

DEEPEST: Final = 100  # levels of a structure; Python's recursion limit is not much higher
NUMBERS: Final = "biufc"  # the kinds of arrays that are tensors' data
LARGEST: Final = 1 << 13000  # of ints; Python reads no more than 4300 digits


class Mark:
    """The keys of dicts that encode what JSON lacks."""

    TENSOR = "$tensor"
    TUPLE = "$tuple"
    ITEMS = "$items"
    DTYPE = "$dtype"
    ARRAY = "$array"
    VERSIONS = "$versions"
    NAMESPACE = "$namespace"
    SET = "$set"
    FROZENSET = "$frozenset"


MARKS: Final = frozenset(v for k, v in vars(Mark).items() if k.isupper())
LISTED: Final[dict[str, type]] = {Mark.TUPLE: tuple, Mark.SET: set, Mark.FROZENSET: frozenset}


def _in_order(v: Any, refuse: Callable[[str], CheckpointError]) -> Any:
    """What a list or set holds, in the same order in every process."""
    if not isinstance(v, (set, frozenset)):
        return v
    if any(isinstance(x, Tensor) for x in v):
        raise refuse("it is a set of tensors, which have no order; save a list of them instead")
    return sorted(v, key=repr)


def _name_of(t: Tensor, path: str, tensors: dict[str, Tensor], names: dict[tuple[int, Any], str]) -> str:
    """A tensor's name in the file, by its path, with the tensor added to the others."""
    memory = id(blob_of(t)), tuple(t.shape)  # a tied weight is saved once
    known = names.get(memory)
    if known is not None:
        return known
    path = path.encode(errors="backslashreplace").decode()  # a lone surrogate can't be encoded
    name, n = path or "tensor", 1
    while name in tensors or name == METADATA:
        n += 1
        name = f"{path}#{n}"
    names[memory] = name
    tensors[name] = t
    return name


def described(value: Any) -> tuple[Any, dict[str, Tensor]]:
    """The JSON of a structure, and its tensors by name. A tensor that occurs several times is kept once."""
    tensors: dict[str, Tensor] = {}
    names: dict[tuple[int, Any], str] = {}

    def walk(v: Any, path: str, depth: int = 0) -> Any:
        def refuse(why: str) -> CheckpointError:
            return CheckpointError(f"can't save `{shortened(path)[1:-1] or 'this'}`: {why}")

        def inside(items: Any) -> list[Any]:
            return [walk(x, f"{path}.{k}" if path else str(k), depth + 1) for k, x in items]

        if depth > DEEPEST:
            raise refuse(f"it is nested deeper than {DEEPEST} levels; does it contain itself?")
        if isinstance(v, np.generic):
            v = v.item()
        array = isinstance(v, np.ndarray)
        if isinstance(v, torch.Tensor) or (array and v.dtype.kind in NUMBERS):
            v = taken(torch.from_numpy(v.astype(v.dtype.newbyteorder("="), order="C")) if array else v)
        if isinstance(v, Tensor):
            if v.dtype.torch not in CODES:
                raise refuse(f"the file's format has no {v.dtype}; save real and imaginary parts")
            form: dict[str, Any] = {Mark.ARRAY if array else Mark.TENSOR: _name_of(v, path, tensors, names)}
            if isinstance(v, Parameter):
                form["parameter"] = v.requires_grad
            return form
        if isinstance(v, int) and not -LARGEST < v < LARGEST:
            raise refuse(f"an int of {v.bit_length()} bits is too large for a file; save it as a string, say")
        if v is None or isinstance(v, (bool, int, float, str)):
            return v
        if isinstance(v, DType):
            return {Mark.DTYPE: v.name}
        versions = getattr(v, "__dict__", {}).get("_metadata")  # a dict's own __getattr__ may look for a key
        # a module's state dict, of a later version
        if versions and any(m.get("version", 1) != 1 for m in versions.values()):
            return {Mark.VERSIONS: [walk(dict(versions), "", depth + 1), walk(dict(v), path, depth + 1)]}
        if isinstance(v, Mapping):
            for k in v:
                if not isinstance(k, (str, int, bool, float)) and k is not None:
                    raise refuse(f"a key is a {type(k).__name__}, not a string or number")
            forms = inside(v.items())
            if all(isinstance(k, str) and k not in MARKS for k in v):
                return dict(zip(v, forms, strict=True))
            return {Mark.ITEMS: [[k, form] for k, form in zip(v, forms, strict=True)]}
        if isinstance(v, (list, *LISTED.values())):
            forms = inside(enumerate(_in_order(v, refuse)))
            mark = next((m for m, kind in LISTED.items() if isinstance(v, kind)), None)
            return {mark: forms} if mark else forms
        if type(v) is Namespace:  # what argparse made
            return {Mark.NAMESPACE: walk(vars(v), path, depth + 1)}
        instead = "x.state_dict()" if hasattr(v, "state_dict") else "vars(x)" if hasattr(v, "__dict__") else "list(x)"
        raise refuse(
            f"it is a {type(v).__name__}. A checkpoint holds tensors, arrays, numbers, strings, None, and dicts, "
            f"lists, tuples, sets and argparse's Namespaces of them; save {instead} instead, say"
        )

    return walk(value, ""), tensors


def rebuilt(form: Any, tensor: Callable[[str], Any], parameter: Callable[[Any, bool], Any] = Parameter) -> Any:
    """The structure from JSON; `tensor` is called once for each name."""
    known: dict[tuple[str, bool | None], Any] = {}

    def find(name: str, trained: bool | None) -> Any:
        key = name, trained
        if key not in known:
            known[key] = tensor(name) if trained is None else parameter(tensor(name), trained)
        return known[key]

    def walk(v: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise CheckpointError(
                f"the file's structure is nested deeper than {DEEPEST} levels, which flow.save never writes"
            )
        if isinstance(v, list):
            return [walk(x, depth + 1) for x in v]
        if not isinstance(v, dict):
            return v
        if MARKS.isdisjoint(v):
            return {k: walk(x, depth + 1) for k, x in v.items()}
        match list(v.items()):
            case [(Mark.TENSOR, str(name))]:
                return find(name, None)
            case [(Mark.TENSOR, str(name)), ("parameter", bool(trained))]:
                return find(name, trained)
            case [(Mark.ARRAY, str(name))]:
                return find(name, None).numpy()
            case [((Mark.TUPLE | Mark.SET | Mark.FROZENSET) as mark, list(parts))]:
                return LISTED[mark](walk(x, depth + 1) for x in parts)
            case [(Mark.DTYPE, str(name))]:
                return dtypes.named(name)
            case [(Mark.ITEMS, list(pairs))] if all(map(_is_item, pairs)):
                made = {k: walk(x, depth + 1) for k, x in pairs}
                if len(made) == len(pairs):
                    return made
            case [(Mark.NAMESPACE, dict(items))]:
                return Namespace(**walk(items, depth + 1))
            case [(Mark.VERSIONS, [dict(versions), dict(items)])]:
                versions, items = walk(versions, depth + 1), walk(items, depth + 1)
                if isinstance(versions, dict) and isinstance(items, dict):
                    state: Any = OrderedDict(items)
                    state._metadata = OrderedDict(versions)
                    return state
        raise CheckpointError(f"the file's structure holds what flow.save doesn't write: {shortened(v)}")

    try:
        return walk(form, 0)
    except CheckpointError:
        raise
    except (WeftError, TypeError) as cause:  # an unknown dtype, a parameter of ints, a set of lists
        raise CheckpointError(f"the file's structure is invalid: {cause}") from None


def _is_item(pair: Any) -> bool:
    """Whether JSON is a (key, value) pair."""
    return isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], (list, dict))
