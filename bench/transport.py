"""An all-reduce between two processes, over shared memory and over Gloo, side by side.

python -m bench.transport
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from weft.core.rank import current
from weft.launch import spawn
from weft.transport import transport_of

CASES = (("1 KB", 256, 200, 15.0), ("256 KB", 1 << 16, 60, 0.0), ("4 MB", 1 << 20, 15, 5.0))  # elements, calls, goal
REPEATS = 12


def measure() -> None:
    """On each rank: the least of the repeats, the two taking turns so that both see the same machine."""
    torch.set_num_threads(1)
    rank, transport = current(), transport_of()
    group = transport.group(range(rank.world_size))
    dist.init_process_group("gloo")
    for name, count, calls, goal in CASES:
        t = torch.zeros(count)

        def time_of(call: Callable[[], object], calls: int = calls) -> float:
            group.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - start) / calls * 1e6

        pairs = [
            (time_of(lambda t=t: dist.all_reduce(t)), time_of(lambda t=t: group.all_reduce(t))) for _ in range(REPEATS)
        ]
        gloo, shared = (min(column) for column in zip(*pairs, strict=True))
        if rank.index == 0:
            wanted = f"  (at least {goal:g}x)" if goal else ""
            print(f"{name:>7} {gloo:10.1f} {shared:10.1f} {gloo / shared:8.1f}x{wanted}")
    dist.destroy_process_group()


def main() -> None:
    print(f"all-reduce, 2 processes, us, least of {REPEATS}\n{'':>7} {'Gloo':>10} {'shm':>10} {'ratio':>9}")
    ended = spawn(2, "bench.transport:measure", transport="shm")
    sys.stdout.write(ended[0].out)


if __name__ == "__main__":
    main()
