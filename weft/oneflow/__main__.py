"""`python -m weft.oneflow train.py arguments`: run a program written for OneFlow on Weft; `-m module`, as in Python.

Without a program, it prints a folder that does the same when it is put on PYTHONPATH.
"""

from __future__ import annotations

import sys

from weft.core.errors import ArgumentError
from weft.launch.program import code_of, main_module
from weft.oneflow import FOLDER, for_children

USAGE = """usage: python -m weft.oneflow [-m] program.py [arguments]
       export PYTHONPATH=$(python -m weft.oneflow)    # then python -m oneflow.distributed.launch and the like"""


def main(argv: list[str]) -> None:
    if not argv:
        return print(FOLDER)
    as_module = argv[0] == "-m"
    program = argv[as_module:]
    if not program or program[0].startswith("-"):
        sys.exit(USAGE)
    for_children()
    try:
        code, place, package = code_of(program[0], as_module)
    except ArgumentError as mistake:
        sys.exit(f"python -m weft.oneflow: {mistake}")
    sys.argv = [place, *program[1:]]
    sys.modules["__main__"] = made = main_module(place, package)
    exec(code, made.__dict__)


if __name__ == "__main__":
    main(sys.argv[1:])
