"""`python -m weft.launch --nproc_per_node K program.py arguments`: start a program's ranks and watch them."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from typing import NoReturn, cast

from weft.core.errors import ArgumentError, RankError
from weft.launch.hosts import Hosts
from weft.launch.processes import GRACE, Processes, blamed, redirected, said, variables_of
from weft.launch.program import code_of, main_module
from weft.launch.threads import spawn_threads
from weft.transport import BACKENDS
from weft.transport.rendezvous import serve
from weft.transport.roll import run_of, tell_end
from weft.transport.secret import Signed, fresh, known


def parser() -> argparse.ArgumentParser:
    it = argparse.ArgumentParser(
        prog="python -m weft.launch",
        description="Start a program's ranks on this host; when one fails, end the others.",
    )
    it.add_argument(*either("nproc_per_node"), type=int, default=1, metavar="K", help="ranks on this host")
    it.add_argument("--nnodes", type=int, default=1, metavar="N", help="hosts")
    it.add_argument(*either("node_rank"), type=int, default=0, metavar="R", help="which of the hosts this is")
    it.add_argument(*either("master_addr"), default="127.0.0.1", metavar="A", help="host 0, where the ranks meet")
    it.add_argument(*either("master_port"), type=int, default=0, metavar="P", help="0: any free one, on one host")
    it.add_argument("-m", "--module", action="store_true", help="the program is a module's name, as in python -m")
    it.add_argument(*either("no_python"), action="store_true", help="the program is run as it is, not by Python")
    it.add_argument("--redirect_stdout_and_stderr", action="store_true", help="into files below --logdir")
    it.add_argument("--logdir", default="log", metavar="D")
    it.add_argument("--transport", choices=("auto", *BACKENDS), help="how ranks reach each other")
    it.add_argument("--threads", action="store_true", help="the ranks are threads of one process")
    it.add_argument("program")
    it.add_argument("arguments", nargs=argparse.REMAINDER)
    return it


def either(name: str) -> tuple[str, str]:
    """An option in OneFlow's writing and in torchrun's."""
    return f"--{name}", f"--{name.replace('_', '-')}"


def main(argv: Sequence[str] | None = None) -> int:
    given = parser().parse_args(argv)
    if given.nproc_per_node < 1 or not 0 <= given.node_rank < given.nnodes:
        raise ArgumentError(
            "--nproc_per_node is 1 or more, and --node_rank from 0 to --nnodes - 1; got "
            f"--nproc_per_node {given.nproc_per_node} --nnodes {given.nnodes} --node_rank {given.node_rank}"
        )
    if not 0 <= given.master_port < 1 << 16:
        raise ArgumentError(f"--master_port is a number up to 65535; got {given.master_port}")
    if given.threads:
        return run_threads(given)
    return run_processes(given)


def run_processes(given: argparse.Namespace) -> int:
    if given.nnodes > 1 and not given.master_port:
        raise ArgumentError("several hosts meet at a port that all know: give each --master_port 29500, say")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    command = [] if given.no_python else [sys.executable, *(["-m"] if given.module else [])]
    command += [given.program, *given.arguments]
    host, port, store = given.master_addr, given.master_port, None
    if given.node_rank == 0:  # this launcher serves the store, so no rank has to outlive the others
        store = serve(host, port, 300)
        port = store.port
    n = given.nproc_per_node
    secret = known() if given.nnodes > 1 else fresh()
    run = run_of(store, secret) if store is not None else None
    hosts = Hosts(given.node_rank, given.nnodes, n, host, port, run) if given.nnodes > 1 else None
    told = [
        variables_of(
            i, n, given.node_rank, given.nnodes, host=host, port=port, secret=secret, transport=given.transport
        )
        for i in range(n)
    ]
    tell = hosts.ended if hosts is not None else partial(tell_end, cast(Signed, run))
    with contextlib.ExitStack() as files:
        folder = given.logdir if given.redirect_stdout_and_stderr else None
        processes = Processes(command, told, [redirected(folder, i, files) for i in range(n)])
        try:
            ends = processes.wait(enough=hosts and hosts.look, told=tell)
            failed = next((e for e in ends if e[1]), None)
            if hosts is not None and failed is not None:
                hosts.tell(failed[0], said(*failed).removeprefix(f"rank {failed[0]} "))
        except (KeyboardInterrupt, SystemExit) as stop:
            if hosts is not None:
                hosts.tell(hosts.first, "was interrupted, with all others of its host")
            processes.signal(signal.SIGINT)
            processes.end(GRACE / 2)
            if hosts is not None:
                hosts.end(1.0)
            print("weft.launch: interrupted; every rank was ended", file=sys.stderr, flush=True)
            return stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
        except BaseException:
            processes.end(0)
            if hosts is not None:
                hosts.end(0.0)
            raise
        processes.end()
    if hosts is not None:
        hosts.end(3 * GRACE)
    if failed is None and (hosts is None or hosts.failure is None):
        return 0
    rank, code = failed or (0, 1)
    words = blamed(run, rank, code)[1] if hosts is None else hosts.failure
    where = f"; its output is in {given.logdir}/" if folder else ""
    print(f"weft.launch: {words}; every other rank was ended{where}", file=sys.stderr, flush=True)
    return code if code > 0 else 128 - code


def _stop(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def run_threads(given: argparse.Namespace) -> int:
    if given.nnodes > 1 or given.no_python or given.redirect_stdout_and_stderr:
        raise ArgumentError("--threads runs a Python program's ranks in this one process; it takes -m and nothing more")
    code, place, package = code_of(given.program, given.module)
    sys.argv = [place, *given.arguments]
    # Each rank has its own `__main__`; pickles and the like, which look for the one and only, find rank 0's.
    mains = [main_module(place, package) for _ in range(given.nproc_per_node)]
    sys.modules["__main__"] = mains[0]
    free = iter(mains)

    def run() -> None:
        with contextlib.suppress(_Done):
            try:
                exec(code, next(free).__dict__)
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise RankError(f"the program ended with {end.code!r}") from end
                raise _Done from None

    try:
        spawn_threads(given.nproc_per_node, run)
    except KeyboardInterrupt:
        print("weft.launch: interrupted; every rank was ended", file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(130)  # a rank may be deep in a kernel; its thread ends with the process
    return 0


class _Done(Exception):
    """A rank called sys.exit() and all is well."""


if __name__ == "__main__":
    sys.exit(main())
