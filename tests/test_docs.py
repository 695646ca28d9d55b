"""Every block tagged `python` in the documents runs.

The blocks of one file run in order and in one namespace, in an empty folder. A block that starts with `# ranks: N` runs
on N ranks, as threads; several of them in a row are one program, so that a page may stop to explain. Blocks with `>>>`
are compared with what they print.
"""

from __future__ import annotations

import doctest
import itertools
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import Start
from weft import launch
from weft.launch import spawn_threads
from weft.launch.processes import Ended

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
PROMPT = re.compile(r"^>>> ", re.MULTILINE)
RANKS = re.compile(r"# ranks: (\d+)\n")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    code: str

    @property
    def ranks(self) -> int:
        found = RANKS.match(self.code)
        return int(found[1]) if found else 0

    def run(self, names: dict[str, Any]) -> None:
        if PROMPT.search(self.code):
            test = doctest.DocTestParser().get_doctest(self.code, names, self.page, self.page, self.line)
            doctest.DebugRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
                test, clear_globs=False
            )
            names.update(test.globs)
            return
        # Blank lines before the code make tracebacks, and errors that quote a line, point into the page.
        exec(compile("\n" * self.line + self.code, self.page, "exec"), names)


def blocks(path: Path) -> Iterator[Block]:
    text = path.read_text()
    for found in FENCE.finditer(text):
        indent = len(found[1])
        code = "".join(line[indent:] for line in found[2].splitlines(keepends=True)) if indent else found[2]
        yield Block(str(path), text.count("\n", 0, found.start(2)), code)


PAGES = {
    str(path.relative_to(ROOT)): list(blocks(path))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}


@pytest.fixture
def forked(world: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages spawn ranks that are forked: that they may start from nothing is shown in tests/launch."""

    def spawn(n: int, target: str, *args: str, transport: str = "auto", check: bool = True) -> list[Ended]:
        done = world(f"{Path.cwd()}/{target}", n, transport, *args)
        if check:
            done.well()
        return [Ended(rank, done.ended[rank][1], done.said(rank), done.said(rank)) for rank in range(n)]

    monkeypatch.setattr(launch, "spawn", spawn)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("page", [page for page, found in PAGES.items() if found])
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked: None) -> None:
    monkeypatch.chdir(tmp_path)
    linecache.checkcache()
    names: dict[str, Any] = {"__name__": "__main__"}

    def on_several(program: list[Block]) -> None:
        own = dict(names)
        for block in program:
            block.run(own)

    def alone() -> None:
        for ranks, group in itertools.groupby(PAGES[page], key=lambda block: block.ranks):
            if ranks:
                spawn_threads(ranks, on_several, list(group))
            else:
                for block in group:
                    block.run(names)

    spawn_threads(1, alone)  # in a world of its own, in which nobody has counted graphs yet


def test_blocks_are_found_where_they_stand(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# x\n\n```python\na = 1\n```\n\n```text\nb\n```\n\n- c\n\n  ```python\n  # ranks: 2\n  d = 1\n  ```\n"
    )
    first, second = blocks(page)
    assert (first.code, first.line, first.ranks) == ("a = 1\n", 3, 0)
    assert (second.code, second.line, second.ranks) == ("# ranks: 2\nd = 1\n", 13, 2)
    with pytest.raises(doctest.DocTestFailure):
        Block("page", 0, ">>> 1 + 1\n3\n").run({})
