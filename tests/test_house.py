"""What holds of every source file, read from its syntax tree; the layers themselves are import-linter's to hold."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "weft").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LAYERS = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
FOLDERS = [folder for layer in LAYERS for folder in layer.split(" | ")]
LONGEST = 500  # lines: a hint; what counts is the complexity of functions, which ruff limits


@dataclass(frozen=True)
class Rule:
    """Names that only some places may use. A place is a path below weft/, a folder's ending in a slash."""

    names: tuple[str, ...]
    places: tuple[str, ...]
    why: str

    def forbids(self, name: str, place: str) -> bool:
        named = any(name == n or name.startswith(f"{n}.") for n in self.names)
        return named and not any(place.startswith(p) for p in self.places)


RULES = [
    Rule(
        ("torch.distributed",),
        ("transport/", "launch/"),
        "ranks talk through a transport, so that threads, shared memory and c10d are interchangeable",
    ),
    Rule(
        ("torch.ops", "torch.nn.functional"),
        ("ops/",),
        "a kernel called elsewhere has no gradient, no layout and no place in a graph",
    ),
    Rule(
        ("threading.Thread", "threading.Timer", "_thread", "concurrent.futures", "multiprocessing.pool"),
        ("vm/", "runtime/executor.py", "data/", "transport/", "launch/", "plan/scratch.py"),
        "everything else decides purely, and is tested without threads",
    ),
    Rule(
        ("pickle", "_pickle", "cloudpickle", "dill", "shelve", "marshal"),
        ("interop/torch_files.py",),  # of which a program asks it: torch.load(weights_only=False)
        "bytes from a file or a socket must not be able to run code",
    ),
]
OBJECT_COLLECTIVES = ("_object", "_object_list")  # c10d's send pickles


def imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What an import binds: the name in this file and the dotted name it stands for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name, alias.name
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def dotted(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return owner and f"{owner}.{node.attr}"
    return None


def used(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Every dotted name that a file imports or reaches through what it imports, with its line."""
    names: dict[str, str] = {}
    for node in nodes:
        for name, target in imported(node):
            names[name] = target
            yield getattr(node, "lineno", 0), target
    for node in nodes:
        reached = dotted(node) if isinstance(node, ast.Attribute) else None
        if reached:
            first, _, rest = reached.partition(".")
            yield node.lineno, f"{names.get(first, first)}.{rest}"


def breaches(place: str, tree: ast.Module) -> Iterator[str]:
    """How a file breaks the rules about names, about imports and about loading."""
    nodes = [*ast.walk(tree)]
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for line, name in used(nodes):
        for rule in RULES:
            if rule.forbids(name, place):
                allowed = " or ".join(rule.places) or "no file"
                yield f"{place}:{line}: {name} belongs in {allowed}: {rule.why}"
        if name.startswith("torch.distributed.") and name.endswith(OBJECT_COLLECTIVES):
            yield f"{place}:{line}: {name} pickles; send tensors, or bytes through the control plane"
        if name == "weft" or (name.startswith("weft.") and name.split(".")[1] not in FOLDERS):
            yield f"{place}:{line}: {name} is the root package, which is for users; import from the folder that has it"
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if any(f.lineno <= node.lineno <= (f.end_lineno or 0) for f in functions):
                yield f"{place}:{node.lineno}: an import in a function hides a dependency from the layers"
        if isinstance(node, ast.Call):
            name = dotted(node.func) or ""
            safe = any(k.arg == "weights_only" and getattr(k.value, "value", 0) is True for k in node.keywords)
            if name == "torch.load" and not safe:
                yield f"{place}:{node.lineno}: torch.load unpickles; say weights_only=True"
            if name.rpartition(".")[2] in ("import_module", "__import__"):
                literal = ast.unparse(node.args[0]) if node.args else ""
                if "weft" in literal:
                    yield f"{place}:{node.lineno}: {name}({literal}) hides a dependency from the layers"


def test_source_files_keep_the_house_rules() -> None:
    found: list[str] = []
    for path in SOURCES:
        text, place = path.read_text(), path.relative_to(ROOT / "weft").as_posix()
        found += sorted(set(breaches(place, ast.parse(text))))
        lines = len(text.splitlines())
        if lines > LONGEST:
            found.append(f"{place}: {lines} lines; a file longer than {LONGEST} is two files")
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("job/x.py", "import torch.distributed as dist"),
        ("job/x.py", "from torch import distributed"),
        ("job/x.py", "import torch\ntorch.distributed.barrier()"),
        ("vm/x.py", "import torch.nn.functional as F"),
        ("vm/x.py", "import torch\ntorch.ops.aten.relu(1)"),
        ("runtime/bus.py", "import threading\nthreading.Thread()"),
        ("runtime/bus.py", "from threading import Thread as T"),
        ("runtime/bus.py", "from concurrent.futures import ThreadPoolExecutor"),
        ("transport/x.py", "import pickle"),
        ("transport/x.py", "import torch.distributed as d\nd.all_gather_object([], 1)"),
        ("checkpoint/x.py", "import torch\ntorch.load('f', weights_only=False)"),
        ("nn/x.py", "import weft as flow"),
        ("nn/x.py", "from weft import relu"),
        ("nn/x.py", "def f():\n    from weft.graph import Graph"),
        ("nn/x.py", "import importlib\nimportlib.import_module('weft.graph')"),
        ("nn/x.py", "graph = __import__(f'weft.{1}')"),
    ],
)
def test_each_rule_has_teeth(place: str, source: str) -> None:
    assert list(breaches(place, ast.parse(source)))


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("transport/c10d.py", "import threading\nimport torch.distributed as d\nd.barrier()\nthreading.Thread()"),
        ("runtime/executor.py", "from threading import Thread"),
        ("runtime/bus.py", "import threading\nthreading.Lock()"),
        ("ops/x.py", "import torch\ntorch.ops.aten.relu(1)"),
        ("graph/x.py", "from weft import nn\nfrom weft.core import sbp"),
        ("checkpoint/x.py", "import torch\ntorch.load('f', weights_only=True)"),
        ("launch/x.py", "import importlib\nimportlib.import_module(given)"),
    ],
)
def test_what_is_allowed_passes(place: str, source: str) -> None:
    assert not list(breaches(place, ast.parse(source)))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_box_of_the_drawing_stands_in_the_package(folder: str) -> None:
    file = ROOT / "weft" / f"{folder}.py"
    home = file if file.exists() else ROOT / "weft" / folder / "__init__.py"
    assert home.exists(), f"the layers name {folder}, but weft/ has neither {folder}/ nor {folder}.py"
    assert ast.get_docstring(ast.parse(home.read_text())), f"{home} doesn't say what lives there"


def test_the_architecture_page_draws_the_layers_that_are_checked() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    block = re.search(r"```layers\n(.*?)```", page, re.DOTALL)
    assert block, "docs/architecture.md has no block tagged `layers`"
    assert [line.strip() for line in block[1].splitlines()] == LAYERS
    missing = [f for f in FOLDERS if f"`{f}`" not in page]
    assert not missing, f"docs/architecture.md doesn't say what happens in {missing}"


def test_every_dependency_has_its_line_of_why() -> None:
    page = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text()
    wanted = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"]
    names = [re.match(r"[\w-]+", line)[0] for line in wanted]  # type: ignore[index]
    assert not [n for n in names if f"| {n} |" not in page]


def test_the_version_is_said_once() -> None:
    root = ast.parse((ROOT / "weft" / "__init__.py").read_text())
    said = [
        node.value.value
        for node in root.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and "__version__" in ast.dump(node)
    ]
    assert said == [PROJECT["project"]["version"]]
