"""By which names a parameter goes: PyTorch's function's own, read off its documents here, and OneFlow's; no others."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections import defaultdict
from typing import Any

import pytest
from torch.overrides import get_testing_overrides

import weft as flow
from weft.api import table
from weft.core.errors import ArgumentError
from weft.nn import functional as F
from weft.ops import OPS
from weft.ops.keywords import NAMESPACES, NUMPY, OTHERS, place_of, signatures
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.layouts import replaced

PLACES = {"flow": flow, "neural": F, "tensor": flow.Tensor}
NOT_TOLD = {  # what torch takes, and its documents don't say
    "dropout": "train", "alpha_dropout": "train", "feature_alpha_dropout": "train",
    "result_type": "tensor other scalar scalar1 scalar2",
    "view": "size", "hsplit": "indices sections", "vsplit": "indices sections", "dsplit": "indices sections",
    "unsafe_split_with_sizes": "split_sizes", "embedding": "indices", "copy_": "other", "fill": "input",
    "isin": "element test_element", "tensor_split": "sections indices tensor_indices_or_sections",
    "scatter": "value", "scalar_tensor": "s",
    "record_stream": "s", "resize_as_": "the_template", "_fake_quantize_learnable_per_tensor_affine": "input",
    "_fake_quantize_learnable_per_channel_affine": "input",
}  # fmt: skip


@functools.cache
def overrides() -> dict[str, set[str]]:
    """What torch's own list of functions says of their parameters."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for f, told in get_testing_overrides().items():
        found[getattr(f, "__name__", "")] |= set(inspect.signature(told).parameters)
    return found


def documented(name: str) -> set[str]:
    """The names that torch's documents give to the parameters of the functions of this name."""
    found = {*overrides().get(name, ()), *OTHERS.get(name, ()), *NOT_TOLD.get(name, "").split()}
    for home in NAMESPACES:
        f = getattr(home, name, None)
        for call in re.findall(rf"\b{name}\((.*?)\) *(?:->|\n|$)", (getattr(f, "__doc__", "") or "")[:2000], re.DOTALL):
            found |= {word.split("=")[0].split(":")[0].strip(" *\n[]") for word in call.split(",")}
        with contextlib.suppress(TypeError, ValueError):
            found |= set(inspect.signature(f).parameters) if f is not None else set()  # type: ignore[arg-type]
    return found | {other for n in found | {"input"} for other in NUMPY.get(n, ())} | {"input"} if found else found


def own(f: Any) -> list[list[str]]:
    return [list(inspect.signature(g).parameters) for g in getattr(f, "functions", (f,))]


FUNCTIONS = {(place, name): f for place in PLACES for name, f in table.listed(place)}
KEYWORDS = sorted({n for f in FUNCTIONS.values() for names in own(f) for n in names} | {"inputs", "end", "lambd", "x1"})


@pytest.mark.parametrize("place", PLACES)
def test_a_parameter_goes_by_the_names_that_it_has_elsewhere_and_by_no_others(place: str) -> None:
    foreign = []
    for (where, name), f in FUNCTIONS.items():
        if where == place:
            told = documented(name) | documented(name.removesuffix("_"))
            read = {k for placed, _ in signatures(name) for given in placed for k in given}  # others nobody knows
            for names in own(f):
                places = {k: place_of(name, k, names) for k in read - told - set(names)}
                foreign += [f"{name}({names[at]}) as {k}" for k, at in places.items() if at is not None]
    assert not foreign, "\n".join(foreign)


SAMPLED = [(name, op) for name, op in OPS.items() if op.sample_function is not None and not op.writes and not op.random]


@pytest.mark.parametrize("start", range(4))
def test_a_call_by_another_functions_name_is_refused(start: int) -> None:
    """Each parameter of each op in turn, under names that others have for theirs."""
    answered = []
    for at, (name, op) in enumerate(SAMPLED[start::4]):
        f = next((f for where in PLACES if (f := table.lookup(where, name)) is not None), None)
        cases = registry.cases(op)
        if f is None or not cases or own(f) != [list(op.names)]:
            continue
        held = registry.tensors(op, cases[0])
        args = replaced(op, cases[0], [of_torch(t.clone()) for t in held])
        given = dict(zip(op.names, args, strict=False))
        told = documented(name) | set(op.names) | {"out", "inplace", "layout", "pin_memory"}
        foreign = [k for k in KEYWORDS if k not in told][at % 7 :: 41]
        for k, (n, value) in zip(foreign, list(given.items()) * len(foreign), strict=False):
            try:
                f(**{**{m: v for m, v in given.items() if m != n}, k: value})
            except ArgumentError as error:
                assert name in str(error) and "unexpected argument" in str(error)
            else:
                answered.append(f"{name}({n}) as {k}")
    assert not answered, "\n".join(answered)


@pytest.mark.parametrize(
    "call",
    """flow.sub(x, end=x); F.elu(x, lambd=2.); flow.add(x, y=x); flow.gather(x, 0, indices=i);
    flow.sum(x, dims=0); F.softmax(x, dims=0); flow.lerp(x, other=x, weight=.5); flow.mv(m, mat2=x); flow.mm(m, b=m);
    flow.cumsum(x, dims=0); flow.pow(x, y=2); flow.matmul(m, b=m); F.mse_loss(logits=x, target=x); x.view(sizes=(2,));
    F.relu(tensor=x); flow.stack(tensor=[x]); flow.hardshrink(x, alpha=.5)""".split(";"),  # noqa: SIM905
)
def test_what_only_a_table_for_all_functions_took_is_refused(call: str) -> None:
    space = {"flow": flow, "F": F, "x": flow.ones(2), "m": flow.ones(2, 2), "i": flow.tensor([0])}
    with pytest.raises(ArgumentError, match=r"unexpected (keyword )?argument"):
        eval(call.strip(), space)
