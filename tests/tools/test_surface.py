"""The table of public names is what the names are, and what torch is installed doesn't change it."""

from __future__ import annotations

import inspect

import pytest
import torch

import weft as flow
from tools import surface
from weft.api import table
from weft.api.surface import NOWHERE, PUBLIC, rows
from weft.ops import OPS


@pytest.mark.pinned
def test_the_table_says_what_the_names_are() -> None:
    assert surface.main("--check") is None
    assert surface.undecided() == []


def test_every_name_stands_where_the_table_says() -> None:
    places = surface.PLACES
    lacking = [
        f"{p}.{r.name}" for r in rows() if r.home != NOWHERE for p in r.places if not hasattr(places[p][0], r.name)
    ]
    assert not lacking
    assert len({(r.name, p) for r in rows() for p in r.places}) == sum(len(r.places) for r in rows())


def test_another_torch_changes_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = next(n for n in OPS if n not in PUBLIC["flow"] and not hasattr(torch, n))
    monkeypatch.setattr(torch, hidden, torch.relu, raising=False)
    monkeypatch.delattr(torch, "erfinv")
    listed = dict(table.listed("flow"))
    assert hidden not in listed and "erfinv" in listed


@pytest.mark.pinned
def test_a_name_without_a_row_is_noticed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(table.ADAPTERS["flow"], "brand_new", flow.relu)
    monkeypatch.setattr(torch.Tensor, "newest_of_all", torch.relu, raising=False)
    assert "make stubs" in str(surface.main("--check"))
    assert capsys.readouterr().out == "new there: decide\n  tensor: newest_of_all\n"


OPEN = {"nn.Identity", "utils.data.StackDataset"}  # take whatever they are given


def test_every_name_says_what_it_takes() -> None:
    bare = set()
    for place, (ours, _) in surface.PLACES.items():
        for name, _ in surface.names(place):
            value = getattr(ours, name)
            if callable(value) and not (isinstance(value, type) and issubclass(value, Exception)):
                kinds = [p.kind for p in inspect.signature(value).parameters.values() if p.name != "self"]
                if kinds == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
                    bare.add(f"{place}.{name}")
    assert bare == OPEN
    assert str(inspect.signature(flow.nn.LazyLinear)).startswith("(out_features: int, bias: bool = True")
    assert list(inspect.signature(flow.nn.Hardtanh).parameters)[:3] == ["min_val", "max_val", "inplace"]
