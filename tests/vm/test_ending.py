"""What failed in work that nobody read fails the program, however it ends."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from tests.graphs import Calls
from weft import nn
from weft.core.errors import IndexingError
from weft.launch import spawn_threads

PROGRAM = """
import atexit
import weft as flow
from weft import nn

class Rows(nn.Graph):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 2)

    def build(self, i):
        return self.table(i)

atexit.register(print, "others are called", flush=True)
rows = Rows()
"""
GOOD, BAD = "rows(flow.tensor([1])).numpy()\n", "rows(flow.tensor([9]))\n"
CAUGHT = "try:\n    rows(flow.tensor([1])).numpy()\nexcept Exception:\n    pass\n"


@pytest.mark.parametrize(
    ("program", "code"),
    [(GOOD + BAD, 1), (BAD + "del rows\n", 1), (GOOD, 0), (BAD + CAUGHT, 0)],
    ids=["unread", "dropped", "none", "told by the next"],
)
def test_a_failure_that_nobody_read_is_the_programs(program: str, code: int, world: Any) -> None:
    done = world("run", 1, "local", PROGRAM + program)
    assert done.ended[0][1] == code
    assert ("embedding: index 9" in done.said(0)) == (code == 1) and "others are called\n" in done.said(0)


def run(program: str) -> None:
    exec(program, {"__name__": "__main__"})


def test_a_failure_that_nobody_read_is_the_ranks() -> None:
    with pytest.raises(IndexingError, match="index 9"):
        spawn_threads(1, lambda: Calls(nn.Embedding(4, 2))(flow.tensor([9])) is None)
