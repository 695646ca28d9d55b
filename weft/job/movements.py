"""The data movements in a launch of a job, between ranks and between devices, as text."""

from __future__ import annotations

from weft.boxing import signature
from weft.boxing.links import ONE_HOST, Links
from weft.boxing.planner import cost_of
from weft.core.amount import amount
from weft.job.job import Job
from weft.job.value import Node, specs
from weft.ops import OPS


def movements(job: Job, links: Links = ONE_HOST) -> str:
    """Each movement: its value, bytes, layouts, readers and line of the program, and why the op that wanted it runs so;
    then why passes chose the layouts."""
    readers = job.readers()
    lines: list[str] = []
    totals = {"boxing": 0.0, "to_device": 0.0}
    for node in job.nodes:
        if node.op not in totals:
            continue
        (v, *_), acts = node.operands(), job.micro_batches if node.micro else 1
        if node.op == "to_device":
            moved = float(v.bytes)
            way = f"{node.args[2]} -> {node.args[1]}: copy"
        else:
            routes = node.extra["routes"] if "routes" in node.extra else (node.extra["route"],)
            moved, src, dst = sum(cost_of(route).moved for route in routes), routes[0].src, routes[0].dst
            way = f"{src.placement} {_layout(src.nd_sbp)} -> {dst.placement} {_layout(dst.nd_sbp)}: {node.args[1]}"
        totals[node.op] += moved * acts
        more = f" and {len(node.operands()) - 1} more" * (len(node.operands()) > 1)
        wanted = dict.fromkeys(f"%{n.name}" for v in node.outputs for n in readers[v] if n.op != "boxing")
        shown = ", ".join(list(wanted)[:3]) + f" and {len(wanted) - 3} more" * (len(wanted) > 3)
        lines.append(
            f"{amount(moved * acts):>9}  %{v.name.partition('.boxed')[0]}{more} {way}"
            + f", for {shown}" * bool(shown) + _why(node, links) + f"    # {node.at}" * bool(node.at)
        )  # fmt: skip
    copied = [f"{amount(totals['to_device']):>9}  copied between devices"] * (totals["to_device"] > 0)
    return "\n".join(
        [f"{amount(totals['boxing']):>9}  moved by each rank in a launch, at most", *copied, *lines, *job.reasons]
    )


def _why(node: Node, links: Links) -> str:
    """Why a value was moved, if not because the program, or a gradient's parameter, asked for the layout."""
    if node.extra.get("asked") is None:
        return ""
    name, args, chosen = node.extra["asked"]
    return f": {name}, {signature.reason(OPS[name], specs(args), links, chosen)}"


def _layout(nd_sbp: tuple[object, ...]) -> str:
    return f"({', '.join(map(str, nd_sbp))})"
