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

import torch

from weft.core.errors import ArgumentError, RankError
from weft.core.log import LABELLED
from weft.launch.hosts import Hosts
from weft.launch.output import Output, labelled_threads, shown_of, streams_of
from weft.launch.processes import GRACE, Processes, blamed, said, variables_of
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
    counted = "ranks on this host: a number, cpu or gpu for as many as there are, auto for gpu, or cpu without any"
    it.add_argument(*either("nproc_per_node"), type=ranks_here, default=1, metavar="K", help=counted)
    it.add_argument("--nnodes", type=hosts_of, default=1, metavar="N", help="hosts")
    it.add_argument(*either("node_rank"), type=int, default=0, metavar="R", help="which of the hosts this is")
    it.add_argument(*either("master_addr"), default="127.0.0.1", metavar="A", help="host 0, where the ranks meet")
    it.add_argument(*either("master_port"), type=int, default=0, metavar="P", help="0: any free one, on one host")
    it.add_argument("-m", "--module", action="store_true", help="the program is a module's name, as in python -m")
    it.add_argument(*either("no_python"), action="store_true", help="the program is run as it is, not by Python")
    it.add_argument("--redirect_stdout_and_stderr", action="store_true", help="into files below --logdir")
    which = "1: stdout, 2: stderr, 3: both into files; or 0:3,1:2, by rank on this host"
    it.add_argument("-r", "--redirects", default="0", metavar="W", help=which)
    it.add_argument("-t", "--tee", default="0", metavar="W", help="as --redirects, and shown as well")
    it.add_argument(*either("local_ranks_filter"), metavar="R,R", help="ranks on this host that are shown; default all")
    it.add_argument("--logdir", "--log_dir", "--log-dir", default="log", metavar="D")
    it.add_argument(*either("no_label"), action="store_true", help="lines of ranks are shown without [rank 1]")
    it.add_argument("--transport", choices=("auto", *BACKENDS), help="how ranks reach each other")
    it.add_argument("--threads", action="store_true", help="the ranks are threads of one process")
    torchrun = it.add_argument_group("torchrun's")
    torchrun.add_argument("--standalone", action="store_true", help="one host, at a free port: as it is without")
    torchrun.add_argument(*either("rdzv_endpoint"), metavar="A:P", help="--master_addr and --master_port in one")
    for name in ("rdzv_backend", "rdzv_id", "rdzv_conf", "role", "local_addr", "monitor_interval", "start_method"):
        torchrun.add_argument(*either(name), metavar="...", help=argparse.SUPPRESS)  # of its rendezvous: nothing here
    torchrun.add_argument(*either("max_restarts"), type=int, default=0, help=argparse.SUPPRESS)
    it.add_argument("program")
    it.add_argument("arguments", nargs=argparse.REMAINDER)
    return it


def either(name: str) -> tuple[str, str]:
    """An option in OneFlow's spelling (underscores) and in torchrun's (dashes)."""
    return f"--{name}", f"--{name.replace('_', '-')}"


def ranks_here(words: str) -> int:
    if words in ("gpu", "auto", "cpu"):
        gpus = torch.cuda.device_count()
        if words == "gpu" and not gpus:
            raise argparse.ArgumentTypeError("gpu: torch sees no CUDA device here; give cpu, or a number")
        return gpus if gpus and words != "cpu" else os.cpu_count() or 1
    return number(words, "a number of ranks, cpu, gpu or auto")


def hosts_of(words: str) -> int:
    least, _, most = words.partition(":")
    if most and least != most:
        raise argparse.ArgumentTypeError(f"{words}: a run keeps the hosts it began with; give one number")
    return number(least, "a number of hosts")


def number(words: str, what: str) -> int:
    if not words.isdecimal():
        raise argparse.ArgumentTypeError(f"{what}; got {words!r}")
    return int(words)


def main(argv: Sequence[str] | None = None) -> int:
    given = parser().parse_args(argv)
    if given.rdzv_endpoint:
        given.master_addr, _, port = given.rdzv_endpoint.partition(":")
        given.master_port = int(port) if port.isdecimal() else 29400
    if given.standalone:
        given.master_addr, given.master_port = "127.0.0.1", 0
    if given.standalone and given.nnodes > 1:
        raise ArgumentError(f"--standalone is one host, and --nnodes {given.nnodes} are several: leave one of them out")
    if given.max_restarts:
        raise ArgumentError(
            f"--max_restarts {given.max_restarts}: ranks are not started anew; when one fails, all end, and a "
            "program that is started again goes on from its last checkpoint (docs/faults.md)"
        )
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
    if given.node_rank == 0:  # this launcher serves the store, so that no rank has to outlive the others
        store = serve(host, port, 300)
        port = store.port
    n = given.nproc_per_node
    secret = known() if given.nnodes > 1 else fresh()
    run = run_of(store, secret) if store is not None else None
    hosts = Hosts(given.node_rank, given.nnodes, n, host, port, run) if given.nnodes > 1 else None
    variables = [
        variables_of(
            i, n, given.node_rank, given.nnodes, host=host, port=port, secret=secret, transport=given.transport
        )
        for i in range(n)
    ]
    tell = hosts.ended if hosts is not None else partial(tell_end, cast(Signed, run))
    with contextlib.ExitStack() as files:
        kept = streams_of("3" if given.redirect_stdout_and_stderr else given.redirects, "--redirects", n)
        tee, seen = streams_of(given.tee, "--tee", n), shown_of(given.local_ranks_filter, n)
        folder = given.logdir if any(kept) or any(tee) else None
        labelled = n * given.nnodes > 1 and not given.no_label
        output = Output(given.logdir, kept, tee, seen, labelled, files)
        if labelled:
            shown = {"PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1"), LABELLED: "1"}
            variables = [{**shown, **own} for own in variables]
        processes = Processes(command, variables, [output.opened(i) for i in range(n)])
        output.follow(processes.started)
        try:
            ends = processes.wait(enough=hosts and hosts.look, on_exit=tell)
            failed = next((e for e in ends if e[1]), None)
            if hosts is not None and failed is not None:
                hosts.tell(failed[0], said(*failed).removeprefix(f"rank {failed[0]} "))
        except (KeyboardInterrupt, SystemExit) as stop:
            if hosts is not None:
                hosts.tell(hosts.first, "was interrupted, with all others of its host")
            processes.signal(signal.SIGINT)
            processes.end(GRACE / 2)
            output.finish()
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
        output.finish()
    if hosts is not None:
        hosts.end(3 * GRACE)
    where = f"; its output is in {given.logdir}/" if folder else ""
    return _told(failed, run, hosts, where)


def _told(failed: tuple[int, int] | None, run: Signed | None, hosts: Hosts | None, where: str) -> int:
    """Say which rank failed, if one did; returns the launcher's exit status."""
    if failed is None and (hosts is None or hosts.failure is None):
        return 0
    rank, code = failed or (0, 1)
    words = blamed(run, rank, code)[1] if hosts is None else hosts.failure
    print(f"weft.launch: {words}; every other rank was ended{where}", file=sys.stderr, flush=True)
    return code if code > 0 else 128 - code


def _stop(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def run_threads(given: argparse.Namespace) -> int:
    if (
        given.nnodes > 1
        or given.no_python
        or given.redirect_stdout_and_stderr
        or (given.tee, given.redirects, given.local_ranks_filter) != ("0", "0", None)
    ):
        raise ArgumentError("--threads runs a Python program's ranks in this one process; it takes -m and nothing more")
    if given.module and given.program in ("weft.oneflow", "weft.launch", "oneflow.distributed.launch"):
        raise ArgumentError(
            f"--threads -m {given.program}: it gives a program its own arguments and `__main__`, of which a process "
            "has one. Write `import weft.oneflow` at the top of the program and give --threads the program itself, or "
            "leave --threads out"
        )
    code, place, package = code_of(given.program, given.module)
    sys.argv = [place, *given.arguments]
    # Each rank has its own `__main__`; what looks it up in sys.modules, such as pickle, finds rank 0's.
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

    labelled = given.nproc_per_node > 1 and not given.no_label
    try:
        with labelled_threads() if labelled else contextlib.nullcontext():
            spawn_threads(given.nproc_per_node, run)
    except KeyboardInterrupt:
        print("weft.launch: interrupted; every rank was ended", file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(130)  # a rank may be in a kernel; its thread ends with the process
    return 0


class _Done(Exception):
    """A rank called sys.exit() with success."""


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ArgumentError as mistake:
        if hasattr(mistake, "__notes__"):  # a program's own, in a thread
            raise
        parser().error(str(mistake))
