"""Layouts of a module's tensors by name: patterns with an sbp each, or other libraries' tensor-parallel plans.

    {"*.q_proj.weight": S(0), "*.o_proj.weight": "S(1)"}       patterns over paths; unmatched tensors are broadcast
    {"layers.*.self_attn.q_proj": "colwise", ...}              transformers' plan: model.config.base_model_tp_plan
    {"mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel()}       torch's, of distributed.tensor.parallel

A plan names modules, and whether output features (colwise) or input features (rowwise) are split. It only determines
the layouts of weights; communication follows from them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from weft.core.errors import SbpError
from weft.core.placement import Placement
from weft.core.program_line import warn
from weft.core.reading import nearest
from weft.core.sbp import NdSbp, Sbp, broadcast, parse, split
from weft.tensor.tensor import Tensor

Rule = Callable[[str, Tensor], Any]
SPLITS: Final = re.compile("colwise|rowwise")
WORD: Final = re.compile("[a-z][a-z0-9_]{2,}")  # what else a plan says is broadcast
SAID: Final = ("colwise", "rowwise", "split(0)", "broadcast", "partial_sum")
INPUTS_FIRST: Final = ("Embedding", "Conv1D")  # layers with weights of [inputs, outputs]; a Linear's is the transpose


def by_names(module: Any, rules: Mapping[str, Any], placement: Placement | None) -> Rule:
    """The layout of a tensor by its path: that of the first pattern that matches."""
    rules = {pattern: _read(pattern, said) for pattern, said in rules.items()}
    unused = set(rules)

    def rule(path: str, t: Tensor) -> Any:
        for pattern, said in rules.items():
            if not _fits(path, pattern, said):
                continue
            unused.discard(pattern)
            if isinstance(said, Sbp) or (isinstance(said, (tuple, list)) and not isinstance(said, str)):
                return said
            return _planned(module, path, t, said, placement)
        return broadcast if placement is None else (broadcast,) * placement.ndim

    for path, t in (*module.named_parameters(), *module.named_buffers()):
        rule(path, t)
    if rules and len(unused) == len(rules):
        paths = [path for path, _ in module.named_parameters()]
        raise SbpError(
            f"to_global: no tensor of this {module._get_name()} matches {sorted(unused)}; its parameters are called "
            f'{", ".join(paths[:4])}{", ..." if len(paths) > 4 else ""}. A pattern must match a whole path: "*.weight"'
        )
    idle = sorted(pattern for pattern in unused if isinstance(rules[pattern], (Sbp, tuple, list)))
    if idle:  # of a plan some fit other models of its kind
        warn(f"to_global: {idle} fit no tensor of this {module._get_name()}, or others before them fit first")
    return rule


def _read(pattern: str, said: Any) -> Any:
    """An sbp, perhaps written as text, "S(0)", or what a plan says: a word, or a style of torch's."""
    near = ""
    if isinstance(said, str):
        with contextlib.suppress(SbpError):
            return parse(said)
        near = nearest(said, SAID)
        if SPLITS.search(said) or (WORD.fullmatch(said) and not near):
            return said
    elif isinstance(said, (Sbp, tuple, list)) or hasattr(said, "_apply"):
        return said
    raise SbpError(
        f"to_global: {pattern!r} goes to {said!r}, which is neither an sbp, flow.sbp.split(0) or 'S(0)', say, nor what "
        f"plans say, such as 'colwise'{near}"
    )


def _fits(path: str, pattern: str, said: Any) -> bool:
    if isinstance(said, (Sbp, tuple, list)):
        return fnmatchcase(path, pattern)
    whole = f".{path}"  # a plan may be for a part of the model, and names modules or parameters
    return any(fnmatchcase(whole, f"*.{pattern}{end}") for end in ("", ".weight", ".bias"))


def _planned(module: Any, path: str, t: Tensor, said: Any, placement: Placement | None) -> NdSbp:
    word = said if isinstance(said, str) else type(said).__name__.lower()
    owner = module.get_submodule(path.rpartition(".")[0])
    outputs, inputs = (-1, -2) if owner._get_name() in INPUTS_FIRST else (-2, -1)
    dim = None
    if "colwise" in word:
        dim = outputs % t.ndim if t.ndim > 1 else 0
    elif "rowwise" in word and t.ndim > 1:
        dim = inputs % t.ndim
    last = broadcast if dim is None else split(dim)
    ndim = 1 if placement is None else placement.ndim
    return (*(broadcast,) * (ndim - 1), last)
