"""Nested dicts, lists and tuples of tensors, numbers and strings, as JSON that names the tensors, and back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from weft.core import dtype as dtypes
from weft.core.dtype import DType
from weft.core.errors import CheckpointError
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

TENSOR, TUPLE, ITEMS, DTYPE, VERSIONS = "$tensor", "$tuple", "$items", "$dtype", "$versions"
MARKS = (TENSOR, TUPLE, ITEMS, DTYPE, VERSIONS)


def described(value: Any) -> tuple[Any, dict[str, Tensor]]:
    """JSON for a structure, and the tensors in it by name. A tensor that stands in several places is kept once."""
    tensors: dict[str, Tensor] = {}
    names: dict[int, str] = {}

    def name_of(t: Tensor, path: str) -> str:
        known = names.get(id(t))
        if known is not None:
            return known
        name, n = path or "tensor", 1
        while name in tensors:
            n += 1
            name = f"{path}#{n}"
        names[id(t)] = name
        tensors[name] = t
        return name

    def walk(v: Any, path: str) -> Any:
        if isinstance(v, Tensor):
            form: dict[str, Any] = {TENSOR: name_of(v, path)}
            if isinstance(v, Parameter):
                form["parameter"] = v.requires_grad
            if v.dtype.is_complex:
                raise CheckpointError(
                    f"can't save `{path or 'this'}`: the file's format has no {v.dtype}; save real and imaginary parts"
                )
            return form
        if v is None or isinstance(v, (bool, int, float, str)):
            return v
        if isinstance(v, DType):
            return {DTYPE: v.name}
        versions = getattr(v, "_metadata", None)
        if versions and any(m.get("version", 1) != 1 for m in versions.values()):  # a module's state, of a later form
            return {VERSIONS: [walk(dict(versions), ""), walk(dict(v), path)]}
        if isinstance(v, Mapping):
            inside = f"{path}." if path else ""
            if all(isinstance(k, str) and k not in MARKS for k in v):
                return {k: walk(x, f"{inside}{k}") for k, x in v.items()}
            for k in v:
                if not isinstance(k, (str, int, bool, float)) and k is not None:
                    raise CheckpointError(
                        f"can't save `{path or 'the dict'}`: a key is a {type(k).__name__}, not a string or number"
                    )
            return {ITEMS: [[k, walk(x, f"{inside}{k}")] for k, x in v.items()]}
        if isinstance(v, (list, tuple)):
            inside = f"{path}." if path else ""
            parts = [walk(x, f"{inside}{i}") for i, x in enumerate(v)]
            return {TUPLE: parts} if isinstance(v, tuple) else parts
        raise CheckpointError(
            f"can't save `{path or 'this'}`: it is a {type(v).__name__}. A checkpoint holds tensors, numbers, strings, "
            "None, and dicts, lists and tuples of them; save model.state_dict() instead of the model, say"
        )

    return walk(value, ""), tensors


def rebuilt(form: Any, tensor: Callable[[str], Tensor]) -> Any:
    """The structure that JSON describes; `tensor` gives each tensor by name, once."""
    known: dict[tuple[str, Any], Tensor] = {}

    def walk(v: Any) -> Any:
        if isinstance(v, list):
            return [walk(x) for x in v]
        if not isinstance(v, dict):
            return v
        if TENSOR in v:
            key = (v[TENSOR], v.get("parameter"))
            if key not in known:
                t = tensor(v[TENSOR])
                known[key] = t if key[1] is None else Parameter(t, requires_grad=key[1])
            return known[key]
        if TUPLE in v:
            return tuple(walk(x) for x in v[TUPLE])
        if VERSIONS in v:
            versions, items = map(walk, v[VERSIONS])
            state: Any = OrderedDict(items)
            state._metadata = OrderedDict(versions)
            return state
        if ITEMS in v:
            return {k: walk(x) for k, x in v[ITEMS]}
        if DTYPE in v:
            return dtypes.named(v[DTYPE])
        return {k: walk(x) for k, x in v.items()}

    return walk(form)
