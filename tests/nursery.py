"""Forks ranks: a process that has imported Weft once, and done nothing yet, becomes as many ranks as are asked for.

A line of JSON on stdin, {"target": "file.py:function", "args": [...], "ranks": [{"env": {...}, "log": path}, ...]}, is
answered with the ranks' process ids, and later with a line [rank, wait status] for each. A rank with "errors", another
path, keeps its standard error there. With the word "emulated", they have emulated CUDA devices.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path

import pytest  # noqa: F401  (what tests' files import)
import torch._dynamo  # noqa: F401  (what torch.optim imports)

sys.path[0] = str(Path(__file__).parents[1])  # as for the tests themselves: this folder has a `bench`, too
if "emulated" in sys.argv:
    from tests import emulated

    emulated.install()

import weft  # noqa: E402, F401
from weft.launch.call import main  # noqa: E402
from weft.launch.processes import follow  # noqa: E402

KEPT = ("log", "errors")


def become(parent: int, rank: dict, target: str, args: list[str]) -> None:
    """End as the interpreter would: with a traceback and exit functions."""
    os.environ.update(rank["env"])
    os.setsid()
    follow(parent)
    log, *errors = (os.open(rank[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in KEPT if name in rank)
    for standard, kept in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, errors[0] if errors else log)):
        os.dup2(kept, standard)
    code = 0
    try:
        main(target, *args)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:
            pass  # it came with the error: the interpreter, too, prints that one
        sys.last_value = error
        traceback.print_exc()
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def nurse() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the tests' own process inherited
    parent = os.getpid()
    gc.collect()
    gc.freeze()  # each rank's first collection would walk torch, and copy the memory that it shares with the others
    for line in sys.stdin:
        order = json.loads(line)
        children = {}
        for number, rank in enumerate(order["ranks"]):
            child = os.fork()
            if child == 0:
                become(parent, rank, order["target"], order["args"])
            children[child] = number
        print(json.dumps(list(children)), flush=True)
        while children:
            child, status = os.wait()
            print(json.dumps([children.pop(child), status]), flush=True)


if __name__ == "__main__":
    nurse()
