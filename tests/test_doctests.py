"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import weft
from weft.api import table

MODULES = ["weft", *(m.name for m in pkgutil.walk_packages(weft.__path__, "weft.") if not m.name.endswith("__main__"))]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", MODULES)
def test_doctests_of(name: str) -> None:
    module = importlib.import_module(name)
    before = {place: dict(names) for place, names in table.ADAPTERS.items()}
    failed, _ = doctest.testmod(module, extraglobs={"flow": weft}, optionflags=OPTIONS)
    for place, names in before.items():  # without what an example has registered
        table.ADAPTERS[place].clear()
        table.ADAPTERS[place].update(names)
    assert not failed, "the differences are printed above"
