"""The data movements between ranks in a launch of a job, as text."""

from __future__ import annotations

from collections import defaultdict

from weft.boxing.planner import cost_of
from weft.core.amount import amount
from weft.job.job import Job
from weft.job.value import Node, Value


def movements(job: Job) -> str:
    """Each movement: its value, bytes, layouts, readers and line of the program; then why passes chose the layouts."""
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in job.nodes:
        for v in node.operands():
            readers[v].append(node)
    lines, total = [], 0.0
    for node in job.nodes:
        if node.op != "boxing":
            continue
        routes = node.extra["routes"] if "routes" in node.extra else (node.extra["route"],)
        moved = sum(cost_of(route).moved for route in routes) * (job.micro_batches if node.micro else 1)
        total += moved
        names = [v.name.partition(".boxed")[0] for v in node.operands()]
        what = f"%{names[0]}" + f" and {len(names) - 1} more" * (len(names) > 1)
        wanted = dict.fromkeys(f"%{n.name}" for v in node.outputs for n in readers[v] if n.op != "boxing")
        shown = ", ".join(list(wanted)[:3]) + f" and {len(wanted) - 3} more" * (len(wanted) > 3)
        lines.append(
            f"{amount(moved):>9}  {what} {routes[0].src.placement} {_layout(routes[0].src.nd_sbp)} -> "
            f"{routes[0].dst.placement} {_layout(routes[0].dst.nd_sbp)}: {node.args[1]}"
            + f", for {shown}" * bool(shown) + f"    # {node.at}" * bool(node.at)
        )  # fmt: skip
    return "\n".join([f"{amount(total):>9}  moved by each rank in a launch, at most", *lines, *job.reasons])


def _layout(nd_sbp: tuple[object, ...]) -> str:
    return f"({', '.join(map(str, nd_sbp))})"
