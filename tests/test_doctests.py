"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import weft
from weft.api import table

HOME = Path(weft.__file__).parent
MODULES = ["weft", *(m.name for m in pkgutil.walk_packages(weft.__path__, "weft.") if not m.name.endswith("__main__"))]
FILES = [p.relative_to(HOME.parent).with_suffix("") for p in sorted(HOME.rglob("*.py")) if ">>>" in p.read_text()]
TELLING = [".".join(path.parts).removesuffix(".__init__") for path in FILES]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", TELLING)
def test_doctests_of(name: str) -> None:
    module = importlib.import_module(name)
    before = {place: dict(names) for place, names in table.ADAPTERS.items()}
    failed, _ = doctest.testmod(module, extraglobs={"flow": weft}, optionflags=OPTIONS)
    for place, names in before.items():  # without what an example has registered
        table.ADAPTERS[place].clear()
        table.ADAPTERS[place].update(names)
    assert not failed, "the differences are printed above"


def test_doctests_that_are_composed() -> None:
    """Of functions whose docstrings stand in no file; every other module is only imported."""
    composed = []
    for name in set(MODULES) - set(TELLING):
        values = vars(importlib.import_module(name)).values()
        composed += [name] * any(">>>" in str(f.__doc__) and f.__module__ == name for f in values if callable(f))
    assert composed
    for name in composed:
        test_doctests_of(name)
