"""The stubs say what the tables bind, and a type checker makes of them what a user expects."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import weft as flow
from tools import stubs
from weft.api import table
from weft.ops import OPS, out_argument

CONVERSIONS = {name for name, op in OPS.items() if op.conversion}
PROGRAM = Path(__file__).with_name("typed_program.py")


@pytest.mark.pinned
def test_the_stubs_are_what_the_tables_say_now() -> None:
    assert not stubs.stale(), "run `make stubs`"


@pytest.mark.parametrize("name", stubs.STUBS)
def test_a_stub_is_python(name: str) -> None:
    assert ast.get_docstring(ast.parse((stubs.ROOT / name).read_text()))


def given(path: str) -> list[tuple[str, str, str]]:
    """What a stub gives on: from where, its name there, and here."""
    tree = ast.parse((stubs.ROOT / path).read_text())
    froms = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module != "builtins"]
    return [(node.module or "", alias.name, alias.asname) for node in froms for alias in node.names if alias.asname]


def defined(path: str) -> set[str]:
    tree = ast.parse((stubs.ROOT / path).read_text())
    defs = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    aliases = {ast.unparse(node.targets[0]) for node in ast.walk(tree) if isinstance(node, ast.Assign)}
    return defs | aliases | {public for _, _, public in given(path)}


@pytest.mark.parametrize("path", ["_C.pyi", "nn/functional.pyi", "nn/modules.pyi", "special.pyi", "fft.pyi"])
def test_what_a_stub_gives_on_is_the_same(path: str) -> None:
    module: Any = flow
    for part in path.removesuffix(".pyi").split("/"):
        module = getattr(module, part)
    assert given(path)
    for home, name, public in given(path):
        assert getattr(sys.modules[home], name) is getattr(module, public), public


def test_every_public_function_and_method_is_declared() -> None:
    assert {name for name, _ in table.listed("flow")} <= defined("__init__.pyi")
    assert {name for name, _ in table.listed("neural")} <= defined("nn/functional.pyi")
    assert {name for name, _ in table.listed("tensor")} <= defined("tensor/methods.pyi") | defined("tensor/tensor.py")
    ours = {name for name, op in OPS.items() if op.built_in and name in dir(flow._C)}
    assert ours - CONVERSIONS <= defined("_C.pyi")


class Seen(BaseException):
    """Raised where `out` is looked at, so that nothing else of the call matters."""


@pytest.mark.parametrize("path", ["", "linalg", "special"])
def test_what_is_said_to_take_out_takes_it(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(name: str, names: Collection[str], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        if "out" in kwargs:
            raise Seen
        return {}, kwargs

    monkeypatch.setattr(out_argument, "taken", taken)
    tree, some, said = ast.parse((stubs.ROOT / f"{path or '__init__'}.pyi").read_text()), flow.ones(2), 0
    for node in tree.body:
        own = {"normal", "randint_like"}  # has its own; looks at the numbers first
        if (
            isinstance(node, ast.FunctionDef)
            and "out" in {a.arg for a in node.args.kwonlyargs}
            and node.name not in own
        ):
            given, said = [some] * (len(node.args.args) - len(node.args.defaults)), said + 1
            with pytest.raises(Seen):
                getattr(getattr(flow, path) if path else flow, node.name)(*given, out=some)
    assert said >= 4


def test_a_users_program_is_checked_as_a_user_expects() -> None:
    command = [sys.executable, "-m", "pyright", str(PROGRAM)]
    checked = subprocess.run(command, cwd=stubs.ROOT.parent, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
